"""Files of lines that grow while they are read."""

from pathlib import Path

import pytest

from harness.system.tail import BLOCK_BYTES, end_of_lines, whole_lines


@pytest.mark.parametrize(
    ("content", "whole"),
    [
        pytest.param(b"", b"", id="nothing yet"),
        pytest.param(b'{"n":', b"", id="the first line is being written"),
        pytest.param(b"1\n2\n", b"1\n2\n", id="all lines are whole"),
        pytest.param(b"1\n2\n3", b"1\n2\n", id="the last is being written"),
        pytest.param(b"1\n" + b"x" * BLOCK_BYTES * 2, b"1\n", id="a long one is being written"),
        pytest.param(b"1\n" + b"x" * (BLOCK_BYTES - 1), b"1\n", id="its line ends where a block begins"),
    ],
)
def test_a_line_counts_once_it_is_whole(tmp_path: Path, content: bytes, whole: bytes) -> None:
    path = tmp_path / "lines"
    path.write_bytes(content)
    assert end_of_lines(path) == len(whole)
    assert whole_lines(path, 0) == whole
    assert whole_lines(path, end_of_lines(path)) == b""


def test_a_file_that_is_not_there_yet_has_no_lines(tmp_path: Path) -> None:
    assert end_of_lines(tmp_path / "none") == 0
    assert whole_lines(tmp_path / "none", 0) == b""
