"""Why a run did not hold: every reason once, those first that matter most."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import app as cli
from harness.judging.why import why
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, ObjectiveResult, Remark, RunResult, SuiteResult
from harness.verdict import ExitCode, ObjectiveVerdict
from tests.verdicts import CONFIRMED, FAIL, INCONCLUSIVE, PASS, UNKNOWN

HELD: dict[str, Any] = {
    "run_id": "r",
    "scenario": "s",
    "driver": "process",
    "seed": 1,
    "started_at": "",
    "duration_s": 1.0,
    "faults": [FaultResult(injection=0, fault="kill", targets=["1"], verdict=CONFIRMED, detail="gone")],
    "checks": [CheckResult(check="I10", promise="p", verdict=PASS)],
    "suites": [SuiteResult(suite="records", verdict=PASS, evaluated=1, unsuccessful=0)],
}
BROKEN = CheckResult(check="I10", promise="p", verdict=FAIL, violations=2, reason="the first one")
SILENT = CheckResult(check="I9", promise="p", verdict=UNKNOWN, reason="no rows")
UNMET = SuiteResult(suite="records", verdict=FAIL, evaluated=2, unsuccessful=1, failures=["one is not"])
MISSED = FaultResult(injection=0, fault="pause", targets=["1"], verdict=INCONCLUSIVE, detail="nothing was seen")
MADE_GOOD = MISSED.model_copy(update={"compensated": True})
HOLE = Remark(text="2 torn lines", phase="judge", subject="operations/a.jsonl", forbids_pass=True)
LATE = ObjectiveResult(
    objective="no_write_s", limit=8, unit="s", measured=9, verdict=ObjectiveVerdict.MISSED, reason="orders-0"
)
KEPT = LATE.model_copy(update={"measured": 1, "verdict": ObjectiveVerdict.MET})
UNSEEN = ObjectiveResult(objective="recovery_s", limit=5, unit="s", verdict=ObjectiveVerdict.UNKNOWN, reason="no fault")
HARMLESS = Remark(text="a torn last line", phase="judge")


def result_of(**changes: Any) -> RunResult:
    return RunResult.model_validate(HELD | changes)


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        pytest.param({}, [], id="a run that held has none"),
        pytest.param({"remarks": [HARMLESS]}, [], id="a remark that forbids nothing is none"),
        pytest.param(
            {"checks": [SILENT, BROKEN], "suites": [UNMET]},
            ["judge I10 leader-completeness: the first one", "expectations suite records: one is not",
             "judge I9 log-matching: no rows"],
            id="broken promises come first, each by its first finding",
        ),
        pytest.param(
            {"checks": [SILENT], "remarks": [HARMLESS, HOLE]},
            ["judge operations/a.jsonl: 2 torn lines", "judge I9 log-matching: no rows"],
            id="then what the evidence lacks, and what could not be judged for it",
        ),
        pytest.param({"faults": [MISSED]}, ["drive pause 1: nothing was seen"], id="a fault that was not seen"),
        pytest.param({"faults": [*HELD["faults"], MADE_GOOD]}, [], id="a fault that a spare replaces"),
        pytest.param({"faults": []}, ["drive no fault was injected"], id="no fault at all"),
        pytest.param(
            {"objectives": [LATE, UNSEEN], "checks": [SILENT]},
            ["judge I9 log-matching: no rows", "judge objective no_write_s: 9 s (at most 8 s): orders-0",
             "judge objective recovery_s: not measured (at most 5 s): no fault"],
            id="objectives, after promises",
        ),
        pytest.param({"residue": ["pid 12 runs"]}, ["stop pid 12 runs"], id="what was left"),
        pytest.param({"checks": [], "suites": []}, ["judge nothing was judged"], id="it was not judged"),
    ],
)  # fmt: skip
def test_the_reasons_are_those_that_make_the_verdicts(changes: dict[str, Any], reasons: list[str]) -> None:
    result = result_of(**changes)
    assert [f"{reason.phase} {reason}" for reason in why(result)] == reasons
    assert (result.verdicts.exit_code is ExitCode.HELD) is (not reasons)
    assert {reason.verdict for reason in why(result)} <= {
        result.verdicts.fault, result.verdicts.system, result.verdicts.environment, result.verdicts.objectives, UNKNOWN
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path)
    made.plan.write_text("{}", encoding="utf-8")
    return made


def chaos_why(folder: RunFolder, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("sys.argv", ["chaos", "why", str(folder.root), *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_command_says_it_in_one_screen_and_ends_as_the_run_did(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result_of(checks=[BROKEN], remarks=[HOLE]).save(folder.verdict)
    assert chaos_why(folder, monkeypatch) == ExitCode.VIOLATED
    shown = capsys.readouterr().out
    assert "I10 leader-completeness" in shown
    assert "fault CONFIRMED   system FAIL   environment CLEAN" in shown
    assert len(shown.splitlines()) < 10
    assert chaos_why(folder, monkeypatch, "--json") == ExitCode.VIOLATED
    answer = json.loads(capsys.readouterr().out)
    assert [(each["verdict"], each["phase"], each["subject"], each["title"]) for each in answer["reasons"]] == [
        ("FAIL", "judge", "I10", "I10 leader-completeness"),
        ("UNKNOWN", "judge", "operations/a.jsonl", "operations/a.jsonl"),
    ]
    assert (answer["exit_code"], answer["verdicts"]["system"]) == (1, "FAIL")


NOT_STARTED = Remark(text="the phase start failed: no port", phase="start", forbids_pass=True, environment=True)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"remarks": [NOT_STARTED], "checks": [], "suites": []}, ExitCode.ENVIRONMENT, id="it failed"),
        pytest.param({"remarks": [NOT_STARTED], "checks": [BROKEN]}, ExitCode.VIOLATED, id="a violation outranks it"),
    ],
)
def test_a_start_that_failed_ends_with_one_code_wherever_that_is_asked(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], code: ExitCode
) -> None:
    result = result_of(**changes)
    result.save(folder.verdict)
    assert json.loads(folder.verdict.read_text(encoding="utf-8"))["exit_code"] == code
    assert (RunResult.load(folder.verdict).exit_code, chaos_why(folder, monkeypatch)) == (code, code)


@pytest.mark.parametrize(
    ("damaged", "code"),
    [
        pytest.param(True, ExitCode.INCONCLUSIVE, id="whose flag forbade a pass"),
        pytest.param(False, ExitCode.HELD, id="whose flag did not"),
    ],
)
def test_a_result_from_before_remarks_had_a_type(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, damaged: bool, code: ExitCode
) -> None:
    result_of().save(folder.verdict)
    before = json.loads(folder.verdict.read_text(encoding="utf-8"))
    del before["remarks"]
    before |= {"evidence": ["a torn line"], "evidence_damaged": damaged}
    folder.verdict.write_text(json.dumps(before), encoding="utf-8")
    assert RunResult.load(folder.verdict).remarks == [Remark(text="a torn line", forbids_pass=damaged)]
    assert chaos_why(folder, monkeypatch) == code


@pytest.mark.parametrize(
    ("changes", "outcome", "code"),
    [
        pytest.param({"objectives": [LATE]}, "missed", ExitCode.VIOLATED, id="a missed objective has its own word"),
        pytest.param(
            {"objectives": [UNSEEN]}, "inconclusive", ExitCode.INCONCLUSIVE, id="an unknown one proves nothing"
        ),
        pytest.param({"objectives": [LATE, UNSEEN]}, "missed", ExitCode.VIOLATED, id="missed outranks unknown"),
        pytest.param(
            {"objectives": [LATE], "faults": [MISSED]}, "missed", ExitCode.VIOLATED, id="and a fault not seen"
        ),
        pytest.param(
            {"objectives": [LATE], "residue": ["a"]}, "broken", ExitCode.ENVIRONMENT, id="residue outranks it"
        ),
        pytest.param(
            {"objectives": [LATE], "remarks": [NOT_STARTED]}, "broken", ExitCode.ENVIRONMENT, id="so does a start"
        ),
        pytest.param(
            {"objectives": [LATE], "checks": [BROKEN]}, "violated", ExitCode.VIOLATED, id="a promise outranks all"
        ),
        pytest.param({"objectives": [KEPT]}, "held", ExitCode.HELD, id="a met objective"),
    ],
)
def test_a_missed_objective_is_an_outcome_and_no_verdict_on_the_system(
    tmp_path: Path, changes: dict[str, Any], outcome: str, code: ExitCode
) -> None:
    result = result_of(**changes)
    assert (result.outcome, result.exit_code) == (outcome, code)
    assert (result.verdicts.system is FAIL) is ("checks" in changes)
    result.save(tmp_path / "verdict.json")
    written = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert (written["outcome"], written["verdicts"]["objectives"]) == (outcome, result.objectives[0].verdict.name)
    assert RunResult.load(tmp_path / "verdict.json") == result
