"""Motifs and moments in plans: drawn whole, only where they can be, and stated ones checked."""

import pytest

from harness.contracts import registry
from harness.contracts.moments import MOMENTS
from harness.errors import ScenarioError
from harness.scenario.file import read_scenario
from harness.scenario.motifs import MOTIFS
from harness.scenario.plan import make_plan

SEEDS = range(80)
TEXT = """\
name: motifs
description: Motifs are drawn
driver: {driver}
system: {system}
topics: [{{name: orders, partitions: 2}}]
workloads: [{{kind: produce-consume}}]
mix: {{count: 1, settle_s: 3, motifs: [{motifs}], moments: {moments}, kinds: [{{kind: kill, duration_s: 1}}]}}
duration_s: 40
"""


def text(driver: str = "simulated", system: str = "python", motifs: str = "all", moments: float = 0.0) -> str:
    return TEXT.format(driver=driver, system=system, motifs=motifs, moments=moments)


def test_motifs_are_drawn_whole_beside_what_the_mix_states() -> None:
    scenario = read_scenario(text(), "motifs.yaml")
    drawn = set()
    for seed in SEEDS:
        plan = make_plan(scenario, seed)
        assert plan.to_json() == make_plan(scenario, seed).to_json()
        of_motif = [fault for fault in plan.faults if fault.motif]
        for name in {fault.motif for fault in of_motif}:
            drawn.add(name)
            steps = MOTIFS[name].steps
            assert sorted(fault.fault for fault in of_motif) == sorted(step.kind for step in steps)
            assert all(fault.beside == max(len(steps), 1) - 1 for fault in of_motif), "they may be in force together"
            ends = [fault.at_s + fault.within_s + fault.offset_s + fault.duration_s for fault in of_motif]
            assert max(ends) <= scenario.duration_s - 3 + 0.01
        assert sum(not fault.motif and not fault.spare for fault in plan.faults) + plan.left_out == 1
    assert drawn == set(MOTIFS)


@pytest.mark.parametrize(
    ("count", "longest_s", "least"),
    [
        pytest.param(3, 8, 75, id="another motif is tried where one has no room beside what is stated"),
        pytest.param(1, 29, 70, id="what is stated has no room in any case"),
    ],
)
def test_nearly_all_plans_have_a_motif(count: int, longest_s: int, least: int) -> None:
    stated = text().replace("count: 1", f"count: {count}").replace("duration_s: 1}", f"duration_s: {longest_s}}}")
    scenario = read_scenario(stated, "motifs.yaml")
    plans = [make_plan(scenario, seed) for seed in SEEDS]
    assert sum(any(fault.motif for fault in plan.faults) for plan in plans) >= least


def test_motifs_that_need_followers_take_topics_that_have_some() -> None:
    stated = text(motifs="lead-follow-lead, last-member-restarts, leader-and-controller").replace(
        "topics: [", "topics: [{name: alone, replication_factor: 1}, "
    )
    plans = [make_plan(read_scenario(stated, "motifs.yaml"), seed) for seed in SEEDS]
    targets = {(fault.motif, fault.target) for plan in plans for fault in plan.faults if fault.motif}
    of_alone = {motif for motif, target in targets if "alone" in target}
    assert of_alone == {"leader-and-controller"}


def test_faults_of_a_mix_wait_for_moments_now_and_then() -> None:
    scenario = read_scenario(text(motifs="stays-down", moments=0.5), "motifs.yaml")
    waiting = [fault.after for seed in SEEDS for fault in make_plan(scenario, seed).faults if not fault.motif]
    assert 0.2 < sum(map(bool, waiting)) / len(waiting) < 0.8
    assert set(waiting) - {""} <= set(MOMENTS)


def test_every_motif_takes_faults_and_moments_that_there_are() -> None:
    for motif in MOTIFS.values():
        for step in motif.steps:
            registry.fault(step.kind).Parameters.model_validate(dict(step.parameters))
            assert step.after in ("", *MOMENTS)


def test_a_system_without_zookeeper_gets_motifs_that_it_can_have() -> None:
    scenario = read_scenario(text(driver="process", system="kafka:4.4.0", moments=1.0), "motifs.yaml")
    faults = [fault for seed in SEEDS for fault in make_plan(scenario, seed).faults]
    kinds = {fault.fault for fault in faults}
    assert "kill" in kinds
    assert "move-controller" not in kinds
    ends_sessions = {name for name, motif in MOTIFS.items() for step in motif.steps if "end_session" in step.parameters}
    assert {"last-member-loses-disk", "last-member-restarts"} <= ends_sessions
    assert {fault.motif for fault in faults} & ends_sessions == set(), "without a majority nothing confirms their kill"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        pytest.param(("motifs: [all]", "motifs: [all, dance]"), "unknown motif", id="a motif that there is not"),
        pytest.param(
            ("mix:", "faults: [{kind: kill, at_s: 1, after: sunrise}]\nmix:"),
            "unknown moment",
            id="a moment that there is not",
        ),
        pytest.param(
            ("mix:", "faults: [{kind: kill, at_s: 20, after: deletion, within_s: 30}]\nmix:"),
            "after the load of 40 s",
            id="a wait that is longer than the load",
        ),
    ],
)
def test_what_is_none_is_refused(changed: tuple[str, str], problem: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read_scenario(text().replace(*changed), "motifs.yaml")
    assert problem in str(refused.value)
