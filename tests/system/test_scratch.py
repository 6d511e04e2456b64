"""Where scratch folders are; that they go with their process, the reaper's tests show."""

import tempfile
from pathlib import Path

import pytest

from harness.system import scratch


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for files in memory; `tmp_path` is where other temporary files belong."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(scratch, "MEMORY", folder)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("TMPDIR", raising=False)
    return folder


def test_small_files_are_in_memory_and_others_are_not(memory: Path, tmp_path: Path) -> None:
    with scratch.scratch_folder(small=True) as small, scratch.scratch_folder() as large:
        assert (small.parent, large.parent) == (memory, tmp_path)
    assert not small.exists()
    assert not large.exists()


def test_small_files_are_where_temporary_files_belong_if_the_user_set_it(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with scratch.scratch_folder(small=True) as small:
        assert small.parent == tmp_path
    assert not any(memory.iterdir())


def test_small_files_are_not_in_memory_where_that_has_no_room(
    memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "FREE_BYTES", 1 << 60)
    with scratch.scratch_folder(small=True) as small:
        assert small.parent == tmp_path
    assert not any(memory.iterdir())
