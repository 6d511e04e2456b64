"""Scenarios that go step by step: what is refused, with its line, and what the seed decides."""

import json

import pytest

from harness.contracts.registry import Kind, names
from harness.errors import ScenarioError
from harness.scenario.conditions import Condition, parse_condition
from harness.scenario.file import load_scenario, read_scenario
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan

GOOD = """\
name: steps
description: One thing after the other
roles: {B: controller, A: one, C: one}
topics:
  - {name: orders, partitions: 1, replicas: [A, C, B]}
workloads:
  - {kind: produce-consume, parameters: {producers: 0}}
steps:
  - {write: 10, parameters: {acks: 1}}
  - {inject: kill, target: "A, C"}
  - {when: B leads orders-0, within_s: 20}
  - {wait_s: 3}
  - {heal: "A, C"}
"""
LAST_STEPS = GOOD[GOOD.index("kill") :]


@pytest.fixture
def scenario() -> Scenario:
    return read_scenario(GOOD, "s.yaml")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("{B: controller,", "{B: leader,", "s.yaml:3: roles.B: ", id="a role without a broker then"),
        pytest.param("A: one,", "A: controller,", "s.yaml:3: roles.A: B is the controller", id="two controllers"),
        pytest.param("C: one}", "C: one, D: one}", "s.yaml:3: roles: 4 roles for 3 brokers", id="too many roles"),
        pytest.param("[A, C, B]", "[A, D, B]", "s.yaml:5: topics.0.replicas: unknown role 'D'", id="an unknown role"),
        pytest.param("[A, C, B]", "[A, A, B]", "s.yaml:5: topics.0.replicas: A is named twice", id="two on one broker"),
        pytest.param("[A, C, B]", "[A, C]", "s.yaml:5: topics.0.replicas: names 2, and replication_factor is 3",
                     id="too few replicas"),
        pytest.param("{wait_s: 3}", "{wait_s: 3, heal: A}", "s.yaml:12: steps.3: give one of inject, heal, write, when,"
                     " wait_s, hold, lose_answer, release, ask, answer, not heal and wait_s", id="two things at once"),
        pytest.param("{wait_s: 3}", "{within_s: 3}", "s.yaml:12: steps.3: give one of inject, heal, write, when, wait_s"
                     ", hold, lose_answer, release, ask, answer, not none", id="nothing to do"),
        pytest.param("{wait_s: 3}", "{wait: 3}", "s.yaml:12: steps.3.wait: unknown key", id="unknown key"),
        pytest.param("inject: kill", "inject: kil", "s.yaml:10: steps.1.inject: unknown fault 'kil'",
                     id="unknown fault"),
        pytest.param(LAST_STEPS, "drop-packets, target: A}\ndriver: process", "s.yaml:10: steps.1.inject: "
                     "drop-packets needs packets, which the driver process does not have",
                     id="a fault that the driver cannot do"),
        pytest.param("inject: kill", "inject: unclean-election", "s.yaml:10: steps.1.inject: unclean-election takes "
                     "leader, and roles are brokers", id="a fault that takes no brokers"),
        pytest.param('"A, C"}', "A, parameters: {fast: 1}}", "s.yaml:10: steps.1.parameters.fast: unknown key",
                     id="wrong parameter of a fault"),
        pytest.param('"A, C"', '"A, X"', "s.yaml:10: steps.1.target: unknown role 'X'", id="a target that is no role"),
        pytest.param("{acks: 1}", "{acks: 2}", "s.yaml:9: steps.0.parameters.acks", id="wrong parameter of a producer"),
        pytest.param("B leads orders-0", "B likes orders-0", "s.yaml:11: steps.2.when: not a condition",
                     id="no condition"),
        pytest.param("B leads orders-0", "X leads orders-0", "s.yaml:11: steps.2.when: unknown role 'X'",
                     id="a condition on no broker"),
        pytest.param("B leads orders-0", "B leads orders-1", "s.yaml:11: steps.2.when: topic orders has no partition 1",
                     id="a condition of no partition"),
        pytest.param('heal: "A, C"', "heal: B", "s.yaml:13: steps.4.heal: nothing is in force on B then",
                     id="nothing to heal"),
        pytest.param('heal: "A, C"', "heal: A", "s.yaml:13: steps.4.heal: a fault in force on A is in force on C too: "
                     "heal it on all of them", id="half of what was hit at once"),
        pytest.param("{wait_s: 3}", "{wait_s: 3, target: A}", "s.yaml:12: steps.3.target: wait_s takes no target",
                     id="a key that this step has no use for"),
        pytest.param("{acks: 1}", "{records: 7}", "s.yaml:9: steps.0.parameters.records: is not allowed: the step "
                     "starts one producer, and write is its number of records", id="a parameter that the step decides"),
        pytest.param("{wait_s: 3}", "3", "s.yaml:12: steps.3: must be a valid dictionary, not 3", id="no step at all"),
        pytest.param("{B: controller,", "{b: controller,", "s.yaml:3: roles.b: must match the pattern '^[A-Z]",
                     id="a role in small letters"),
        pytest.param("{wait_s: 3}", "{release: M}", "s.yaml:12: steps.3.release: no messages M are intercepted then",
                     id="messages that nothing holds"),
        pytest.param("{wait_s: 3}", "{when: 2 of M are held}", "s.yaml:12: steps.3.when: no messages M are",
                     id="a condition on messages that nothing holds"),
        pytest.param("{wait_s: 3}", "{hold: M, target: A, parameters: {apis: [EndTxm]}}", "s.yaml:12: steps.3."
                     "parameters: no api: 'EndTxm'", id="an unknown API"),
        pytest.param(LAST_STEPS, "kill, target: A}\n  - {when: group g is Stable}\nsystem: kafka:3.9.1", "s.yaml:11: "
                     "steps.2.when: kafka:3.9.1 does not log group_state, by which this is seen", id="no log shows it"),
        pytest.param("{wait_s: 3}", "{when: A logs nothing}", "s.yaml:12: steps.3.when: not an event of the state-"
                     "change log: 'nothing'", id="an unknown event"),
        pytest.param("{wait_s: 3}", "{ask: Beat, version: 3, target: A, expect: {}}", "s.yaml:12: steps.3.ask: unknown "
                     "request 'Beat'", id="an unknown request"),
        pytest.param("{wait_s: 3}", "{ask: Heartbeat, version: 9, target: A, expect: {}}", "s.yaml:12: steps.3."
                     "version: state a version of Heartbeat from 0 to 4", id="a version that no request has"),
        pytest.param("{wait_s: 3}", "{ask: Heartbeat, version: 3, target: A, expect: {}, parameters: {group: g}}",
                     "s.yaml:12: steps.3.parameters: Heartbeat 3 has no field 'group'; it has group_id,",
                     id="a field that the request does not have"),
        pytest.param("{wait_s: 3}", "{ask: Heartbeat, version: 3, target: one, expect: {}}", "s.yaml:12: steps.3."
                     "target: one is not one broker: give a role, leader", id="a request to any broker"),
        pytest.param("{wait_s: 3}", "{ask: Heartbeat, version: 3, target: A}", "s.yaml:12: steps.3: say what answer to "
                     "expect", id="a request without an expected answer"),
        pytest.param("{wait_s: 3}", "{answer: R, expect: {}}", "s.yaml:12: steps.3.answer: no request R is sent with "
                     "`later` before", id="the answer of no request"),
        pytest.param("{wait_s: 3}", "{ask: Heartbeat, version: 3, target: A, later: R, expect: {}}", "s.yaml:12: "
                     "steps.3.later: takes no expect", id="an answer that is expected twice"),
        pytest.param("{wait_s: 3}", "{ask: Heartbeat, version: 3, target: A, expect: {}, parameters: {member_id: $M}}",
                     "s.yaml:12: steps.3: $M: no step before keeps M", id="a name that nothing keeps"),
        pytest.param(LAST_STEPS, "intercept, target: A, parameters: {apis: [Fetch], action: lose}}\ncluster: {"
                     "properties: {security.inter.broker.protocol: SSL}}", "s.yaml:10: steps.1.inject: intercept reads "
                     "messages, and security.inter.broker.protocol encrypts them", id="messages over TLS"),
        pytest.param("steps:", "faults: [{kind: kill, at_s: 1}]\nsteps:", "s.yaml:9: steps: give steps, or faults and a"
                     " mix", id="a schedule beside"),
    ],
)  # fmt: skip
def test_an_error_is_shown_with_its_line(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as refused:
        read_scenario(GOOD.replace(old, new, 1), "s.yaml")
    messages = str(refused.value).splitlines()
    assert any(message.startswith(expected) for message in messages), messages


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("A: one,", "a: one,", id="roles"),
        pytest.param("roles:", "cluster: {brokers: three}\nroles:", id="the number of brokers"),
    ],
)
def test_what_is_malformed_makes_no_other_name_unknown(old: str, new: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        read_scenario(GOOD.replace(old, new, 1), "s.yaml")
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        pytest.param("A leads my.orders-2-1", Condition(topic="my.orders-2", partition=1, leader="A"), id="a leader"),
        pytest.param("ISR of orders-0 is A,  B", Condition(topic="orders", partition=0, isr=("A", "B")), id="an ISR"),
        pytest.param(" checkpoint ", Condition(), id="a checkpoint"),
        pytest.param("leader epoch of orders-0 is 3", Condition(topic="orders", partition=0, leader_epoch=3),
                     id="a leader epoch"),
        pytest.param("group group-1 is Stable", Condition(group="group-1", state="Stable"), id="a group"),
        pytest.param("transaction t-1 is PrepareCommit", Condition(transactional_id="t-1", state="PrepareCommit"),
                     id="a transaction"),
        pytest.param("A logs become_leader of orders-0", Condition(broker="A", event="become_leader", topic="orders",
                     partition=0), id="an event of a partition"),
        pytest.param("A logs zk_session", Condition(broker="A", event="zk_session"), id="an event"),
        pytest.param("M is on its way", Condition(messages="M", count=1), id="a message"),
        pytest.param("2 of M are held", Condition(messages="M", count=2), id="several messages"),
    ],
)  # fmt: skip
def test_conditions_are_a_few_words(text: str, condition: Condition) -> None:
    assert parse_condition(text) == condition


def test_faults_and_writers_of_steps_are_planned_in_their_order(scenario: Scenario) -> None:
    plan = make_plan(scenario, 7)
    assert [(fault.fault, fault.target, fault.duration_s) for fault in plan.faults] == [("kill", "A, C", 60.0)]
    (writer,) = [client for client in plan.clients if client.step >= 0]
    assert (writer.process, writer.step, writer.role) == ("step-1-producer-1", 0, "producer")
    assert {name: writer.parameters[name] for name in ("records", "acks", "message_timeout_ms")} == {
        "records": 10,
        "acks": 1,
        "message_timeout_ms": 60_000,
    }
    assert [client.role for client in plan.clients if client.step < 0] == ["consumer"]


def test_roles_without_steps_are_taken_too(scenario: Scenario) -> None:
    assert sorted(make_plan(scenario.model_copy(update={"steps": []}), 7).casting) == [0, 1, 2]


def test_the_seed_decides_who_takes_roles(scenario: Scenario) -> None:
    orders = {tuple(make_plan(scenario, seed).casting) for seed in range(40)}
    assert len(orders) == 6
    assert {tuple(sorted(order)) for order in orders} == {(0, 1, 2)}
    assert make_plan(scenario, 7) == make_plan(scenario, 7)


def test_a_plan_without_steps_says_nothing_of_them() -> None:
    data = json.loads(make_plan(load_scenario("smoke"), 7).to_json())
    assert "casting" not in data
    assert all("step" not in client for client in data["clients"])


ON_SLOW_DISKS = ("kafka-10614", "kafka-14704")
"""Published bugs that virtual time cannot bring about, as its syncs take no time."""
OF_A_QUORUM = ("kafka-15489",)
"""Those of KRaft."""


@pytest.mark.parametrize(
    "name",
    [name for name in names(Kind.SCENARIO) if name.startswith(("kip-", "kafka-")) and name not in OF_A_QUORUM],
)
def test_published_bugs_are_looked_for_on_every_system(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.steps
    logged = {parse_condition(step.when).logged for step in scenario.steps if step.when} - {""}
    systems = ["python", *([] if logged else ["kafka:0.10.2.2"])]  # what no release logs, no step waits for there
    virtual = [] if name in ON_SLOW_DISKS else [{"driver": "simulated"}]
    for changed in (*virtual, *({"system": system} for system in systems)):
        text = json.dumps({**scenario.model_dump(mode="json"), **changed})
        assert read_scenario(text, name).steps == scenario.steps
