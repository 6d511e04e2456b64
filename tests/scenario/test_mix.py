"""Mixes: what the seed draws, and what it never draws."""

from functools import cache

import pytest

from harness.contracts.claims import Claim
from harness.scenario.file import load_scenario, read_scenario
from harness.scenario.mix import Window, disturbed_s, draw_mix
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, PlannedFault, make_plan

HEAD = """\
name: mixed
description: Faults are drawn
driver: simulated
cluster: {brokers: 5, zookeeper_servers: 3}
topics: [{name: orders, partitions: 1}]
workloads: [{kind: produce-consume}]
duration_s: 100
"""
MIX = """\
mix:
  count: 8
  at_once: 2
  settle_s: 5
  kinds:
    - {kind: kill, duration_s: [1, 5]}
    - {kind: isolate, duration_s: [1, 5], target: minority}
    - {kind: expire-session, target: controller}
    - {kind: power-loss, duration_s: 2, alone: true}
    - {kind: delay, duration_s: [1, 5]}
    - {kind: pause-zookeeper, duration_s: [1, 5], target: zookeeper}
"""
SEEDS = range(40)


def scenario(text: str = MIX) -> Scenario:
    return read_scenario(HEAD + text, "mixed.yaml")


@cache
def plans(text: str = MIX, seeds: range = SEEDS) -> tuple[Plan, ...]:
    return tuple(make_plan(scenario(text), seed) for seed in seeds)


def end_s(fault: PlannedFault) -> float:
    return fault.at_s + fault.duration_s + 5


def pairs(plan: Plan) -> list[tuple[PlannedFault, PlannedFault]]:
    """Return all pairs of faults of which the second begins while the first may be in force."""
    return [(a, b) for a in plan.faults for b in plan.faults if a.injection < b.injection and b.at_s < end_s(a)]


def test_every_kind_is_drawn_and_every_target() -> None:
    faults = [fault for plan in plans() for fault in plan.faults]
    assert {fault.fault for fault in faults} == {
        "kill", "isolate", "expire-session", "power-loss", "delay", "pause-zookeeper",
    }  # fmt: skip
    assert {tuple(fault.brokers) for fault in faults if fault.fault == "kill"} == {(it,) for it in range(5)}
    assert {len(fault.brokers) for fault in faults if fault.fault == "isolate"} == {2}
    assert {fault.target for fault in faults if fault.fault == "pause-zookeeper"} == {
        "zookeeper(1)", "zookeeper(2)", "zookeeper(3)",
    }  # fmt: skip
    assert {fault.resolved for fault in faults if fault.fault == "expire-session"} == {"injection"}


def test_faults_that_claim_the_same_are_never_drawn_at_the_same_time() -> None:
    overlaps = [pair for plan in plans() for pair in pairs(plan)]
    for one, other in overlaps:
        if "delay" not in (one.fault, other.fault):
            assert not set(one.brokers) & set(other.brokers)
        assert "power-loss" not in (one.fault, other.fault)
    assert overlaps, "some overlap"


def test_no_more_than_so_many_are_in_force_at_once() -> None:
    for plan in plans():
        for fault in plan.faults:
            assert len([it for it in plan.faults if it.at_s <= fault.at_s < end_s(it)]) <= 2


def test_a_role_may_be_any_broker() -> None:
    for plan in plans():
        for one, other in pairs(plan):
            kinds = {one.fault, other.fault}
            if "expire-session" in kinds:
                assert kinds & {"delay", "pause-zookeeper"}


def test_all_are_healed_in_the_load_and_a_quarter_of_it_is_calm() -> None:
    for plan in plans():
        nothing = Claim(fault="any", composes=True, brokers=frozenset())
        windows = [Window(at_s=it.at_s, end_s=end_s(it), claim=nothing, alone=False) for it in plan.faults]
        assert all(window.end_s <= 100 for window in windows)
        assert disturbed_s(windows) <= 75


def test_the_same_seed_draws_the_same_and_another_seed_something_else() -> None:
    again = [make_plan(scenario(), seed) for seed in SEEDS]
    assert [plan.to_json() for plan in plans()] == [plan.to_json() for plan in again]
    assert len({plan.to_json() for plan in plans()}) == len(SEEDS)


def test_weights_count() -> None:
    heavy = MIX.replace("{kind: kill,", "{kind: kill, weight: 20,")
    kills = [sum(it.fault == "kill" for plan in plans(text) for it in plan.faults) for text in (MIX, heavy)]
    assert kills[1] > 3 * kills[0]


def test_a_kind_more_leaves_most_other_draws_alone() -> None:
    more = MIX + "    - {kind: bounce}\n"
    unchanged = total = 0
    for before, after in zip(plans(), plans(more), strict=True):
        shapes = {(it.fault, it.at_s, it.duration_s, tuple(it.brokers)) for it in after.faults}
        unchanged += sum((it.fault, it.at_s, it.duration_s, tuple(it.brokers)) in shapes for it in before.faults)
        total += len(before.faults)
    assert unchanged > total / 2


def test_a_fault_more_than_there_were_leaves_all_others_alone() -> None:
    for before, after in zip(plans(), plans(MIX.replace("count: 8", "count: 9")), strict=True):
        shapes = {it.model_copy(update={"injection": 0}).model_dump_json() for it in after.faults}
        assert all(it.model_copy(update={"injection": 0}).model_dump_json() in shapes for it in before.faults)


def test_a_mix_keeps_away_from_the_schedule_beside_it() -> None:
    both = MIX + 'faults: [{kind: kill, at_s: 40, duration_s: 10, target: "0,1,2,3,4"}]\n'
    for plan in plans(both):
        (killed,) = [it for it in plan.faults if len(it.brokers) == 5]
        for other in plan.faults:
            if other is not killed and other.at_s < end_s(killed) and killed.at_s < end_s(other):
                assert other.fault in ("delay", "pause-zookeeper")


def test_what_has_no_room_is_left_out() -> None:
    crowded = MIX.replace("count: 8", "count: 200").replace("at_once: 2", "at_once: 1")
    for plan in plans(crowded, range(3)):
        assert 5 < len(plan.faults) < 20


def test_so_many_seconds_of_load_make_so_many_faults() -> None:
    assert {len(plan.faults) for plan in plans(MIX.replace("count: 8", "every_s: 50"))} == {2}


@pytest.mark.parametrize("name", ["storm", "storm-process", "mix"])
def test_built_in_mixes_draw_something_under_every_seed(name: str) -> None:
    built_in = load_scenario(name)
    assert all(len(make_plan(built_in, seed).faults) >= 2 for seed in range(40))


def test_an_empty_mix_draws_nothing_beyond_the_schedule() -> None:
    drawn = draw_mix(
        scenario().mix,  # type: ignore[arg-type]
        scenario().cluster,
        4.0,
        1,
        composing=dict.fromkeys(["kill", "isolate", "expire-session", "power-loss", "delay", "pause-zookeeper"], False),
        scheduled=[],
    )
    assert drawn == []
