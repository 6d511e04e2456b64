import os
from pathlib import Path

import pytest

from harness.store.history import JsonlWriter, read_jsonl


def test_a_full_disk_leaves_no_half_line_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lines.jsonl"
    write = os.write

    def first_three_bytes_only(descriptor: int, data: memoryview) -> int:
        if len(data) < len(b'{"n":1}\n'):
            raise OSError("no space left")
        return write(descriptor, data[:3])

    with JsonlWriter(path) as writer:
        writer.write({"n": 0})
        monkeypatch.setattr(os, "write", first_three_bytes_only)
        with pytest.raises(OSError, match="no space left"):
            writer.write({"n": 1})
        monkeypatch.undo()
        writer.write({"n": 2})
    assert list(read_jsonl(path)) == [{"n": 0}, {"n": 2}]
