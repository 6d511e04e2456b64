"""What the seed draws beside faults: the same each time, never what is stated, and never what cannot work."""

from collections.abc import Iterator

import pytest

from harness.errors import ScenarioError
from harness.scenario.draws import with_drawn
from harness.scenario.file import load_scenario, read_scenario, scenario_yaml
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan
from harness.scenario.settings import BROKERS, REPLICAS, SETTINGS, Bound

SEEDS = range(25)
BATTERY = (
    *("storm-sweep", "compaction"),
    *(f"tools/{name}-light.yaml" for name in ("mix", "administration", "groups")),
)
HEAD = """\
name: drawn
description: Everything is drawn
driver: simulated
topics: [{name: orders, partitions: 2}, {name: events, config: {segment.bytes: 5000}}]
"""
LOAD = "workloads: [{kind: produce-consume, parameters: {acks: 1, keys: 7}}]\n"
DRAWS = """\
draws:
  brokers: [3, 5]
  replication_factor: [2, 3]
  settings: [log, cleaner, replication, groups, cluster]
  load: true
  latencies: true
"""


def drawn_scenarios(text: str = HEAD + LOAD + DRAWS) -> Iterator[tuple[Plan, Scenario]]:
    scenario = read_scenario(text, "drawn.yaml")
    for seed in SEEDS:
        plan = make_plan(scenario, seed)
        yield plan, with_drawn(scenario, plan.drawn)


@pytest.mark.parametrize("name", BATTERY)
def test_whatever_is_drawn_is_a_scenario_that_is_accepted(name: str) -> None:
    scenario = load_scenario(name)
    different, seeds = set(), SEEDS[:5]
    for seed in seeds:
        plan = make_plan(scenario, seed)
        assert (
            plan.to_json() == make_plan(scenario, seed).to_json() == Plan.model_validate_json(plan.to_json()).to_json()
        )
        settled = with_drawn(scenario, plan.drawn)
        assert settled.draws is None
        assert read_scenario(scenario_yaml(settled), name) == settled
        different.add(scenario_yaml(settled))
    assert len(different) == len(seeds)


def test_what_is_stated_is_not_drawn() -> None:
    text = HEAD.replace("driver:", "cluster: {properties: {log.roll.ms: 777}}\ndriver:") + LOAD + DRAWS
    for plan, settled in drawn_scenarios(text):
        assert plan.drawn is not None
        assert "log.roll.ms" not in plan.drawn.properties
        assert settled.cluster.properties["log.roll.ms"] == "777"
        assert settled.topics[1].config["segment.bytes"] == "5000"
        assert settled.workloads[0].parameters["keys"] == 7


def test_a_setting_differs_between_brokers_and_topics_now_and_then() -> None:
    both = [
        plan.drawn
        for plan, _ in drawn_scenarios()
        if plan.drawn is not None
        and "segment.bytes" in plan.drawn.topics.get("orders", {})
        and "log.segment.bytes" in plan.drawn.properties
    ]
    assert both
    assert all(each.topics["orders"]["segment.bytes"] != each.properties["log.segment.bytes"] for each in both)


def test_a_parameter_that_the_plugin_refuses_beside_the_others_is_not_drawn() -> None:
    parameters = [settled.workloads[0].parameters for _, settled in drawn_scenarios()]
    assert any("linger_ms" in each for each in parameters)
    assert not any("idempotence" in each for each in parameters), "acks is 1"


@pytest.mark.parametrize(("least", "drawn"), [("6000", False), ("500", True)])
def test_a_session_that_brokers_refuse_is_not_drawn(least: str, drawn: bool) -> None:
    head = HEAD.replace("driver:", f"cluster: {{properties: {{group.min.session.timeout.ms: {least}}}}}\ndriver:")
    parameters = [
        settled.workloads[0].parameters
        for _, settled in drawn_scenarios(head + "workloads: [{kind: consume-group}]\n" + DRAWS)
    ]
    assert any("session_timeout_ms" in each for each in parameters) is drawn
    assert any("heartbeat_interval_ms" in each for each in parameters)


def test_bounds_hold_between_what_is_drawn() -> None:
    def value(of: Bound, settled: Scenario) -> float:
        sizes = {BROKERS: settled.cluster.brokers, REPLICAS: min(topic.replication_factor for topic in settled.topics)}
        return of.share * float(sizes.get(of.name) or settled.cluster.properties[of.name])

    bounded = [each for each in SETTINGS if each.at_most or each.at_least]
    checked = 0
    for _, settled in drawn_scenarios():
        for setting in bounded:
            bounds = (*setting.at_most, *setting.at_least)
            if not {setting.name, *(each.name for each in bounds)} <= {*settled.cluster.properties, BROKERS, REPLICAS}:
                continue
            own = float(settled.cluster.properties[setting.name])
            assert all(own <= value(each, settled) for each in setting.at_most)
            assert all(own >= value(each, settled) for each in setting.at_least)
            checked += 1
    assert checked > len(SEEDS)


@pytest.mark.parametrize(
    ("driver", "system", "segments", "latencies"),
    [
        pytest.param("simulated", "python", True, True, id="all of it in virtual time"),
        pytest.param("process", "python", True, False, id="real disks take the time that they take"),
        pytest.param("process", "kafka:3.9.1", True, False, id="Kafka with ZooKeeper"),
        pytest.param("process", "kafka:4.4.0", False, False, id="since 4.0 Kafka refuses small segments"),
    ],
)
def test_a_driver_and_a_system_get_what_they_can(driver: str, system: str, segments: bool, latencies: bool) -> None:
    text = HEAD.replace("driver: simulated", f"driver: {driver}\nsystem: {system}").replace(
        ", config: {segment.bytes: 5000}", ""
    )
    drawn = [plan.drawn for plan, _ in drawn_scenarios(text + LOAD + DRAWS) if plan.drawn is not None]
    assert any("log.segment.bytes" in each.properties for each in drawn) is segments
    small_indexes = any("log.index.size.max.bytes" in each.properties for each in drawn)
    assert small_indexes is (system == "python"), "a follower of Kafka does not bear them"
    assert any(each.latencies.any for each in drawn) is latencies


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        pytest.param("draws: {brokers: [5, 3]}", "a range from less to more, not [5, 3]", id="a range backwards"),
        pytest.param("draws: {settings: [disks]}", "'log', 'cleaner'", id="a group that there is not"),
        pytest.param("draws: {brokers: [2, 4]}", "with 2 brokers (draws.brokers): 3 replicas do not fit", id="too few"),
        pytest.param(
            "draws: {replication_factor: [4, 5]}", "4 replicas do not fit on 3 brokers", id="too many replicas"
        ),
        pytest.param("latencies: {sync_ms: 5000}", "less than or equal to 100", id="a disk that is too slow"),
        pytest.param(
            "latencies: {stall_ms: 5, slow_brokers: [3]}", "there is no broker 3; allowed: 0 to 2", id="no broker"
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(more: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read_scenario(HEAD + LOAD + more + "\n", "drawn.yaml")
    assert problem in str(refused.value)


def test_real_disks_take_no_latencies() -> None:
    text = HEAD.replace("simulated", "process") + LOAD + "latencies: {sync_ms: 5}\n"
    with pytest.raises(ScenarioError, match="runs on real disks and processors; allowed: simulated"):
        read_scenario(text, "drawn.yaml")


def test_a_scenario_without_draws_has_the_plan_that_it_had() -> None:
    assert '"drawn":' not in make_plan(read_scenario(HEAD + LOAD, "drawn.yaml"), 1).to_json()
