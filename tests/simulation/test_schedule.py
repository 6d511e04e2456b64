"""Whole schedules: every fault of real runs takes effect and heals, and the evidence is whole."""

from pathlib import Path
from typing import Any

import pytest

from harness.broker.server import Broker
from harness.events import Holdings, UnexpectedError
from harness.simulation import schedule
from harness.simulation.run_folder import write_evidence
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.folder import RunFolder
from harness.store.history import OpKind, OpType, Sign
from harness.store.phase_log import Phase, ends
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, PAUSE_LEADER, SHUT_DOWN, UNCLEAN, scenario

ALLOW_UNCLEAN = {
    "topics": [
        {
            "name": "orders",
            "partitions": 1,
            "config": {"min.insync.replicas": 1, "unclean.leader.election.enable": "true"},
        }
    ],
    "duration_s": 20.0,
}


SEVERAL_DISKS = {"cluster": {"properties": {"log.dirs": "one,two", "offsets.topic.num.partitions": 1}}}
ENSEMBLE = {"cluster": {"zookeeper_servers": 3, "properties": {"offsets.topic.num.partitions": "1"}}}


GROUPS = {
    "workloads": [
        {"kind": "produce-consume", "parameters": {"producers": 1, "consumers": 0, "rate_per_s": 20}},
        {
            "kind": "consume-group",
            "parameters": {"members": 2, "session_timeout_ms": 1500, "heartbeat_interval_ms": 300},
        },
    ],
    "cluster": {"properties": {"group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 0}},
}


def fault(kind: str, duration_s: float = 0, target: str = "leader(orders,0)", **parameters: object) -> dict[str, Any]:
    """Return one fault of a schedule."""
    fields = {"kind": kind, "duration_s": duration_s, "target": target, "parameters": parameters}
    return {**fields, "at_s": 1.0, "jitter_s": 1.0}


def steps(history: SimulatedHistory) -> list[str]:
    return [entry.step for entry in history.journal]


def values(history: SimulatedHistory, kind: OpKind) -> set[str]:
    """Return the values that were acknowledged, or read."""
    ended = [each for operations in history.operations.values() for each in operations if each.type is OpType.OK]
    if kind is OpKind.SEND:
        return {each.value for each in ended if each.kind is kind}
    return {record.value for each in ended if each.kind is kind for record in each.records}


@pytest.mark.parametrize(
    ("fault", "changed"),
    [
        pytest.param(KILL_LEADER, {}, id="kill the leader"),
        pytest.param(PAUSE_LEADER, {}, id="pause the leader for longer than its session"),
        pytest.param(EXPIRE_CONTROLLER, {}, id="expire the controller's session"),
        pytest.param(SHUT_DOWN, {}, id="shut the controller down"),
        pytest.param(UNCLEAN, ALLOW_UNCLEAN, id="elect a leader from outside the ISR"),
        pytest.param(fault("bounce"), {}, id="bounce the leader"),
        pytest.param(fault("kill", 3, target="all"), {}, id="kill all at once"),
        pytest.param(fault("kill", 3, target="majority"), {}, id="kill a majority"),
        pytest.param(fault("expire-session", target="controller", times=2), {}, id="expire the controller twice"),
        pytest.param(fault("move-controller", target="controller", times=4), {}, id="move the controller four times"),
        pytest.param(fault("reassign"), {}, id="the leader's replica moves away and back"),
        pytest.param(fault("reassign", 2, target="followers(orders,0)"), {}, id="a follower's replica does"),
        pytest.param(fault("delete-topic", target="all"), {}, id="a topic comes and goes"),
        pytest.param(fault("isolate", 7), {}, id="isolate the leader from all"),
        pytest.param(fault("isolate", 5, sides=["peers"]), {}, id="isolate the leader from its peers"),
        pytest.param(fault("isolate", 2, sides=["zookeeper"]), {}, id="from ZooKeeper, below its session"),
        pytest.param(fault("isolate", 7, sides=["zookeeper"]), {}, id="from ZooKeeper, beyond its session"),
        pytest.param(fault("isolate", 5, direction="inbound"), {}, id="nothing reaches the leader"),
        pytest.param(fault("isolate", 5, direction="outbound"), {}, id="nothing leaves the leader"),
        pytest.param(fault("isolate", 3, sides=["clients"], reset=True), {}, id="clients are thrown out"),
        pytest.param(fault("delay", 5, extra_ms=300), {}, id="the leader is slow"),
        pytest.param(fault("reset-connections"), {}, id="the leader's connections break"),
        pytest.param(fault("lose-zookeeper-reply"), {}, id="the reply to a registration is lost"),
        pytest.param(fault("lose-zookeeper-reply", carried_out=False), {}, id="a registration is lost"),
        pytest.param(fault("pause-zookeeper", 3, target="zookeeper"), ENSEMBLE, id="a server of three stands still"),
        pytest.param(fault("kill-zookeeper", 3, target="zookeeper(follower)"), ENSEMBLE, id="one that follows dies"),
        pytest.param(fault("kill-zookeeper", 3, target="zookeeper(leader)"), ENSEMBLE, id="the one that leads dies"),
        pytest.param(fault("kill-zookeeper", 3, target="zookeeper(majority)"), ENSEMBLE, id="they lose their quorum"),
        pytest.param(fault("isolate-zookeeper", 9, target="zookeeper(leader)"), ENSEMBLE, id="it is cut off"),
        pytest.param(fault("isolate", 9, cut_s=1, whole_s=1), {}, id="the leader's links flap"),
        pytest.param(fault("delay", 5, jitter_ms=300, bytes_per_s=20_000), {}, id="slow by chance, and narrow"),
        pytest.param(fault("kill-zookeeper", 3, target="zookeeper"), {}, id="the only server of ZooKeeper dies"),
        pytest.param(fault("power-loss", 2), {}, id="the leader loses its power"),
        pytest.param(fault("disk-damage", what="tail", tail_bytes=90), {}, id="the leader loses the end of its log"),
        pytest.param(fault("disk-damage", what="checkpoint"), {}, id="it loses its recovery points"),
        pytest.param(fault("disk-damage", what="log"), {}, id="it loses its log"),
        pytest.param(fault("disk-damage", what="disk"), {}, id="it loses its disk"),
        pytest.param(fault("disk-error", 3), {}, id="the leader's disk fails"),
        pytest.param(fault("disk-error", 3, error="read-only"), {}, id="it takes nothing any more"),
        pytest.param(fault("disk-error", 3), SEVERAL_DISKS, id="one of the leader's disks fails"),
        pytest.param(fault("disk-damage", what="disk"), SEVERAL_DISKS, id="it loses both of its disks"),
        pytest.param(fault("disk-full", 3), {}, id="the leader's disk is full"),
        pytest.param(fault("leave", 2, target="member(group-1,2)"), GROUPS, id="a member leaves its group"),
        pytest.param(fault("leave", target="member(group-1,1)", times=3), GROUPS, id="one leaves again and again"),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_faults_of_real_runs_work_in_virtual_time(
    fault: dict[str, Any], changed: dict[str, Any], seed: int
) -> None:
    history = simulate(scenario(fault, **changed), seed)
    assert steps(history) == ["intended", "injected", "confirmed", "healed"]
    assert history.remarks == []
    assert len(values(history, OpKind.SEND)) > 50
    if not changed:
        assert values(history, OpKind.SEND) <= values(history, OpKind.POLL)


def test_a_motif_kills_a_broker_as_soon_as_it_has_started_again() -> None:
    kinds = [{"kind": "bounce", "target": "controller"}]
    mix = {"count": 1, "settle_s": 2, "motifs": ["stop-start-kill"], "kinds": kinds}
    history = simulate(scenario(mix=mix, cluster={"brokers": 4}, duration_s=30.0), 2)
    details = [entry.detail for entry in history.journal if entry.fault == "kill" and entry.step == "intended"]
    assert details == ["0.05 s after stopped-broker-started"]


def test_a_broker_that_is_slow_to_stop_comes_back_all_the_same() -> None:
    history = simulate(scenario(fault("controlled-shutdown", stop_timeout_s=0.001)), 1)
    assert steps(history) == ["intended", "injected", "inconclusive", "healed"]
    assert history.remarks == []


def test_the_run_folder_of_a_schedule_holds_what_a_real_one_holds(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    history = simulate(scenario(KILL_LEADER), 3)
    write_evidence(history, folder)
    assert all(end.error == "" for end in ends(folder).values())
    assert set(ends(folder)) == {Phase.DRIVE, Phase.COLLECT}
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(
        [
            "phases.jsonl",
            "journal.jsonl",
            "zookeeper.jsonl",
            "liveness.jsonl",
            "operations/liveness.jsonl",
            "operations/producer-1.jsonl",
            "operations/consumer-1.jsonl",
            *(f"brokers/{broker}/state-change.jsonl" for broker in range(3)),
            *(f"replicas/{broker}/replica-orders-0.jsonl" for broker in range(3)),
            *(f"replicas/{broker}/replica-__consumer_offsets-0.jsonl" for broker in range(3)),
        ]
    )
    acknowledged = values(history, OpKind.SEND)
    for broker in range(3):
        dump = (tmp_path / f"replicas/{broker}/replica-orders-0.jsonl").read_text()
        assert all(f'"{value}"' in dump for value in acknowledged)


def test_a_broker_that_does_not_start_is_missed_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Broker.start

    async def failing(broker: Broker) -> None:
        if broker.config.broker_id == 2:
            raise KeyError("mistake")
        await start(broker)

    monkeypatch.setattr(Broker, "start", failing)
    history = simulate(scenario(), 1)
    missed = [(sign.sign, sign.broker, sign.detail) for sign in history.liveness if not sign.shown]
    assert missed == [(Sign.REGISTERED, 2, "broker 2 did not start: 'mistake'")]
    errors = [each.event for each in history.logs[2].events if isinstance(each.event, UnexpectedError)]
    assert [(error.operation, error.error) for error in errors] == [("start", "KeyError: 'mistake'")]
    assert all(remark.forbids_pass for remark in history.remarks)


def test_a_schedule_that_goes_round_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "STEPS_OF_PROCESS", 1)
    monkeypatch.setattr(schedule, "STEPS_OF_RECORD", 0)
    history = simulate(scenario(), 1)
    (error,) = [
        each.event for log in history.logs.values() for each in log.events if isinstance(each.event, UnexpectedError)
    ]
    assert "steps in a second of virtual time" in error.error
    assert "does not end" in str(history.remarks[0])
    assert all(log.events for log in history.logs.values())


def test_brokers_say_what_they_hold() -> None:
    history = simulate(scenario(), 1)
    for log in history.logs.values():
        held = [each.event for each in log.events if isinstance(each.event, Holdings)][-1]
        assert (held.fetchers, held.channels) == (held.followed, held.live)
        assert held.group_partitions == held.group_leads
        assert held.known_brokers == [0, 1, 2]
