"""Each change makes another schedule that is accepted, near the feature that it was chosen for."""

import random

import pytest

from harness.scenario.draws import draws_fit
from harness.scenario.file import load_scenario
from harness.scenario.mix import WAIT_S
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.scenario.source import options
from harness.sweep import mutators
from harness.sweep.mutators import CHANGES, NEAR_S, OVER, Change, Child, Data, mutated
from harness.sweep.reductions import legal, settled

AT_S = 9.0
SEED = 7


@pytest.fixture(scope="module")
def base() -> Scenario:
    return load_scenario("tools/administration-light.yaml", options("simulated", [], []))


@pytest.fixture(scope="module")
def parent(base: Scenario) -> Scenario:
    return settled(base, make_plan(base, SEED))


@pytest.fixture(scope="module")
def other(base: Scenario) -> Scenario:
    return settled(base, make_plan(base, SEED + 1))


def child_of(base: Scenario, parent: Scenario, other: Scenario, number: int) -> Child:
    data = parent.model_dump(mode="json")
    return Child(base=base, data=data, seed=SEED, at_s=AT_S, other=other, rng=random.Random(number))


def changed(
    change: Change, base: Scenario, parent: Scenario, other: Scenario, tries: int = 40
) -> list[tuple[Data, Child]]:
    """Return what the change makes under so many seeds: what it was, and the child."""
    before = parent.model_dump(mode="json")
    children = [child_of(base, parent, other, number) for number in range(tries)]
    for child in children:
        change(child)
    return [(before, child) for child in children]


def differing(before: Data, child: Child) -> list[tuple[Data, Data]]:
    """Return the faults that differ, in their order."""
    return [(old, new) for old, new in zip(before["faults"], child.faults, strict=True) if old != new]


@pytest.mark.parametrize("change", [pytest.param(each, id=each.__name__) for each in dict.fromkeys(CHANGES)])
def test_a_change_makes_another_schedule_most_of_which_are_accepted(
    change: Change, base: Scenario, parent: Scenario, other: Scenario
) -> None:
    made = [child for _, child in changed(change, base, parent, other)]
    scenarios = [legal(child.data) for child in made]
    assert sum(each is not None and draws_fit(each, base) for each in scenarios) > 0.75 * len(made)
    assert sum(each != parent for each in scenarios) > 25


def test_a_fault_is_moved_near_the_feature_and_ends_within_the_load(
    base: Scenario, parent: Scenario, other: Scenario
) -> None:
    for before, child in changed(mutators.moved, base, parent, other):
        for old, new in differing(before, child):
            assert {**old, "at_s": new["at_s"]} == new
            wait_s = new["within_s"] + new["offset_s"] if new["after"] else 0.0
            latest_s = base.duration_s - new["duration_s"] - wait_s
            assert new["at_s"] in {round(min(AT_S + near_s, latest_s), 3) for near_s in NEAR_S}


def test_a_fault_gets_another_anchor_that_the_brokers_log(base: Scenario, parent: Scenario, other: Scenario) -> None:
    anchors = {
        (new["after"], new["within_s"])
        for before, child in changed(mutators.anchored, base, parent, other)
        for _, new in differing(before, child)
    }
    assert {"deletion", "controller-elected", ""} <= {after for after, _ in anchors}
    assert {within_s for _, within_s in anchors} == {WAIT_S}


def test_a_duration_is_pushed_over_any_time_out_of_brokers_and_clients(base: Scenario, other: Scenario) -> None:
    scenario = base.model_copy(
        update={
            "workloads": [
                base.workloads[0].model_copy(update={"parameters": {"request_timeout_ms": 1230}}),
                *base.workloads[1:],
            ],
            "cluster": base.cluster.model_copy(
                update={
                    "properties": {
                        **base.cluster.properties,
                        "replica.lag.time.max.ms": "2340",
                        "group.initial.rebalance.delay.ms": "3450",
                        "zookeeper.session.timeout.ms": "4560",
                    }
                }
            ),
        }
    )
    parent = settled(scenario, make_plan(scenario, SEED))
    durations = {
        new["duration_s"]
        for before, child in changed(mutators.stretched, scenario, parent, other, tries=400)
        for _, new in differing(before, child)
    }
    expected = {round(time_out_s * over, 3) for time_out_s in (1.23, 2.34, 3.45, 4.56) for over in OVER}
    assert expected <= durations


def test_faults_of_another_schedule_come_to_their_own_instants_or_near_the_feature(
    base: Scenario, parent: Scenario, other: Scenario
) -> None:
    theirs = [(fault.kind, fault.target.text, fault.duration_s) for fault in other.faults]
    later = set()
    for before, child in changed(mutators.spliced, base, parent, other):
        assert child.faults[: len(before["faults"])] == before["faults"]
        taken = child.faults[len(before["faults"]) :]
        assert {(fault["kind"], fault["target"], fault["duration_s"]) for fault in taken} <= {*theirs}
        own_s = {fault.at_s for fault in other.faults}
        later |= {fault["at_s"] in own_s for fault in taken}
    assert later == {True, False}


def test_one_draw_is_changed_and_all_else_stays(base: Scenario, parent: Scenario, other: Scenario) -> None:
    parts = set()
    for _, child in changed(mutators.redrawn, base, parent, other, tries=60):
        scenario = Scenario.model_validate(child.data)
        differences = {
            ("cluster", name)
            for name, _ in {*scenario.cluster.properties.items()} ^ {*parent.cluster.properties.items()}
        }
        for one, two in zip(scenario.topics, parent.topics, strict=True):
            differences |= {(one.name, name) for name, _ in {*one.config.items()} ^ {*two.config.items()}}
        for number, (load, before) in enumerate(zip(scenario.workloads, parent.workloads, strict=True)):
            names = {*load.parameters, *before.parameters}
            differences |= {
                (f"load {number}", name) for name in names if load.parameters.get(name) != before.parameters.get(name)
            }
        own, was = (each.latencies.model_dump() if each.latencies else {} for each in (scenario, parent))
        differences |= {("latency", name) for name in {*own, *was} if own.get(name) != was.get(name)}
        assert len(differences) <= 1
        assert scenario.faults == parent.faults
        parts |= {part for part, _ in differences}
    assert {"cluster", "load 0"} < parts


def test_a_draw_that_breaks_a_bound_is_not_made(
    base: Scenario, parent: Scenario, other: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lagging(child: Child) -> None:
        child.data["cluster"]["properties"] |= {"replica.lag.time.max.ms": "1000", "replica.fetch.wait.max.ms": wait_ms}

    monkeypatch.setattr(mutators, "CHANGES", (lagging,) * 3)
    monkeypatch.setattr(random.Random, "randint", lambda rng, low, high: high)
    wait_ms = "500"
    assert mutated(child_of(base, parent, other, 1)) is not None
    wait_ms = "501"
    assert mutated(child_of(base, parent, other, 1)) is None


def test_records_are_not_larger_than_half_a_segment(base: Scenario, parent: Scenario) -> None:
    load = parent.workloads[0]
    small = parent.cluster.model_copy(update={"properties": {**parent.cluster.properties, "log.segment.bytes": "4000"}})
    topics = [
        topic.model_copy(update={"config": {k: v for k, v in topic.config.items() if k != "segment.bytes"}})
        for topic in parent.topics
    ]

    def fits(size: int) -> bool:
        parameters = {**load.parameters, "padding_bytes": size}
        workloads = [load.model_copy(update={"parameters": parameters}), *parent.workloads[1:]]
        return draws_fit(parent.model_copy(update={"cluster": small, "topics": topics, "workloads": workloads}), base)

    assert fits(2000)
    assert not fits(2001)


def test_every_schedule_has_another_seed_and_some_have_nothing_else(
    base: Scenario, parent: Scenario, other: Scenario
) -> None:
    children = [child_of(base, parent, other, number) for number in range(24)]
    scenarios = [mutated(child) for child in children]
    assert SEED not in {child.seed for child in children}
    assert len({child.seed for child in children}) == len(children)
    assert 0 < sum(scenario == parent for scenario in scenarios) < 16
