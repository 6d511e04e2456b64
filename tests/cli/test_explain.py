from collections.abc import Callable
from typing import Any

import pytest

from harness.store.folder import RunFolder
from harness.store.result import CheckResult, RunResult
from tests.verdicts import UNKNOWN

FINDINGS: tuple[dict[str, Any], ...] = (
    {
        "check": "I10",
        "severity": "violation",
        "message": "seven is lost",
        "topic": "orders",
        "partition": 0,
        "offset": 7,
    },
    {
        "check": "I10",
        "severity": "violation",
        "message": "nine is lost",
        "topic": "orders",
        "partition": 0,
        "offset": 9,
    },
    {"check": "I2", "severity": "violation", "message": "two controllers"},
    {
        "check": "duplicate",
        "severity": "expected",
        "excuse": "a retry may write it twice",
        "message": "twice",
        "topic": "a-b",
        "partition": 1,
        "offset": 3,
    },
)


@pytest.fixture
def broken_run(folder: RunFolder, add_findings: Callable[..., None]) -> RunFolder:
    add_findings(*FINDINGS)
    folder.plan.touch()
    return folder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param([], "I10 leader-completeness: seven is lost", id="the first"),
        pytest.param(["I2"], "I2 one-controller-per-epoch: two controllers", id="of a check, by its number"),
        pytest.param(["one-controller-per-epoch"], "two controllers", id="by its name"),
        pytest.param(["--at", "orders-0:9"], "nine is lost", id="of a record"),
        pytest.param(["--at", "a-b-1"], "duplicate: twice", id="of a partition, whatever is in the topic's name"),
    ],
)
def test_it_tells_the_story_of(chaos: Any, broken_run: RunFolder, arguments: list[str], sentence: str) -> None:
    status, out, _ = chaos("explain", str(broken_run.root), *arguments)
    assert status == 0
    assert sentence in out
    assert "fault: kill broker 2" in out


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        pytest.param("duplicate", "It breaks no promise: a retry may write it twice.", id="the settings allow it"),
        pytest.param("I2", "The check is UNKNOWN: two torn lines.", id="the evidence is damaged"),
    ],
)
def test_it_says_when_no_promise_is_shown_to_be_broken(
    chaos: Any, broken_run: RunFolder, result: RunResult, check: str, sentence: str
) -> None:
    doubted = CheckResult(check="I2", promise="p", verdict=UNKNOWN, violations=1, reason="two torn lines")
    result.model_copy(update={"checks": [doubted]}).save(broken_run.verdict)
    assert chaos("explain", str(broken_run.root), check)[1].splitlines()[1] == sentence
    assert "promise" not in chaos("explain", str(broken_run.root), "I10")[1]


def test_a_run_that_was_not_judged_is_not_said_to_have_no_finding(chaos: Any, folder: RunFolder) -> None:
    folder.plan.touch()
    folder.verdict.unlink()
    status, _, err = chaos("explain", str(folder.root))
    assert (status, err) == (2, f"{folder.root} was not judged: chaos rejudge {folder.root}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["I3"], "no finding of I3; it has I10 leader-completeness, I2 one-", id="a check that held"),
        pytest.param(["I10", "--at", "orders-0:8"], "no finding of I10 at orders-0:8", id="a record that is there"),
        pytest.param(["--at", "orders"], "--at orders: not a place", id="no place"),
    ],
)
def test_what_was_not_found_is_a_mistake_in_the_command(
    chaos: Any, broken_run: RunFolder, arguments: list[str], message: str
) -> None:
    status, _, err = chaos("explain", str(broken_run.root), *arguments)
    assert status == 2
    assert message in err
