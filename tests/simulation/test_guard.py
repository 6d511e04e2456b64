import _thread
import contextlib
import datetime
import mmap
import os
import random
import re
import secrets
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.simulation.guard import Forbidden, Guard

HERE = Path(__file__)


@pytest.mark.parametrize(
    "reach",
    [
        pytest.param(lambda: time.time(), id="the wall clock"),
        pytest.param(lambda: time.time_ns(), id="the wall clock in nanoseconds"),
        pytest.param(lambda: time.monotonic(), id="the monotonic clock"),
        pytest.param(lambda: time.perf_counter(), id="the performance counter"),
        pytest.param(lambda: time.clock_gettime(time.CLOCK_REALTIME), id="a clock by its number"),
        pytest.param(lambda: time.gmtime(), id="the time in parts"),
        pytest.param(lambda: time.strftime("%Y"), id="the time as text"),
        pytest.param(lambda: time.thread_time_ns(), id="the thread's own time"),
        pytest.param(lambda: time.sleep(0), id="sleeping"),
        pytest.param(lambda: select.select([], [], [], 0), id="waiting for the kernel"),
        pytest.param(lambda: signal.setitimer(signal.ITIMER_REAL, 0), id="a timer of the kernel"),
        pytest.param(lambda: random.random(), id="the global generator"),
        pytest.param(lambda: random.choice([1]), id="a choice of the global generator"),
        pytest.param(lambda: random.shuffle([1]), id="a shuffle of the global generator"),
        pytest.param(lambda: random.Random(), id="a generator without a seed"),
        pytest.param(lambda: random.SystemRandom().random(), id="the system's generator"),
        pytest.param(lambda: random.uniform(0, 1), id="a number of the global generator"),
        pytest.param(lambda: datetime.datetime.now(datetime.UTC), id="the date and time"),
        pytest.param(lambda: datetime.datetime.today(), id="the local date and time"),  # noqa: DTZ002
        pytest.param(lambda: datetime.date.today(), id="the date"),  # noqa: DTZ011
        pytest.param(lambda: os.getrandom(1), id="random bytes of the kernel"),
        pytest.param(lambda: os.urandom(1), id="random bytes of the system"),
        pytest.param(lambda: ssl.RAND_bytes(1), id="random bytes of OpenSSL"),
        pytest.param(lambda: uuid.uuid4(), id="a random UUID"),
        pytest.param(lambda: uuid.uuid1(), id="a UUID of the time"),
        pytest.param(lambda: secrets.token_hex(), id="a secret"),
        pytest.param(lambda: threading.Thread(target=print).start(), id="a thread"),
        pytest.param(lambda: _thread.start_new_thread(print, ()), id="a thread without an object"),
        pytest.param(lambda: HERE.open(), id="a file"),
        pytest.param(lambda: HERE.exists(), id="whether there is a file"),
        pytest.param(lambda: HERE.stat(), id="a file's size and times"),
        pytest.param(lambda: os.utime(HERE.parent / "absent"), id="setting a file's times"),
        pytest.param(lambda: os.truncate(HERE.parent / "absent", 0), id="cutting a file"),
        pytest.param(lambda: (HERE.parent / "absent").symlink_to(HERE.parent / "absent"), id="a symbolic link"),
        pytest.param(lambda: mmap.mmap(-1, 1), id="mapped memory"),
        pytest.param(lambda: socket.getaddrinfo("127.0.0.1", 0), id="an address"),
        pytest.param(lambda: socket.gethostname(), id="the machine's name"),
        pytest.param(lambda: os.open(HERE, os.O_RDONLY), id="a file descriptor"),
        pytest.param(lambda: HERE.read_text(), id="a path's text"),
        pytest.param(lambda: list(HERE.parent.iterdir()), id="a folder"),
        pytest.param(lambda: socket.socket(), id="a socket"),
        pytest.param(lambda: subprocess.run(["true"], check=False), id="a process"),
        pytest.param(lambda: os.posix_spawn("/absent", ["absent"], {}), id="a process without an object"),
    ],
)
def test_whoever_reaches_for_something_real_ends_the_run_even_when_that_is_swallowed(reach: Callable[..., Any]) -> None:
    with pytest.raises(Forbidden, match="in a simulated run"), Guard():
        reach()
    with pytest.raises(Forbidden, match="in a simulated run"), Guard(), contextlib.suppress(Exception):
        reach()


def test_the_message_names_the_one_who_did_it() -> None:
    with pytest.raises(Forbidden, match=r"time\.time in a simulated run, by .*test_guard\.py:\d+"), Guard():
        time.time()


def test_a_seeded_generator_is_fine_and_so_is_a_first_import() -> None:
    sys.modules.pop("colorsys", None)
    with Guard():
        assert random.Random(1).random() == random.Random(1).random()
        import colorsys  # noqa: F401


def test_a_date_that_is_given_is_fine() -> None:
    before = datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC)
    with Guard():
        assert isinstance(before, datetime.datetime)
        assert datetime.datetime.fromtimestamp(before.timestamp(), datetime.UTC) == before
    assert type(datetime.datetime.now(datetime.UTC)) is type(before)


def test_what_runs_in_a_simulation_does_not_take_what_the_guard_replaces_by_its_name() -> None:
    """The guard replaces a name in its module, and so must not be anticipated by `from time import monotonic`."""
    anticipating = re.compile(r"from (datetime|time|os|select|signal|secrets|ssl|uuid|random) import (?!Random\b)")
    root = HERE.parents[2]
    rooms = [root / "harness/broker", root / "harness/simulation", root / "plugins/kafka_chaos/faults"]
    taking = [
        path for room in rooms for path in room.rglob("*.py") if anticipating.search(path.read_text(encoding="utf-8"))
    ]
    assert taking == []


def test_afterwards_everything_is_as_it_was() -> None:
    before = (time.time, random.random, random.Random.seed, os.urandom, threading.Thread.start, open)
    with Guard():
        pass
    assert (time.time, random.random, random.Random.seed, os.urandom, threading.Thread.start, open) == before
    assert HERE.read_text()
    random.Random()


def test_what_another_thread_does_is_its_own_affair() -> None:
    seen: list[object] = []
    begin, ended = threading.Event(), threading.Event()

    def elsewhere() -> None:
        begin.wait()
        seen.extend((time.monotonic(), random.random(), len(os.urandom(4)), HERE.exists()))
        ended.set()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    with Guard():
        begin.set()
        while not ended.is_set():
            pass
    thread.join()
    assert len(seen) == 4


def test_while_it_is_lifted_the_real_can_be_had() -> None:
    with Guard() as guard, guard.lifted():
        assert time.monotonic() > 0
        assert HERE.read_text()


def test_when_it_was_lifted_it_is_up_again() -> None:
    guard = Guard()

    def reach() -> None:
        with guard:
            with guard.lifted():
                time.monotonic()
            time.monotonic()

    with pytest.raises(Forbidden, match=r"time\.monotonic"):
        reach()
