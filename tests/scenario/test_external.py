"""What a scenario may do to an existing cluster, and what it creates there."""

import re
from pathlib import Path

import pytest

from harness import phases
from harness.errors import Refused, ScenarioError
from harness.judging.needs import answerable, fewer_than_named
from harness.run.holes import missing_evidence
from harness.scenario.external import BY_RELAY, claimed, kinds_not_collected, place_of, require_owned, without_commands
from harness.scenario.file import read_scenario, scenario_of, scenario_yaml
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder

GOOD = """\
name: mine
description: An external cluster
system: external
driver: external
cluster:
  brokers: 2
  properties: {min.insync.replicas: 2}
  external:
    id: j9KTpdNPRMKxMmSK201HcQ
    bootstrap_servers: one:9092,other:9092
    zookeeper: keeper:2181
    brokers: [{id: 1, host: one}, {id: 1002, host: other, name: kafka-2}]
    commands: {kill: "ssh {host} kill", start: "ssh {host} start", pause: "ssh {host} stop", resume: "ssh {host} cont"}
    expire_sessions: true
topics: [{name: orders, replication_factor: 2, config: {unclean.leader.election.enable: true}}]
workloads: [{kind: produce-consume}]
faults:
  - {kind: kill, at_s: 1, duration_s: 9, target: "leader(orders,0)"}
  - {kind: pause, at_s: 20, duration_s: 3, target: 1002}
mix: {count: 1, kinds: [{kind: expire-session, target: "followers(orders,1)"}]}
duration_s: 40
"""
KILLED_MEMBER = '{kind: kill, at_s: 20, duration_s: 9, target: "member(group-1,2)"}'


def good(*changes: tuple[str, str]) -> Scenario:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return read_scenario(text, "s.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("driver: external", "driver: process", "the driver process does not start external; drivers that"
                     " do: external", id="another driver"),
        pytest.param("system: external", "system: kafka:3.9.1", "the driver external does not start kafka:3.9.1;"
                     " drivers that do: process, docker", id="another system"),
        pytest.param("system: external\n", "", "system: must be external in a scenario with cluster.external",
                     id="a system that would be started"),
        pytest.param("system: external\ndriver: external\n", "", "system: must be external in a scenario with cluster."
                     "external", id="a cluster is named and another one would be started"),
        pytest.param("{id: 1, host: one}", "{id: 1002, host: one}", "names a broker twice", id="a broker twice"),
        pytest.param("brokers: 2", "brokers: 3", "is 3, and cluster.external names 2", id="brokers without a name"),
        pytest.param("target: 1002", "target: 0", "there is no broker 0; there are: 1, 1002", id="no such broker"),
        pytest.param("host: one", "host: -oProxyCommand=x", "cluster.external.brokers", id="a host that is an option"),
        pytest.param("host: one", 'host: "one two"', "cluster.external.brokers", id="a host of two words"),
        pytest.param("ssh {host} start", "ssh {user} start", "unknown {user}; known: {host}", id="a placeholder"),
        pytest.param(', resume: "ssh {host} cont"', "", "pause needs a command for resume in"
                     " cluster.external.commands", id="nothing undoes it"),
        pytest.param("kill: \"ssh {host} kill\", start: \"ssh {host} start\", ", "", "kill needs a command for kill and"
                     " start in cluster.external.commands", id="a fault without its commands"),
        pytest.param("expire_sessions: true", "expire_sessions: false", "expire-session writes to its ZooKeeper, which"
                     " cluster.external.expire_sessions does not allow", id="a session that may not be ended"),
        pytest.param("kind: pause,", "kind: reassign,", "reassign is not carried out on an external cluster;"
                     " allowed: kill, pause, controlled-shutdown, bounce, expire-session, move-controller, isolate,"
                     " delay, reset-connections, custom",
                     id="a fault without any command"),
        pytest.param("kind: pause,", "kind: clock,", "clock needs clock, which the driver external does not have",
                     id="a capability that the driver lacks"),
        pytest.param("kind: pause,", "kind: isolate,", "isolate disturbs links, and cluster.external.relay names none"
                     " that lead through the relay", id="links past the relay"),
        pytest.param("zookeeper: keeper:2181", "zookeeper: keeper", "cluster.external.zookeeper", id="no port"),
        pytest.param("    zookeeper: keeper:2181\n", "", "has no ZooKeeper: leave out expire", id="no metadata"),
        pytest.param("zookeeper: keeper:2181", "zookeeper: keeper:2181\n    controllers: {1: 'one:9093'}",
                     "has either zookeeper or controllers", id="metadata in two places"),
        pytest.param("zookeeper: keeper:2181", "controllers: {1: 'one:9093'}", "has no ZooKeeper: leave out"
                     " expire_sessions and commands.zookeeper", id="sessions of a quorum"),
        pytest.param("zookeeper: keeper:2181", "controllers: {1: 'one:9093'}", "expire-session needs ZooKeeper, and the"
                     " cluster has none", id="a fault that needs ZooKeeper"),
        pytest.param("duration_s: 40", "duration_s: 40\ndraws: {brokers: [2, 2]}", "draws.brokers: is not drawn for an"
                     " external cluster", id="a size that is drawn"),
        pytest.param("kind: produce-consume", "kind: consume-group, parameters: {session_timeout_ms: 3000}", "brokers"
                     " refuse 3000: their group.min.session.timeout.ms is 6000, unless `properties` of the cluster say"
                     " otherwise", id="a session that its brokers refuse by default"),
        pytest.param("expire_sessions: true", "prefix: the", "cluster.external.prefix", id="whose topics are others'"),
        pytest.param("expire_sessions: true", "expire_sessions: true\n    prefix: chaos-0123456789-", "topics: do not"
                     " all begin with chaos-0123456789-: leave out cluster.external.prefix", id="others' topics"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_to_it_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        good((old, new))
    assert message in str(refused.value)


RELAYED = (
    "    bootstrap_servers: one:9092,other:9092\n",
    """\
    bootstrap_servers: relay:19001
    relay: {clients: {1: {listen: relay:19001, target: one:9094}, 1002: {listen: relay:19002, target: other:9094}}}
""",
)
"""Brokers whose clients connect through the relay."""
SIDES = "kind: pause, parameters: {sides: [clients]},"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param([("kind: pause,", "kind: isolate,")], "only links to clients lead through the relay of this"
                     " cluster: isolate takes `sides: [clients]`", id="all links of a broker"),
        pytest.param([("kind: pause,", SIDES.replace("pause", "delay").replace("clients", "peers"))], "only links to"
                     " clients lead through the relay of this cluster: delay takes", id="links between brokers"),
        pytest.param([("kind: pause,", "kind: partition,")], "partition is not carried out on an external cluster",
                     id="a partition"),
        pytest.param([("1002: {listen", "7: {listen")], "name exactly the brokers of the cluster", id="other brokers"),
        pytest.param([("relay:19002", "relay:19001")], "the relay has one address for each broker", id="one address"),
        pytest.param([("servers: relay:19001", "servers: relay:19001,one:9092")], "one:9092 leads past the relay: name"
                     " addresses at which it listens, such as relay:19001", id="a way past the relay"),
    ],
)  # fmt: skip
def test_what_does_not_lead_through_the_relay_is_refused(changes: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        good(RELAYED, *changes)
    assert message in str(refused.value)


@pytest.mark.parametrize("kind", BY_RELAY)
def test_links_to_clients_that_lead_through_the_relay_can_be_disturbed(kind: str) -> None:
    place = place_of(good(RELAYED, ("kind: pause,", SIDES.replace("pause", kind))))
    assert place is not None
    assert {broker_id: place.direct(broker_id) for broker_id in place.hosts} == {1: "one:9094", 1002: "other:9094"}


def test_the_metadata_log_of_a_quorum_comes_with_the_data_of_brokers_that_are_its_voters() -> None:
    def collected(controllers: str) -> frozenset[str]:
        return kinds_not_collected(
            good(
                ("zookeeper: keeper:2181", f"controllers: {controllers}"),
                ("    expire_sessions: true\n", ""),
                ('mix: {count: 1, kinds: [{kind: expire-session, target: "followers(orders,1)"}]}\n', ""),
                ('resume: "ssh {host} cont"', 'resume: "ssh {host} cont", data: "cp {into}"'),
            )
        )

    assert collected("{1: one:9093, 1002: other:9093}") == {"state_changes"}
    assert collected("{1: one:9093, 7: apart:9093}") == {"state_changes", "zookeeper"}


def test_an_external_cluster_is_touched_only_with_the_statement_that_it_may_be() -> None:
    with pytest.raises(Refused, match=r"disturbs the external cluster j9KTpdNPRMKxMmSK201HcQ: give --i-own"):
        require_owned(good(), owned=False)
    require_owned(good(), owned=True)


def test_only_the_load_of_it_is_drawn() -> None:
    made = good(("duration_s: 40", "duration_s: 40\ndraws: {load: true, settings: [log, groups]}"))
    plans = [make_plan(made, seed).drawn for seed in range(9)]
    assert all(drawn is not None and not drawn.properties and not drawn.topics for drawn in plans)
    assert any(drawn is not None and any(drawn.workloads) for drawn in plans)


def test_no_folder_of_a_run_is_made_unless_they_say_so(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="--i-own-this-cluster"):
        phases.create_from(good(), 1, tmp_path)
    assert list(tmp_path.iterdir()) == []
    folder = phases.create_from(good(), 1, tmp_path, owned=True)
    text = folder.scenario.read_text(encoding="utf-8")
    assert "prefix: chaos-" in text
    assert folder.scenario.stat().st_mode & 0o077 == 0
    assert "ssh {host} kill" in text
    shown = scenario_yaml(without_commands(scenario_of(folder)))
    assert "ssh" not in shown
    assert "prefix: chaos-" in shown


def test_all_that_a_run_makes_there_begins_with_a_prefix_of_its_own() -> None:
    own = claimed(good())
    (topic,) = own.topics
    prefix = topic.name.removesuffix("orders")
    assert re.fullmatch("chaos-[0-9a-f]{10}-", prefix)
    assert topic.config == {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}
    plan = make_plan(own, 1)
    assert [client.process for client in plan.clients if not client.process.startswith(prefix)] == []
    assert [fault.target for fault in plan.faults][:2] == [f"leader({prefix}orders,0)", "1002"]
    assert own.mix is not None
    assert str(own.mix.kinds[0].target) == f"followers({prefix}orders,1)"
    assert claimed(own) == own == read_scenario(scenario_yaml(own), "s.yaml")
    assert claimed(good()).topics != own.topics


CLEAN = (", config: {unclean.leader.election.enable: true}", "")
OF_CLIENTS = {
    "lost-write",
    "duplicate",
    "phantom",
    "poll-skip",
    "int-poll-skip",
    "nonmonotonic-poll",
    "nonmonotonic-send",
}


def test_without_data_the_checks_of_clients_judge_unless_an_election_may_excuse_a_loss() -> None:
    untried = {answer.check for answer in answerable(good(CLEAN)).without_evidence}
    assert untried & OF_CLIENTS == set()
    assert {answer.check for answer in answerable(good()).without_evidence} & OF_CLIENTS == OF_CLIENTS - {
        "phantom",
        "int-poll-skip",
    }


def test_a_run_that_judges_fewer_checks_than_its_scenario_names_is_no_pass() -> None:
    named = good(CLEAN).model_copy(update={"checks": ["lost-write", "I9"]})
    (doubt,) = fewer_than_named(named, answerable(named).without_evidence)
    assert (doubt.forbids_pass, doubt.text) == (True, "1 check that the scenario names cannot judge: I9 log-matching")
    assert fewer_than_named(good(CLEAN), answerable(good(CLEAN)).without_evidence) == []


@pytest.mark.parametrize(
    ("collects", "absent", "not_judged"),
    [
        pytest.param("", {"state_changes", "replicas", "zookeeper"}, {"I4", "I9"}, id="nothing is collected"),
        pytest.param(', data: "cp {into}"', {"state_changes", "zookeeper"}, {"I4", "I9"}, id="replicas are"),
        pytest.param(
            ', data: "cp {into}", zookeeper: "cp {into}"', {"state_changes"}, set(), id="and the history of ZooKeeper"
        ),
    ],
)
def test_what_nobody_collects_is_not_judged_and_not_missing(
    tmp_path: Path, collects: str, absent: set[str], not_judged: set[str]
) -> None:
    scenario = good(('resume: "ssh {host} cont"', f'resume: "ssh {{host}} cont"{collects}'))
    folder = RunFolder(tmp_path)
    assert kinds_not_collected(scenario) == absent
    holes = {hole.kind for hole in missing_evidence(folder, scenario, make_plan(scenario, 1), absent)}
    assert holes == {"zookeeper", "operations", "journal"} - absent
    answers = {answer.check: answer.reason for answer in answerable(scenario).without_evidence}
    assert answers["I24"] == "the cluster file has no command that copies logs"
    assert (" data" in answers.get("I9", "")) == ("replicas" in absent)
    assert ("metadata" in answers.get("I10", "")) == ("zookeeper" in absent)
    assert answers.keys() & {"I4", "I9", "phantom"} == not_judged


def test_what_the_clocks_of_its_hosts_decide_is_not_judged() -> None:
    scenario = good(
        ("    expire_sessions: true\n", ""),
        ('mix: {count: 1, kinds: [{kind: expire-session, target: "followers(orders,1)"}]}\n', ""),
        ("    zookeeper: keeper:2181\n", "    controllers: {1: 'one:9093', 7: 'apart:9093'}\n    release: 4.4.0\n"),
        ('resume: "ssh {host} cont"', 'resume: "ssh {host} cont", logs: "cp {into}", data: "cp {into}"'),
    )
    answers = {answer.check: answer.reason for answer in answerable(scenario).without_evidence}
    assert answers["quorum-leader-resigns"] == "the clocks of an existing cluster's hosts may differ"
    assert answers["I9"] == "the cluster file has no command that copies metadata"


def test_groups_and_faults_on_clients_have_the_prefix_too_and_take_no_command() -> None:
    own = claimed(
        good(
            ("workloads: [{kind: produce-consume}]", "workloads: [{kind: produce-consume}, {kind: consume-group}]"),
            ("{kind: pause, at_s: 20, duration_s: 3, target: 1002}", KILLED_MEMBER),
            ('commands: {kill: "ssh {host} kill", start: "ssh {host} start", ', "commands: {"),
            ('  - {kind: kill, at_s: 1, duration_s: 9, target: "leader(orders,0)"}\n', ""),
        )
    )
    prefix = own.topics[0].name.removesuffix("orders")
    plan = make_plan(own, 1)
    members = [client for client in plan.clients if client.role == "member"]
    assert {client.parameters["group"] for client in members} == {f"{prefix}group-1"}
    assert [client.process for client in members] == [f"{prefix}w1-group-1-member-{number}" for number in (1, 2, 3)]
    assert f"member({prefix}group-1,2)" in [fault.target for fault in plan.faults]
