"""How many schedules do searches take until the first finding?"""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest

from harness.scenario.file import load_scenario
from harness.sweep.guided import Guide
from harness.sweep.sweep import Candidate
from tools.broker_mutants.guided import Blind, OpenSearch, middle, until_found

SMOKE = load_scenario("smoke")


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
