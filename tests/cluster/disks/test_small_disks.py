"""A file system of one's own that is kept full for a while, and that is gone with the processes that see it."""
# ruff: noqa: ASYNC240 - small local files only

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.disks import ballast, small_disks
from harness.system.waiting import until

pytestmark = [
    pytest.mark.real_time("a real file system, which another process fills"),
    pytest.mark.skipif(bool(small_disks.lacking()), reason=small_disks.lacking()),
]
AT_MOST_S = 60
LAST_PAGE_BYTES = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Yield a process that has a file system of its own, and where that is seen from here."""
    folder = tmp_path / "disk"
    folder.mkdir()
    script = f"{' '.join(small_disks.mounting(folder))} && echo mounted && exec sleep {AT_MOST_S}"
    with subprocess.Popen(
        [*small_disks.IN_A_NAMESPACE, "sh", "-c", script], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "mounted\n"
            yield holder.pid, small_disks.seen_through(holder.pid, folder)
        finally:
            holder.kill()


def filling(folder: Path, at_most_s: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", ballast.__name__, str(folder), str(at_most_s)])


def free_bytes(folder: Path) -> int:
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


async def full(folder: Path, wanted: bool) -> None:
    async def look() -> bool:
        return free_bytes(folder) == 0

    await until(look, lambda seen: seen is wanted, what=f"disk full: {wanted}", timeout_s=AT_MOST_S, every_s=0.01)


async def grown(file: Path, size: int) -> None:
    async def look() -> int:
        return file.stat().st_size

    await until(look, lambda seen: seen > size, what="the space that was given back", timeout_s=AT_MOST_S, every_s=0.01)


async def test_a_full_disk_takes_nothing_more_until_the_filler_is_told_to_end(disk: tuple[int, Path]) -> None:
    _, folder = disk
    assert 0 < free_bytes(folder) <= small_disks.DISK_BYTES
    other = folder / "segment"
    other.write_bytes(bytes(LAST_PAGE_BYTES))
    with filling(folder, AT_MOST_S) as filler:
        await full(folder, True)
        with pytest.raises(OSError, match="No space left"), other.open("ab") as file:
            file.write(bytes(2 * LAST_PAGE_BYTES))
        size = (folder / ballast.NAME).stat().st_size
        other.unlink()
        await grown(folder / ballast.NAME, size)
        filler.send_signal(signal.SIGTERM)
        assert filler.wait(AT_MOST_S) == 0
    assert list(folder.iterdir()) == []


async def test_a_full_disk_has_space_again_when_its_time_is_over(disk: tuple[int, Path]) -> None:
    _, folder = disk
    with filling(folder, 3):
        await full(folder, True)
        await full(folder, False)


async def test_nobody_else_sees_the_disk_and_it_goes_with_its_last_process(disk: tuple[int, Path]) -> None:
    holder, folder = disk
    (folder / "segment").write_bytes(b"x")
    outside = Path(f"/{folder.relative_to(f'/proc/{holder}/root')}")
    assert list(outside.iterdir()) == []
    assert str(outside) not in Path("/proc/self/mountinfo").read_text()
    os.kill(holder, signal.SIGKILL)

    async def seen() -> bool:
        return folder.exists()

    await until(seen, lambda it: not it, what="end of the disk", timeout_s=AT_MOST_S, every_s=0.01)


def test_a_machine_that_does_not_answer_has_no_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_disks, "IN_A_NAMESPACE", ("sh", "-c", f"exec sleep {AT_MOST_S}"))
    monkeypatch.setattr(small_disks, "_PROBE_TIMEOUT_S", 0.05)
    assert small_disks.lacking.__wrapped__() == "no file system could be mounted within 0.05 s"
