"""Sweeps without Spark: which seeds they have, and what many verdicts come to."""

from pathlib import Path
from typing import Any

import pytest

from harness.cli import app as cli
from harness.cli.exit_codes import exit_code_of
from harness.errors import EvidenceError, HarnessError, Interrupted
from harness.judging.assessment import remark_on
from harness.store.result import CheckResult, FaultResult, Remark, RunResult
from harness.store.seal import Hole
from harness.sweep.summary import Summary, summarize
from harness.sweep.sweep import (
    ScheduleVerdict,
    Sweep,
    absent,
    failed,
    load_sweep,
    new_sweep,
    replay_command,
    request_file,
    schedule_seed,
    verdict_of,
)
from harness.verdict import ExitCode, FaultVerdict, SystemVerdict
from tests.raising import raising
from tests.simulation.scenarios import KILL_LEADER, scenario
from tests.verdicts import CONFIRMED, FAIL, MISMATCH, PASS, UNKNOWN


def verdict(
    number: int, check: SystemVerdict = PASS, fault: FaultVerdict = CONFIRMED, **changed: Any
) -> ScheduleVerdict:
    result = RunResult(
        run_id=f"small-{number}",
        scenario="small",
        driver="simulated",
        seed=100 + number,
        started_at="",
        duration_s=1.0,
        faults=[FaultResult(injection=0, fault="kill", targets=["1"], verdict=fault, detail="it was seen")],
        checks=[CheckResult(check="I1", promise="p", verdict=check, reason=f"{check.name} in {number}")],
        **changed,
    )
    return verdict_of(number=number, seed=100 + number, digest=f"digest {number}", result=result)


DAMAGED: dict[str, Any] = {"remarks": [Remark(text="a line is missing", forbids_pass=True)]}
NO_LOG: dict[str, Any] = {"remarks": [remark_on(Hole(place="brokers/1", kind="state_changes", text="it is missing"))]}
NO_JOURNAL: dict[str, Any] = {"remarks": [remark_on(Hole(place="journal.jsonl", kind="journal", text="it is missing"))]}
BROKEN = failed(number=9, seed=109, run_id="small-9", error="SimulationError: it does not end")


def summary_of(*verdicts: ScheduleVerdict) -> Summary:
    sweep = Sweep(
        scenario=scenario(KILL_LEADER),
        seed=1,
        schedules=len(verdicts),
        root=Path(),
        replay="chaos run small --driver simulated",
    )
    return summarize(sweep, verdicts, simulated_s=2.0, judged_s=1.0)


def test_a_longer_sweep_begins_as_a_shorter_one_and_no_seed_comes_twice() -> None:
    seeds = [schedule_seed(7, number) for number in range(1000)]
    assert seeds[:10] == [schedule_seed(7, number) for number in range(10)]
    assert len({*seeds, *(schedule_seed(8, number) for number in range(1000))}) == 2000


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        pytest.param([verdict(0), verdict(1)], ExitCode.HELD, id="all held"),
        pytest.param([verdict(0), verdict(1, FAIL), BROKEN], ExitCode.VIOLATED, id="a violation outranks all"),
        pytest.param([verdict(0, FAIL, **NO_LOG)], ExitCode.INCONCLUSIVE, id="a finding in evidence that is missing"),
        pytest.param([verdict(0, FAIL, **NO_JOURNAL)], ExitCode.VIOLATED, id="a finding in other evidence"),
        pytest.param([verdict(0), verdict(1, UNKNOWN)], ExitCode.INCONCLUSIVE, id="a check knows nothing"),
        pytest.param([verdict(0), BROKEN], ExitCode.INCONCLUSIVE, id="a schedule without a history"),
        pytest.param([verdict(0, fault=MISMATCH)], ExitCode.INCONCLUSIVE, id="a fault that did something else"),
        pytest.param([verdict(0, **DAMAGED)], ExitCode.INCONCLUSIVE, id="damaged evidence"),
        pytest.param([], ExitCode.INCONCLUSIVE, id="nothing was simulated"),
    ],
)
def test_the_exit_code_is_that_of_a_run_over_all_schedules(verdicts: list[ScheduleVerdict], code: ExitCode) -> None:
    assert summary_of(*verdicts).exit_code == code


def test_a_violation_is_named_with_its_first_seeds_and_how_to_replay_it() -> None:
    summary = summary_of(verdict(0), *(verdict(number, FAIL) for number in range(1, 9)))
    (violation,) = summary.violations
    assert (violation.what, violation.schedules, violation.seeds) == ("I1", 8, [101, 102, 103, 104, 105])
    assert violation.first == "FAIL in 1"
    assert violation.replay == "chaos run small --driver simulated --seed 101"
    assert (summary.held, summary.violated, summary.inconclusive) == (1, 8, 0)


@pytest.mark.parametrize(
    ("doubtful", "what", "first"),
    [
        pytest.param(verdict(0, UNKNOWN), "I1 unknown", "UNKNOWN in 0", id="an unknown check"),
        pytest.param(BROKEN, "no history", "SimulationError: it does not end", id="no history"),
        pytest.param(
            verdict(0, **DAMAGED),
            "evidence",
            "a line is missing",
            id="damaged evidence",
        ),
        pytest.param(
            verdict(0, fault=MISMATCH),
            "fault mismatch",
            "kill 1: it was seen",
            id="a fault that missed",
        ),
    ],
)
def test_whatever_proves_nothing_is_named_with_its_reason(doubtful: ScheduleVerdict, what: str, first: str) -> None:
    (doubt,) = summary_of(doubtful, verdict(1)).doubts
    assert (doubt.what, doubt.first, doubt.seeds) == (what, first, [doubtful.seed])


def test_equal_histories_are_counted_once_and_missing_ones_not_at_all() -> None:
    again = verdict(0).model_copy(update={"number": 1})
    assert summary_of(verdict(0), again, verdict(2), BROKEN).distinct == 2


def test_a_schedule_that_the_table_has_lost_is_a_verdict_that_proves_nothing(tmp_path: Path) -> None:
    sweep = new_sweep(scenario(KILL_LEADER), 7, 3, tmp_path, "chaos run small --driver simulated")
    lost = absent(sweep.histories, {number: schedule_seed(7, number) for number in range(3)}, [0, 2])
    assert [(each.number, each.seed, each.digest) for each in lost] == [(1, schedule_seed(7, 1), "")]
    summary = summarize(sweep, [verdict(0), verdict(2), *lost], simulated_s=2.0, judged_s=1.0)
    assert (summary.schedules, summary.errors, summary.exit_code) == (3, 1, ExitCode.INCONCLUSIVE)
    assert "schedules.parquet" in summary.doubts[0].first


def test_the_replay_has_the_options_of_the_sweep() -> None:
    command = replay_command("my scenario.yaml", ["no-truncation"], ["cluster.brokers=5"])
    wanted = "chaos run 'my scenario.yaml' --driver simulated --planted-bug no-truncation --set cluster.brokers=5"
    assert command == wanted


def test_a_sweep_ends_with_what_was_found_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def carried_out(sweep: Sweep, master: str | None, *, shrink: bool, guided: bool) -> Summary:
        assert not guided
        assert (sweep.seed, sweep.schedules, master) == (7, 3, "local[2]")
        return summarize(sweep, [verdict(0), verdict(1, FAIL), BROKEN], simulated_s=2, judged_s=1)

    monkeypatch.setattr("harness.cli.simulate.carry_out", carried_out)
    monkeypatch.setenv("COLUMNS", "160")
    options = ["--schedules", "3", "--seed", "7", "--master", "local[2]", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["chaos", "simulate", "smoke", *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, _ = capsys.readouterr()
    assert ended.value.code == ExitCode.VIOLATED
    assert "smoke, seed 7: 3 schedules, 2 of them distinct" in out
    assert "I1 one-leader-per-epoch: chaos run smoke --driver simulated --seed 101" in out
    assert "no history: chaos run smoke --driver simulated --seed 109" in out
    assert "1 held, 1 violated, 1 inconclusive (1 without a history)" in out


@pytest.mark.parametrize("begun", [True, False], ids=["in the middle", "before it began"])
def test_a_sweep_that_is_interrupted_claims_no_violation(
    begun: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(sweep: Sweep, *_arguments: object, **_options: object) -> Summary:
        if begun:
            sweep.histories.mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.cli.simulate.carry_out", interrupted)
    monkeypatch.setattr("sys.argv", ["chaos", "simulate", "smoke", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == exit_code_of(Interrupted())
    folders = list(tmp_path.iterdir())
    where = f"; what was done is in {folders[0]}" if begun else " before anything was done"
    assert f"the sweep was interrupted{where}" in " ".join(capsys.readouterr().err.split())
    assert len(folders) == int(begun)


def test_a_sweep_s_folder_says_what_was_asked(tmp_path: Path) -> None:
    made = new_sweep(scenario(KILL_LEADER), 7, 3, tmp_path, "chaos run small --driver simulated")
    assert load_sweep(made.root) == made


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        pytest.param(None, "its simulation did not finish", id="nothing was simulated"),
        pytest.param("{", "sweep.json: cannot be read", id="a torn file"),
        pytest.param('{"seed": 1}', "sweep.json: cannot be read", id="keys are missing"),
    ],
)
def test_what_cannot_be_judged_again_is_said(
    content: str | None,
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    made = new_sweep(scenario(KILL_LEADER), 7, 3, tmp_path, "chaos run small --driver simulated")
    if content is not None:
        request_file(made.root).write_text(content, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["chaos", "rejudge", str(made.root)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == exit_code_of(EvidenceError())
    assert wanted in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["keep", "smoke", "--about", "a test"], ["shrink", "smoke", "--finding", "I10", "--out"]],
    ids=lambda it: it[0],
)
def test_what_could_not_be_written_in_the_end_is_refused_at_the_start(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("sys.argv", ["chaos", *command, str(tmp_path / "file" / "kept"), "--seed", "1"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == ExitCode.USAGE
    assert "kept cannot be written: " in capsys.readouterr().err


def test_a_sweep_of_which_nothing_began_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def no_spark(*_arguments: object, **_options: object) -> Summary:
        raise HarnessError("Spark did not start: no such master")

    monkeypatch.setattr("harness.cli.simulate.carry_out", no_spark)
    monkeypatch.setattr("sys.argv", ["chaos", "simulate", "smoke", "--master", "foo", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        cli.main()
    assert "no such master" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_objectives_are_named_as_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.cli.simulate.carry_out", raising(HarnessError("no Spark here")))
    options = ["--set", "objectives.no_write_s=8", "--set", "objectives.lag_records=9", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["chaos", "simulate", "smoke", *options])
    with pytest.raises(SystemExit):
        cli.main()
    assert "not judged: objectives (no_write_s, lag_records); a sweep has virtual time" in capsys.readouterr().err
