"""What ends a process ends nothing else, and what takes too much is ended."""

import faulthandler
import os
import resource
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import psutil
import pytest

from harness.simulation.own_process import ProcessDied, in_own_process, in_own_processes, limited

MEMORY_BYTES = 256 << 20


def _dies_by(number: signal.Signals) -> None:
    faulthandler.disable()  # that of pytest has much to say
    os.kill(os.getpid(), number)


def _never_ends() -> None:
    with limited(0.2, MEMORY_BYTES):
        for _ in count():
            pass


def test_what_the_work_comes_to_is_handed_over() -> None:
    parent = os.getpid()
    assert in_own_process(lambda: ["made by another", os.getpid() != parent]) == ["made by another", True]


def test_of_many_works_each_has_its_own_process_and_a_death_is_one_answer_among_others() -> None:
    works: list[Callable[[], Any]] = [partial(abs, -4), partial(os._exit, 7), partial(abs, -6)]
    made = dict(in_own_processes(works, at_once=2))
    assert (made[0], made[2], str(made[1])) == (4, 6, "its process ended by itself, with exit code 7")


def test_processes_of_works_that_are_given_up_are_ended() -> None:
    works: list[Callable[[], Any]] = [os.getpid, partial(time.sleep, 60)]
    before = {*psutil.Process().children()}  # such as a JVM that other tests share
    working = in_own_processes(works, at_once=2)
    next(working)
    (child,) = {*psutil.Process().children()} - before
    working.close()
    assert not child.is_running()


def test_more_than_a_pipe_holds_is_handed_over_too() -> None:
    assert len(in_own_process(lambda: b"x" * (1 << 22))) == 1 << 22


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        pytest.param(partial(os._exit, 7), "ended by itself, with exit code 7", id="it exits"),
        pytest.param(partial(_dies_by, signal.SIGSEGV), "died by SIGSEGV", id="a crash"),
        pytest.param(partial(_dies_by, signal.SIGKILL), "died by SIGKILL", id="out of memory, as the kernel has it"),
        pytest.param(_never_ends, "more CPU time than it may", id="it never ends"),
    ],
)
def test_a_death_is_told_with_its_cause(work: Callable[..., Any], reason: str) -> None:
    with pytest.raises(ProcessDied, match=reason):
        in_own_process(work)


def test_memory_beyond_the_limit_is_refused_and_afterwards_all_is_as_it_was() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGPROF)
    with pytest.raises(MemoryError), limited(60, MEMORY_BYTES):
        bytearray(2 * MEMORY_BYTES)
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGPROF)) == before
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert len(bytearray(2 * MEMORY_BYTES)) == 2 * MEMORY_BYTES
