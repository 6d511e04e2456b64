"""`chaos shrink`, and what a sweep's `--shrink` does with its findings; the judge knows at once."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.cli import app as cli
from harness.cli import shrink as command
from harness.cli.shrink import with_small_ones
from harness.progress import Silent
from harness.scenario.file import load_scenario, scenario_yaml
from harness.scenario.plan import make_plan
from harness.sweep.summary import summarize
from harness.sweep.sweep import Candidate, Sweep
from harness.verdict import ExitCode
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, PAUSE_LEADER, scenario
from tests.sweep.fake_judge import FakeJudge, kinds, pause_breaks_two

STORM = scenario(KILL_LEADER, {**PAUSE_LEADER, "at_s": 2.5}, EXPIRE_CONTROLLER, duration_s=20.0, driver="simulated")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    judge = FakeJudge(pause_breaks_two)
    monkeypatch.setattr("harness.analysis.engine.session.spark_session", lambda *_, **__: nullcontext())
    monkeypatch.setattr(command, "SparkJudge", lambda *_: judge)
    return judge


def chaos_shrink(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> int:
    path = folder / "storm.yaml"
    path.write_text(scenario_yaml(STORM), encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["chaos", "shrink", str(path), "--seed", "5", *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_it_ends_with_the_small_scenario_its_verdict_and_the_replay(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert chaos_shrink(monkeypatch, tmp_path, "--finding", "I10") == ExitCode.VIOLATED
    out, err = capsys.readouterr()
    assert sorted(kinds(load_scenario("shrunk/small-i10-5.yaml"))) == ["kill", "pause"]
    assert "I10 leader-completeness: I10 is broken" in out
    assert "chaos run shrunk/small-i10-5.yaml --driver simulated --seed 5" in out
    assert "round 1:" in err


def test_its_json_says_the_same(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    chaos_shrink(monkeypatch, tmp_path, "--json", "--out", "small.yaml")
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (data["finding"], data["scenario"], data["seed"], data["exit_code"]) == ("I9", "small.yaml", 5, 1)
    assert (data["end"], data["verdict"]["system"]) == ("no smaller schedule fails the same way", "FAIL")


def test_what_does_not_fail_so_is_a_mistake_in_the_command(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert chaos_shrink(monkeypatch, tmp_path, "--finding", "I1") == ExitCode.USAGE
    refusal = capsys.readouterr().err
    assert "does not fail the same way: found were I9 log-matching, I10 leader-completeness, not I1" in refusal
    assert not (tmp_path / "shrunk").exists()


def test_what_nothing_is_ever_found_by_is_refused_before_anything_is_simulated(
    judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert chaos_shrink(monkeypatch, tmp_path, "--finding", "I99") == ExitCode.USAGE
    assert "unknown finding 'I99'" in capsys.readouterr().err
    assert judge.judged == []


def test_a_sweep_shrinks_the_first_schedule_of_each_finding_and_none_twice(judge: FakeJudge, tmp_path: Path) -> None:
    sweep = Sweep(scenario=STORM, seed=1, schedules=1, root=tmp_path)
    verdicts = judge([Candidate(scenario=STORM, plan=make_plan(STORM, 5))])
    summary = summarize(sweep, verdicts, simulated_s=1, judged_s=1)
    shrunk = with_small_ones(None, sweep, summary, Silent())  # type: ignore[arg-type] # Spark is not used
    assert [each.what for each in shrunk.violations] == ["I9", "I10"]
    assert [path.name for path in sorted(sweep.shrunk.iterdir())] == ["small-i10.yaml", "small-i9.yaml"]
    for each in shrunk.violations:
        assert each.small == f"chaos run {sweep.shrunk}/small-{each.what.lower()}.yaml --driver simulated --seed 5"


def test_a_small_one_that_shows_two_findings_stands_for_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    judge = FakeJudge(lambda candidate: ["I9", "I10"] if "pause" in kinds(candidate) else [])
    monkeypatch.setattr(command, "SparkJudge", lambda *_: judge)
    sweep = Sweep(scenario=STORM, seed=1, schedules=1, root=tmp_path)
    verdicts = judge([Candidate(scenario=STORM, plan=make_plan(STORM, 5))])
    summary = summarize(sweep, verdicts, simulated_s=1, judged_s=1)
    shrunk = with_small_ones(None, sweep, summary, Silent())  # type: ignore[arg-type] # Spark is not used
    assert len({each.small for each in shrunk.violations}) == len(list(sweep.shrunk.iterdir())) == 1
