import errno
from pathlib import Path

import pytest

from harness.store.folder import RunFolder
from harness.store.reserve import PART_BYTES, PARTS, give_back, keep_room, with_room, write_whole


class Disk:
    """Has room for a file once so many parts of the room were given back."""

    def __init__(self, folder: RunFolder, parts: int, code: int = errno.ENOSPC) -> None:
        self.folder, self.parts, self.code = folder, parts, code
        self.tries = 0

    def write(self) -> str:
        self.tries += 1
        if PARTS - len(list(self.folder.reserve.glob("*"))) < self.parts:
            raise OSError(self.code, "no")
        return "written"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    keep_room(folder)
    return folder


def test_the_room_is_taken_from_the_disk_and_given_back(folder: RunFolder) -> None:
    taken = [path.stat().st_blocks * 512 for path in folder.reserve.iterdir()]
    assert (len(taken), min(taken) >= PART_BYTES) == (PARTS, True)
    give_back(folder)
    give_back(folder)
    assert list(folder.root.iterdir()) == []


@pytest.mark.parametrize(("parts", "tries"), [pytest.param(0, 1, id="none"), pytest.param(3, 4, id="some")])
def test_a_full_disk_takes_as_much_of_the_room_as_it_needs(folder: RunFolder, parts: int, tries: int) -> None:
    disk = Disk(folder, parts)
    assert (with_room(folder, disk.write), disk.tries) == ("written", tries)
    assert len(list(folder.reserve.iterdir())) == PARTS - parts


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        pytest.param(PARTS + 1, errno.ENOSPC, id="all of it is not enough"),
        pytest.param(1, errno.EACCES, id="it is another error"),
    ],
)
def test_what_cannot_be_written_at_all_is_an_error(folder: RunFolder, parts: int, code: int) -> None:
    with pytest.raises(OSError, match="no"):
        with_room(folder, Disk(folder, parts, code).write)


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_other(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_whole(folder, folder.verdict, "old")
    give_back(folder)

    def full(path: Path, text: str, **_: object) -> int:
        path.write_bytes(text[:1].encode())
        raise OSError(errno.ENOSPC, "no")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no"):
        write_whole(folder, folder.verdict, "new")
    assert [(path.name, path.read_text()) for path in folder.root.iterdir()] == [("verdict.json", "old")]
