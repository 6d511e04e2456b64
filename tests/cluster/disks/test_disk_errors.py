"""Which calls of a process fail while its disk is said to, and that they work again."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.disks import disk_errors
from harness.cluster.disks.disk_errors import DiskError

pytestmark = [
    pytest.mark.real_time("a real process, which another one lets fail"),
    pytest.mark.skipif(bool(disk_errors.lacking()), reason=disk_errors.lacking()),
]
CALLS = """
import json, os, sys
file = os.open("file", os.O_RDWR | os.O_CREAT)
calls = {
    "pwrite": lambda: os.pwrite(file, b"x", 0),
    "pread": lambda: os.pread(file, 1, 0),
    "fsync": lambda: os.fsync(file),
    "ftruncate": lambda: os.ftruncate(file, 1),
    "write": lambda: os.write(file, b"x"),
    "open": lambda: os.close(os.open("other", os.O_RDWR | os.O_CREAT)),
}
print("ready", flush=True)
for _ in sys.stdin:
    failed = {}
    for name, call in calls.items():
        try:
            call()
        except OSError as error:
            failed[name] = error.errno
    print(json.dumps(failed), flush=True)
"""
AT_MOST_S = 60


class Server:
    """A process whose disk may fail."""

    def __init__(self, process: "subprocess.Popen[str]", pipe: Path) -> None:
        self._process, self._pipe = process, pipe

    def failed(self) -> dict[str, int]:
        """Return by which error each call fails now."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        failed: dict[str, int] = json.loads(self._process.stdout.readline())
        return failed

    def failing(self, error: DiskError, seconds: float) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-m", disk_errors.__name__, str(self._pipe), error, str(seconds)]
        breaker = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert breaker.stdout is not None
        assert breaker.stdout.readline() == "failing\n"
        return breaker

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    environment = {**os.environ, **disk_errors.environment(tmp_path, "server")}
    with subprocess.Popen(
        [sys.executable, "-c", CALLS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Server(process, disk_errors.pipe_of(tmp_path, "server", process.pid))
        process.kill()


@pytest.mark.parametrize(
    ("error", "calls"),
    [(DiskError.IO, {"pwrite", "pread", "fsync", "ftruncate"}), (DiskError.READ_ONLY, {"pwrite", "ftruncate"})],
)
def test_calls_at_a_position_fail_until_the_breaker_is_told_to_end(
    server: Server, error: DiskError, calls: set[str]
) -> None:
    assert server.failed() == {}
    with server.failing(error, AT_MOST_S) as breaker:
        assert server.failed() == dict.fromkeys(calls, disk_errors.error_number(error))
        breaker.terminate()
        assert breaker.wait(AT_MOST_S) == 0
    assert server.failed() == {}


def test_calls_work_again_when_the_time_is_over(server: Server) -> None:
    with server.failing(DiskError.IO, 0.1) as breaker:
        assert breaker.wait(AT_MOST_S) == 0
    assert server.failed() == {}


def test_a_breaker_ends_when_the_process_has_died(server: Server) -> None:
    with server.failing(DiskError.IO, AT_MOST_S) as breaker:
        server.kill()
        breaker.terminate()
        assert breaker.wait(AT_MOST_S) != 0
