"""What is counted of a mix, and whether it is conclusive."""

from pathlib import Path

import pytest

import tools.mixes
from harness.run.journal import entry_of
from harness.scenario.file import load_scenario
from harness.scenario.plan import Plan, PlannedFault, make_plan
from harness.scenario.source import options
from harness.store.history import InjectionStep
from tools.mixes import Sum, longer, mix_of, mixes_of

CAMPAIGN = str(Path(tools.mixes.__file__).with_name("campaign.yaml"))
LIGHT = str(Path(tools.mixes.__file__).with_name("mix-light.yaml"))
SEEN = ("intended", "injected", "confirmed", "healed")
UNSEEN = ("intended", "injected", "inconclusive", "healed")
NOTHING = dict.fromkeys(("confirmed", "postponed", "refused", "not seen", "failed", "replaced"), 0)


def planned(number: int, *, spare: bool) -> PlannedFault:
    """Return a fault of a mix."""
    when = {"at_s": number, "duration_s": 1, "resolved": "injection", "seed": 1, "beside": 0, "spare": spare}
    target = {"injection": number, "fault": "kill", "target": "1", "brokers": [1], "parameters": {}}
    return PlannedFault.model_validate(target | when)


@pytest.mark.parametrize(
    ("steps", "conclusive", "counts"),
    [
        pytest.param([SEEN, SEEN, ()], True, {"confirmed": 2}, id="both are confirmed, and no spare was needed"),
        pytest.param([("postponed", *SEEN), SEEN, ()], True, {"confirmed": 2, "postponed": 1}, id="one had to wait"),
        pytest.param(
            [("postponed", "inconclusive"), SEEN, SEEN],
            True,
            {"confirmed": 2, "postponed": 1, "refused": 1, "replaced": 1},
            id="one is refused, and a spare confirmed",
        ),
        pytest.param(
            [UNSEEN, SEEN, SEEN],
            True,
            {"confirmed": 2, "not seen": 1, "replaced": 1},
            id="one is not seen, but a spare",
        ),
        pytest.param([UNSEEN, SEEN, UNSEEN], False, {"confirmed": 1, "not seen": 2}, id="a spare is not seen either"),
        pytest.param(
            [("intended", "failed", "healed"), SEEN, SEEN],
            False,
            {"confirmed": 2, "failed": 1},
            id="one fails by its own code, which no spare makes good",
        ),
        pytest.param(
            [("intended", "injected", "mismatch", "healed"), SEEN, ()],
            False,
            {"confirmed": 1},
            id="one does something else",
        ),
    ],
)
def test_what_became_of_two_faults_and_a_spare(
    steps: list[tuple[str, ...]], conclusive: bool, counts: dict[str, int]
) -> None:
    plan = Plan(scenario="x", seed=1, faults=[planned(number, spare=number > 1) for number in range(3)], clients=[])
    journal = [
        entry_of(0, number, "kill", InjectionStep(step), None, "")
        for number, of_fault in enumerate(steps)
        for step in of_fault
    ]
    mix = mix_of(plan, journal)
    assert (not mix.doubts, dict(mix.counts())) == (conclusive, NOTHING | counts)


def test_a_mix_is_as_long_as_is_asked_for_and_has_as_many_faults_as_fit() -> None:
    scenario = longer(LIGHT, 45.0, 15.0)
    assert scenario.mix is not None
    scenario = scenario.model_copy(update={"mix": scenario.mix.model_copy(update={"motifs": []})})
    total = Sum()
    for mix in mixes_of(scenario, 1, 7, float("inf")):
        total.add(mix)
    assert (total.mixes, total.conclusive, total.counts["confirmed"]) == (1, 1, 3)
    assert list(mixes_of(scenario, 2, 7, 0.0)) == []


@pytest.mark.parametrize(
    ("system", "left_out"),
    [
        pytest.param("kafka:3.9.1", 0, id="with ZooKeeper"),
        pytest.param("kafka:4.4.0", 4, id="without"),
    ],
)
def test_a_campaign_goes_to_releases_with_and_without_zookeeper(system: str, left_out: int) -> None:
    campaign = load_scenario(CAMPAIGN, options(None, [], [], system))
    assert len(campaign.left_out) == left_out
    assert len([fault for fault in make_plan(campaign, 1).faults if not fault.spare]) == 50
