"""How many schedules do searches take until the first finding?"""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from harness.scenario.file import load_scenario
from harness.sweep.guided import Guide
from harness.sweep.sweep import Candidate
from harness.verdict import ExitCode
from tests.tools.broker_mutants.test_trials import CANDIDATE, DEADLY, REPLICATION, mutant
from tools.broker_mutants.battery import import_all
from tools.broker_mutants.guided import Blind, OpenSearch, middle, simulating, until_found
from tools.broker_mutants.in_force import Changed, changed_functions, live_functions
from tools.broker_mutants.judging import Answers

SMOKE = load_scenario("smoke")
HELD, VIOLATED = ExitCode.HELD, ExitCode.VIOLATED


class Numbered(Guide):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__(scenario=SMOKE, seed=1)
        self.learnt: list[Mapping[str, float]] = []

    def learn(self, candidates: Sequence[Candidate], features: Sequence[Mapping[str, float]]) -> int:
        assert len(candidates) == len(features)
        self.learnt += features
        return 0


def test_searches_go_on_together_until_each_has_found_something_or_had_its_schedules() -> None:
    asked: list[int] = []
    failing = {4, 9}  # of all schedules that are simulated: one of the first round of two searches, one of the next

    def simulate(candidates: Sequence[Candidate], folder: Path) -> tuple[list[dict[str, float]], list[bool]]:
        numbers = range(sum(asked), sum(asked) + len(candidates))
        asked.append(len(candidates))
        return [{f"{number}": 0.0} for number in numbers], [number in failing for number in numbers]

    searches = [Numbered() for _ in range(3)]
    opened = [OpenSearch(search=search) for search in searches]
    until_found(opened, 5, 2, simulate, (Path(f"{number}") for number in count()))
    assert asked == [6, 4, 1]
    assert [(each.made, each.found_at) for each in opened] == [(5, None), (4, 4), (2, 1)]
    assert [[*learnt] for learnt in searches[0].learnt] == [["0"], ["1"], ["6"], ["7"], ["10"]]


def test_a_blind_search_draws_what_a_guided_one_draws_that_has_learnt_nothing() -> None:
    blind, guided = Blind(scenario=SMOKE, seed=7), Guide(scenario=SMOKE, seed=7)
    first = blind.next_round(3)
    assert first == guided.next_round(3)
    blind.learn(first, [{"new": 0.0}] * 3)
    assert blind.next_round(2) == guided.next_round(2)
    guided.learn(first, [{"new": 0.0}] * 3)
    assert blind.next_round(8) != guided.next_round(8)


class Reading:
    """A judge that says FAIL of histories without an acknowledged record, and notes how many each folder has."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self._answers: Answers = {}

    def ask(self, folder: Path, candidates: Sequence[Candidate]) -> None:
        rows = [row for path in folder.glob("*.parquet") for row in parquet.read_table(path).to_pylist()]
        self.asked.append((len(rows), len(candidates)))
        self._answers = {row["number"]: (VIOLATED if _acknowledged(row) == 0 else HELD, {}) for row in rows}

    def answers(self) -> Answers:
        return self._answers


def _acknowledged(row: Mapping[str, Any]) -> int:
    lines = [line for _, of_file in row["operations"] for line in of_file]
    return sum('"kind":"send"' in line and '"type":"ok"' in line for line in lines)


@pytest.mark.parametrize(
    ("is_changed", "expected"),
    [pytest.param(False, [False, False], id="intact"), pytest.param(True, [True, True], id="with a mistake")],
)
def test_a_mistake_is_in_force_in_the_processes_of_schedules_alone(
    is_changed: bool, expected: list[bool], tmp_path: Path
) -> None:
    import_all()
    changed: Changed = changed_functions(mutant(REPLICATION, DEADLY), live_functions()) if is_changed else []
    judge = Reading()
    for name in ("first", "second"):
        features, failed = simulating(changed, judge, 2)([CANDIDATE, CANDIDATE], tmp_path / name)
        assert failed == expected
        assert features[0] == features[1] != {}
    assert judge.asked == [(2, 2)] * 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param([1, 2, 3, 4, 5], (3, 2, 4), id="all found something"),
        pytest.param([None, 2, 1, None, None], (11, 2, 11), id="some did not"),
        pytest.param([4], (4, 4, 4), id="there was one"),
    ],
)
def test_what_was_not_found_took_more_than_all_schedules(
    found: list[int | None], expected: tuple[float, float, float]
) -> None:
    assert middle(found, 10) == expected
