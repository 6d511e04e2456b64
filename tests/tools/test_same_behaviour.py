"""What the comparison of two revisions takes for the same, and what it does not."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tools.same_behaviour import damaged_evidence, meaning, show, with_numbers

BEFORE = {
    "verdicts": {"system": "PASS"},
    "exit_code": 0,
    "checks": [{"check": "I10", "verdict": "PASS", "violations": 0, "expected": 2, "notes": 0, "reason": "a sentence"}],
    "evidence": ["a torn line"],
    "evidence_damaged": True,
    "duration_s": 1.5,
}
CHECK: dict[str, Any] = BEFORE["checks"][0]  # type: ignore[index]
LINES = 5


@pytest.mark.parametrize(
    "after",
    [
        pytest.param({"duration_s": 2.5}, id="another duration"),
        pytest.param({"checks": [{**CHECK, "reason": "other words"}]}, id="other words"),
        pytest.param({"checks": [{**CHECK, "check": "I10 leader-completeness"}]}, id="a check with its name"),
        pytest.param(
            {"evidence": [{"text": "a torn line", "forbids_pass": True}], "evidence_damaged": None}, id="typed remarks"
        ),
    ],
)
def test_words_and_shapes_may_change(after: dict[str, Any]) -> None:
    assert dict(meaning({**BEFORE, **after})) == dict(meaning(BEFORE))


@pytest.mark.parametrize(
    "after",
    [
        pytest.param({"verdicts": {"system": "FAIL"}}, id="another verdict"),
        pytest.param({"exit_code": 1}, id="another exit code"),
        pytest.param({"checks": [{**CHECK, "verdict": "UNKNOWN"}]}, id="another answer of a check"),
        pytest.param({"checks": [{**CHECK, "expected": 1}]}, id="another number of findings"),
        pytest.param({"checks": []}, id="a check less"),
        pytest.param({"evidence_damaged": False}, id="a remark that forbids nothing"),
    ],
)
def test_a_meaning_may_not(after: dict[str, Any]) -> None:
    assert dict(meaning({**BEFORE, **after})) != dict(meaning(BEFORE))


def test_what_only_one_side_has_is_a_difference() -> None:
    seen = {("plan", "smoke", "seed 7"): "a", ("plan", "mix", "seed 7"): "b"}
    quiet = Console(quiet=True)
    assert show(seen, dict(seen), quiet) == 0
    assert show(seen, {("plan", "smoke", "seed 7"): "c"}, quiet) == 2


def test_a_damaged_run_differs_in_one_line(tmp_path: Path) -> None:
    whole = tmp_path / "whole/smoke-7/operations"
    whole.mkdir(parents=True)
    lines = [json.dumps({"index": index}) for index in range(LINES)]
    (whole / "producer-1.jsonl").write_text("".join(f"{line}\n" for line in lines))
    seen = set()
    for number in range(20):
        damaged_evidence(tmp_path / "whole", tmp_path / "damaged", number)
        now = (tmp_path / f"damaged/damaged-{number:03}/operations/producer-1.jsonl").read_text().splitlines()
        assert now != lines
        assert sum(line in lines for line in now) >= LINES - 1
        seen.add(len(now) - LINES)
    assert seen == {-1, 0, 1}


def test_every_whole_number_of_a_line_can_be_changed() -> None:
    line = {"a": 1, "b": [{"c": 2}, True], "d": "3", "e": 0.5}
    assert [holder[key] for holder, key in with_numbers(line)] == [1, 2]
