"""What a JVM does about the file of classes: use it, make it, or neither."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.analysis.class_archive import OFF_VARIABLE, ClassArchive, class_archive

JUDGES = """
import sys
from pathlib import Path
from harness.analysis.session import spark_session

sys.prefix = sys.argv[1]
with spark_session(typical=True) as spark:
    assert spark.range(3).count() == 3
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    print("spark-classes-" in Path(f"/proc/{jvm}/maps").read_text(), flush=True)
"""


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.mark.jvm
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="what a process has mapped is asked of Linux")
def test_the_first_session_that_judges_leaves_its_classes_to_the_next(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for mapped in (False, True):
        done = subprocess.run(
            [sys.executable, "-c", JUDGES, str(tmp_path / "environment")],
            env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.stdout, done.stderr, done.returncode) == (f"{mapped}\n", "", 0)
        assert len(list((tmp_path / "environment/share/kafka-chaos").iterdir())) == 1
        assert not list(scratch.iterdir())


def test_a_session_that_does_not_judge_leaves_nothing(scratch, parent):
    assert class_archive(scratch, make=False, parent=parent).options == []


def test_the_file_is_made_in_the_scratch_folder_and_kept_instead_of_older_ones(scratch, parent):
    archive = class_archive(scratch, make=True, parent=parent)
    assert archive.made is not None
    assert archive.options == [f"-XX:ArchiveClassesAtExit={archive.made}"]
    assert archive.made.parent == scratch
    (parent / "spark-classes-of-an-older-spark.jsa").write_bytes(b"")
    archive.made.write_bytes(b"classes")
    archive.keep()
    again = class_archive(scratch, make=True, parent=parent)
    assert again.options == [f"-XX:SharedArchiveFile={again.file}"]
    assert [path.read_bytes() for path in parent.iterdir()] == [b"classes"]
    assert not list(scratch.iterdir())


def test_a_jvm_that_left_nothing_is_no_reason_to_stop(scratch, parent):
    class_archive(scratch, make=True, parent=parent).keep()
    assert list(parent.iterdir()) == []


def test_another_java_has_another_file(scratch, parent, tmp_path, monkeypatch):
    mine = class_archive(scratch, make=True, parent=parent)
    java = tmp_path / "jdk/bin/java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert class_archive(scratch, make=True, parent=parent).file != mine.file


def test_without_java_there_is_no_file(scratch, parent, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    assert class_archive(scratch, make=True, parent=parent) == ClassArchive()


def test_it_can_be_turned_off(scratch, parent, monkeypatch):
    monkeypatch.setenv(OFF_VARIABLE, "off")
    assert class_archive(scratch, make=True, parent=parent) == ClassArchive()


def test_outside_of_a_virtual_environment_there_is_no_place_for_it(scratch, monkeypatch):
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert class_archive(scratch, make=True) == ClassArchive()


def test_where_little_is_free_none_is_made(scratch, parent, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 5, 5))
    assert class_archive(scratch, make=True, parent=parent) == ClassArchive()


def test_a_place_that_cannot_be_made_is_none(scratch, parent):
    parent.write_text("a file where the folder should be")
    assert class_archive(scratch, make=True, parent=parent) == ClassArchive()
