"""What a follower does when leaders change faster than answers travel, or its log does not fit its leader's."""

import asyncio
from typing import Any, cast

import pytest

from harness.broker.log.log import Log
from harness.broker.replicas import fetcher_messages as messages
from harness.broker.wire.error_codes import ErrorCode
from harness.events import Fenced, OffsetForLeaderEpoch, Truncate
from tests.broker.replica_cluster import LATENCY_S, ReplicaCluster


async def test_truncation_asks_again_until_both_know_the_epoch() -> None:
    """KIP-279: each of two brokers led in epochs that the other never saw."""
    async with ReplicaCluster() as cluster:
        await cluster.elect(2)
        await cluster.replicate(2, "a")
        cluster.network.isolate(2)
        await cluster.produce(2, "only 2 has this, epoch 0", acks=1)
        await cluster.elect(1, isr=[1, 3], tell=[1, 3])
        await cluster.produce(1, "c")
        await cluster.produce(1, "d")
        await cluster.elect(2, isr=[2], tell=[2])
        await cluster.produce(2, "only 2 has this, epoch 2", acks=1)
        await cluster.elect(1, isr=[1, 3], tell=[1, 3])
        cluster.network.heal()
        await cluster.tell(2)
        await cluster.settled()
        steps = [(e.asked_epoch, e.answer_epoch, e.answer_end_offset, e.to) for e in cluster[2].of(Truncate)]
        assert steps == [(2, 1, 3, 2), (0, 0, 1, 1)]
        assert [(base, epoch) for base, epoch, _ in cluster[2].prints()] == [(0, 0), (1, 1), (2, 1)]


async def _with_another_partition(cluster: ReplicaCluster) -> None:
    """Broker 1 leads two partitions, so fetchers from it stay when one of them goes elsewhere."""
    await cluster.elect(1)
    await cluster.elect(1, partition=1)
    await cluster.replicate(1, "a")


async def test_records_that_arrive_after_the_lead_was_taken_are_not_appended() -> None:
    async with ReplicaCluster() as cluster:
        await _with_another_partition(cluster)
        await cluster.produce(1, "late", acks=1)
        await asyncio.sleep(LATENCY_S / 2)  # the record is on its way
        await cluster.elect(2, tell=[2])
        await asyncio.sleep(1)
        assert cluster[2].replica().log.log_end_offset == 1


async def test_a_leader_does_not_go_on_to_follow_its_predecessor() -> None:
    async with ReplicaCluster() as cluster:
        await _with_another_partition(cluster)
        await cluster.elect(2, tell=[2])
        await cluster.produce(1, "zombie", acks=1)
        await asyncio.sleep(1)
        assert cluster[2].replica().log.log_end_offset == 1


async def test_an_epoch_end_that_arrives_after_the_lead_was_taken_truncates_nothing() -> None:
    """KAFKA-7786."""
    async with ReplicaCluster() as cluster:
        await _with_another_partition(cluster)
        cluster.network.isolate(2)
        await cluster.elect(2, tell=[2])
        await cluster.produce(2, "b", acks=1)
        await cluster.elect(1)
        cluster.network.heal()
        await cluster.until(
            lambda: cluster[1].of(OffsetForLeaderEpoch) != [], "the answer on its way", every_s=LATENCY_S / 10
        )
        await cluster.elect(2, tell=[2])
        await asyncio.sleep(1)
        assert cluster[2].of(Truncate) == []
        assert cluster[2].replica().log.log_end_offset == 2


async def test_a_fenced_follower_is_silent_until_the_controller_speaks(cluster: ReplicaCluster) -> None:
    await cluster.elect(1, tell=[1, 3])
    await asyncio.sleep(5)
    assert [(event.sender, event.got, event.have) for event in cluster[1].of(Fenced)] == [(2, 0, 1)]
    await cluster.tell(2)
    await cluster.replicate(1, "a")


async def test_a_log_that_is_longer_than_the_leaders_is_cut_to_the_leaders_end() -> None:
    """With truncation by leader epoch this cannot be; without, the out-of-range answer is what is left."""
    async with ReplicaCluster(planted_bugs=["no-truncation-by-leader-epoch"]) as cluster:
        await cluster.elect(1)
        await cluster.replicate(1, "a")
        cluster.network.isolate(1)
        await cluster.produce(1, "lost", "lost", acks=1)
        await cluster.elect(2, isr=[2, 3], tell=[2, 3])
        cluster.network.heal()
        await cluster.tell(1)
        await cluster.settled()
        [truncated] = cluster[1].of(Truncate)
        assert (truncated.reason, truncated.log_end_offset, truncated.to) == ("out_of_range", 3, 1)


async def test_a_log_that_ends_before_the_leaders_start_begins_anew_there(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "a")
    cluster.network.isolate(3)
    await cluster.elect(1, isr=[1, 2], tell=[1, 2])
    for value in "bcd":
        await cluster.produce(1, value)
    cluster[1].replica().log.advance_log_start(3)
    cluster.network.heal()
    await cluster.tell(3)
    await cluster.until(lambda: cluster[3].replica().log.log_end_offset == 4, "the leader's end")
    assert cluster[3].replica().log.log_start_offset == 3
    assert cluster[3].prints() == cluster[1].prints()[-1:]
    [truncated] = cluster[3].of(Truncate)
    assert (truncated.reason, truncated.log_end_offset, truncated.to) == ("full", 1, 3)
    await cluster.until(lambda: cluster[3].replica().high_watermark == 4, "high watermark")


async def test_a_partition_whose_records_do_not_fit_fails_and_the_others_go_on() -> None:
    async with ReplicaCluster(planted_bugs=["no-truncation-by-leader-epoch"]) as cluster:
        await cluster.elect(2, partition=1)
        await cluster.elect(1)
        cluster.network.isolate(1)
        await cluster.produce(1, "lost", acks=1)
        await cluster.elect(2, isr=[2, 3], tell=[2, 3])
        await cluster.produce(2, "a", "b", "c")
        cluster.network.heal()
        await cluster.tell(1)
        await asyncio.sleep(3)
        assert cluster[1].replica().log.log_end_offset == 1
        began = asyncio.get_running_loop().time()
        assert (await cluster.produce(2, "x", partition=1)).error is ErrorCode.NONE
        assert asyncio.get_running_loop().time() - began < 0.1
        assert set(cluster.state(1)[0].isr) == {1, 2, 3}


async def test_a_full_disk_fails_the_partition_and_not_the_fetcher() -> None:
    async with ReplicaCluster() as cluster:
        await _with_another_partition(cluster)
        cluster[2].storage.space_left = 10
        await cluster.produce(1, "does not fit", acks=1)
        await asyncio.sleep(0.1)
        cluster[2].storage.space_left = None
        assert cluster[2].replica().log.log_end_offset == 1
        began = asyncio.get_running_loop().time()
        await cluster.produce(1, "other", partition=1)
        assert asyncio.get_running_loop().time() - began < 0.1
        await cluster.elect(1)
        await cluster.replicate(1, "b")


async def test_a_corrupt_answer_is_fetched_again_after_the_backoff(cluster: ReplicaCluster) -> None:
    log = cluster[1].replica().log
    broken: list[bytes] = []

    class BreaksOnce:
        def __getattr__(self, name: str) -> Any:
            return getattr(log, name)

        def read(self, offset: int, **limits: Any) -> bytes:
            data = log.read(offset, **limits)
            if data and not broken:
                broken.append(data)
                return data[:-1] + b"?"
            return data

    cluster[1].replica().log = cast("Log", BreaksOnce())
    assert (await cluster.produce(1, "a")).error is ErrorCode.NONE
    assert broken != []
    await cluster.settled()


async def test_an_error_nobody_thought_of_costs_one_partition_until_the_next_epoch() -> None:
    async with ReplicaCluster() as cluster:
        await _with_another_partition(cluster)

        log = cluster[2].replica().log

        class Buggy:
            def __getattr__(self, name: str) -> Any:
                return getattr(log, name)

            def append_as_follower(self, records: bytes) -> None:
                raise RuntimeError("bug")

        cluster[2].replica().log = cast("Log", Buggy())
        await cluster.produce(1, "b", acks=1)
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        assert (await cluster.produce(1, "other", partition=1)).error is ErrorCode.NONE
        assert asyncio.get_running_loop().time() - began < 0.1
        cluster[2].replica().log = log
        assert cluster[2].replica().log.log_end_offset == 1
        await cluster.elect(1)
        await cluster.settled()


async def test_an_error_nobody_thought_of_does_not_end_replication(
    cluster: ReplicaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = messages.fetch_request

    def buggy(*arguments: object, **limits: object) -> None:
        monkeypatch.setattr(messages, "fetch_request", good)
        raise RuntimeError("bug")

    await cluster.replicate(1, "a")
    monkeypatch.setattr(messages, "fetch_request", buggy)
    await cluster.produce(1, "b", acks=1)
    await cluster.until(lambda: messages.fetch_request is good, "the error")
    await cluster.produce(1, "c", acks=1)
    await cluster.settled()
