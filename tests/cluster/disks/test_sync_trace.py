"""What a process has synced, by the calls that a tracer noted."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cluster.disks import tracer
from harness.cluster.disks.sync_trace import synced_files, traced

FILES = """
import os
for name, synced in [("synced", True), ("written", False), ("replaced", True), ("emptied", True), ("emptied", False)]:
    with open(f"{name}.tmp", "wb") as file:
        file.write(b"1")
        if synced:
            os.fsync(file.fileno())
    os.rename(os.path.abspath(f"{name}.tmp"), os.path.abspath(name))
with open("later", "wb") as file:
    os.fdatasync(file.fileno())
    file.write(b"2")
"""


@pytest.mark.parametrize(
    ("lines", "synced"),
    [
        pytest.param(["7 fsync(4</d/a>)  = 0"], ["/d/a"], id="a sync"),
        pytest.param(["7 fdatasync(4</d/a>) = 0 <0.000012>"], ["/d/a"], id="a sync of what is in it"),
        pytest.param(["7 fsync(4</d/a>) = -1 EIO (Input/output error)"], [], id="one that failed"),
        pytest.param(["7 fsync(4</d/a> <unfinished ...>"], [], id="one that has not returned"),
        pytest.param(
            [
                "7 fsync(4</d/a> <unfinished ...>",
                "8 fsync(5</d/b> <unfinished ...>",
                "8 <... fsync resumed>)              = 0",
            ],
            ["/d/b"],
            id="two at once",
        ),
        pytest.param(["7 <... fsync resumed>) = 0"], [], id="the end of one that began unseen"),
        pytest.param(
            ["7 fsync(4</d/a.tmp>) = 0", '7 rename("/d/a.tmp", "/d/a") = 0'], ["/d/a"], id="a rename after it"
        ),
        pytest.param(
            ["7 fsync(4</d/a>) = 0", '7 rename("/d/a.tmp", "/d/a" <unfinished ...>', "7 <... rename resumed>) = 0"],
            [],
            id="a file that is replaced by one without",
        ),
        pytest.param(
            ["7 fsync(4</d/a>) = 0", '7 renameat2(AT_FDCWD, "/d/b", AT_FDCWD, "/d/a", RENAME_NOREPLACE) = -1 EEXIST'],
            ["/d/a"],
            id="a rename that failed",
        ),
        pytest.param(["7 fsync(4</d/a> <unfi", "7 +++ killed by SIGKILL +++"], [], id="a torn line"),
    ],
)
def test_a_file_counts_as_synced_from_its_first_sync_on(tmp_path: Path, lines: list[str], synced: list[str]) -> None:
    trace = tmp_path / "trace"
    trace.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert synced_files(trace) == {Path(path) for path in synced}


@pytest.mark.real_time("a real process, which another one traces")
@pytest.mark.skipif(bool(tracer.lacking()), reason=tracer.lacking())
def test_a_process_is_traced_from_its_start_and_in_each_of_its_lives(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    for life in ("first", "second"):
        folder = tmp_path / life
        folder.mkdir()
        subprocess.run(traced([sys.executable, "-c", FILES], trace), cwd=folder, check=True, timeout=60)
    in_order = [tmp_path / life / name for life in ("first", "second") for name in ("later", "replaced", "synced")]
    assert sorted(path for path in synced_files(trace) if tmp_path in path.parents) == in_order
