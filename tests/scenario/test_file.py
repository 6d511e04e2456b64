import json
from pathlib import Path

import pytest

from harness.cluster.broker_properties import SET_FOR_QUORUM
from harness.contracts import registry
from harness.contracts.objectives import Objectives
from harness.contracts.targets import parse_target
from harness.errors import ScenarioError
from harness.scenario.file import find_scenario, load_scenario, read_scenario, scenario_yaml
from harness.scenario.source import Override, set_option

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "objectives" / "checkout.yaml"
GOOD = """\
name: good
description: As plain as it gets
cluster:
  brokers: 3
  properties: {zookeeper.session.timeout.ms: 4000}
topics:
  - name: orders
    partitions: 2
    config:
      min.insync.replicas: 2
workloads:
  - kind: produce-consume
    parameters: {acks: all}
faults:
  - kind: kill
    at_s: 1
    target: leader(orders,1)
duration_s: 10
"""


def errors_of(text: str, *options: str) -> list[str]:
    with pytest.raises(ScenarioError) as refused:
        read_scenario(text, "s.yaml", [set_option(option) for option in options])
    return str(refused.value).splitlines()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("member(group-1,3)", "the group group-1 has no member 3; allowed: 1 to 2", id="a number too high"),
        pytest.param("member(group-3,1)", "known: group-1, group-2", id="no such group"),
        pytest.param("producer(9)", "the load has no producer 9; allowed: 1 to ", id="a producer too many"),
        pytest.param("consumer(1)", "the load has no consumer 1; allowed: none", id="a load without consumers"),
    ],
)
def test_a_client_that_no_workload_has_is_refused(target: str, message: str) -> None:
    text = find_scenario("groups").read_text(encoding="utf-8").replace("member(group-1,2)", target)
    assert any(message in each for each in errors_of(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{recovery: 3}", "objectives.recovery: unknown key (did you mean recovery_s?)", id="a name"),
        pytest.param(
            "{recovery_s: 30s}", "objectives.recovery_s: must be a valid number, not '30s' (Seconds,", id="a unit"
        ),
        pytest.param("{no_write_s: 0.1}", "must be greater than or equal to 0.25, not 0.1 (Seconds,", id="too short"),
        pytest.param("{lag_records: 1.5}", "objectives.lag_records: must be a valid integer", id="half a record"),
        pytest.param("{}", "no objective is stated; allowed: no_write_s, available_percent", id="none"),
    ],
)
def test_an_objective_that_cannot_be_is_refused_with_its_unit(text: str, message: str) -> None:
    (error,) = errors_of(f"{GOOD}objectives: {text}\n")
    assert message in error


def test_the_example_with_objectives_is_valid() -> None:
    scenario = load_scenario(str(EXAMPLE))
    assert scenario.objectives is not None
    assert set(scenario.objectives.stated) == set(Objectives.model_fields)


def test_two_faults_of_one_client_at_a_time_are_refused() -> None:
    text = find_scenario("hostile-clients").read_text(encoding="utf-8").replace("producer(1)", "producer(2)")
    assert any("claims producer 2 while faults.3 may hold it" in each for each in errors_of(text))


@pytest.mark.parametrize(
    ("servers", "target", "message"),
    [
        pytest.param(3, "zookeeper(2,4)", "there is no ZooKeeper server 4; allowed: 1 to 3", id="a number too high"),
        pytest.param(
            1, "zookeeper(follower)", "a single ZooKeeper server has no follower", id="a follower without a leader"
        ),
        pytest.param(3, "majority", "kill-zookeeper takes zookeeper, not majority", id="brokers"),
    ],
)
def test_a_zookeeper_server_that_cannot_be_is_refused(servers: int, target: str, message: str) -> None:
    text = GOOD.replace("brokers: 3", f"zookeeper_servers: {servers}").replace("kind: kill", "kind: kill-zookeeper")
    (error,) = errors_of(text.replace("leader(orders,1)", target))
    assert message in error


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param("leader( orders , 1)", "leader( orders , 1)", id="as it was written"),
        pytest.param("[1, 2]", "1,2", id="a list as its ids"),
    ],
)
def test_a_target_stays_the_text_in_the_file_of_a_run(written: str, text: str) -> None:
    (fault,) = read_scenario(GOOD.replace("leader(orders,1)", written), "s.yaml").faults
    assert fault.model_dump()["target"] == fault.model_dump(mode="json")["target"] == text
    assert "target" not in fault.model_copy(update={"target": parse_target("one")}).model_dump(exclude_defaults=True)


def test_syncs_of_a_server_of_zookeeper_are_not_slow_where_there_is_none() -> None:
    slow = GOOD.replace("kind: kill", "kind: slow-sync\n    duration_s: 2").replace("leader(orders,1)", "zookeeper(1)")
    assert read_scenario(slow, "slow.yaml").faults[0].target.text == "zookeeper(1)"
    (error,) = errors_of(f"{slow}\nsystem: kafka:4.4.0\n")
    assert "kafka:4.4.0 has no ZooKeeper" in error


@pytest.mark.parametrize("kind", ["clock", "cpu-limit", "memory-limit", "file-limit", "slow-sync"])
@pytest.mark.parametrize("duration_s", ["", "duration_s: 0.5"])
def test_what_would_be_over_before_it_is_looked_at_is_refused(kind: str, duration_s: str) -> None:
    parameters = "parameters: {step_s: 60}" if kind == "clock" else ""
    errors = errors_of(GOOD.replace("kind: kill", f"kind: {kind}\n    {parameters}\n    {duration_s}"))
    assert any(f"faults.0.duration_s: {kind} takes 2 s or more, not 0" in error for error in errors)


def test_a_good_scenario_is_read_with_defaults_and_text_properties() -> None:
    scenario = read_scenario(GOOD, "s.yaml")
    assert scenario.driver == "process"
    assert scenario.cluster.properties == {"zookeeper.session.timeout.ms": "4000"}
    assert scenario.topics[0].config == {"min.insync.replicas": "2"}
    assert scenario.topics[0].replication_factor == 3


def test_kafka_itself_may_have_properties_that_our_broker_has_not() -> None:
    own = GOOD.replace("{zookeeper.session.timeout.ms: 4000}", "{log.preallocate: true}")
    assert errors_of(own)
    scenario = read_scenario(f"{own}system: kafka:3.9.1\n", "s.yaml")
    assert scenario.cluster.properties == {"log.preallocate": "true"}


def test_a_property_that_our_broker_cannot_honour_says_why() -> None:
    (message,) = errors_of(GOOD.replace("{zookeeper.session.timeout.ms: 4000}", "{ssl.key.password: x}"))
    assert message.startswith("s.yaml:5: cluster.properties.ssl.key.password: there is no TLS here")


def test_a_fault_that_nothing_would_show_is_refused() -> None:
    (message,) = errors_of(GOOD.replace("kind: kill", "kind: unclean-election") + "system: kafka:2.5.1\n")
    seen = "unclean-election is confirmed by events that kafka:2.5.1 does not log: append"
    assert message == f"s.yaml:15: faults.0.kind: {seen}"


WITHOUT_ZOOKEEPER = "system: kafka:4.4.0\n"
MARKED = "kind: expire-session\n    only_with_zookeeper: true"


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param(
            "kind: expire-session", "kind: expire-session needs ZooKeeper, and kafka:4.4.0 has none", id="a session"
        ),
        pytest.param(
            "kind: move-controller\n    target: controller",
            "kind: move-controller needs ZooKeeper, and kafka:4.4.0 has none",
            id="the znode of the controller",
        ),
        pytest.param(
            "kind: overwrite-controller\n    target: controller",
            "kind: overwrite-controller needs ZooKeeper, and kafka:4.4.0 has none",
            id="what the znode of the controller holds",
        ),
        pytest.param(
            "kind: delete-controller-epoch\n    target: controller",
            "kind: delete-controller-epoch needs ZooKeeper, and kafka:4.4.0 has none",
            id="the znode of its epoch",
        ),
        pytest.param(
            "kind: preferred-election\n    target: leader(orders,0)",
            "kind: preferred-election needs ZooKeeper, and kafka:4.4.0 has none",
            id="the znode of elections",
        ),
        pytest.param(
            "kind: add-partitions\n    target: leader(orders,0)",
            "kind: add-partitions needs ZooKeeper, and kafka:4.4.0 has none",
            id="the znode of a topic",
        ),
        pytest.param(
            "kind: pause-zookeeper\n    target: zookeeper",
            "kind: pause-zookeeper needs ZooKeeper, and kafka:4.4.0 has none",
            id="a server of ZooKeeper",
        ),
        pytest.param(
            "kind: isolate\n    duration_s: 2\n    parameters: {sides: [peers, zookeeper]}",
            "parameters.sides: kafka:4.4.0 has no ZooKeeper",
            id="links to one",
        ),
        pytest.param(
            "kind: kill\n    parameters: {end_session: true}",
            "parameters.end_session: kafka:4.4.0 has no ZooKeeper",
            id="a parameter",
        ),
    ],
)
def test_what_takes_zookeeper_is_refused_where_there_is_none(fault: str, why: str) -> None:
    (message,) = errors_of(_with_fault(fault) + WITHOUT_ZOOKEEPER)
    assert message.endswith(f"faults.0.{why}")


def test_a_fault_that_is_marked_so_is_left_out_where_there_is_no_zookeeper() -> None:
    text = _with_fault(f"{MARKED}\n    at_s: 5\n  - kind: kill")
    without = read_scenario(text + WITHOUT_ZOOKEEPER, "s.yaml")
    assert [fault.kind for fault in without.faults] == ["kill"]
    again = read_scenario(scenario_yaml(without), "scenario.yaml")
    assert (without.left_out, again.left_out) == (["expire-session one"], ["expire-session one"])
    assert [fault.kind for fault in read_scenario(text, "s.yaml").faults] == ["expire-session", "kill"]


@pytest.mark.parametrize(
    ("faults", "key"),
    [
        pytest.param(f"faults:\n  - {MARKED}\n    at_s: 1\n", "faults", id="of the schedule"),
        pytest.param(f"mix:\n  count: 2\n  kinds:\n  - {MARKED}\n", "mix.kinds", id="of a mix"),
    ],
)
def test_a_scenario_of_which_no_fault_is_left_is_refused(faults: str, key: str) -> None:
    text = GOOD.partition("faults:")[0] + faults + "duration_s: 60\n"
    assert read_scenario(text, "s.yaml")
    (message,) = errors_of(text + WITHOUT_ZOOKEEPER)
    assert f" {key}: all kinds are only_with_zookeeper, and the system under test has no" in message


@pytest.mark.parametrize(
    ("system", "cluster", "why"),
    [
        pytest.param("python", "controllers: 3", "controllers: python has no quorum", id="a quorum of ours"),
        pytest.param("kafka:3.9.1", "controllers: 3", "controllers: kafka:3.9.1 has no quorum", id="a quorum of 3.9"),
        pytest.param("kafka:4.4.0", "zookeeper_servers: 3", "kafka:4.4.0 has no ZooKeeper", id="an ensemble"),
        pytest.param("kafka:4.4.0", "brokers: 2\n  controllers: 3", "3 do not fit on 2", id="too many controllers"),
        pytest.param(
            "kafka:3.9.1", "separate_controllers: true", "kafka:3.9.1 has no quorum", id="servers of no quorum"
        ),
        *(
            pytest.param("kafka:4.4.0", f"properties: {{{name}: '1'}}", f"{name}: is set by the harness", id=name)
            for name in sorted(SET_FOR_QUORUM)
        ),
    ],
)
def test_what_a_cluster_would_not_heed_is_refused(system: str, cluster: str, why: str) -> None:
    before, _, after = GOOD.partition("cluster:")
    topics = after[after.index("topics:") :].replace(
        "    partitions: 2", "    replication_factor: 2\n    partitions: 2"
    )
    (message,) = errors_of(f"{before}cluster:\n  {cluster}\n{topics}system: {system}\n")
    assert why in message


@pytest.mark.parametrize(
    ("system", "cluster", "fault", "why"),
    [
        pytest.param(
            "python", "{}", "{kind: kill, target: quorum}", "python has no quorum of controllers", id="with ZooKeeper"
        ),
        pytest.param(
            "kafka:4.4.0",
            "{controllers: 1}",
            "{kind: kill, target: quorum(follower)}",
            "a quorum of one has no follower",
            id="a quorum of one",
        ),
        pytest.param(
            "kafka:4.4.0",
            "{separate_controllers: true}",
            "{kind: bounce, target: quorum}",
            "bounce hits brokers, and the controllers of this cluster are none",
            id="a fault of brokers only",
        ),
        pytest.param(
            "kafka:4.4.0",
            "{separate_controllers: true}",
            "{kind: bounce, target: controller}",
            "bounce hits brokers, and the controllers of this cluster are none",
            id="their leader by the word of before",
        ),
        pytest.param("kafka:4.4.0", "{}", "{kind: bounce, target: quorum}", "", id="brokers that are controllers"),
        pytest.param(
            "kafka:3.9.1",
            "{}",
            "{kind: delay, parameters: {sides: [controllers]}}",
            "parameters.sides: kafka:3.9.1 has no quorum of controllers, but ZooKeeper",
            id="links to controllers that there are none of",
        ),
        pytest.param(
            "kafka:4.4.0",
            "{}",
            "{kind: isolate, parameters: {sides: [controllers]}}",
            "parameters.sides: the controllers of this cluster are brokers, which are peers",
            id="links to controllers that are brokers",
        ),
        pytest.param(
            "kafka:4.4.0",
            "{separate_controllers: true}",
            "{kind: partition, target: quorum}",
            "partition hits brokers, and the controllers of this cluster are none",
            id="a partition of those that are none",
        ),
        pytest.param("kafka:4.4.0", "{}", "{kind: isolate}", "", id="all links of a broker that has no ZooKeeper"),
        pytest.param(
            "kafka:4.4.0",
            "{controllers: 3, separate_controllers: true}",
            "{kind: isolate, target: quorum(leader), parameters: {sides: [controllers]}}",
            "",
            id="links between controllers",
        ),
        pytest.param(
            "kafka:4.4.0",
            "{brokers: 1, controllers: 3, separate_controllers: true}",
            "{kind: pause, target: quorum(follower)}",
            "",
            id="three controllers beside one broker",
        ),
    ],
)
def test_which_faults_hit_controllers(system: str, cluster: str, fault: str, why: str) -> None:
    before, _, after = GOOD.partition("cluster:")
    topics, _, _ = after[after.index("topics:") :].partition("faults:")
    topics = topics.replace("    partitions: 2", "    replication_factor: 1\n    partitions: 2").replace(
        ": 2\n", ": 1\n"
    )
    planned = f"{fault.removesuffix('}')}, at_s: 1, duration_s: 2}}"
    text = f"{before}cluster: {cluster}\n{topics}faults:\n  - {planned}\nduration_s: 10\nsystem: {system}\n"
    if why:
        (message,) = errors_of(text)
        assert why in message
    else:
        assert read_scenario(text, "s.yaml")


@pytest.mark.parametrize(
    ("system", "options", "recovery_s", "load"),
    [
        pytest.param("python", [], 30.0, {}, id="of our broker those of the scenario and its load"),
        pytest.param(
            "kafka:3.9.1",
            [],
            60.0,
            {"message_timeout_ms": 10_000, "request_timeout_ms": 4000},
            id="a broker in Java has its own",
        ),
        pytest.param(
            "kafka:3.9.1",
            ["recovery_timeout_s=5", "workloads.0.parameters.request_timeout_ms=900"],
            5.0,
            {"request_timeout_ms": 900},
            id="what a scenario names counts",
        ),
    ],
)
def test_time_outs_are_those_of_what_is_under_test(
    system: str, options: list[str], recovery_s: float, load: dict[str, int]
) -> None:
    overrides = [set_option(option) for option in (f"system={system}", *options)]
    topic = GOOD.replace("    partitions: 2", "    replication_factor: 2\n    partitions: 2")
    scenario = read_scenario(topic, "s.yaml", overrides)
    assert scenario.recovery_timeout_s == recovery_s
    assert scenario.workloads[0].parameters == {"acks": "all", **load}
    assert read_scenario(scenario_yaml(scenario), "again.yaml") == scenario


UPGRADE = "kind: upgrade\n    parameters: {to: 'RELEASE'}"
ON = "duration_s: 10\nsystem: {}\ndriver: {}"


@pytest.mark.parametrize(
    ("system", "driver", "release", "reasons"),
    [
        pytest.param("kafka:3.3.2", "process", "3.9.1", [], id="a later release with ZooKeeper"),
        pytest.param("kafka:0.10.2.2", "process", "2.8.2", [], id="one that is much later"),
        pytest.param(
            "python",
            "process",
            "3.9.1",
            ["kind: upgrade needs a later release that keeps its metadata where python does; none is known"],
            id="our broker",
        ),
        pytest.param(
            "kafka:3.9.1",
            "process",
            "4.4.0",
            ["kind: upgrade needs a later release that keeps its metadata where kafka:3.9.1 does; none is known"],
            id="the last one with ZooKeeper",
        ),
        pytest.param(
            "kafka:3.3.2",
            "process",
            "4.4.0",
            ["parameters: 4.4.0 has no ZooKeeper, where brokers of 3.3.2 keep their metadata; releases to upgrade to:"],
            id="one that keeps its metadata elsewhere",
        ),
        pytest.param(
            "kafka:3.3.2",
            "process",
            "2.8.2",
            ["parameters: 2.8.2 is no later release than 3.3.2, and no broker is downgraded"],
            id="an earlier one",
        ),
        pytest.param(
            "kafka:3.3.2", "process", "3.9", ["parameters: no Apache Kafka '3.9'; known releases:"], id="no release"
        ),
        pytest.param("kafka:3.3.2", "process", "", ["parameters.to: "], id="none that is named"),
        pytest.param(
            "kafka:3.3.2",
            "docker",
            "3.9.1",
            ["kind: upgrade needs upgrade, which the driver docker does not have; drivers that do: process"],
            id="containers",
        ),
        pytest.param(
            "kafka:3.3.2",
            "simulated",
            "3.9.1",
            ["kind: upgrade needs upgrade, which the driver simulated", "the driver simulated does not start kafka"],
            id="virtual time",
        ),
    ],
)
def test_an_upgrade_is_to_a_release_that_brokers_can_be_upgraded_to(
    system: str, driver: str, release: str, reasons: list[str]
) -> None:
    text = GOOD.replace("kind: kill", UPGRADE.replace("RELEASE", release))
    text = text.replace("duration_s: 10", ON.format(system, driver))
    if not reasons:
        assert read_scenario(text, "s.yaml").faults[0].parameters["to"] == release
        return
    errors = errors_of(text)
    assert len(errors) == len(reasons)
    assert all(reason in error for reason, error in zip(reasons, errors, strict=True))


def test_a_bound_that_is_no_number_is_reported_itself() -> None:
    groups = GOOD.replace("workloads:", "workloads:\n  - {kind: consume-group}")
    (error,) = errors_of(groups.replace("zookeeper.session.timeout.ms: 4000", "group.min.session.timeout.ms: soon"))
    assert "cluster.properties.group.min.session.timeout.ms: " in error


def test_a_step_upgrades_to_nothing_else() -> None:
    before, _, _ = GOOD.partition("faults:")
    steps = (
        "roles: {A: one}\nsteps:\n  - {inject: upgrade, target: A, parameters: {to: RELEASE}}\nsystem: kafka:3.3.2\n"
    )
    assert read_scenario(before + steps.replace("RELEASE", "3.9.1"), "s.yaml").steps[0].inject == "upgrade"
    (error,) = errors_of(before + steps.replace("RELEASE", "2.8.2"))
    assert "2.8.2 is no later release than 3.3.2" in error


def test_a_mix_does_not_draw_what_happens_to_a_broker_once() -> None:
    before, _, faults = GOOD.partition("faults:")
    mix = "mix: {count: 2, kinds: [{kind: kill}, {kind: upgrade, parameters: {to: 3.9.1}}]}\n"
    (error,) = errors_of(before + mix + "system: kafka:3.3.2\nduration_s: 30\n")
    assert "mix.kinds.1.kind: upgrade can hit a broker only once, and a mix may draw it again" in error
    beside = faults.replace("kind: kill", UPGRADE.replace("RELEASE", "3.9.1")).replace("duration_s: 10", "")
    mix = "mix: {count: 2, kinds: [{kind: kill}]}\n"
    assert read_scenario(before + mix + "system: kafka:3.3.2\nduration_s: 30\nfaults:" + beside, "s.yaml").mix


def _with_fault(fault: str) -> str:
    """Return the scenario with another fault instead of its own."""
    before, _, _ = GOOD.partition("faults:")
    return f"{before}faults:\n  - {fault}\n    at_s: 1\nduration_s: 10\n"


def test_a_character_that_json_escapes_as_a_pair_is_one() -> None:
    scenario = read_scenario(GOOD, "s.yaml", [set_option(f"description={json.dumps('a 😀')}")])
    assert scenario.description == "a 😀"
    assert read_scenario(scenario_yaml(scenario), "again.yaml") == scenario


def test_a_scenario_survives_the_run_folder() -> None:
    scenario = read_scenario(GOOD, "s.yaml")
    assert read_scenario(scenario_yaml(scenario), "again.yaml") == scenario


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("partitions: 2", "partitons: 2", "s.yaml:8: topics.0.partitons: unknown key (did you mean "
                     "partitions?); allowed: name, partitions, replication_factor, config", id="misspelt key"),
        pytest.param("duration_s: 10", "duration_s: 10\nduration_s: 11", "s.yaml:19: duration_s: key given twice, "
                     "first at s.yaml:18", id="a key twice"),
        pytest.param("partitions: 2", "partitions: two", "s.yaml:8: topics.0.partitions: must be a valid integer, "
                     "not 'two' (Number of partitions)", id="a word for a number"),
        pytest.param("partitions: 2", "partitions: 2.5", "s.yaml:8: topics.0.partitions: must be a valid integer, "
                     "not 2.5 (Number of partitions)", id="a fraction for a whole number"),
        pytest.param("partitions: 2", "partitions: 0", "s.yaml:8: topics.0.partitions: must be greater than or equal "
                     "to 1, not 0 (Number of partitions)", id="out of bounds"),
        pytest.param("at_s: 1", "at_s: .inf", "s.yaml:16: faults.0.at_s: must be a finite number, not inf (Seconds "
                     "after the workload is in steady state)", id="no instant at all"),
        pytest.param("    at_s: 1\n", "", "s.yaml:15: faults.0.at_s: missing (Seconds after the workload is in steady "
                     "state)", id="a key that must be given"),
        pytest.param("brokers: 3", "brokers: 2", "s.yaml:7: topics.0.replication_factor: 3 replicas do not fit on 2 "
                     "brokers; allowed: 1 to 2", id="more replicas than brokers"),
        pytest.param("min.insync.replicas: 2", "min.insync.replicas: 4", "s.yaml:10: topics.0.config."
                     "min.insync.replicas: 4 is more than the 3 replicas of topic orders: nothing could be written "
                     "with acks=all", id="more in-sync replicas than replicas"),
        pytest.param("min.insync.replicas: 2", "min.insync.replica: 2", "s.yaml:10: topics.0.config."
                     "min.insync.replica: unknown key (did you mean min.insync.replicas?); allowed:",
                     id="unknown topic property"),
        pytest.param("zookeeper.session.timeout.ms: 4000", "zookeeper.session.timeout.m: 1", "s.yaml:5: cluster."
                     "properties.zookeeper.session.timeout.m: unknown key (did you mean zookeeper.session.timeout.ms?)",
                     id="unknown broker property"),
        pytest.param("zookeeper.session.timeout.ms: 4000", "zookeeper.session.timeout.ms: soon", "s.yaml:5: cluster."
                     "properties.zookeeper.session.timeout.ms: must be a whole number", id="malformed property"),
        pytest.param("zookeeper.session.timeout.ms: 4000", "broker.id: 7", "s.yaml:5: cluster.properties.broker.id: "
                     "is set by the harness for each broker", id="a property of the harness"),
        pytest.param("zookeeper.session.timeout.ms: 4000", "log.dirs: /a", "s.yaml:5: cluster.properties.log.dirs: "
                     "expected different names of folders in the broker's own, like disk1,disk2, not '/a'",
                     id="a data directory outside"),
        pytest.param("leader(orders,1)", "leader(order,1)", "s.yaml:17: faults.0.target: unknown topic 'order' (did "
                     "you mean orders?)", id="a topic that does not exist"),
        pytest.param("leader(orders,1)", "leader(orders,2)", "s.yaml:17: faults.0.target: topic orders has no "
                     "partition 2; allowed: 0 to 1", id="a partition that does not exist"),
        pytest.param("leader(orders,1)", "3", "s.yaml:17: faults.0.target: there is no broker 3; allowed: 0 to 2",
                     id="a broker that does not exist"),
        pytest.param("leader(orders,1)", "each", "s.yaml:17: faults.0.target: not a target: 'each'; allowed:",
                     id="no target"),
        pytest.param("leader(orders,1)", "[1, a]", "s.yaml:17: faults.0.target: must be a text or broker ids, not [1, "
                     "'a'] (leader(topic,partition),", id="a target that is no text"),
        pytest.param("kind: kill", "kind: kil", "s.yaml:15: faults.0.kind: unknown fault 'kil' (did you mean kill?); "
                     "known:", id="unknown fault"),
        pytest.param("kind: produce-consume", "kind: nothing", "s.yaml:12: workloads.0.kind: unknown workload "
                     "'nothing'; known: administer, consume-group, exactly-once, play-scripts, produce-consume, "
                     "transact",
                     id="unknown workload"),
        pytest.param("acks: all", "acks: 2", "s.yaml:13: workloads.0.parameters.acks", id="wrong parameter"),
        pytest.param("workloads:", "workloads:\n  - {kind: consume-group, parameters: {assignor: sticky}}", "s.yaml:12:"
                     " workloads.0.parameters.assignor: must be 'range' or 'cooperative-sticky', not 'sticky'",
                     id="a parameter that may be a list too"),
        pytest.param("workloads:", "workloads:\n  - {kind: consume-group, parameters: {session_timeout_ms: 3000}}",
                     "s.yaml:12: workloads.0.parameters.session_timeout_ms: brokers refuse 3000: their "
                     "group.min.session.timeout.ms is 6000", id="a session that brokers refuse"),
        pytest.param("workloads:", "workloads:\n  - {kind: consume-group, parameters: {restless: 1, away_s: 31}}",
                     "s.yaml:12: workloads.0.parameters.away_s: 31 s are more than half of recovery_timeout_s, 30 s",
                     id="a member that is away for longer than it may do nothing"),
        pytest.param("acks: all", "ack: all", "s.yaml:13: workloads.0.parameters.ack: unknown key (did you mean acks?)",
                     id="unknown parameter"),
        pytest.param("at_s: 1", "at_s: 9.5\n    duration_s: 1", "s.yaml:16: faults.0.at_s: ends at 10.5 s (at_s + "
                     "jitter_s + duration_s), after the load of 10 s (duration_s)", id="it outlasts the load"),
        pytest.param("duration_s: 10", "duration_s: 10\ndriver: dockr", "s.yaml:19: driver: unknown driver 'dockr' "
                     "(did you mean docker?); known: process, docker", id="unknown driver"),
        pytest.param("duration_s: 10", "duration_s: 10\nsystem: kafka:1", "s.yaml:19: system: no Apache Kafka '1'; "
                     "known releases: 0.10.2.2, ", id="unknown release"),
        pytest.param("duration_s: 10", "duration_s: 10\nsystem: kafka:3.9.1\ndriver: simulated", "s.yaml:19: system: "
                     "the driver simulated does not start kafka:3.9.1; drivers that do: process, docker",
                     id="no system of it"),
        pytest.param("duration_s: 10", "duration_s: 10\nsystem: kafka:4.4.0\ndriver: docker", "s.yaml:19: system: "
                     "the driver docker does not start kafka:4.4.0; drivers that do: process",
                     id="no ZooKeeper where it takes one"),
        pytest.param("duration_s: 10", "duration_s: 10\nsystem: kafka:2.2.2\ndriver: docker", "s.yaml:19: system: "
                     "the driver docker does not start kafka:2.2.2; drivers that do: process",
                     id="a release of an older Java in containers"),
        pytest.param("duration_s: 10", "duration_s: 10\nsystem: kafka:3.9.1\nplanted_bugs: [acks-all-on-append]",
                     "s.yaml:20: planted_bugs: no bug can be planted in kafka:3.9.1", id="a bug in what is not ours"),
        pytest.param("duration_s: 10", "duration_s: 10\nplanted_bugs: [acks-all-on-appen]", "s.yaml:19: planted_bugs.0:"
                     " unknown planted bug 'acks-all-on-appen' (did you mean acks-all-on-append?)", id="unknown bug"),
        pytest.param("duration_s: 10", "duration_s: 10\nchecks:\n  - nonsense", "s.yaml:20: checks.0: unknown check "
                     "'nonsense'", id="unknown check"),
        pytest.param("duration_s: 10", "duration_s: 10\nplanted_bugs: [acks-all-on-append, acks-all-on-append]",
                     "s.yaml:19: planted_bugs.1: acks-all-on-append is named twice", id="a bug twice"),
        pytest.param("workloads:", "  - name: orders\nworkloads:", "s.yaml:11: topics.1.name: topic orders is declared "
                     "twice", id="a topic twice"),
        pytest.param("name: orders", "name: __orders", "s.yaml:7: topics.0.name: `.`, `..` and names that start with "
                     "`__` are Kafka's own", id="a name of Kafka's"),
        pytest.param("duration_s: 10", "duration_s: [10", "s.yaml:19: not YAML:", id="no YAML"),
        pytest.param("name: good", "name: &x !secret good", "s.yaml:1: name: tag !secret is not allowed", id="a tag"),
    ],
)  # fmt: skip
def test_an_error_is_shown_with_its_line_and_what_is_allowed(old: str, new: str, expected: str) -> None:
    assert old in GOOD
    messages = errors_of(GOOD.replace(old, new, 1))
    assert any(message.startswith(expected) for message in messages), messages


def test_all_errors_are_shown_at_once_in_the_order_of_lines() -> None:
    text = (
        GOOD.replace("brokers: 3", "brokers: none")
        .replace("partitions: 2", "partitions: 0")
        .replace("kind: kill", "kind: kil")
        .replace("acks: all", "acks: 3")
        .replace("duration_s: 10", "duration_s: 10\nsurprise: 1")
    )
    lines = [int(message.split(":")[1]) for message in errors_of(text)]
    assert lines == sorted(lines)
    assert {4, 8, 13, 15, 19} <= set(lines)


def test_an_error_is_not_shown_again_for_its_consequences() -> None:
    assert len(errors_of(GOOD.replace("name: orders", "name: or ders"))) == 1
    assert len(errors_of(GOOD.replace("brokers: 3", "brokers: none"))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "s.yaml:1: must be a mapping of keys", id="an empty file"),
        pytest.param("- a\n- b\n", "s.yaml:1: must be a mapping of keys", id="a list"),
        pytest.param("a: [" + "[" * 5000, "s.yaml:1: not YAML that can be read", id="nested without end"),
        pytest.param("&a [*a]", "s.yaml:1: not YAML that can be read", id="a loop"),
        pytest.param("#" * 300_000, "s.yaml:1: larger than", id="too large"),
        pytest.param("name: a\n---\nname: b\n", "s.yaml:2: not YAML: but found another document", id="two documents"),
    ],
)
def test_what_is_no_scenario_at_all_is_one_clear_error(text: str, message: str) -> None:
    (line,) = errors_of(text)
    assert line.startswith(message)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        pytest.param("cluster.brokers=5", 5, id="a number"),
        pytest.param("topics.0.partitions=7", 7, id="within a list"),
        pytest.param("cluster.properties.log.segment.bytes=4096", "4096", id="a key that has dots itself"),
        pytest.param("faults=[]", [], id="an empty list"),
    ],
)
def test_an_option_overrides_one_value(option: str, expected: object) -> None:
    scenario = read_scenario(GOOD, "s.yaml", [set_option(option)])
    values = {
        "cluster.brokers": scenario.cluster.brokers,
        "topics.0.partitions": scenario.topics[0].partitions,
        "cluster.properties.log.segment.bytes": scenario.cluster.properties.get("log.segment.bytes"),
        "faults": scenario.faults,
    }
    assert values[option.partition("=")[0]] == expected


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        pytest.param("topics.0.partitions=x", "--set topics.0.partitions=x: topics.0.partitions: must be a valid",
                     id="a wrong value"),
        pytest.param("topics.3.partitions=1", "--set topics.3.partitions=1: topics.3.partitions: topics is a list of 1;"
                     " allowed: 0 to 0", id="beyond the list"),
        pytest.param("durations=3", "--set durations=3: durations: unknown key (did you mean duration_s?)",
                     id="a new key"),
        pytest.param("faults=[", "--set faults=[: faults: not YAML: expected", id="no YAML"),
        pytest.param("duration_s", "--set duration_s: must be key.path=value", id="no value"),
        pytest.param("name.first=x", "--set name.first=x: name.first: name holds a single value", id="into a word"),
        pytest.param("cluster.brokers=2", "s.yaml:7: topics.0.replication_factor: 3 replicas do not fit on 2",
                     id="what the file says no longer fits"),
    ],
)  # fmt: skip
def test_errors_of_an_override_name_the_option(option: str, expected: str) -> None:
    assert any(message.startswith(expected) for message in errors_of(GOOD, option)), errors_of(GOOD, option)


def test_planted_bugs_of_options_join_those_of_the_file() -> None:
    bug = Override("--planted-bug x", "planted_bugs", "acks-all-on-append", appends=True)
    other = Override("--planted-bug y", "planted_bugs", "no-truncation-by-leader-epoch", appends=True)
    assert read_scenario(GOOD, "s.yaml", [bug, other, bug]).planted_bugs == [
        "acks-all-on-append",
        "no-truncation-by-leader-epoch",
    ]


def test_two_faults_that_are_sure_to_claim_one_broker_at_once_are_refused() -> None:
    fault = "  - kind: pause\n    at_s: {}\n    duration_s: 2\n    target: 1,2\n"
    kill = "  - kind: kill\n    at_s: 3\n    duration_s: 3\n    target: 1\n"
    base = GOOD.split("faults:")[0] + "duration_s: 10\nfaults:\n" + kill
    (message,) = errors_of(base + fault.format(4.5))
    assert message == "s.yaml:23: faults.1.target: claims broker 1 while faults.0 may hold it"
    assert read_scenario(base + fault.format(6.5), "s.yaml").faults[1].at_s == 6.5


def test_a_fault_the_driver_cannot_carry_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "capabilities", lambda driver: {"clients"} if driver == "process" else {"kill"})
    monkeypatch.setattr(registry, "drivers", lambda: ["process", "other"])
    (message,) = errors_of(GOOD)
    assert message == (
        "s.yaml:15: faults.0.kind: kill needs kill, which the driver process does not have; drivers that do: other"
    )


def test_a_target_that_makes_no_sense_for_the_fault_is_refused() -> None:
    (message,) = errors_of(GOOD.replace("kind: kill", "kind: unclean-election").replace("leader(orders,1)", "one"))
    assert message.startswith("s.yaml:17: faults.0.target: unclean-election takes leader, not one")


def test_a_scenario_is_a_built_in_name_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    assert load_scenario(str(path)).name == "good"
    assert load_scenario("smoke").name == "smoke"
    with pytest.raises(ScenarioError, match=r"nowhere\.yaml: no such file"):
        load_scenario("nowhere.yaml")
    with pytest.raises(ScenarioError, match=r"unknown scenario 'smok' \(did you mean smoke\?\)"):
        load_scenario("smok")


@pytest.mark.parametrize("entry", registry.plugins(registry.Kind.SCENARIO), ids=lambda entry: entry.name)
def test_every_built_in_scenario_is_valid_and_named_as_its_file(entry: registry.CatalogueEntry) -> None:
    scenario = load_scenario(entry.name)
    assert scenario.name == entry.name
    assert scenario.description


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        pytest.param(
            f"duration_s={'9' * 5000}", f"duration_s: cannot be read as int: '{'9' * 40}'", id="endless number"
        ),
        pytest.param(f"faults.{'9' * 5000}.at_s=1", "faults is a list of 1; allowed: 0 to 0", id="endless index"),
        pytest.param("duration_s=!!int x", "duration_s: cannot be read as int: 'x'", id="a word tagged as a number"),
        pytest.param("description=!!bool x", "description: cannot be read as bool: 'x'", id="a word tagged as a truth"),
        pytest.param(
            "description=\ud800", "description: not text: half of a character in '\\ud800'", id="half a character"
        ),
        pytest.param(
            r'description="\ud800"', "description: not text: half of a character in '\\ud800'", id="half, escaped"
        ),
        pytest.param("d\ud800=1", "unable to parse raw data as a unicode string", id="half a character in a key"),
    ],
)
def test_what_python_cannot_hold_is_refused_in_a_message_that_can_be_written(option: str, expected: str) -> None:
    message = "\n".join(errors_of(GOOD, option))
    assert expected in message
    assert message.encode()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(f"{'a' * 5000}.yaml", "cannot be read", id="a name that no file system takes"),
        pytest.param("large.yaml", "larger than 262144 bytes", id="a file that is read no further than it may be"),
    ],
)
def test_a_file_that_cannot_be_a_scenario_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with Path("large.yaml").open("w", encoding="utf-8") as file:
        file.truncate(2**40)
    with pytest.raises(ScenarioError, match=expected):
        load_scenario(name)
