"""`chaos trend`, of whatever lies in a folder."""

import os
from pathlib import Path
from typing import Any

import pytest

from harness.scenario.file import load_scenario
from harness.store.coverage import Coverage, Injected, Played, When
from harness.sweep.summary import summarize
from harness.sweep.sweep import ScheduleVerdict, new_sweep
from harness.verdict import ExitCode
from tests.report.trend.test_trend import made
from tests.verdicts import CONFIRMED, PASS


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs and what lies beside runs."""
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    for name in ("a-20261120T020000-00000007", "b-20261121T020000-00000007"):
        made(runs, name)
    (runs / "unjudged").mkdir()
    (runs / "unjudged" / "plan.json").touch()
    (runs / "note.txt").touch()
    (runs / "site").mkdir()
    os.mkfifo(runs / "pipe")
    return tmp_path


def swept(parent: Path) -> Path:
    sweep = new_sweep(load_scenario("smoke"), 1, 1, parent, "chaos run smoke")
    injected = [Injected(fault="isolate", role=Played.LEADER, when=When.QUIET, tried=4, confirmed=4)]
    verdict = ScheduleVerdict(
        number=0,
        seed=1,
        run_id="r",
        digest="d",
        error="",
        fault=CONFIRMED,
        system=PASS,
        exit_code=ExitCode.HELD,
    )
    coverage = Coverage(runs=1, injected=injected)
    summary = summarize(sweep, [verdict], simulated_s=1.0, judged_s=1.0, coverage=coverage)
    sweep.summary.write_text(summary.model_dump_json(), encoding="utf-8")
    return sweep.root


@pytest.mark.parametrize(
    ("arguments", "runs", "left_out"),
    [
        pytest.param([], 2, [], id="the folder of runs, if none is named"),
        pytest.param(["runs"], 2, [], id="a folder of runs"),
        pytest.param(["runs/a-20261120T020000-00000007"], 1, [], id="one run of many"),
        pytest.param(
            ["runs/*"],
            2,
            ["runs/note.txt: not the folder of a run", "runs/pipe: not", "runs/unjudged: not judged yet"],
            id="all that lies in it",
        ),
    ],
)
def test_it_shows(chaos: Any, place: Path, arguments: list[str], runs: int, left_out: list[str]) -> None:
    places = [str(path) for each in arguments for path in (sorted(Path().glob(each)))]
    status, out, err = chaos("trend", *places)
    assert (status, out.strip()) == (0, "trend.html")
    assert f"{runs} run" in Path("trend.html").read_text(encoding="utf-8")
    assert err.count("left out") == len(left_out)
    for sentence in left_out:
        assert f"left out: {sentence}" in err


@pytest.mark.parametrize(
    "places_of",
    [
        pytest.param([""], id="one sweep"),
        pytest.param([".."], id="a folder of sweeps"),
        pytest.param(["../.."], id="a folder of folders of sweeps, as Airflow has them"),
        pytest.param(["../../.."], id="a folder of runs, as Airflow has it"),
        pytest.param(["", "..", "../.."], id="one sweep that is named in three ways"),
    ],
)
def test_it_counts_each_sweep_once(chaos: Any, place: Path, places_of: list[str]) -> None:
    sweep = swept(place / "sweeps" / "20261120T030000")
    assert chaos("trend", "runs", *(str(sweep / place_of) for place_of in places_of))[0] == 0
    assert "✓ 4 " in Path("trend.html").read_text(encoding="utf-8")


def test_a_damaged_summary_is_said_and_leaves_the_other_sweeps_alone(chaos: Any, place: Path) -> None:
    whole, damaged = swept(place / "sweeps"), swept(place / "sweeps")
    (damaged / "summary.json").write_bytes(b"\xff")
    status, _, err = chaos("trend", str(whole), str(damaged))
    assert f"left out: {damaged}/summary.json: not the summary of a sweep" in err
    assert status == 0
    assert "✓ 4 " in Path("trend.html").read_text(encoding="utf-8")
    Path("trend.html").unlink()
    assert chaos("trend", str(damaged))[0] == 2
    assert not Path("trend.html").exists()


def test_a_sweep_without_a_summary_is_not_judged_yet(chaos: Any, place: Path) -> None:
    sweep = swept(place / "sweeps")
    (sweep / "summary.json").unlink()
    assert chaos("trend", str(sweep)) == (2, "", f"{sweep}: not judged yet\n")
    assert not Path("trend.html").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["runs/note.txt"], "runs/note.txt: not the folder of a run", id="a file"),
        pytest.param(["nowhere"], "nowhere: no such folder", id="what is not there"),
        pytest.param(["runs", "--out", "runs"], "runs cannot be written: it is a folder", id="a page that is a folder"),
        pytest.param(["runs", "s3://bucket/runs"], "s3://bucket/runs: a page of many runs is made of", id="elsewhere"),
    ],
)
def test_it_refuses(chaos: Any, place: Path, arguments: list[str], sentence: str) -> None:
    status, out, err = chaos("trend", *arguments)
    assert (status, out) == (2, "")
    assert sentence in err
    assert not Path("trend.html").exists()
