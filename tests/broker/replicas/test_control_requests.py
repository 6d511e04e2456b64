from dataclasses import replace
from typing import Any

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiKey
from harness.events import (
    FORGOTTEN,
    BecomeFollower,
    BecomeLeader,
    ControlReceive,
    EpochAssign,
    Fenced,
    HighWatermarkCheckpoint,
)
from tests.broker.metadata_update import metadata_update
from tests.broker.replica_cluster import CONTROLLER, TOPIC, ReplicaCluster, context
from tests.raising import raising


async def tell(cluster: ReplicaCluster, broker_id: int, **changed: Any) -> list[int]:
    """Errors of a LeaderAndIsr for one partition; the whole request's error comes first."""
    request = cluster.leader_and_isr(**changed)
    response = await cluster[broker_id].control.leader_and_isr(request, context(ApiKey.LEADER_AND_ISR, 4))
    return [response.error_code, *(error.error_code for error in response.partition_errors)]


async def stop(cluster: ReplicaCluster, broker_id: int, **fields: Any) -> list[int]:
    request = cluster.stop_replica(**fields)
    response = await cluster[broker_id].control.stop_replica(request, context(ApiKey.STOP_REPLICA, 3))
    return [response.error_code, *(error.error_code for error in response.partition_errors)]


@pytest.mark.parametrize(
    ("changed", "errors", "verdict", "leads"),
    [
        pytest.param({"leader_epoch": 6}, [0, 0], "applied", 2, id="a newer epoch is obeyed"),
        pytest.param({"leader_epoch": 5}, [0, 11], "ignored_same", 1, id="the same epoch is a resend"),
        pytest.param({"leader_epoch": 4}, [0, 11], "ignored_old", 1, id="an older epoch is late"),
        pytest.param(
            {"leader_epoch": 6, "replicas": [2, 3]}, [0, 3], "not_assigned", 1, id="not one of the replicas any more"
        ),
        pytest.param({"leader_epoch": 6, "leader": 7}, [0, 0], "leader_unavailable", 1, id="the leader is not alive"),
        pytest.param({"leader_epoch": 6, "leader": -1}, [0, 0], "leader_unavailable", 1, id="there is no leader"),
    ],
)
async def test_what_a_leader_makes_of_leader_and_isr(
    changed: dict[str, Any], errors: list[int], verdict: str, leads: int
) -> None:
    async with ReplicaCluster() as cluster:
        for _ in range(6):
            await cluster.elect(1, tell=[1])
        replica = cluster[1].replica()
        assert await tell(cluster, 1, **{"leader": 2, **changed}) == errors
        assert (replica.leader, replica.leader_epoch) == (leads, 6 if leads == 2 else 5)
        received = cluster[1].of(ControlReceive)[-1]
        assert (received.api, received.sender, received.verdict) == ("LeaderAndIsr", CONTROLLER, "applied")
        assert [partition.verdict for partition in received.partitions] == [verdict]


async def test_a_follower_of_an_unavailable_leader_has_a_log_but_no_epoch_yet() -> None:
    async with ReplicaCluster() as cluster:
        await cluster.elect(1, tell=[2])
        assert cluster[3].manager.replicas.get(TOPIC, 0) is None
        assert await tell(cluster, 3, leader=-1) == [0, 0]
        assert (cluster[3].replica().leader_epoch, cluster[3].replica().log.log_end_offset) == (-1, 0)
        assert await tell(cluster, 3) == [0, 0]
        assert cluster[3].replica().leader_epoch == 0


async def test_becoming_leader_notes_where_the_epoch_starts_before_anything_is_written(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "a", "b")
    await cluster.elect(2)
    assert list(cluster[2].replica().log.epochs.entries) == [(0, 0), (1, 2)]
    assert cluster[2].replica().epoch_start_offset == 2
    kinds = [type(e) for e in cluster[2].events if isinstance(e, EpochAssign | BecomeLeader | BecomeFollower)]
    assert kinds == [BecomeFollower, EpochAssign, EpochAssign, BecomeLeader]
    became = cluster[2].of(BecomeLeader)[0]
    assert (became.leader_epoch, became.previous_leader_epoch, became.isr) == (1, 0, [1, 2, 3])


@pytest.mark.parametrize(
    ("broker_epoch", "controller_epoch", "error", "verdict"),
    [
        pytest.param(50, 3, 0, "applied", id="both are right"),
        pytest.param(51, 3, 0, "applied", id="for a registration that this broker does not know of yet"),
        pytest.param(-1, 3, 0, "applied", id="a controller that does not know broker epochs"),
        pytest.param(50, 4, 0, "applied", id="from the next controller"),
        pytest.param(49, 3, 77, "stale_broker_epoch", id="for an earlier registration"),
        pytest.param(50, 2, 11, "stale_controller_epoch", id="from an earlier controller"),
    ],
)
async def test_a_request_is_fenced_as_a_whole(
    broker_epoch: int, controller_epoch: int, error: int, verdict: str
) -> None:
    async with ReplicaCluster() as cluster:
        cluster.controller_epoch = 3
        await cluster.elect(1)
        cluster.controller_epoch = controller_epoch
        assert (await tell(cluster, 1, broker_epoch=broker_epoch, leader=2, leader_epoch=1))[0] == error
        assert cluster[1].replica().leader == (1 if error else 2)
        received = cluster[1].of(ControlReceive)[-1]
        assert (received.verdict, received.controller_epoch) == (verdict, controller_epoch)
        assert [event.error for event in cluster[1].of(Fenced)] == ([error] if error else [])


@pytest.mark.parametrize(
    ("bug", "stale"), [("no-broker-epoch", {"broker_epoch": 49}), ("no-controller-epoch-check", {})]
)
async def test_without_a_fence_stale_requests_are_obeyed(bug: str, stale: dict[str, int]) -> None:
    async with ReplicaCluster(planted_bugs=[bug]) as cluster:
        cluster.controller_epoch = 3
        await cluster.elect(1)
        cluster.controller_epoch = 2 if bug == "no-controller-epoch-check" else 3
        assert await tell(cluster, 1, leader=2, leader_epoch=1, **stale) == [0, 0]
        assert (cluster[1].replica().leader, cluster[1].of(Fenced)) == (2, [])


@pytest.mark.parametrize("api", ["stop_replica", "update_metadata"])
@pytest.mark.parametrize(("what", "error"), [("broker", 77), ("controller", 11)])
async def test_the_other_control_requests_are_fenced_too(api: str, what: str, error: int) -> None:
    async with ReplicaCluster() as cluster:
        cluster.controller_epoch = 3
        await cluster.elect(1)
        stopping = cluster.stop_replica(leader_epoch=-2, delete=True)
        request = cluster.metadata_request() if api == "update_metadata" else stopping
        if what == "broker":
            request.broker_epoch = 49
        else:
            request.controller_epoch = 2
        response = await getattr(cluster[1].control, api)(request, context(ApiKey.STOP_REPLICA, 3))
        assert response.error_code == error
        assert cluster[1].manager.replicas.get(TOPIC, 0) is not None
        assert [(e.what, e.error) for e in cluster[1].of(Fenced)] == [(f"{what}_epoch", error)]


@pytest.mark.parametrize(
    ("leader_epoch", "delete", "error", "gone"),
    [
        pytest.param(-2, True, 0, True, id="a deletion needs no epoch"),
        pytest.param(-1, True, 0, True, id="an old controller knows none"),
        pytest.param(1, True, 0, True, id="a newer epoch deletes"),
        pytest.param(0, True, 0, True, id="the same epoch deletes"),
        pytest.param(1, False, 0, False, id="stopping keeps the replica"),
    ],
)
async def test_stop_replica(cluster: ReplicaCluster, leader_epoch: int, delete: bool, error: int, gone: bool) -> None:
    await cluster.produce(1, "a")
    assert await stop(cluster, 3, leader_epoch=leader_epoch, delete=delete) == [0, error]
    assert (cluster[3].manager.replicas.get(TOPIC, 0) is None) == gone
    assert (cluster[3].logs.get(TOPIC, 0) is None) == gone
    assert cluster[3].storage.exists("t-0") != gone
    await cluster.produce(1, "b", acks=1)
    await cluster.until(lambda: cluster[2].replica().log.log_end_offset == 2, "fetch by the other one")
    if not gone:
        assert cluster[3].replica().log.log_end_offset == (1 if error == 0 else 2)


async def test_a_log_without_a_partition_can_be_deleted(cluster: ReplicaCluster) -> None:
    await cluster.kill(3)
    again = await cluster.start(3)
    assert again.manager.replicas.get(TOPIC, 0) is None
    assert await stop(cluster, 3, leader_epoch=-2, delete=True) == [0, 0]
    assert again.manager.replicas.high_watermarks() == {}
    assert not again.storage.exists("t-0")


async def test_a_deleted_leader_ends_what_waits_for_it(cluster: ReplicaCluster) -> None:
    lost = []
    cluster[1].manager.control.on_leadership_change(lambda gained, gone: lost.append((gained, gone)))
    cluster.network.isolate(1)
    waiting = await cluster.begin(cluster.produce(1, "a"))
    await stop(cluster, 1, leader_epoch=-2, delete=True)
    assert (await waiting).error is ErrorCode.NOT_LEADER_FOR_PARTITION
    assert lost == [([], [(TOPIC, 0, 0)])]


async def test_listeners_hear_of_leads_gained_and_lost_once_they_are() -> None:
    async with ReplicaCluster() as cluster:
        heard = []
        manager = cluster[1].manager
        manager.control.on_leadership_change(
            lambda gained, lost: heard.append((gained, lost, cluster[1].replica().leader))
        )
        await cluster.elect(1)
        await cluster.tell(1)  # a resend is no news
        await cluster.elect(1)  # nor is another epoch of the same leader
        await cluster.elect(2)
        assert heard == [([(TOPIC, 0, 0)], [], 1), ([], [(TOPIC, 0, 2)], 2)]


async def test_the_checkpoint_of_high_watermarks_waits_for_the_first_leader_and_isr_and_forgets_nobody(
    cluster: ReplicaCluster,
) -> None:
    await cluster.elect(1, partition=1)
    await cluster.produce(1, "a", partition=1)
    await cluster.replicate(1, "a")
    await cluster[3].manager.stop()
    again = await cluster.start(3)
    await again.manager.stop()
    assert again.of(HighWatermarkCheckpoint) == []
    again = await cluster.start(3)
    await cluster.tell(3)
    await cluster.replicate(1, "b")
    await again.manager.stop()
    assert again.logs.read_high_watermarks() == {(TOPIC, 0): 2, (TOPIC, 1): 1}


async def test_a_full_disk_is_one_partitions_storage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ReplicaCluster() as cluster:
        await cluster.elect(1, tell=[2])
        monkeypatch.setattr(cluster[1].logs, "get_or_create", raising(OSError(28, "No space left on device")))
        assert await tell(cluster, 1) == [0, 56]
        assert cluster[1].of(ControlReceive)[-1].partitions[0].verdict == "storage_error"
        assert cluster[1].manager.replicas.get(TOPIC, 0) is None


async def test_the_isr_and_replicas_of_the_event_are_those_of_the_request() -> None:
    async with ReplicaCluster() as cluster:
        await cluster.elect(1, isr=[1, 3])
        [partition] = cluster[1].of(ControlReceive)[-1].partitions
        assert replace(partition, verdict="") == replace(partition, isr=[1, 3], replicas=[1, 2, 3], verdict="")


async def test_update_metadata_is_logged_as_the_cache_has_it_from_then_on() -> None:
    async with ReplicaCluster() as cluster:
        logged = []
        for leader in (2, FORGOTTEN):
            update = metadata_update({1: ["REPL"], 3: ["REPL"]}, {"t": {0: (leader, 5, [2, 3])}}, CONTROLLER)
            update.controller_epoch, update.broker_epoch = cluster.controller_epoch, 50
            await cluster[1].control.update_metadata(update, context(ApiKey.UPDATE_METADATA, 6))
            event = cluster[1].of(ControlReceive)[-1]
            logged.append([(held.topic, held.leader, held.leader_epoch) for held in event.partitions])
            assert event.live_brokers == [1, 3]
        assert logged == [[("t", 2, 5)], [("t", FORGOTTEN, 5)]]
