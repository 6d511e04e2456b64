"""What three brokers do together: commit, change leaders, truncate, fall behind and come back."""

import asyncio

import pytest

from harness.broker.replicas.fetching import FetchLimits, PartitionFetch
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import CONSUMER
from harness.events import (
    Append,
    BecomeFollower,
    BecomeLeader,
    EpochAssign,
    HighWatermark,
    HighWatermarkCheckpoint,
    IsrPropose,
    IsrResult,
    ProduceResponse,
    Truncate,
)
from tests.broker.replica_cluster import LATENCY_S, TOPIC, ReplicaCluster, batch

FETCH_WAIT_S = 0.5


async def test_acks_all_is_answered_when_every_replica_has_the_record(cluster: ReplicaCluster) -> None:
    result = await cluster.produce(1, "a", "b")
    assert result.error is ErrorCode.NONE
    assert (result.base_offset, result.last_offset) == (0, 1)
    assert [cluster[b].replica().log.log_end_offset for b in (1, 2, 3)] == [2, 2, 2]
    assert cluster[1].replica().high_watermark == 2


async def test_committing_takes_one_fetch_round_and_no_timer(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "warm up")
    began = asyncio.get_running_loop().time()
    await cluster.produce(1, "a")
    assert asyncio.get_running_loop().time() - began == pytest.approx(2 * LATENCY_S)


async def test_followers_learn_the_high_watermark_when_their_long_poll_is_over(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    await asyncio.sleep(5 * LATENCY_S)
    assert [cluster[b].replica().high_watermark for b in (2, 3)] == [0, 0]
    await asyncio.sleep(FETCH_WAIT_S)
    assert [cluster[b].replica().high_watermark for b in (2, 3)] == [1, 1]


async def test_a_planted_bug_answers_acks_all_before_anybody_else_has_the_record() -> None:
    async with ReplicaCluster(planted_bugs=["acks-all-on-append"]) as cluster:
        await cluster.elect(1)
        assert (await cluster.produce(1, "a")).error is ErrorCode.NONE
        assert [cluster[b].replica().log.log_end_offset for b in (1, 2, 3)] == [1, 0, 0]


async def _diverged(cluster: ReplicaCluster) -> None:
    """Broker 1 leads, commits two records, appends two more that no broker fetches, and is replaced by broker 2."""
    await cluster.elect(1)
    await cluster.replicate(1, "a", "b")
    cluster.network.isolate(1)
    assert (await cluster.produce(1, "lost", "lost", acks=1)).error is ErrorCode.NONE
    await cluster.elect(2, isr=[2, 3], tell=[2, 3])
    await cluster.produce(2, "c")
    assert cluster[1].replica().log.log_end_offset == 4
    cluster.network.heal()
    await cluster.tell(1)


async def test_an_old_leader_drops_what_the_new_one_never_had() -> None:
    async with ReplicaCluster() as cluster:
        await _diverged(cluster)
        await cluster.settled()
        assert [(base, epoch) for base, epoch, _ in cluster[1].prints()] == [(0, 0), (2, 1)]
        [truncated] = cluster[1].of(Truncate)
        assert (truncated.log_end_offset, truncated.to, truncated.reason) == (4, 2, "epoch")
        assert (truncated.asked_epoch, truncated.answer_epoch, truncated.answer_end_offset) == (0, 0, 2)
        await cluster.until(lambda: set(cluster.state()[0].isr) == {1, 2, 3}, "full ISR")


async def test_without_truncation_by_leader_epoch_the_replicas_diverge_and_the_broker_lives_on() -> None:
    async with ReplicaCluster(planted_bugs=["no-truncation-by-leader-epoch"]) as cluster:
        await _diverged(cluster)
        await cluster.elect(2, partition=1)
        await cluster.produce(2, "d", "e")
        await asyncio.sleep(3)
        ours = {base: (epoch, crc) for base, epoch, crc in cluster[1].prints()}
        theirs = {base: (epoch, crc) for base, epoch, crc in cluster[2].prints()}
        assert ours[2] != theirs[2]
        assert cluster[1].of(Truncate) == []
        assert (await cluster.produce(2, "other partition", partition=1)).error is ErrorCode.NONE


async def test_a_follower_in_the_middle_of_a_batch_of_its_leader_gives_up_the_partition_only() -> None:
    async with ReplicaCluster(planted_bugs=["no-truncation-by-leader-epoch"]) as cluster:
        await cluster.elect(1)
        await cluster.elect(2, partition=1)
        cluster.network.isolate(1)
        await cluster.produce(1, "lost", acks=1)
        await cluster.elect(2, isr=[2, 3], tell=[2, 3])
        await cluster.produce(2, "a", "b", "c")
        cluster.network.heal()
        await cluster.tell(1)
        await asyncio.sleep(3)
        assert cluster[1].replica().log.log_end_offset == 1
        assert (await cluster.produce(2, "x", partition=1)).error is ErrorCode.NONE
        await cluster.elect(3, isr=[2, 3])
        assert cluster[1].replica().leader == 3


async def test_a_follower_that_is_cut_off_leaves_the_isr_and_comes_back(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    cluster.network.isolate(3)
    assert (await cluster.produce(1, "b")).error is ErrorCode.NONE
    assert cluster.state()[0].isr == (1, 2)
    assert cluster[3].replica().log.log_end_offset == 1
    assert cluster.state()[0].leader_epoch == 0
    cluster.network.heal()
    await cluster.until(lambda: cluster.state()[0].isr == (1, 2, 3), "full ISR")
    await cluster.settled()
    kinds = [(event.kind, event.old, event.new, event.result) for event in cluster[1].of(IsrResult)]
    assert kinds == [("shrink", [1, 2, 3], [1, 2], "ok"), ("expand", [1, 2], [1, 2, 3], "ok")]
    assert cluster[1].replica().zk_version == cluster.state()[1]


async def test_a_follower_that_has_everything_stays_in_the_isr_however_long_it_is_silent(
    cluster: ReplicaCluster,
) -> None:
    await cluster.produce(1, "a")
    cluster.network.isolate(3)
    await asyncio.sleep(60)
    assert cluster[1].of(IsrPropose) == []


async def test_a_leader_cut_off_from_its_followers_and_replaced_cannot_commit_alone(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "a")
    cluster.network.isolate(1)
    pending = asyncio.create_task(cluster.produce(1, "zombie", timeout_s=20))
    await cluster.elect(2, isr=[2, 3], tell=[2, 3])
    assert (await pending).error is ErrorCode.REQUEST_TIMED_OUT
    assert cluster[1].replica().high_watermark == 1
    assert cluster[1].replica().isr == (1, 2, 3)
    assert {event.result for event in cluster[1].of(IsrResult)} == {"badversion"}
    assert set(cluster.state()[0].isr) == {2, 3}


async def test_a_pending_acks_all_ends_when_the_lead_is_lost(cluster: ReplicaCluster) -> None:
    cluster.network.isolate(1)
    pending = asyncio.create_task(cluster.produce(1, "a"))
    await asyncio.sleep(0)
    await cluster.elect(2, isr=[2, 3])
    assert (await pending).error is ErrorCode.NOT_LEADER_FOR_PARTITION


async def test_a_new_leader_keeps_its_high_watermark_until_it_has_heard_of_its_followers(
    cluster: ReplicaCluster,
) -> None:
    await cluster.produce(1, "a")
    cluster.network.kill(1)
    assert cluster[2].replica().high_watermark == 0  # one fetch behind
    await cluster.elect(2, isr=[2, 3], tell=[2])
    assert cluster[2].replica().high_watermark == 0
    await cluster.tell(3)
    await cluster.until(lambda: cluster[2].replica().high_watermark == 1, "high watermark")


async def test_an_unclean_leader_makes_the_others_drop_committed_records(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "a")
    cluster.network.isolate(3)
    assert (await cluster.produce(1, "b", "c")).error is ErrorCode.NONE
    assert cluster.state()[0].isr == (1, 2)
    await asyncio.sleep(1)
    cluster.network.heal()
    cluster.network.isolate(1)
    await cluster.elect(3, isr=[3])
    await cluster.produce(3, "x", acks=1)
    cluster.network.heal()
    await cluster.settled()
    assert [(base, epoch) for base, epoch, _ in cluster[1].prints()] == [(0, 0), (1, 1)]
    for broker_id in (1, 2):
        [truncated] = cluster[broker_id].of(Truncate)
        assert (truncated.log_end_offset, truncated.to, truncated.high_watermark) == (3, 1, 3)


async def test_a_checkpoint_that_was_overtaken_is_written_again_and_told_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def overtaken(path: str, data: bytes) -> bool:
        return False

    async with ReplicaCluster(replica_high_watermark_checkpoint_interval_ms="1000") as cluster:
        broker = cluster[1]
        quick = broker.storage.replace_off_loop
        monkeypatch.setattr(broker.storage, "replace_off_loop", overtaken)
        await cluster.elect(1)
        await cluster.produce(1, "a", "b")
        await asyncio.sleep(1.5)
        assert (broker.of(HighWatermarkCheckpoint), broker.logs.read_high_watermarks()) == ([], {})
        monkeypatch.setattr(broker.storage, "replace_off_loop", quick)
        await asyncio.sleep(2)
        assert len(broker.of(HighWatermarkCheckpoint)) == 1
        assert broker.logs.read_high_watermarks() == {(TOPIC, 0): 2}


async def test_a_broker_that_stops_during_a_checkpoint_writes_the_last_one_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ReplicaCluster(replica_high_watermark_checkpoint_interval_ms="1000") as cluster:
        broker = cluster[1]
        quick, begun = broker.storage.replace_off_loop, asyncio.Event()

        async def slow(path: str, data: bytes) -> bool:
            monkeypatch.setattr(broker.storage, "replace_off_loop", quick)
            begun.set()
            return await asyncio.Event().wait()

        monkeypatch.setattr(broker.storage, "replace_off_loop", slow)
        await cluster.elect(1)
        await cluster.produce(1, "a", "b")
        await begun.wait()
        await cluster.produce(1, "c")
        await broker.manager.stop()
        assert broker.logs.read_high_watermarks() == {(TOPIC, 0): 3}


async def test_a_killed_broker_starts_from_its_checkpoint_and_catches_up() -> None:
    async with ReplicaCluster(replica_high_watermark_checkpoint_interval_ms="1000") as cluster:
        await cluster.elect(1)
        await cluster.produce(1, "a", "b")
        await asyncio.sleep(1.5)
        assert cluster[3].of(HighWatermarkCheckpoint) != []
        await cluster.kill(3)
        await cluster.until(lambda: cluster[1].replica().high_watermark == 2, "high watermark")
        assert (await cluster.produce(1, "c")).error is ErrorCode.NONE
        again = await cluster.start(3)
        assert again.manager.replicas.high_watermarks() == {(TOPIC, 0): 2}
        await cluster.tell(3)
        assert again.replica().high_watermark == 2
        await cluster.settled()
        await cluster.until(lambda: set(cluster.state()[0].isr) == {1, 2, 3}, "full ISR")


async def test_a_follower_that_asks_before_its_leader_knows_retries_after_the_backoff(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    await cluster.elect(2, tell=[3])
    await asyncio.sleep(0.05)
    await cluster.tell(2)
    await cluster.tell(1)
    began = asyncio.get_running_loop().time()
    assert (await cluster.produce(2, "b")).error is ErrorCode.NONE
    assert asyncio.get_running_loop().time() - began < 0.1 + 10 * LATENCY_S


async def test_a_new_partition_cuts_the_long_poll_of_its_leader_short(cluster: ReplicaCluster) -> None:
    await asyncio.sleep(0.1)  # both followers poll now, for up to 500 ms
    await cluster.elect(1, partition=1)
    began = asyncio.get_running_loop().time()
    await cluster.produce(1, "a", partition=1)
    assert asyncio.get_running_loop().time() - began < 0.02


async def test_a_leader_that_comes_back_is_followed_again_without_being_told(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    cluster.network.isolate(1)
    await asyncio.sleep(1)
    cluster.network.heal()
    assert (await cluster.produce(1, "b")).error is ErrorCode.NONE
    await cluster.settled()


async def test_min_insync_replicas_refuses_before_and_after_the_append() -> None:
    async with ReplicaCluster(min_insync_replicas="2") as cluster:
        await cluster.elect(1)
        cluster.network.isolate(1)
        assert (await cluster.produce(1, "a", timeout_s=20)).error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert cluster.state()[0].isr == (1,)
        assert (await cluster.produce(1, "b")).error is ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await cluster.produce(1, "c", acks=1)).error is ErrorCode.NONE
        assert cluster[1].replica().log.log_end_offset == 2


async def test_consumers_wait_for_what_is_committed(cluster: ReplicaCluster) -> None:
    partitions = [PartitionFetch((TOPIC, 0), 0, 0, 1000)]
    limits = FetchLimits(min_bytes=1, max_bytes=1000, max_wait_s=10)
    polling = asyncio.create_task(cluster[1].manager.fetch_server.fetch(CONSUMER, partitions, limits))
    await asyncio.sleep(0.1)
    began = asyncio.get_running_loop().time()
    await cluster.produce(1, "a", acks=1)
    [read] = await polling
    assert asyncio.get_running_loop().time() - began == pytest.approx(2 * LATENCY_S)
    assert (read.error, read.high_watermark) == (ErrorCode.NONE, 1)
    assert len(read.records) == len(batch("a"))


async def test_what_a_broker_does_is_on_its_state_change_log_in_order(cluster: ReplicaCluster) -> None:
    await cluster.produce(1, "a")
    await cluster.elect(2)
    kinds = (BecomeLeader, BecomeFollower, EpochAssign, Append, HighWatermark, ProduceResponse)
    seen = [type(event) for event in cluster[1].events if isinstance(event, kinds)]
    assert seen == [EpochAssign, BecomeLeader, Append, HighWatermark, ProduceResponse, BecomeFollower]
    [produced] = cluster[1].of(ProduceResponse)
    assert (produced.base_offset, produced.isr_size, produced.high_watermark) == (0, 3, 1)
