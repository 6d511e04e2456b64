"""Why something could not be written, in words."""

import errno
from pathlib import Path

import pytest

from harness.system.writable import describe_error


def mounted_at(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.is_mount())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named(tmp_path: Path, number: int) -> None:
    disk = mounted_at(tmp_path)
    unnamed, named = OSError(number, "full"), OSError(number, "full", "/proc/self/gone")
    assert describe_error(unnamed, tmp_path / "new" / "file") == f"the disk {disk} is full: [Errno {number}] full"
    assert describe_error(named, tmp_path).startswith("the disk /proc is full: ")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(
            PermissionError(errno.EACCES, "no", "/file"), "[Errno 13] no: '/file'", id="another error of files"
        ),
        pytest.param(ValueError("wrong"), "wrong", id="any other error"),
        pytest.param(OSError(), "OSError", id="an error without words"),
    ],
)
def test_other_errors_say_what_they_say(tmp_path: Path, error: Exception, words: str) -> None:
    assert describe_error(error, tmp_path) == words
