import asyncio
import dataclasses
import json

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.zookeeper.client import Stat
from harness.broker.zookeeper.znodes import ISR_CHANGES, partition_state_path
from harness.events import IsrPropose, IsrResult, ZkWrite
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.replica_cluster import TOPIC, ReplicaCluster


async def _behind(cluster: ReplicaCluster, broker_id: int) -> None:
    """Let a follower miss a record."""
    cluster.network.isolate(broker_id)
    await cluster.produce(1, "missed", acks=1)


async def test_the_write_names_leader_epoch_and_controller_epoch_and_keeps_the_order_of_the_isr() -> None:
    async with ReplicaCluster() as cluster:
        cluster.controller_epoch = 4
        await cluster.elect(1, isr=[3, 1, 2])
        await _behind(cluster, 3)
        await cluster.until(lambda: len(cluster.state()[0].isr) == 2, "shrink")
        cluster.network.heal()
        await cluster.until(lambda: len(cluster.state()[0].isr) == 3, "expand")
        state, version = cluster.state()
        assert (state.leader, state.leader_epoch, state.controller_epoch) == (1, 0, 4)
        assert (state.isr, version) == ((1, 2, 3), 2)
        assert [(w.by, w.expected_version, w.new_version) for w in cluster[1].of(ZkWrite)] == [
            ("leader", 0, 1),
            ("leader", 1, 2),
        ]


async def test_a_proposal_of_a_leader_that_was_replaced_before_it_wrote_is_not_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ReplicaCluster() as cluster:
        cluster.network.isolate(3)
        await cluster.elect(1, isr=[1, 2])
        partition = cluster[1].replica()
        partition.followers[3].log_end_offset = 0
        cluster[1].manager.isr.consider_joining(partition, 3)
        assert partition.proposed_isr == (1, 2, 3)
        elected = dataclasses.replace(cluster.state()[0], leader=2, leader_epoch=1)
        cluster.ensemble.put(partition_state_path(TOPIC, 0), elected.encode())
        cluster[1].manager.control.leader_and_isr(cluster.leader_and_isr())  # in the same step of the loop
        assert partition.leader == 2
        await cluster.until(lambda: not partition.proposed_isr, "the proposal is over")
        assert cluster.state()[0].leader == 2
        assert cluster[1].of(IsrPropose) == []
        assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_laggard_leaves_between_one_and_one_and_a_half_lag_times(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    await asyncio.sleep(7.3)
    began = asyncio.get_running_loop().time()
    await _behind(cluster, 3)
    await cluster.until(lambda: len(cluster.state()[0].isr) == 2, "shrink")
    assert 1.0 <= asyncio.get_running_loop().time() - began <= 3.1


async def test_the_isr_counts_only_once_zookeeper_has_accepted_it(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "a")
    cluster[1].zookeeper.disconnect()
    pending = asyncio.create_task(cluster.produce(1, "b", timeout_s=60))
    cluster.network.isolate(3)
    await asyncio.sleep(30)
    assert len(cluster[1].of(IsrPropose)) == 1, "one change at a time"
    assert cluster[1].of(IsrResult) == []
    assert (cluster[1].replica().isr, cluster[1].replica().high_watermark) == ((1, 2, 3), 1)
    cluster[1].zookeeper.reconnect()
    assert (await pending).error is ErrorCode.NONE
    assert (cluster[1].replica().isr, cluster[1].replica().high_watermark) == ((1, 2), 2)


async def test_a_refused_write_keeps_the_old_isr_and_is_tried_again(cluster: ReplicaCluster) -> None:
    cluster.ensemble.put(partition_state_path(TOPIC, 0), cluster.state()[0].encode())
    await _behind(cluster, 3)
    await asyncio.sleep(5.5)
    results = cluster[1].of(IsrResult)
    assert {(r.kind, r.result, r.zk_version, r.new_zk_version) for r in results} == {("shrink", "badversion", 0, -1)}
    assert len(results) >= 2
    assert cluster[1].replica().isr == (1, 2, 3)


class AnswersLate(SimulatedZooKeeper):
    """Carries out a write at once and answers when told."""

    answer: asyncio.Event

    async def set(self, path: str, data: bytes, version: int) -> Stat:
        stat = await super().set(path, data, version)
        await self.answer.wait()
        return stat


async def test_an_accepted_isr_of_an_earlier_epoch_is_discarded() -> None:
    async with ReplicaCluster() as cluster:
        late = cluster[1].zookeeper = AnswersLate(cluster.ensemble)
        late.answer = asyncio.Event()
        await late.connect()
        await cluster.elect(1)
        await _behind(cluster, 3)
        await cluster.until(lambda: cluster.state()[0].isr == (1, 2), "shrink in ZooKeeper")
        await cluster.elect(1, isr=[1, 2, 3], tell=[1])
        late.answer.set()
        await cluster.until(lambda: bool(cluster[1].of(IsrResult)), "result")
        [result] = cluster[1].of(IsrResult)
        assert (result.result, result.leader_epoch) == ("discarded", 0)
        assert (cluster[1].replica().isr, cluster[1].replica().zk_version) == ((1, 2, 3), cluster.state()[1])


async def test_a_session_that_ends_leaves_the_isr_as_it_was(cluster: ReplicaCluster) -> None:
    cluster[1].zookeeper.expire()
    await _behind(cluster, 3)
    await asyncio.sleep(3.5)
    assert {r.result for r in cluster[1].of(IsrResult)} == {"unknown"}
    assert cluster[1].replica().isr == (1, 2, 3)
    cluster[1].zookeeper = SimulatedZooKeeper(cluster.ensemble)
    await cluster[1].zookeeper.connect()
    await cluster.until(lambda: cluster[1].replica().isr == (1, 2), "shrink in the next session")


async def test_two_followers_that_return_together_both_join(cluster: ReplicaCluster) -> None:
    cluster.network.isolate(1)
    await cluster.produce(1, "missed", acks=1)
    await cluster.until(lambda: cluster.state()[0].isr == (1,), "ISR of one")
    cluster.network.heal()
    began = asyncio.get_running_loop().time()
    await cluster.until(lambda: len(cluster.state()[0].isr) == 3, "full ISR")
    assert asyncio.get_running_loop().time() - began < 0.2


async def test_who_left_does_not_rejoin_without_fetching(cluster: ReplicaCluster) -> None:
    await _behind(cluster, 3)
    await cluster.until(lambda: cluster.state()[0].isr == (1, 2), "ISR without 3")
    await _behind(cluster, 2)
    await cluster.until(lambda: cluster.state()[0].isr == (1,), "ISR of one")
    await asyncio.sleep(10)
    assert {event.kind for event in cluster[1].of(IsrPropose)} == {"shrink"}


def _notified(cluster: ReplicaCluster) -> list[list[int]]:
    """The partitions of each notification."""
    names = cluster.ensemble.names(ISR_CHANGES)
    contents = [json.loads(cluster.ensemble.data(f"{ISR_CHANGES}/{name}")) for name in names]
    return [[item["partition"] for item in content["partitions"]] for content in contents]


async def test_changes_are_published_together_once_they_have_been_quiet_for_five_seconds(
    cluster: ReplicaCluster,
) -> None:
    await cluster.elect(1, partition=1)
    await _behind(cluster, 3)
    await cluster.produce(1, "missed", acks=1, partition=1)
    await cluster.until(lambda: len(cluster.state(1)[0].isr) == 2, "shrink")
    await asyncio.sleep(4.5)
    assert _notified(cluster) == []
    await asyncio.sleep(3.5)
    assert _notified(cluster) == [[0, 1]]
    await asyncio.sleep(60)
    assert len(_notified(cluster)) == 1


async def test_a_publication_that_failed_is_made_later(cluster: ReplicaCluster) -> None:
    await _behind(cluster, 3)
    await cluster.until(lambda: len(cluster.state()[0].isr) == 2, "shrink")
    cluster[1].zookeeper.expire()
    await asyncio.sleep(20)
    assert _notified(cluster) == []
    cluster[1].zookeeper = SimulatedZooKeeper(cluster.ensemble)
    await cluster[1].zookeeper.connect()
    await asyncio.sleep(3)
    assert _notified(cluster) == [[0]]


@pytest.mark.parametrize(
    ("profile", "committed"),
    [
        pytest.param("2.5", 1, id="still commits up to Kafka 3.6"),
        pytest.param("3.7", 0, id="commits nothing from Kafka 3.7 on"),
    ],
)
async def test_an_isr_below_min_insync_replicas(profile: str, committed: int) -> None:
    """KAFKA-15583."""
    async with ReplicaCluster(min_insync_replicas="3", replication_profile=profile) as cluster:
        cluster.network.isolate(3)
        await cluster.elect(1, isr=[1, 2])
        await cluster.produce(1, "a", acks=1)
        await cluster.until(lambda: cluster[2].replica().log.log_end_offset == 1, "the other replica")
        await asyncio.sleep(1)
        assert cluster[1].replica().high_watermark == committed
        cluster.network.heal()
        await cluster.until(lambda: cluster[1].replica().high_watermark == 1, "commit with all in sync")


async def test_a_topic_with_fewer_replicas_than_min_insync_replicas_needs_all_of_them() -> None:
    async with ReplicaCluster(min_insync_replicas="4", replication_profile="3.7") as cluster:
        await cluster.elect(1)
        await cluster.produce(1, "a", acks=1)
        await cluster.until(lambda: cluster[1].replica().high_watermark == 1, "commit")


async def test_a_follower_that_fetches_while_its_return_is_being_written_is_proposed_once(
    cluster: ReplicaCluster,
) -> None:
    await _behind(cluster, 3)
    await cluster.until(lambda: cluster.state()[0].isr == (1, 2), "ISR without 3")
    cluster[1].zookeeper.disconnect()
    cluster.network.heal()
    await asyncio.sleep(5)
    assert [event.kind for event in cluster[1].of(IsrPropose)] == ["shrink", "expand"]


async def test_who_left_first_is_not_taken_back_because_another_laggard_holds_the_high_watermark(
    cluster: ReplicaCluster,
) -> None:
    await cluster.replicate(1, "a")
    cluster.network.isolate(3)
    await asyncio.sleep(1)
    await _behind(cluster, 2)
    await cluster.until(lambda: cluster.state()[0].isr == (1, 2), "ISR without 3")
    assert cluster[1].replica().high_watermark == 1
    await cluster.until(lambda: cluster.state()[0].isr == (1,), "ISR of one")
    assert [event.kind for event in cluster[1].of(IsrPropose)] == ["shrink", "shrink"]


async def test_a_follower_that_vanishes_while_its_return_is_written_holds_back_until_it_is_known_and_out_again() -> (
    None
):
    """ZooKeeper may have taken it in, so it may be elected: until that is known it must not miss what is committed."""
    async with ReplicaCluster() as cluster:
        await cluster.elect(1, isr=[1, 2], tell=[1, 2])
        cluster[1].zookeeper.disconnect()
        await cluster.tell(3)
        await cluster.until(lambda: bool(cluster[1].of(IsrPropose)), "an attempt to join")
        cluster.network.isolate(3)
        assert (await cluster.produce(1, "a", timeout_s=20)).error is ErrorCode.REQUEST_TIMED_OUT
        cluster[1].zookeeper.reconnect()
        await cluster.until(lambda: cluster[1].replica().high_watermark == 1, "commit")
        assert [event.kind for event in cluster[1].of(IsrResult)] == ["expand", "shrink"]


async def test_a_member_of_which_nobody_knows_whether_it_was_taken_in_holds_back_until_the_next_leader_epoch() -> None:
    async with ReplicaCluster() as cluster:
        await cluster.elect(1, isr=[1, 2], tell=[1, 2])
        cluster[1].zookeeper.disconnect()
        await cluster.tell(3)
        await cluster.until(lambda: bool(cluster[1].of(IsrPropose)), "an attempt to join")
        cluster.network.isolate(3)
        cluster[1].zookeeper.expire()
        assert (await cluster.produce(1, "a", timeout_s=20)).error is ErrorCode.REQUEST_TIMED_OUT
        await cluster.elect(1, isr=[1, 2], tell=[1, 2])
        await cluster.until(lambda: cluster[1].replica().high_watermark == 1, "commit")
