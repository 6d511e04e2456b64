"""A file that is replaced is whole at any moment, and nothing is left beside it."""

from pathlib import Path

import pytest

from harness.system.whole_file import replace_text


def test_a_reader_that_has_the_old_one_open_goes_on_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "broker-1.starts"
    replace_text(path, "1")
    with path.open(encoding="utf-8") as old:
        replace_text(path, "2", mode=0o640)
        assert (old.read(), path.read_text(encoding="utf-8")) == ("1", "2")
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_what_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_text(path, "text")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
