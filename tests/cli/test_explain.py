from collections.abc import Callable
from typing import Any

import pytest

from harness.store.folder import RunFolder

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
    {"check": "duplicate", "severity": "expected", "message": "twice", "topic": "a-b", "partition": 1, "offset": 3},
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
