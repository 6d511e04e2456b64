"""Which place counts for runs, and which folder of this machine they are made in."""

from pathlib import Path

import pytest

from chaos_airflow import settings

BESIDE = Path(__file__).resolve().parents[2] / "runs"


@pytest.mark.parametrize(
    ("configured", "environment", "place", "local"),
    [
        pytest.param("", "", f"file://{BESIDE}", BESIDE, id="nothing is said: beside the plugins"),
        pytest.param("", "/data/runs", "file:///data/runs", Path("/data/runs"), id="CHAOS_RUNS"),
        pytest.param("/a/runs", "/b/runs", "file:///a/runs", Path("/a/runs"), id="Airflow's configuration comes first"),
        pytest.param("file:///a/runs", "", "file:///a/runs", Path("/a/runs"), id="a local URL"),
        pytest.param("memory://b/runs", "", "memory:///b/runs", BESIDE, id="remote: runs are made beside the plugins"),
        pytest.param(
            "memory://b/runs", "/b", "memory:///b/runs", Path("/b"), id="remote: or in the next that is local"
        ),
        pytest.param("memory://b/runs", "s3://b", "memory:///b/runs", BESIDE, id="remote: whatever is local"),
    ],
)
def test_the_place_of_runs(
    monkeypatch: pytest.MonkeyPatch, configured: str, environment: str, place: str, local: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", configured)
    monkeypatch.setenv("CHAOS_RUNS", environment)
    folder = settings.runs_folder()
    assert f"{folder.protocol}://{folder.path}" == place
    assert settings.local_runs_folder() == local
    assert settings.is_remote() == (folder.protocol != "file")


def test_a_relative_path_and_the_home_are_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for configured, local in (("runs", tmp_path / "runs"), ("~/runs", tmp_path / "home" / "runs")):
        monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", configured)
        assert settings.local_runs_folder() == local


def test_a_place_that_nothing_can_read_is_an_error_of_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__KAFKA_CHAOS__RUNS", "nowhere://bucket/runs")
    with pytest.raises(OSError, match="nowhere://bucket/runs"):
        settings.runs_folder()
