"""Fetching a release with a Maven that does as told: a program of two lines in PATH."""

from pathlib import Path

import pytest

from harness.cluster.systems.kafka.jars import CHECKSUMS, VARIABLE, changed, fetch, folder_of, lacking
from harness.cluster.systems.kafka.releases import RELEASES
from harness.errors import ClusterError

RELEASE = RELEASES["3.9.1"]
JAR = "kafka_2.13-3.9.1.jar"
COPIES = f"""
for word; do
    case "$word" in -DoutputDirectory=*) mkdir -p "${{word#*=}}"; echo jar >"${{word#*=}}/{JAR}";; esac
done"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "cache"


def maven(folder: Path, does: str) -> None:
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\necho Downloading\n{does}\n")
    program.chmod(0o755)


def test_a_release_is_fetched_once(tmp_path: Path) -> None:
    maven(tmp_path, COPIES)
    lines: list[str] = []
    assert lacking(RELEASE)
    assert fetch(RELEASE, lines.append) == folder_of(RELEASE)
    assert (lacking(RELEASE), changed(RELEASE), lines) == ("", [], ["Downloading"])
    maven(tmp_path, "exit 1")
    assert fetch(RELEASE, lines.append) == folder_of(RELEASE)


@pytest.mark.parametrize(
    ("does", "text"),
    [
        pytest.param("echo '[ERROR] no such release'; exit 1", "[ERROR] no such release", id="Maven says why"),
        pytest.param("exit 1", "Downloading", id="the last lines of one that does not"),
    ],
)
def test_what_could_not_be_fetched_is_not_there(tmp_path: Path, cache: Path, does: str, text: str) -> None:
    maven(tmp_path, does)
    with pytest.raises(ClusterError) as refused:
        fetch(RELEASE, lambda _: None)
    assert text in str(refused.value)
    assert list(cache.iterdir()) == []


def test_without_maven_the_folder_for_jars_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=f"no mvn in PATH.*{folder_of(RELEASE)}"):
        fetch(RELEASE, lambda _: None)


@pytest.mark.parametrize(
    ("does", "names"),
    [
        pytest.param(lambda folder: (folder / JAR).write_text("x"), [JAR], id="a jar is another"),
        pytest.param(lambda folder: (folder / "more.jar").write_text("x"), ["more.jar"], id="there is one more"),
        pytest.param(lambda folder: (folder / JAR).unlink(), [JAR], id="one is gone"),
        pytest.param(lambda folder: (folder / CHECKSUMS).unlink(), [], id="the earlier content is unknown"),
    ],
)
def test_jars_that_were_changed_are_named(tmp_path: Path, does: object, names: list[str]) -> None:
    maven(tmp_path, COPIES)
    folder = fetch(RELEASE, lambda _: None)
    assert callable(does)
    does(folder)
    assert changed(RELEASE) == names


def test_a_cache_that_cannot_be_a_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    maven(tmp_path, COPIES)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "mvn"))
    with pytest.raises(ClusterError, match=f"no folder for releases can be made: .*{tmp_path / 'mvn'}"):
        fetch(RELEASE, lambda _: None)


def test_an_empty_variable_is_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder_of(RELEASE) == tmp_path / "kafka-chaos" / "kafka" / "3.9.1"
