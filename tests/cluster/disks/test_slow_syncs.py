"""How long syncs of a process take while they are held back, and that they are quick again."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.disks import slow_syncs, tracer
from harness.system.waiting import until

pytestmark = [
    pytest.mark.real_time("a real process, which another one traces"),
    pytest.mark.skipif(bool(tracer.lacking()), reason=tracer.lacking()),
]
SYNCING = """
import os, sys, time
file = os.open("file", os.O_RDWR | os.O_CREAT)
print("ready", flush=True)
while True:
    os.fsync(file)
    time.sleep(0.01)
"""
AT_MOST_S = 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    argv = [sys.executable, "-c", SYNCING]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def slowing(pid: int, seconds: float, trace: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", slow_syncs.__name__, str(pid), "0.2", str(seconds), str(trace)])


def tracer_of(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.startswith("TracerPid"))


@pytest.mark.parametrize("end", ["terminate", "kill"])
async def test_every_sync_takes_longer_until_the_delayer_ends_and_the_process_goes_on(
    server: "subprocess.Popen[str]", tmp_path: Path, end: str
) -> None:
    trace = tmp_path / "trace"

    async def times() -> list[float]:
        return slow_syncs.times_s(trace)

    async def tracer() -> str:
        return tracer_of(server.pid)

    assert slow_syncs.times_s(trace) == []
    with slowing(server.pid, AT_MOST_S, trace) as delayer:
        taken = await until(times, lambda seen: len(seen) > 1, what="slow syncs", timeout_s=AT_MOST_S)
        assert min(taken) >= 0.2
        getattr(delayer, end)()
    await until(tracer, lambda pid: pid == "0", what="no tracer", timeout_s=AT_MOST_S)
    assert server.poll() is None


def test_it_ends_with_its_time(server: "subprocess.Popen[str]", tmp_path: Path) -> None:
    with slowing(server.pid, 0.5, tmp_path / "trace") as delayer:
        assert delayer.wait(AT_MOST_S) == 0
    assert tracer_of(server.pid) == "0"


def test_a_process_that_is_gone_is_not_slowed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with slowing(gone.pid, AT_MOST_S, tmp_path / "trace") as delayer:
        assert delayer.wait(AT_MOST_S) == 1
