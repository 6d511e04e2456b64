"""Faults of the network, of disks and of ZooKeeper: what proves each of them, and what does not."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from harness.cluster.capabilities import Side, Slowness
from harness.contracts import registry
from harness.contracts.faults import AIMED_AT, Effect
from harness.contracts.targets import parse_target
from harness.errors import ClusterError, DeadlineError
from harness.system.process_state import ProcessState
from harness.verdict import FaultVerdict
from harness.zookeeper.view import Controller, PartitionView
from kafka_chaos.faults import disk_error
from kafka_chaos.faults.partition import ring
from tests.fake_cluster import FakeCluster
from tests.faults.injecting import heal, injected, prepared
from tests.raising import raising

TAKE_RECORDS = ["disk-damage", "power-loss"]
CONFIRMED, MISMATCH, INCONCLUSIVE = FaultVerdict.CONFIRMED, FaultVerdict.MISMATCH, FaultVerdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("name", "parameters", "detail"),
    [
        pytest.param("isolate", {}, "no probe came through over 6 links", id="cut off from all, both ways"),
        pytest.param(
            "isolate",
            {"sides": ["zookeeper"], "direction": "inbound"},
            "no probe came through over 1 links",
            id="cut off from one side, one way",
        ),
        pytest.param(
            "partition",
            {"shape": "halves"},
            "no probe came through over 4 links, one over 2 others each",
            id="two halves",
        ),
        pytest.param(
            "partition",
            {"shape": "bridge"},
            "no probe came through over 2 links, one over 4 others each",
            id="two that see each other over a bridge only",
        ),
        pytest.param(
            "isolate",
            {"cut_s": 0.4, "whole_s": 0.2},
            "each of 6 links held probes for 0.4 s at most, and let others pass",
            id="links that flap",
        ),
        pytest.param("delay", {"extra_ms": 300}, "the quickest of 6 probes took 300 ms", id="a slow link"),
        pytest.param(
            "delay",
            {"extra_ms": 300, "bytes_per_s": 1000},
            "the quickest of 6 probes took 400 ms",
            id="a slow link with a rate",
        ),
        pytest.param(
            "delay",
            {"jitter_ms": 80},
            "the quickest of 6 probes took 200 ms, and 12 more were up to 80 ms apart",
            id="a link with jitter",
        ),
        pytest.param("reset-connections", {}, "1 connections are gone", id="broken connections"),
        pytest.param(
            "intercept",
            {"apis": ["EndTxn"], "action": "hold", "hold_s": 1},
            "hold of EndTxn 7 from clients to broker-1: caught at 1000.000 s, let go at 1000.000 s,"
            " answered at 1000.000 s",
            id="a request that came late",
        ),
        pytest.param(
            "intercept",
            {"apis": ["Fetch"], "action": "lose"},
            "lose of Fetch 7 from clients to broker-1: caught at 1000.000 s",
            id="a request that never came",
        ),
        pytest.param("power-loss", {}, "broker 1 is gone, and 10 unsynced bytes", id="a power loss"),
        pytest.param(
            "disk-damage",
            {},
            "broker 1: orders-0/00000000000000000000.log: 100 bytes, now 90 bytes; it opened orders-0 up to offset 7",
            id="a log without its tail",
        ),
        pytest.param(
            "disk-damage",
            {"what": "disk"},
            "broker 1: orders-0/00000000000000000000.log: 100 bytes, now gone; it opened no log",
            id="an empty disk",
        ),
        pytest.param("disk-error", {}, "broker 1 took 3 replicas offline: no io", id="a disk that fails"),
        pytest.param("disk-full", {}, "nothing more fits on the disk", id="a full disk"),
        pytest.param(
            "drop-packets",
            {},
            "packets of broker [1] were dropped, and a client was left waiting",
            id="packets that are dropped",
        ),
        pytest.param("slow-sync", {}, "1 syncs of broker 1 took 0.5 s or more", id="a disk that takes its time"),
        pytest.param("cpu-limit", {}, "broker 1 had 0.1 CPUs, and was held back", id="little CPU time"),
        pytest.param(
            "cpu-limit",
            {"cpus": 0.1234567},
            "broker 1 had 0.123457 CPUs, and was held back",
            id="a share that is rounded",
        ),
        pytest.param("memory-limit", {}, "broker [1] killed by the kernel for lack of memory", id="not enough memory"),
        pytest.param(
            "file-limit", {}, "broker 1 may have 0 files open, and left a client waiting", id="no more open files"
        ),
        pytest.param(
            "lose-zookeeper-reply", {}, "broker 1 got no answer to create /brokers/ids/1", id="a reply that is lost"
        ),
        pytest.param("bounce", {}, "broker 1 is registered again, czxid 200", id="a bounce"),
        pytest.param(
            "custom", {"fault": "slow"}, "the command that confirms slow succeeds", id="a fault of the owner's"
        ),
        pytest.param(
            "rolling-restart", {}, "broker 1 stopped cleanly, registered again with czxid 200", id="a rolling restart"
        ),
        pytest.param(
            "rolling-restart",
            {"hard": True},
            "broker 1 ended without a word, registered again with czxid 200",
            id="a hard rolling restart",
        ),
        pytest.param(
            "connection-storm",
            {"connections": 3, "times": 2},
            "3 connections are open, each was answered, and so is another one",
            id="a storm of connections",
        ),
        pytest.param(
            "hostile-client",
            {"sends": ["oversize", "truncated"], "times": 2},
            "oversize: the broker closed 2 times, truncated: the client left 2 times; the same processes answer others",
            id="a hostile client",
        ),
        pytest.param(
            "hostile-client",
            {"sends": ["too-large"], "times": 2},
            "too-large: the broker refused it 2 times; the same processes answer others",
            id="a client that sends too much at once",
        ),
    ],
)
async def test_a_fault_is_confirmed_by_its_effect(
    cluster: FakeCluster, name: str, parameters: dict[str, Any], detail: str
) -> None:
    _, effect = await injected(cluster, name, 1, **parameters)
    assert (effect.verdict, effect.detail) == (CONFIRMED, detail)


async def test_a_bounce_by_a_command_is_confirmed_by_another_registration(cluster: FakeCluster) -> None:
    cluster.by_command = True
    injection, effect = await injected(cluster, "bounce", 1)
    assert (effect.verdict, effect.detail) == (CONFIRMED, "broker 1 is registered again, czxid 200")
    await heal(cluster, injection)
    assert cluster.calls == ["bounce_broker 1"], "nothing is killed or started otherwise"


async def test_a_fault_of_the_owner_s_without_effect_is_a_mismatch(cluster: FakeCluster) -> None:
    cluster.deaf.add("inject_command")
    _, effect = await injected(cluster, "custom", 1, fault="slow", confirm_timeout_s=0.1)
    assert effect.verdict == MISMATCH
    assert "effect of slow: not within 0.1 s; last saw the command for slow.confirm of broker 1" in effect.detail


@pytest.mark.parametrize(
    ("name", "method", "parameters", "detail"),
    [
        pytest.param("isolate", "isolate", {"sides": ["peers"], "direction": "outbound"}, "a probe came through: "
                     "broker 1 to peer", id="a link that was not cut"),
        pytest.param("partition", "separate", {}, "broker 0 reaches 2, broker 2 reaches 0", id="a bridge "
                     "without sides"),
        pytest.param("isolate", "isolate", {"whole_s": 0.2, "cut_s": 0.2}, "these links do not flap: peer to broker 1,"
                     " ", id="a link that is whole all the time"),
        pytest.param("isolate", "rhythm", {"whole_s": 0.2, "cut_s": 0.2}, "these links do not flap: peer to broker 1,"
                     " ", id="a link that is cut all the time"),
        pytest.param("delay", "delay", {}, "the quickest of 6 probes took 0 ms", id="a link that is quick"),
        pytest.param("delay", "delay", {"extra_ms": 0, "bytes_per_s": 100}, "the quickest of 6 probes took 0 ms",
                     id="a link without a rate"),
        pytest.param("delay", "jitter", {"jitter_ms": 80}, "12 more were up to 0 ms apart", id="a link without jitter"),
        pytest.param("intercept", "lose", {"apis": ["Fetch"], "action": "lose"}, "the receiver answered lose of",
                     id="a request that came nevertheless"),
        pytest.param("disk-full", "fill_disk", {}, "every disk full: not within", id="a disk with space"),
        pytest.param("drop-packets", "drop_packets", {}, "every packet dropped: not within", id="packets that pass"),
        pytest.param("slow-sync", "slow_syncs", {}, "a sync of broker 1 took 0 s", id="a quick disk"),
        pytest.param("cpu-limit", "limit_cpu", {}, "brokers held back at 0.1 CPUs: not within", id="all CPU time"),
        pytest.param("memory-limit", "limit_memory", {}, "every broker killed by the kernel: not within",
                     id="enough memory"),
        pytest.param("memory-limit", "kill_broker", {}, "every broker killed by the kernel: not within",
                     id="something else that was killed"),
        pytest.param("file-limit", "limit_files", {}, "every broker out of files: not within", id="enough open files"),
        pytest.param("disk-damage", "damage_disk", {}, "nothing on broker 1's disk has changed", id="a disk that is "
                     "whole"),
        pytest.param("disk-damage", "recover", {}, "broker 1 logged no recovery of orders-0", id="a log that was not "
                     "opened"),
        pytest.param("power-loss", "cut_power", {"confirm_timeout_s": 0.1}, "broker 1 is not stopped",
                     id="a broker that goes on"),
        pytest.param("kill", "kill_broker", {"confirm_timeout_s": 0.1}, "process is running",
                     id="a process that survives"),
        pytest.param("pause", "pause_broker", {}, "", id="a process that is not paused"),
        pytest.param("expire-session", "expire", {"confirm_timeout_s": 0.1}, "", id="a session that stays"),
        pytest.param("bounce", "expire", {}, "was not started again", id="a broker that was not started"),
        pytest.param("rolling-restart", "stop_broker", {}, "broker 1 logged no clean stop", id="a broker that was not "
                     "stopped"),
        pytest.param("connection-storm", "hold", {"connections": 3}, "3 of 3 connections were closed",
                     id="connections that are closed"),
        pytest.param("hostile-client", "close", {"sends": ["empty"], "times": 1, "close_timeout_s": 0.1}, "empty: "
                     "nothing happened for 0.1 s 1 times", id="a connection that stays open"),
        pytest.param("hostile-client", "accept", {"sends": ["empty"], "times": 1}, "broker 1 answers no other client",
                     id="a broker that takes no connection"),
        pytest.param("hostile-client", "serve", {"sends": ["empty"], "times": 1, "close_timeout_s": 0.1}, "broker 1 "
                     "answers no other client", id="a broker that serves no client"),
    ],
)  # fmt: skip
async def test_a_fault_without_an_effect_is_a_mismatch(
    cluster: FakeCluster, name: str, method: str, parameters: dict[str, Any], detail: str
) -> None:
    cluster.deaf = {method}
    if name == "bounce":
        cluster.deaf = {"kill_broker", "start_broker"}
    _, effect = await injected(cluster, name, 1, **parameters)
    assert effect.verdict is MISMATCH
    assert detail in effect.detail


@pytest.mark.parametrize(
    ("deaf", "verdict", "detail"),
    [
        pytest.param({"miss"}, CONFIRMED, "broker 1 ended, as its id was taken", id="a broker that ends"),
        pytest.param(set(), INCONCLUSIVE, "its old session had ended before", id="a session that was over"),
        pytest.param({"start_early"}, MISMATCH, "broker [1] was not started again", id="a broker that stays down"),
    ],
)
async def test_a_bounce_before_the_session_has_ended_is_in_vain(
    cluster: FakeCluster, deaf: set[str], verdict: FaultVerdict, detail: str
) -> None:
    cluster.deaf = deaf
    injection, effect = await injected(cluster, "bounce", 1, end_session=False)
    assert effect.verdict is verdict
    assert detail in effect.detail
    await heal(cluster, injection)
    assert cluster.states[1] == ProcessState.RUNNING


@pytest.mark.parametrize(
    ("session_ends", "verdict", "detail"),
    [
        pytest.param(True, CONFIRMED, "broker 1 runs, and its registration is gone", id="and disappears with it"),
        pytest.param(False, MISMATCH, "broker 1 runs, and its old session has not ended", id="and nothing comes of it"),
    ],
)
async def test_a_broker_takes_the_registration_of_before_for_its_own(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, session_ends: bool, verdict: FaultVerdict, detail: str
) -> None:
    async def start_early(broker_id: int) -> None:
        cluster.starts[broker_id] += 1
        cluster.states[broker_id] = ProcessState.RUNNING
        if session_ends:
            del cluster.sessions[broker_id]

    monkeypatch.setattr(cluster, "start_early", start_early)
    cluster.deaf = {"miss"}
    _, effect = await injected(cluster, "bounce", 1, end_session=False, come_back_timeout_s=0.1)
    assert effect.verdict is verdict
    assert detail in effect.detail


async def test_connections_that_stay_open_are_a_mismatch(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_chaos.faults.reset_connections.CONFIRM_TIMEOUT_S", 0.1)
    cluster.deaf = {"reset_connections"}
    _, effect = await injected(cluster, "reset-connections", 1)
    assert effect.verdict is MISMATCH
    assert "end of every connection: not within" in effect.detail


async def test_a_stall_that_hides_one_period_of_a_rhythm_is_no_mismatch(cluster: FakeCluster) -> None:
    cluster.stalled = 20
    _, effect = await injected(cluster, "isolate", 1, duration_s=10, cut_s=0.4, whole_s=0.2)
    assert effect.verdict is CONFIRMED


async def test_an_isolation_may_break_connections_first(cluster: FakeCluster) -> None:
    await injected(cluster, "isolate", 1, reset=True)
    assert cluster.calls == ["reset_connections 1", "isolate 1"]


@pytest.mark.parametrize("name", ["isolate", "delay", "reset-connections"])
async def test_a_side_without_servers_is_inconclusive(cluster: FakeCluster, name: str) -> None:
    cluster.hosts = dict.fromkeys(Side, ())
    cluster.connections_of = {key: set() for key in range(3)}
    _, effect = await injected(cluster, name, 1)
    assert effect.verdict is INCONCLUSIVE


@pytest.mark.parametrize(
    ("name", "parameters", "verdict"),
    [
        pytest.param("isolate", {}, INCONCLUSIVE, id="one that is cut off may reach its peers"),
        pytest.param("isolate", {"sides": ["controllers"]}, INCONCLUSIVE, id="or a quorum"),
        pytest.param("isolate", {"sides": ["zookeeper"]}, CONFIRMED, id="no other side's sender has to be asked for"),
        pytest.param("partition", {}, INCONCLUSIVE, id="a part may reach another one"),
        pytest.param("isolate", {"cut_s": 0.4, "whole_s": 0.2}, INCONCLUSIVE, id="one whose links flap may reach them"),
        pytest.param("delay", {}, INCONCLUSIVE, id="one whose links are slow may reach them at once"),
        pytest.param("delay", {"jitter_ms": 80}, INCONCLUSIVE, id="so may one whose links take long by chance"),
        pytest.param("delay", {"sides": ["clients"]}, CONFIRMED, id="nor has that of a slow link"),
    ],
)
async def test_an_unidentified_connection_leaves_a_cut_inconclusive(
    cluster: FakeCluster, name: str, parameters: dict[str, Any], verdict: FaultVerdict
) -> None:
    cluster.hosts[Side.CONTROLLERS] = ("broker-101",)
    cluster.unknown = {"7"}
    _, effect = await injected(cluster, name, 1, **parameters)
    assert effect.verdict is verdict


async def test_a_stall_is_no_cut(cluster: FakeCluster) -> None:
    cluster.deaf = {"isolate"}
    cluster.slow = {1: Slowness(jitter_s=0.1)}
    _, effect = await injected(cluster, "isolate", 1, whole_s=0.2, cut_s=0.2)
    assert effect.verdict is MISMATCH


@pytest.mark.parametrize("late_s", [0.0, 0.03, 0.06, 0.09], ids="{} s after its beginning".format)
async def test_the_shortest_cut_is_seen_whenever_it_is_looked_at_first(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, late_s: float
) -> None:
    begun_s = asyncio.get_running_loop().time() - late_s

    async def probe(*_link: object, **_limits: object) -> dict[str, float | None]:
        into_s = (asyncio.get_running_loop().time() - begun_s) % 0.4
        return {"peer": max(0.0, 0.2 - into_s)}

    monkeypatch.setattr(cluster, "probe", probe)
    _, effect = await injected(cluster, "isolate", 1, whole_s=0.2, cut_s=0.2)
    assert effect.verdict is CONFIRMED, effect.detail


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        pytest.param("isolate", {"cut_s": 2.0}, "a cut_s takes a whole_s", id="how long a cut is that does not end"),
        pytest.param("disk-damage", {"what": "log", "tail_bytes": 7}, "a tail_bytes takes what: tail",
                     id="how long a tail is that stays"),
        pytest.param("disk-damage", {"checkpoint": "replication-offset-checkpoint"},
                     "a checkpoint takes what: checkpoint", id="which checkpoint, if none goes"),
    ],
)  # fmt: skip
def test_what_would_be_ignored_is_refused(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        registry.fault(name).Parameters.model_validate(parameters)


@pytest.mark.parametrize("name", ["disk-damage", "isolate"])
def test_what_is_said_of_all_parameters_is_taken(name: str) -> None:
    defaults = registry.fault(name).Parameters().model_dump(mode="json")
    assert registry.fault(name).Parameters.model_validate(defaults)


@pytest.mark.parametrize(
    ("error", "verdict", "detail"),
    [
        pytest.param(
            0, MISMATCH, "the broker answered with error 0 2 times", id="a broker that accepts it is no Kafka"
        ),
        pytest.param(
            6, INCONCLUSIVE, "the broker led nothing 2 times", id="a broker that leads nothing has nothing to refuse"
        ),
    ],
)
async def test_a_batch_that_is_too_large_is_refused_by_who_leads(
    cluster: FakeCluster, error: int, verdict: FaultVerdict, detail: str
) -> None:
    cluster.produce_error = error
    _, effect = await injected(cluster, "hostile-client", 1, sends=["too-large"], times=2)
    assert effect.verdict is verdict
    assert detail in effect.detail


async def test_a_storm_that_this_process_has_no_files_for_is_not_begun(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.cluster.limits.descriptors.KEPT_FREE", 1 << 40)
    _, effect = await injected(cluster, "connection-storm", 1, connections=3)
    assert effect.verdict is INCONCLUSIVE
    assert "too few for 3 more" in effect.detail


async def test_a_partition_hits_all_and_tells_whom_it_was_aimed_at(cluster: FakeCluster) -> None:
    injection, _ = await injected(cluster, "partition", 1)
    assert (injection.targets, injection.state[AIMED_AT]) == ((0, 1, 2), [1])


async def test_three_brokers_have_no_ring_of_majorities(cluster: FakeCluster) -> None:
    _, effect = await injected(cluster, "partition", 1, shape="ring")
    assert effect == Effect(verdict=INCONCLUSIVE, detail="3 brokers have no such shape")


async def test_a_partition_that_cuts_too_much_is_a_mismatch(cluster: FakeCluster) -> None:
    cluster.deaf = {"separate"}
    cluster.separated = {frozenset(pair) for pair in ((0, 2), (0, 1))}
    _, effect = await injected(cluster, "partition", 1)
    assert effect == Effect(verdict=MISMATCH, detail="broker 0 does not reach 1, broker 1 does not reach 0")


@pytest.mark.parametrize(
    ("brokers", "sees"),
    [
        pytest.param(4, 3, id="of four each sees three"),
        pytest.param(5, 3, id="of five each sees three"),
        pytest.param(7, 5, id="of seven each sees five"),
    ],
)
def test_in_a_ring_each_broker_sees_another_majority(brokers: int, sees: int) -> None:
    cut = {frozenset(pair) for pair in ring([], range(brokers))}
    views = [{other for other in range(brokers) if {one, other} not in cut} for one in range(brokers)]
    assert {len(view) for view in views} == {sees}
    assert len(set(map(frozenset, views))) == brokers


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        pytest.param("cpu-limit", INCONCLUSIVE, id="a broker that wants no more CPU time"),
        pytest.param("slow-sync", INCONCLUSIVE, id="a broker that syncs nothing"),
        pytest.param("drop-packets", MISMATCH, id="a filter that drops nothing"),
        pytest.param("memory-limit", MISMATCH, id="a process that is gone for another reason"),
        pytest.param("file-limit", MISMATCH, id="a broker that answers every client all the same"),
    ],
)
async def test_an_effect_without_a_broker_is_not_confirmed(
    cluster: FakeCluster, name: str, verdict: FaultVerdict
) -> None:
    cluster.short_of = 0
    _, effect = await injected(cluster, name, 1)
    assert effect.verdict is verdict


@pytest.mark.parametrize("deaf", [False, True], ids=["it syncs slowly", "it syncs as before"])
async def test_syncs_of_a_zookeeper_server(cluster: FakeCluster, deaf: bool) -> None:
    cluster.deaf = {"slow_syncs"} if deaf else set()
    plugin = registry.fault("slow-sync")
    target = parse_target("zookeeper(1)")
    injection = await plugin.prepare(cluster.context, target, (), plugin.Parameters(), duration_s=2)
    effect = await plugin.confirm(cluster.context, await plugin.inject(cluster.context, injection))
    slow, quick = "1 syncs of ZooKeeper server 1 took 0.5 s or more", "a sync of ZooKeeper server 1 took 0 s"
    assert effect == Effect(verdict=MISMATCH if deaf else CONFIRMED, detail=quick if deaf else slow)
    await plugin.heal(cluster.context, injection)
    assert cluster.slow_disks == {}
    cluster.servers[1] = ProcessState.STOPPED
    with pytest.raises(ClusterError, match="ZooKeeper server 1 is stopped: nothing was injected"):
        await plugin.prepare(cluster.context, target, (), plugin.Parameters(), duration_s=2)


@pytest.mark.parametrize(
    "name",
    [
        "bounce",
        "cpu-limit",
        "disk-damage",
        "drop-packets",
        "file-limit",
        "memory-limit",
        "power-loss",
        "rolling-restart",
        "slow-sync",
    ],
)
async def test_a_broker_that_does_not_run_is_inconclusive(cluster: FakeCluster, name: str) -> None:
    await cluster.kill_broker(1)
    parameters: dict[str, Any] = {"protect_committed": False} if name in TAKE_RECORDS else {}
    _, effect = await injected(cluster, name, 1, **parameters)
    assert effect.verdict is INCONCLUSIVE


@pytest.mark.parametrize("name", TAKE_RECORDS)
class TestSparing:
    async def test_it_waits_until_every_record_is_elsewhere_too(self, cluster: FakeCluster, name: str) -> None:
        cluster.isr = [1, 2]
        with pytest.raises(ClusterError, match=r"every partition whole, with a replica elsewhere.*orders-0"):
            await injected(cluster, name, 1, whole_timeout_s=0.1)
        assert cluster.calls == []

    async def test_a_broker_that_has_started_and_is_not_registered_yet_has_nothing(
        self, cluster: FakeCluster, name: str
    ) -> None:
        del cluster.sessions[2]
        with pytest.raises(ClusterError, match=r"every partition whole, with a replica elsewhere.*orders-0"):
            await injected(cluster, name, 1, whole_timeout_s=0.1)

    async def test_it_does_not_spare_records_by_taking_all_replicas(self, cluster: FakeCluster, name: str) -> None:
        with pytest.raises(ClusterError, match="with a replica elsewhere"):
            await injected(cluster, name, 0, 1, 2, whole_timeout_s=0.1)

    async def test_whatever_became_of_it_a_broker_comes_back_only_when_the_isr_is_without_it(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        injection = await prepared(cluster, name, 1, 2, confirm_timeout_s=0.1)
        whole, partitions = await cluster.partitions(), cluster.partitions

        async def unchanged() -> list[PartitionView]:
            return whole

        await cluster.kill_broker(1)
        monkeypatch.setattr(cluster, "partitions", unchanged)
        with pytest.raises(DeadlineError, match=r"orders-0 still has the ISR \[0, 1, 2\]"):
            await heal(cluster, injection)
        assert cluster.states[1] == ProcessState.STOPPED
        monkeypatch.setattr(cluster, "partitions", partitions)
        await heal(cluster, injection)
        assert set(cluster.states.values()) == {ProcessState.RUNNING}
        assert cluster.calls == ["kill_broker 1", "start_broker 1"], "the other one was never hit"

    async def test_it_comes_back_at_once_when_nothing_is_spared(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        injection = await prepared(cluster, name, 1, protect_committed=False, confirm_timeout_s=0.1)
        await cluster.kill_broker(1)
        monkeypatch.setattr(cluster, "isr", [0, 1, 2])
        await heal(cluster, injection)
        assert cluster.states[1] == ProcessState.RUNNING


class TestPowerLoss:
    async def test_a_topic_that_has_no_other_replica_is_not_waited_for(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        injection = await prepared(cluster, "power-loss", 1, confirm_timeout_s=0.1)
        alone = replace((await cluster.partitions())[0], topic="new", assignment=(1,), isr=(1,))
        partitions = cluster.partitions

        async def with_a_new_one() -> list[PartitionView]:
            return [*await partitions(), alone]

        monkeypatch.setattr(cluster, "partitions", with_a_new_one)
        injection = await registry.fault("power-loss").inject(cluster.context, injection)
        assert (await registry.fault("power-loss").confirm(cluster.context, injection)).verdict is CONFIRMED

    async def test_it_is_not_over_before_the_isr_is_without_the_broker(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = await cluster.partitions()

        async def unchanged() -> list[PartitionView]:
            return whole

        monkeypatch.setattr(cluster, "partitions", unchanged)
        _, effect = await injected(cluster, "power-loss", 1, confirm_timeout_s=0.1)
        assert effect.verdict is MISMATCH
        assert "orders-0 still has the ISR [0, 1, 2]" in effect.detail

    @pytest.mark.parametrize(
        ("asked_for", "verdict"),
        [(set(), MISMATCH), ({"/admin/delete_topics/orders"}, CONFIRMED)],
        ids=["kept", "deleted"],
    )
    async def test_the_last_member_of_an_isr_matters_unless_its_topic_is_deleted(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, asked_for: set[str], verdict: FaultVerdict
    ) -> None:
        injection, _ = await injected(cluster, "power-loss", 1, confirm_timeout_s=0.1)
        alone = [replace(view, isr=(1,)) for view in await cluster.partitions()]

        async def unchanged() -> list[PartitionView]:
            return alone

        monkeypatch.setattr(cluster, "partitions", unchanged)
        cluster.znodes |= asked_for
        assert (await registry.fault("power-loss").confirm(cluster.context, injection)).verdict is verdict

    async def test_it_takes_all_when_told_so(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "power-loss", 0, 1, 2, protect_committed=False)
        assert effect.verdict is CONFIRMED
        assert set(cluster.states.values()) == {ProcessState.STOPPED}
        await heal(cluster, injection)
        assert set(cluster.states.values()) == {ProcessState.RUNNING}


class TestControlledShutdown:
    """Of brokers that log no stops."""

    @pytest.fixture(autouse=True)
    def silent(self, cluster: FakeCluster) -> None:
        cluster.system = "external"

    async def test_who_has_handed_over_at_its_end_was_stopped_cleanly(self, cluster: FakeCluster) -> None:
        _, effect = await injected(cluster, "controlled-shutdown", 1)
        assert effect == Effect(verdict=CONFIRMED, detail="clean stop after 1 partitions changed their leader")

    async def test_who_has_not_is_a_mismatch(self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        seen = await cluster.partitions()

        async def before() -> list[PartitionView]:
            return seen

        with monkeypatch.context() as patch:
            patch.setattr(cluster, "partitions", before)
            injection, effect = await injected(cluster, "controlled-shutdown", 1)
        assert effect == Effect(verdict=MISMATCH, detail="it ended before others led orders-0")
        await heal(cluster, injection)
        assert set(cluster.states.values()) == {ProcessState.RUNNING}

    async def test_who_led_nothing_proves_nothing(self, cluster: FakeCluster) -> None:
        _, effect = await injected(cluster, "controlled-shutdown", 2)
        assert effect.verdict is INCONCLUSIVE


class TestRollingRestart:
    async def test_each_broker_is_back_before_the_next_one_goes_in_the_order_of_the_target(
        self, cluster: FakeCluster
    ) -> None:
        _, effect = await injected(cluster, "rolling-restart", 2, 0)
        assert effect.verdict is CONFIRMED
        assert cluster.calls == ["stop_broker 2", "start_broker 2", "stop_broker 0", "start_broker 0"]

    async def test_no_broker_goes_while_a_replica_is_not_in_sync(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        start = cluster.start_broker

        async def lagging(broker_id: int) -> None:
            await start(broker_id)
            cluster.isr = [0, 2]

        monkeypatch.setattr(cluster, "start_broker", lagging)
        with pytest.raises(
            ClusterError, match=r"every replica in sync: .*orders-0 has the ISR \[0, 2\] of \[0, 1, 2\]"
        ):
            await injected(cluster, "rolling-restart", 1, 2, in_sync_timeout_s=0.1)
        assert cluster.calls == ["stop_broker 1", "start_broker 1"]

    async def test_a_stop_that_is_not_controlled_is_a_mismatch(self, cluster: FakeCluster) -> None:
        cluster.controlled = False
        _, effect = await injected(cluster, "rolling-restart", 1)
        assert effect == Effect(verdict=MISMATCH, detail="broker 1 logged a stop that was not controlled")

    async def test_a_broker_that_keeps_its_registration_is_a_mismatch(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kafka_chaos.faults.rolling_restart.CONFIRM_TIMEOUT_S", 0.1)
        monkeypatch.setattr(cluster, "next_session", 101)
        _, effect = await injected(cluster, "rolling-restart", 1)
        assert effect.verdict is MISMATCH
        assert "a later registration of every broker: not within" in effect.detail

    async def test_a_broker_that_stops_late_ends_it_and_is_started_again(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stop = cluster.stop_broker

        late = raising(DeadlineError("broker 1 did not stop within 0.1 s"))
        monkeypatch.setattr(cluster, "stop_broker", late)
        injection, effect = await injected(cluster, "rolling-restart", 1, 2, stop_timeout_s=0.1)
        assert effect == Effect(verdict=MISMATCH, detail="broker 1 did not stop within 0.1 s")
        healing = asyncio.create_task(heal(cluster, injection))
        await asyncio.sleep(0)
        await stop(1, timeout_s=1)
        await healing
        assert cluster.calls == ["stop_broker 1", "start_broker 1"]


class TestDiskDamage:
    async def test_a_broker_is_started_again_only_when_the_isr_is_without_it(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = await cluster.partitions()

        async def unchanged() -> list[PartitionView]:
            return whole

        monkeypatch.setattr(cluster, "partitions", unchanged)
        with pytest.raises(DeadlineError, match=r"orders-0 still has the ISR \[0, 1, 2\]"):
            await injected(cluster, "disk-damage", 1, confirm_timeout_s=0.1)
        assert "start_broker 1" not in cluster.calls

    async def test_no_kill_is_in_flight_any_more_when_it_has_failed(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kill = cluster.kill_broker

        async def late_or_never(broker_id: int) -> None:
            if broker_id == 1:
                raise ClusterError("broker 1 cannot be killed")
            await asyncio.sleep(0.05)
            await kill(broker_id)

        monkeypatch.setattr(cluster, "kill_broker", late_or_never)
        with pytest.raises(ClusterError, match="broker 1 cannot be killed"):
            await injected(cluster, "disk-damage", 1, 2, protect_committed=False)
        assert cluster.calls == ["kill_broker 2"]

    @pytest.mark.parametrize(
        ("parameters", "target", "log"),
        [
            pytest.param({}, "leader(orders,0)", "orders-0", id="the target's own"),
            pytest.param({"log": "orders-3"}, "leader(orders,0)", "orders-3", id="the one that the scenario names"),
            pytest.param({}, "controller", "", id="any"),
        ],
    )
    async def test_which_log_is_damaged(
        self, cluster: FakeCluster, parameters: dict[str, Any], target: str, log: str
    ) -> None:
        await injected(cluster, "disk-damage", 1, target=target, **parameters)
        assert f"damage_disk 1 {log}" in cluster.calls

    async def test_a_log_that_was_gone_and_is_found_is_a_mismatch(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        injection, _ = await injected(cluster, "disk-damage", 1, what="disk")
        cluster.say(1, ev="recovery", topic="orders", partition=0, log_end_offset=7)
        effect = await registry.fault("disk-damage").confirm(cluster.context, injection)
        assert (effect.verdict, effect.detail) == (MISMATCH, "broker 1 found orders-0, which was gone")


async def test_a_disk_that_takes_a_while_to_fill_is_full(cluster: FakeCluster) -> None:
    cluster.deaf = {"fill_disk"}
    asyncio.get_running_loop().call_later(20, cluster.full.add, 1)
    _, effect = await injected(cluster, "disk-full", 1)
    assert effect.verdict is CONFIRMED


@pytest.mark.parametrize(
    ("see_s", "verdict"),
    [
        pytest.param(0.1, MISMATCH, id="long enough for a write"),
        pytest.param(30.0, INCONCLUSIVE, id="perhaps nothing was written"),
    ],
)
async def test_a_disk_that_works_all_the_same(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, see_s: float, verdict: FaultVerdict
) -> None:
    monkeypatch.setattr(disk_error, "SEE_TIMEOUT_S", see_s)
    cluster.deaf = {"fail_disk"}
    _, effect = await injected(cluster, "disk-error", 1, duration_s=0.2)
    assert effect.verdict is verdict
    assert "an error of broker 1's disk: not within" in effect.detail


@pytest.mark.parametrize(("name", "call"), [("disk-full", "fill_disk 1"), ("disk-error", "fail_disk 1")])
class TestDiskFullAndDiskError:
    async def test_healing_restarts_the_broker_once_its_disk_works(
        self, cluster: FakeCluster, name: str, call: str
    ) -> None:
        injection, _ = await injected(cluster, name, 1)
        await heal(cluster, injection)
        assert not cluster.full
        assert not cluster.failing
        assert cluster.calls == [call, "kill_broker 1", "start_broker 1"]

    async def test_a_broker_that_ended_by_itself_is_started(self, cluster: FakeCluster, name: str, call: str) -> None:
        injection, _ = await injected(cluster, name, 1)
        assert call in cluster.calls
        await cluster.kill_broker(1)
        await heal(cluster, injection)
        assert cluster.states[1] == ProcessState.RUNNING


class TestMoveController:
    async def test_it_is_confirmed_by_as_many_epochs_as_moves(self, cluster: FakeCluster) -> None:
        _, effect = await injected(cluster, "move-controller", 0, target="controller", times=3)
        assert effect.verdict is CONFIRMED
        assert effect.detail.endswith("broker 1 is controller in epoch 4")
        assert cluster.calls == 3 * ["delete /controller"]

    async def test_an_epoch_too_many_is_a_mismatch(self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        async def two_at_once(_path: str) -> bool:
            cluster.controller_epoch += 2
            return True

        monkeypatch.setattr(cluster, "delete", two_at_once)
        _, effect = await injected(cluster, "move-controller", 0, target="controller")
        assert (effect.verdict, effect.detail) == (MISMATCH, "controller epoch 1 became 3, not 2")

    async def test_a_missing_successor_ends_it(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"delete /controller"}
        with pytest.raises(ClusterError, match="a controller after broker 0 is controller in epoch 1: not within"):
            await injected(cluster, "move-controller", 0, target="controller", step_timeout_s=0.05)

    async def test_who_is_no_controller_is_not_deposed(self, cluster: FakeCluster) -> None:
        with pytest.raises(ClusterError, match=r"broker \[2\] is not controller, 0 is"):
            await injected(cluster, "move-controller", 2, target="2")
        assert cluster.calls == []

    async def test_no_controller_to_depose_ends_it(self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        async def none() -> Controller:
            return Controller(broker_id=-1, controller_epoch=4, session="")

        async def nothing(_path: str) -> bool:
            return False

        monkeypatch.setattr(cluster, "controller", none)
        monkeypatch.setattr(cluster, "delete", nothing)
        with pytest.raises(ClusterError, match="no controller to depose"):
            await injected(cluster, "move-controller", 0, target="controller")


class TestLoseZookeeperReply:
    async def test_a_write_that_never_comes_is_inconclusive(self, cluster: FakeCluster) -> None:
        _, effect = await injected(cluster, "lose-zookeeper-reply", 1, write="next", wait_s=0.1)
        assert effect.verdict is INCONCLUSIVE
        assert "a write of broker 1: not within" in effect.detail
        assert "expire 0x65" not in cluster.calls

    async def test_a_broker_that_notices_nothing_is_a_mismatch(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cluster, "say", lambda *_args, **_event: None)
        _, effect = await injected(cluster, "lose-zookeeper-reply", 1, wait_s=0.1)
        assert effect.verdict is MISMATCH
        assert "broker 1 has not lost its connection" in effect.detail


class TestPauseZookeeper:
    async def test_it_is_confirmed_by_the_state_of_the_server(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "pause-zookeeper", target="zookeeper(1)")
        assert (effect.verdict, injection.targets) == (CONFIRMED, ())

    async def test_a_server_that_goes_on_is_a_mismatch(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"pause_zookeeper"}
        _, effect = await injected(cluster, "pause-zookeeper", target="zookeeper(1)")
        assert effect.verdict is MISMATCH


class TestKillZookeeper:
    @pytest.mark.parametrize(
        ("target", "gone", "detail"),
        [
            pytest.param("zookeeper(1)", {1}, "ZooKeeper server 1 gone, ZooKeeper server 3 leads", id="a server"),
            pytest.param("zookeeper(follower)", {1}, "ZooKeeper server 3 leads", id="a follower"),
            pytest.param("zookeeper(leader)", {3}, "ZooKeeper server 2 leads", id="the leader, another one is elected"),
            pytest.param(
                "zookeeper(1,2)", {1, 2}, "ZooKeeper servers 1, 2 gone, no quorum left", id="more than half of them"
            ),
            pytest.param("zookeeper(1,2,3)", {1, 2, 3}, "no server takes requests", id="all"),
        ],
    )
    async def test_it_is_confirmed_by_what_is_gone_and_by_what_the_others_say(
        self, cluster: FakeCluster, target: str, gone: set[int], detail: str
    ) -> None:
        injection, effect = await injected(cluster, "kill-zookeeper", target=target)
        assert (effect.verdict, injection.targets) == (CONFIRMED, ())
        assert detail in effect.detail
        assert {server for server, state in cluster.servers.items() if state == ProcessState.STOPPED} == gone
        await heal(cluster, injection)
        assert set(cluster.servers.values()) == {ProcessState.RUNNING}

    @pytest.mark.parametrize(
        ("deaf", "target", "detail"),
        [
            pytest.param("kill_zookeeper", "zookeeper(1)", "ZooKeeper server 1 not gone", id="a server that lives"),
            pytest.param(
                "zookeeper_modes", "zookeeper(1,2)", "requests taken without a quorum", id="one that serves alone"
            ),
        ],
    )
    async def test_anything_else_is_a_mismatch(self, cluster: FakeCluster, deaf: str, target: str, detail: str) -> None:
        cluster.deaf = {deaf}
        _, effect = await injected(cluster, "kill-zookeeper", target=target, confirm_timeout_s=0.1)
        assert effect.verdict is MISMATCH
        assert detail in effect.detail

    async def test_without_another_leader_it_is_a_mismatch(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def zookeeper_modes() -> dict[int, str]:
            return {1: "follower", 2: "follower", 3: ""}

        monkeypatch.setattr(cluster, "zookeeper_modes", zookeeper_modes)
        _, effect = await injected(cluster, "kill-zookeeper", target="zookeeper(3)", confirm_timeout_s=0.1)
        assert effect.verdict is MISMATCH
        assert "no leader among" in effect.detail

    async def test_a_server_that_does_not_come_back_is_not_healed(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kafka_chaos.faults.kill_zookeeper.SERVE_TIMEOUT_S", 0.1)
        injection, _ = await injected(cluster, "kill-zookeeper", target="zookeeper(1)")
        cluster.deaf = {"start_zookeeper"}
        with pytest.raises(DeadlineError, match="ZooKeeper server 1 taking requests: not within"):
            await heal(cluster, injection)


class TestIsolateZookeeper:
    @pytest.mark.parametrize(
        ("target", "apart", "detail"),
        [
            pytest.param("zookeeper(1)", {1}, "ZooKeeper server 1 cut off, server 3 leads", id="a server"),
            pytest.param("zookeeper(leader)", {3}, "server 3 cut off, server 2 leads", id="the leader"),
            pytest.param("zookeeper(1,2)", {1, 2}, "ZooKeeper server 3 cut off, server 2 leads", id="a majority"),
        ],
    )
    async def test_it_is_confirmed_by_probes_and_by_what_servers_say(
        self, cluster: FakeCluster, target: str, apart: set[int], detail: str
    ) -> None:
        injection, effect = await injected(cluster, "isolate-zookeeper", target=target)
        assert (effect.verdict, cluster.servers_apart) == (CONFIRMED, apart)
        assert effect.detail.startswith("no probe came through over 4 links, ")
        assert detail in effect.detail
        await heal(cluster, injection)
        assert cluster.servers_apart == set()

    @pytest.mark.parametrize(
        ("deaf", "detail"),
        [
            pytest.param("isolate_zookeeper", "server 1 reaches 2, server 1 reaches 3", id="links that are whole"),
            pytest.param("zookeeper_modes", "ZooKeeper server 1 refusing requests, and a leader", id="one that serves"),
        ],
    )
    async def test_anything_else_is_a_mismatch(self, cluster: FakeCluster, deaf: str, detail: str) -> None:
        cluster.deaf = {deaf}
        _, effect = await injected(cluster, "isolate-zookeeper", target="zookeeper(1)", confirm_timeout_s=0.1)
        assert effect.verdict is MISMATCH
        assert detail in effect.detail

    async def test_a_single_server_cannot_be_cut_off(self, cluster: FakeCluster) -> None:
        cluster.servers = {1: ProcessState.RUNNING}
        _, effect = await injected(cluster, "isolate-zookeeper", target="zookeeper(1)")
        assert effect == Effect(verdict=INCONCLUSIVE, detail="there are no other servers")

    async def test_a_server_that_does_not_come_back_is_not_healed(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kafka_chaos.faults.isolate_zookeeper.SERVE_TIMEOUT_S", 0.1)
        injection, _ = await injected(cluster, "isolate-zookeeper", target="zookeeper(1)")
        cluster.servers[1] = ProcessState.STOPPED
        with pytest.raises(DeadlineError, match="ZooKeeper server 1 taking requests: not within"):
            await heal(cluster, injection)


@pytest.mark.parametrize("kind", ["isolate-zookeeper", "kill-zookeeper", "pause-zookeeper"])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("zookeeper(4)", "ZooKeeper server 4 is not there", id="a server that is not there"),
        pytest.param("zookeeper(2)", "ZooKeeper server 2 is stopped", id="one that does not run"),
        pytest.param("zookeeper(leader)", "no server is leader of ZooKeeper now", id="a leader when there is none"),
    ],
)
async def test_nothing_is_done_to_a_server(cluster: FakeCluster, kind: str, target: str, message: str) -> None:
    cluster.servers = {1: ProcessState.RUNNING, 2: ProcessState.STOPPED, 3: ProcessState.PAUSED}
    with pytest.raises(ClusterError, match=message):
        await injected(cluster, kind, target=target)


async def test_a_session_expires_as_often_as_asked(cluster: FakeCluster) -> None:
    _, effect = await injected(cluster, "expire-session", 1, times=3)
    assert (effect.verdict, cluster.sessions[1]) == (CONFIRMED, 202)
    assert cluster.calls == ["expire 0x65", "expire 0xc8", "expire 0xc9"]


class Talking:
    """Lines of a broker that come one by one, one a look, while time goes on by a tenth of a second."""

    def __init__(self, cluster: FakeCluster, *, silent: bool = False) -> None:
        self._cluster, self._silent = cluster, silent
        self._now_ns = 0

    async def end_of(self, broker_id: int) -> int:
        return 0

    async def after(self, broker_id: int, position: int, *kinds: str) -> tuple[list[dict[str, Any]], int]:
        return [], position

    async def grown(self, kind: str, within_s: float) -> None:
        raise AssertionError("no fault waits for a line")

    async def dated(self, broker_id: int, position: int) -> tuple[int | None, int]:
        """The line was written a little before it is seen."""
        self._now_ns += 100_000_000
        step_s, rate = self._cluster.clocks.get(broker_id, (0, 1))
        written_ns = self._now_ns - 10_000_000
        return None if self._silent else written_ns + round(step_s * 1e9 + (rate - 1) * written_ns), position

    async def release(self, broker_id: int, position: int) -> str:
        return ""

    def wall_ns(self) -> int:
        return self._now_ns


class TestClock:
    @pytest.mark.parametrize(
        ("parameters", "detail"),
        [
            pytest.param({"step_s": 3600}, "broker 1's line was dated +3599.990 s from when it was seen", id="ahead"),
            pytest.param({"step_s": -3600}, "broker 1's line was dated -3600.010 s from when it was seen", id="back"),
            pytest.param({"drift": 1.2}, "broker 1's line was dated +0.", id="too fast, once it shows"),
            pytest.param({"drift": 0.8}, "broker 1's line was dated -0.", id="too slow, once it shows"),
        ],
    )
    async def test_it_is_confirmed_by_what_the_brokers_own_lines_say(
        self, cluster: FakeCluster, parameters: dict[str, Any], detail: str
    ) -> None:
        effect = await on_clock(cluster, Talking(cluster), parameters, duration_s=60)
        assert effect.verdict is CONFIRMED
        assert effect.detail.startswith(detail)

    @pytest.mark.parametrize(
        ("deaf", "silent", "clock", "verdict"),
        [
            pytest.param({"set_clock"}, False, None, MISMATCH, id="a clock like the machine's is a mismatch"),
            pytest.param({"set_clock"}, False, (60.0, 1.0), MISMATCH, id="one that shows another time too"),
            pytest.param(set(), True, None, INCONCLUSIVE, id="without a line it is unknown"),
        ],
    )
    async def test_another_time_than_asked_for(
        self,
        cluster: FakeCluster,
        deaf: set[str],
        silent: bool,
        clock: tuple[float, float] | None,
        verdict: FaultVerdict,
    ) -> None:
        cluster.deaf = deaf
        cluster.clocks = {} if clock is None else {1: clock}
        effect = await on_clock(cluster, Talking(cluster, silent=silent), {"step_s": 3600})
        assert effect.verdict is verdict
        assert "broker 1's lines as its clock was set: not within 0.5 s" in effect.detail

    @pytest.mark.parametrize(
        ("late_s", "verdict"),
        [pytest.param(0.9, CONFIRMED, id="it started slowly"), pytest.param(3.0, MISMATCH, id="too slowly for that")],
    )
    async def test_a_drift_counts_from_when_the_process_has_started(
        self, cluster: FakeCluster, late_s: float, verdict: FaultVerdict
    ) -> None:
        cluster.deaf, cluster.clocks = {"set_clock"}, {1: (-0.2 * late_s, 1.2)}
        effect = await on_clock(cluster, Talking(cluster), {"drift": 1.2}, duration_s=60)
        assert effect.verdict is verdict

    async def test_a_broker_that_does_not_run_shows_no_time(self, cluster: FakeCluster) -> None:
        await cluster.kill_broker(1)
        effect = await on_clock(cluster, Talking(cluster), {"step_s": 60})
        assert effect == Effect(verdict=INCONCLUSIVE, detail="broker [1] did not run, and showed no time")

    @pytest.mark.parametrize(
        "parameters",
        [pytest.param({}, id="nothing"), pytest.param({"drift": 1.001}, id="less than can be seen")],
    )
    def test_a_clock_must_go_apart(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="takes a step_s of 1 or more, or a drift"):
            registry.fault("clock").Parameters.model_validate(parameters)


async def on_clock(
    cluster: FakeCluster, logs: Talking, parameters: dict[str, Any], *, duration_s: float = 0.5
) -> Effect:
    """Return what a clock that is set on broker 1 shows."""
    plugin, arena = registry.fault("clock"), replace(cluster.context, logs=logs)
    values = plugin.Parameters.model_validate(parameters)
    injection = await plugin.prepare(arena, parse_target("1"), (1,), values, duration_s=duration_s)
    injection = await plugin.inject(arena, injection)
    effect = await plugin.confirm(arena, injection)
    await plugin.heal(arena, injection)
    return effect
