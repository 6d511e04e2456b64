"""Which Java starts a release: programs of two lines that print a version, as a real one does."""

from pathlib import Path

import pytest

from harness.cluster.systems.kafka.javas import launcher
from harness.cluster.systems.kafka.releases import RELEASES
from harness.cluster.systems.system import system_named
from harness.errors import ClusterError

OLD = RELEASES["2.2.2"]
NAMED = "CHAOS_JAVA_11"


def java_home(folder: Path, version: str) -> Path:
    program = folder / version / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk {version} 2023-01-17' >&2\n")
    program.chmod(0o755)
    return folder / version


@pytest.mark.parametrize("version", ['version "11.0.20"', 'version "1.8.0_392"'])
def test_a_release_of_an_older_java_is_started_with_the_one_that_is_named(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home(tmp_path, version)
    monkeypatch.setenv(NAMED, str(home))
    assert launcher(OLD) == str(home / "bin" / "java")


@pytest.mark.parametrize(
    ("version", "text"),
    [
        pytest.param('version "17.0.9"', "is Java 17", id="one that is too new"),
        pytest.param("an unknown program", "prints no version", id="a Java without a version"),
    ],
)
def test_a_java_that_does_not_do_is_refused(
    version: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home(tmp_path, version)
    monkeypatch.setenv(NAMED, str(home))
    assert system_named("kafka:2.2.2").lacks() == (
        f"Apache Kafka 2.2.2 needs Java 11 or less: {NAMED} is {home}, but {home}/bin/java {text}"
    )


def test_without_an_older_java_the_variable_that_is_to_name_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NAMED, raising=False)
    needs = "Apache Kafka 2.2.2 needs Java 11 or less"
    with pytest.raises(ClusterError, match=f"^{needs}: set {NAMED} to the home of one$"):
        launcher(OLD)
    monkeypatch.setenv(NAMED, str(tmp_path))
    with pytest.raises(ClusterError, match=f"^{needs}: {NAMED} is {tmp_path}, but {tmp_path}/bin/java is not a pro"):
        launcher(OLD)


def test_all_others_are_started_with_the_java_of_zookeeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java_home(tmp_path, 'version "17.0.9"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv(NAMED, str(java_home(tmp_path, 'version "11.0.20"')))
    others = [release for release in RELEASES.values() if release.last_java is None]
    assert {launcher(release) for release in others} == {str(home / "bin" / "java")}
    assert {release.version for release in RELEASES.values()} > {release.version for release in others}
