"""Mixes: what the seed draws, and what it never draws."""

from functools import cache
from itertools import pairwise

import pytest

from harness.contracts.claims import Claim
from harness.scenario.file import load_scenario, read_scenario
from harness.scenario.mix import PlannedWindow, disturbed_s
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, PlannedFault, make_plan
from harness.scenario.source import options

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
MIXES = (
    *("storm", "storm-sweep", "mix", "administration", "compaction", "group-storm"),
    *(f"tools/{name}-light.yaml" for name in ("mix", "storm", "administration", "groups")),
)
"""Those that are swept and run."""


def scenario(text: str = MIX) -> Scenario:
    return read_scenario(HEAD + text, "mixed.yaml")


@cache
def plans(text: str = MIX, seeds: range = SEEDS) -> tuple[Plan, ...]:
    return tuple(make_plan(scenario(text), seed) for seed in seeds)


def end_s(fault: PlannedFault) -> float:
    """Return when it is healed: a kill waits for the end of a session of 4 s."""
    lasts_s = max(fault.duration_s, 4) if fault.fault in ("kill", "power-loss") else fault.duration_s
    return fault.at_s + lasts_s + 5


def in_load(plan: Plan) -> list[PlannedFault]:
    return [fault for fault in plan.faults if not fault.spare]


def pairs(plan: Plan) -> list[tuple[PlannedFault, PlannedFault]]:
    """Return all pairs of faults of which the second begins while the first may be in force."""
    faults = in_load(plan)
    return [(a, b) for a in faults for b in faults if a.injection < b.injection and b.at_s < end_s(a)]


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
        for fault in in_load(plan):
            assert len([it for it in in_load(plan) if it.at_s <= fault.at_s < end_s(it)]) <= 2
            assert fault.beside == (0 if fault.fault == "power-loss" else 1)


def test_a_role_may_be_any_broker() -> None:
    for plan in plans():
        for one, other in pairs(plan):
            kinds = {one.fault, other.fault}
            if "expire-session" in kinds:
                assert kinds & {"delay", "pause-zookeeper"}


def test_all_are_healed_in_the_load_and_a_quarter_of_it_is_calm() -> None:
    for plan in plans():
        nothing = Claim(fault="any", may_overlap=True, brokers=frozenset())
        windows = [PlannedWindow(at_s=it.at_s, end_s=end_s(it), claim=nothing) for it in in_load(plan)]
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
        for other in in_load(plan):
            if other is not killed and other.at_s < end_s(killed) and killed.at_s < end_s(other):
                assert other.fault in ("delay", "pause-zookeeper")


def test_what_has_no_room_is_left_out_and_counted() -> None:
    crowded = MIX.replace("count: 8", "count: 200").replace("at_once: 2", "at_once: 1")
    for plan in plans(crowded, range(3)):
        assert 5 < len(in_load(plan)) < 20
        assert plan.left_out == 200 - len(in_load(plan))
        assert f'"left_out": {plan.left_out}' in plan.to_json()


def test_so_many_seconds_of_load_make_so_many_faults() -> None:
    assert {len(in_load(plan)) for plan in plans(MIX.replace("count: 8", "every_s: 50"))} == {2}


@pytest.mark.parametrize("name", MIXES)
def test_mixes_draw_as_many_as_they_state_under_every_seed(name: str) -> None:
    loaded = load_scenario(name, options(None, [], []))
    assert loaded.mix is not None
    made = [make_plan(loaded, seed) for seed in range(20)]
    drawn = {(sum(not fault.motif for fault in in_load(plan)), plan.left_out) for plan in made}
    assert drawn == {(loaded.mix.injections(loaded.duration_s), 0)}


@pytest.mark.parametrize(
    ("count", "spares"),
    [pytest.param(1, 1, id="one has one"), pytest.param(8, 1, id="so have up to ten"), pytest.param(11, 2, id="more")],
)
def test_spares_come_last_and_none_is_due_in_the_load(count: int, spares: int) -> None:
    for plan in plans(MIX.replace("count: 8", f"count: {count}"), range(3)):
        assert [fault.spare for fault in plan.faults] == [*[False] * len(in_load(plan)), *[True] * spares]
        assert {fault.at_s for fault in plan.faults if fault.spare} == {100}


def test_a_plan_without_a_mix_says_nothing_of_mixes() -> None:
    (without,) = plans('faults: [{kind: kill, at_s: 40, target: "1"}]\n', range(1))
    assert not {word for word in ("beside", "spare", "left_out") if word in without.to_json()}
    (both,) = plans(MIX + 'faults: [{kind: kill, at_s: 40, target: "1"}]\n', range(1))
    assert both.to_json().count('"beside"') == len(both.faults) - 1


MEMBER = 'duration_s: 2, target: "member(group-1,1)"'


@pytest.mark.parametrize(
    ("kinds", "brokers", "apart_s"),
    [
        pytest.param("{kind: kill, duration_s: 2}", 1, 9 + 1, id="a killed broker is held until its session times out"),
        pytest.param("{kind: partition, duration_s: 2}", 3, 2 + 1, id="a partition is about all brokers"),
        pytest.param(f"{{kind: kill, {MEMBER}}}, {{kind: pause, {MEMBER}}}", 1, 2 + 1, id="a member is hit by one"),
    ],
)
def test_what_would_be_refused_is_never_drawn(kinds: str, brokers: int, apart_s: float) -> None:
    text = f"""\
name: mixed
description: Faults are drawn
driver: simulated
cluster: {{brokers: {brokers}, properties: {{zookeeper.session.timeout.ms: 9000}}}}
topics: [{{name: orders, replication_factor: 1}}]
workloads: [{{kind: produce-consume}}, {{kind: consume-group}}]
mix: {{count: 5, at_once: 2, settle_s: 1, kinds: [{kinds}]}}
duration_s: 100
"""
    for seed in SEEDS:
        faults = in_load(make_plan(read_scenario(text, "mixed.yaml"), seed))
        assert len(faults) == 5
        assert all(after.at_s >= before.at_s + apart_s for before, after in pairwise(faults))
