"""A planted bug is put to the battery until a schedule finds it, and the track record says which one did."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.scenario.file import read_scenario
from harness.scenario.plan import make_plan
from harness.sweep.sweep import Candidate
from harness.verdict import ExitCode
from tools.broker_mutants.judging import Answers
from tools.broker_mutants.planted import Standing, standings
from tools.pages.results import _by_battery

SCENARIO = """
name: small
description: One partition.
topics: [{name: orders, partitions: 1}]
workloads: [{kind: produce-consume}]
duration_s: 3
"""
SCHEDULES = 12
DOUBT: tuple[ExitCode, dict[str, str]] = (ExitCode.INCONCLUSIVE, {"I4 unknown": "It cannot tell."})
FAILS: tuple[ExitCode, dict[str, str]] = (ExitCode.VIOLATED, {"I1": "Lost.", "I4 unknown": "It cannot tell."})


def candidates() -> list[Candidate]:
    scenario = read_scenario(SCENARIO, "a test")
    return [Candidate(scenario=scenario, plan=make_plan(scenario, seed)) for seed in range(SCHEDULES)]


class Judge:
    """Answers by number, and notes what it is asked."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.asked: list[int] = []

    def ask(self, folder: Path, candidates: Sequence[Candidate]) -> None:
        self.asked.append(len(candidates))

    def answers(self) -> Answers:
        return self._answers


@pytest.mark.parametrize(
    ("found", "expected", "works"),
    [
        pytest.param({}, [("a", 12, ()), ("b", 12, ())], [8, 12, 4], id="no schedule finds them: all are tried"),
        pytest.param({2: FAILS}, [("a", 3, ("I1",)), ("b", 12, ())], [8, 6, 2], id="one is found, and is done"),
        pytest.param({11: FAILS, 17: FAILS}, [("b", 6, ("I1",)), ("a", 12, ("I1",))], [8, 12, 2], id="both, later"),
        pytest.param(
            {0: (ExitCode.INCONCLUSIVE, {})}, [("a", 12, ()), ("b", 12, ())], [8, 12, 4], id="doubt finds none"
        ),
    ],
)
def test_a_bug_is_put_to_the_battery_until_it_is_found(
    found: Mapping[int, tuple[ExitCode, dict[str, str]]],
    expected: Sequence[tuple[str, int, tuple[str, ...]]],
    works: Sequence[int],
    tmp_path: Path,
) -> None:
    simulated: list[int] = []

    def simulate(given: Sequence[Callable[[], None]]) -> None:
        simulated.append(len(given))

    results = list(standings(["a", "b"], candidates(), Judge(dict(found)), tmp_path, simulate))
    assert results == [Standing(bug=bug, schedules=count, found_by=by) for bug, count, by in expected]
    assert simulated == works
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("row", "text"),
    [
        pytest.param({"scenario": "kip-101"}, "", id="not measured"),
        pytest.param({"scenario": "tools/mix-light.yaml"}, "its scenario", id="its scenario is one of the battery"),
        pytest.param({"battery": {"schedules": 3, "found_by": ["I1"]}}, "3", id="found"),
        pytest.param({"battery": {"schedules": 20, "found_by": []}}, "not in 20, only by its scenario", id="not found"),
    ],
)
def test_the_track_record_says_what_the_battery_makes_of_it(row: dict[str, object], text: str) -> None:
    assert _by_battery(row) == text
