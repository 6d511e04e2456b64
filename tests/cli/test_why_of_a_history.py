"""`chaos why` on a folder of `chaos judge`."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.ingest.answer import HistoryResult
from harness.store.result import CheckResult, Remark
from harness.verdict import ExitCode, SystemVerdict

KEPT = Path(__file__).parents[1] / "histories"
UNDECIDED = "the answer depends on settings that are not stated (if they apply: --set idempotence=true): 2 times"


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """The folder of a history with an answer of each kind."""
    checks = [
        CheckResult(check="phantom", promise="p", verdict=SystemVerdict.PASS),
        CheckResult(check="duplicate", promise="p", verdict=SystemVerdict.UNKNOWN, reason=UNDECIDED),
        CheckResult(check="lost-write", promise="p", verdict=SystemVerdict.FAIL, violations=1, reason="v7 is lost"),
    ]
    remarks = [Remark(text="no line asks for the end of orders-2", subject="operations")]
    result = HistoryResult(
        name="h", evidence={}, settings=[], checks=checks, unjudged=[], remarks=remarks, counts={"sends": 3}
    )
    (tmp_path / "verdict.json").write_text(result.model_dump_json(), encoding="utf-8")
    return tmp_path


def test_it_lists_what_is_broken_and_what_would_decide(chaos: Any, judged: Path) -> None:
    status, out, _ = chaos("why", str(judged))
    said = " ".join(out.split())
    assert status == ExitCode.VIOLATED
    assert "v7 is lost" in said
    assert "--set idempotence=true" in said.replace("│ ", "")
    assert "orders-2" in said
    assert "3 promises judged, 0 not" in said


def test_its_json_has_each_reason_with_the_title_of_its_check(chaos: Any, judged: Path) -> None:
    status, out, _ = chaos("why", str(judged), "--json")
    data = json.loads(out)
    assert (status, data["exit_code"], data["verdict"]) == (ExitCode.VIOLATED, ExitCode.VIOLATED, "FAIL")
    assert [(row["title"], row["text"]) for row in data["reasons"]] == [
        ("lost-write", "v7 is lost"),
        ("duplicate", UNDECIDED),
    ]


@pytest.mark.parametrize(("name", "found", "seed"), [("kafka-7164", "I9 log-matching", 41), ("intact", "held", 1)])
def test_a_kept_history_is_refused_with_the_command_that_runs_its_scenario(
    chaos: Any, name: str, found: str, seed: int
) -> None:
    kept = KEPT / name
    again = f"chaos run {kept}/scenario.yaml --seed {seed}"
    message = f"{kept}: a kept history, not a run; its verdict: {found}; to run its scenario: {again}\n"
    assert chaos("why", str(kept)) == (ExitCode.USAGE, "", message)


def test_a_verdict_that_is_none_is_refused(chaos: Any, tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text("{}", encoding="utf-8")
    status, _, errors = chaos("why", str(tmp_path))
    assert status == ExitCode.USAGE
    assert "not the answer of `chaos judge`" in " ".join(errors.split())
