"""The search for a smaller schedule, against a judge that knows at once."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.progress import Silent
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.sweep.search import OTHER_SEEDS, Search, Smallest
from harness.sweep.sweep import Candidate
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, PAUSE_LEADER, SHUT_DOWN, scenario

SEED = 77


class Judge:
    """Fails what the rule says, and counts."""

    def __init__(self, rule: Callable[[Scenario, int], bool]) -> None:
        self._rule = rule
        self.rounds = 0
        self.judged: list[Candidate] = []

    def __call__(self, candidates: Sequence[Candidate]) -> list[bool]:
        self.rounds += 1
        self.judged += candidates
        return [self._rule(each.scenario, each.plan.seed) for each in candidates]


def fault(kind: str, at_s: float, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "at_s": at_s, "target": "controller", **more}


def storm(**changed: Any) -> Scenario:
    """Return a scenario of eight faults on five brokers, with more load than anything needs."""
    kinds = ["kill", "expire-session", "pause", "kill", "controlled-shutdown", "pause", "expire-session", "kill"]
    faults = [fault(kind, 2.0 + 5 * number, duration_s=3.0) for number, kind in enumerate(kinds)]
    return scenario(
        *faults,
        **{
            "cluster": {"brokers": 5, "zookeeper_servers": 3},
            "topics": [
                {"name": "orders", "partitions": 6, "replication_factor": 3, "config": {"min.insync.replicas": 2}},
                {"name": "other", "partitions": 2},
            ],
            "load": {"producers": 3, "consumers": 3, "rate_per_s": 200},
            "duration_s": 60.0,
            **changed,
        },
    )


def kinds(scenario: Scenario) -> list[str]:
    return [fault.kind for fault in scenario.faults]


def load(scenario: Scenario) -> dict[str, Any]:
    return scenario.workloads[0].parameters


def shrunk(start: Scenario, rule: Callable[[Scenario, int], bool], **changed: Any) -> tuple[Smallest, Judge]:
    judge = Judge(rule)
    first = Candidate(scenario=start, plan=make_plan(start, SEED))
    search = Search(smallest=first, fails=judge, progress=Silent(), **changed)
    return search.run(), judge


def test_what_always_fails_shrinks_to_the_least_there_can_be() -> None:
    smallest, judge = shrunk(storm(), lambda *_: True)
    least = smallest.candidate.scenario
    assert kinds(least) == []
    assert [(topic.name, topic.partitions, topic.replication_factor) for topic in least.topics] == [("orders", 1, 2)]
    assert (least.cluster.brokers, least.cluster.zookeeper_servers, least.duration_s) == (2, 1, 0.5)
    assert (load(least)["producers"], load(least)["consumers"], load(least)["rate_per_s"]) == (0, 0, 1)
    assert smallest.end == "no smaller schedule fails the same way"
    assert judge.rounds == smallest.rounds <= 8


@pytest.mark.parametrize(
    "needed",
    [
        pytest.param(["pause"], id="one fault"),
        pytest.param(["kill", "pause"], id="two faults, far apart"),
        pytest.param(["expire-session", "controlled-shutdown", "kill"], id="three faults"),
    ],
)
def test_only_the_faults_that_it_takes_are_left(needed: list[str]) -> None:
    def rule(candidate: Scenario, _: int) -> bool:
        return set(kinds(candidate)) >= set(needed)

    smallest, _ = shrunk(storm(), rule)
    assert sorted(kinds(smallest.candidate.scenario)) == sorted(needed)


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        pytest.param(
            lambda candidate: load(candidate)["rate_per_s"] >= 33, lambda least: load(least)["rate_per_s"], id="rate"
        ),
        pytest.param(
            lambda candidate: candidate.topics[0].partitions >= 3,
            lambda least: 33 * (least.topics[0].partitions == 3),
            id="partitions",
        ),
        pytest.param(
            lambda candidate: candidate.cluster.brokers >= 4,
            lambda least: 33 * (least.cluster.brokers == 4),
            id="brokers",
        ),
        pytest.param(
            lambda candidate: candidate.duration_s >= 33, lambda least: least.duration_s, id="seconds of load"
        ),
        pytest.param(
            lambda candidate: any(each.at_s >= 33 for each in candidate.faults),
            lambda least: max(each.at_s for each in least.faults),
            id="a fault's instant",
        ),
    ],
)
def test_a_number_is_bisected_to_about_what_it_takes(
    rule: Callable[[Scenario], bool], seen: Callable[[Scenario], float]
) -> None:
    smallest, _ = shrunk(storm(), lambda candidate, _: rule(candidate))
    assert 33 <= seen(smallest.candidate.scenario) <= 33 * 9 / 8


def test_numbers_that_can_only_be_reduced_alone_are_not_reduced_together() -> None:
    def rule(candidate: Scenario, _: int) -> bool:
        return bool(load(candidate)["producers"] + load(candidate)["consumers"] >= 3)

    smallest, _ = shrunk(storm(), rule)
    assert load(smallest.candidate.scenario)["producers"] + load(smallest.candidate.scenario)["consumers"] == 3
    assert load(smallest.candidate.scenario)["rate_per_s"] == 1


def test_what_fails_under_another_seed_only_is_found_with_it() -> None:
    def rule(candidate: Scenario, seed: int) -> bool:
        return len(candidate.faults) == 8 or (seed == OTHER_SEEDS[1] and kinds(candidate).count("kill") >= 1)

    smallest, _ = shrunk(storm(), rule)
    assert (kinds(smallest.candidate.scenario), smallest.candidate.plan.seed) == (["kill"], OTHER_SEEDS[1])


def test_nothing_less_than_the_schedule_itself_may_fail() -> None:
    start = storm()
    smallest, _ = shrunk(start, lambda candidate, _: candidate == start)
    assert smallest.candidate == Candidate(scenario=start, plan=make_plan(start, SEED))
    assert smallest.end == "no smaller schedule fails the same way"


def test_no_schedule_is_asked_about_twice() -> None:
    _, judge = shrunk(storm(), lambda candidate, _: len(candidate.faults) >= 2 and load(candidate)["rate_per_s"] > 50)
    assert len({(each.scenario.model_dump_json(), each.plan.seed) for each in judge.judged}) == len(judge.judged)


def test_it_ends_after_its_rounds_with_the_smallest_so_far() -> None:
    smallest, judge = shrunk(storm(), lambda candidate, _: "pause" in kinds(candidate), max_rounds=2)
    assert judge.rounds == smallest.rounds == 2
    assert len(smallest.candidate.scenario.faults) < 8
    assert smallest.end == "the limit of 2 rounds was reached"


def test_interrupted_it_keeps_the_smallest_so_far() -> None:
    def rule(candidate: Scenario, _: int) -> bool:
        if candidate.duration_s < 60:
            raise KeyboardInterrupt
        return "pause" in kinds(candidate)

    smallest, _ = shrunk(storm(), rule)
    assert kinds(smallest.candidate.scenario) == ["pause"]
    assert smallest.end == "it was interrupted"


def test_small_scenarios_of_every_kind_of_fault_shrink() -> None:
    start = scenario(KILL_LEADER, {**EXPIRE_CONTROLLER, "at_s": 7.0}, {**SHUT_DOWN, "at_s": 5.0}, PAUSE_LEADER)
    smallest, _ = shrunk(start, lambda candidate, _: "pause" in kinds(candidate))
    assert kinds(smallest.candidate.scenario) == ["pause"]
