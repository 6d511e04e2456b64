"""Which calls of a process fail, on which files and for how long."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.disks import failing_calls, tracer
from harness.cluster.disks.disk_errors import DiskError
from harness.cluster.disks.failing_calls import files_in
from harness.system.waiting import until

pytestmark = [
    pytest.mark.real_time("a real process, which another one traces"),
    pytest.mark.skipif(bool(tracer.lacking()), reason=tracer.lacking()),
]
WRITING = """
import os, time
log, other = (os.open(path, os.O_RDWR | os.O_CREAT) for path in ("orders-0/0.log", "orders-0/note"))
print("ready", flush=True)
def outcome(call, *arguments):
    try:
        call(*arguments)
        return "-"
    except OSError as error:
        return os.strerror(error.errno)
while True:
    of_log = outcome(os.write, log, b"x"), outcome(os.pread, log, 1, 0), outcome(os.write, other, b"x")
    with open("outcomes", "w") as file:
        file.write("\\n".join(of_log))
    time.sleep(0.01)
"""
WHOLE = ["-", "-", "-"]
AT_MOST_S = 120


@pytest.fixture
def server(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    (tmp_path / "orders-0").mkdir()
    argv = [sys.executable, "-c", WRITING]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def failing(pid: int, error: DiskError, seconds: float, folder: Path) -> "subprocess.Popen[bytes]":
    where = [str(folder), str(folder), str(folder / "trace")]
    return subprocess.Popen([sys.executable, "-m", failing_calls.__name__, str(pid), error, str(seconds), *where])


@pytest.mark.parametrize(
    ("error", "outcomes"),
    [
        pytest.param(DiskError.IO, ["Input/output error", "Input/output error", "-"], id="nothing of a log works"),
        pytest.param(DiskError.READ_ONLY, ["Read-only file system", "-", "-"], id="a log can be read"),
    ],
)
@pytest.mark.parametrize("end", ["terminate", "kill"])
async def test_calls_on_a_log_fail_and_on_nothing_else_until_who_traces_it_ends(
    server: "subprocess.Popen[str]", tmp_path: Path, error: DiskError, outcomes: list[str], end: str
) -> None:
    async def seen() -> list[str]:
        path = tmp_path / "outcomes"
        return path.read_text().split("\n") if path.exists() else []

    await until(seen, lambda now: now == WHOLE, what="a whole disk", timeout_s=AT_MOST_S)
    with failing(server.pid, error, AT_MOST_S, tmp_path) as breaker:
        await until(seen, lambda now: now == outcomes, what="a failing disk", timeout_s=AT_MOST_S)
        getattr(breaker, end)()
    await until(seen, lambda now: now == WHOLE, what="a whole disk again", timeout_s=AT_MOST_S)


def test_it_ends_with_its_time(server: "subprocess.Popen[str]", tmp_path: Path) -> None:
    with failing(server.pid, DiskError.IO, 0.5, tmp_path) as breaker:
        assert breaker.wait(AT_MOST_S) == 0


def test_logs_and_checkpoints_are_to_fail(tmp_path: Path) -> None:
    for name in ("orders-0/0.log", "orders-0/0.index", "orders-1/7.log", "meta.properties"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files = set(files_in(tmp_path))
    assert {file for file in files if not file.endswith(".tmp")} == {"orders-0/0.log", "orders-1/7.log"}
    assert "replication-offset-checkpoint.tmp" in files
