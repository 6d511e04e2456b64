"""Brokers that clean what they hold, while they serve it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.broker.cleaner.statistics import CleanerStatistics
from harness.broker.log.log import Log
from harness.broker.wire.messages import DeleteTopicsRequest
from harness.events import CleaningStart, Compaction
from tests.broker.cleaner.compacted import batch, contents
from tests.broker.log.logs import everything, headers
from tests.broker.whole_cluster import WholeCluster

TOPIC = {
    "cleanup_policy": "compact",
    "segment_bytes": "500",
    "min_cleanable_dirty_ratio": "0.01",
}
BROKER = {
    "log.cleaner.backoff.ms": "100",
    "default.replication.factor": "3",
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "1000",
}


@asynccontextmanager
async def written(records: int = 100, **properties: Any) -> AsyncIterator[WholeCluster]:
    """Three brokers with a compacted topic `t` that the first one leads; four keys are written again and again."""
    async with WholeCluster(BROKER | properties) as cluster:
        await cluster.start(1, 2, 3)
        assert await cluster.create("t", [1, 2, 3], **TOPIC) == 0
        await cluster.until_led("t", 1)
        await write(cluster, records)
        yield cluster


async def write(cluster: WholeCluster, records: int) -> None:
    for number in range(records):
        assert await cluster.append(1, "t", batch((f"key-{number % 4}", f"{number}"))) == 0


def log_of(cluster: WholeCluster, broker_id: int) -> Log:
    log = cluster.brokers[broker_id]._logs.get("t", 0)
    assert log is not None
    return log


def last_values(log: Log) -> dict[str | None, str | None]:
    return {key: value for _, key, value in contents(log)}


def statistics(cluster: WholeCluster, broker_id: int) -> CleanerStatistics:
    return cluster.brokers[broker_id].metrics().cleaner


async def until_small(cluster: WholeCluster) -> None:
    await cluster.until(
        lambda: all(log_of(cluster, broker).size_bytes < 1500 for broker in cluster.brokers), "small logs"
    )


async def test_leader_and_followers_clean_what_they_hold() -> None:
    async with written() as cluster:
        await until_small(cluster)
        for broker_id in cluster.brokers:
            log = log_of(cluster, broker_id)
            assert last_values(log) == {f"key-{number % 4}": f"{number}" for number in range(96, 100)}
            assert log.log_end_offset == 100
            assert cluster.of(broker_id, Compaction)[-1].until_offset == log.segments[-1].base_offset
            chosen = cluster.of(broker_id, CleaningStart)[-1]
            assert chosen.until_offset == log.segments[-1].base_offset
            assert chosen.dirty_bytes > chosen.min_dirty_ratio * (chosen.clean_bytes + chosen.dirty_bytes)
            checkpoint = cluster.disk(broker_id, "/d").read("cleaner-offset-checkpoint")
            assert checkpoint == f"0\n1\nt 0 {log.segments[-1].base_offset}\n".encode()


async def test_brokers_go_on_from_what_they_have_cleaned() -> None:
    async with written() as cluster:
        await until_small(cluster)
        for broker_id in (2, 3):
            await cluster.stop(broker_id)
        await write(cluster, 40)
        await cluster.start(2, 3)
        await cluster.until(lambda: log_of(cluster, 3).log_end_offset == 140, "broker 3 has caught up")
        await write(cluster, 40)
        await until_small(cluster)
        assert last_values(log_of(cluster, 3)) == last_values(log_of(cluster, 1))
        assert len(last_values(log_of(cluster, 1))) == 4


async def test_a_new_replica_copies_the_gaps() -> None:
    async with written() as cluster:
        await until_small(cluster)
        await cluster.stop(3)
        cluster.disks.pop(3)
        await cluster.start(3)
        await cluster.until(lambda: log_of(cluster, 3).log_end_offset == 100, "broker 3 has caught up")
        await cluster.until(lambda: last_values(log_of(cluster, 3)) == last_values(log_of(cluster, 1)), "the same")


async def test_a_segment_ends_in_time_for_what_may_stay_dirty() -> None:
    async with written(1) as cluster:
        lags = {"max_compaction_lag_ms": "5000", "segment_ms": "60000"}
        for topic, policy in (("u", "compact"), ("v", "delete")):
            assert await cluster.create(topic, [1, 2, 3], **TOPIC | lags | {"cleanup_policy": policy}) == 0
            await cluster.until_led(topic, 1)
        logs = [cluster.brokers[1]._logs.get(topic, 0) for topic in "uv"]
        assert [log.settings.segment_ms for log in logs if log is not None] == [5000, 60_000]


async def test_a_cleaner_that_is_turned_off_cleans_nothing() -> None:
    async with written(100, **{"log.cleaner.enable": "false"}) as cluster:
        await asyncio.sleep(5)
        assert len(contents(log_of(cluster, 1))) == 100
        assert statistics(cluster, 1).last == ()


async def test_several_cleaners_have_several_logs_at_a_time() -> None:
    slowly = {"log.cleaner.threads": "2", "log.cleaner.io.max.bytes.per.second": "30000"}
    async with written(60, **slowly) as cluster:
        assert await cluster.create("u", [1, 2, 3], **TOPIC) == 0
        await cluster.until_led("u", 1)
        for number in range(60):
            assert await cluster.append(1, "u", batch((f"key-{number % 4}", f"{number}"))) == 0
        await cluster.until(lambda: len(statistics(cluster, 1).last) == 2, "both cleaners busy")


@pytest.mark.parametrize(("ratio", "cleaned"), [("0.01", True), ("1", False)])
async def test_a_log_is_cleaned_once_it_is_dirtier_than_its_min_cleanable_dirty_ratio(
    ratio: str, cleaned: bool
) -> None:
    async with written(1) as cluster:
        assert await cluster.create("u", [1, 2, 3], **TOPIC | {"min_cleanable_dirty_ratio": ratio}) == 0
        await cluster.until_led("u", 1)
        for number in range(60):
            assert await cluster.append(1, "u", batch((f"key-{number % 4}", f"{number}"))) == 0
        await asyncio.sleep(5)
        log = cluster.brokers[1]._logs.get("u", 0)
        assert log is not None
        assert (len(contents(log)) < 60) is cleaned


@pytest.mark.parametrize("backoff_ms", [100, 20_000])
async def test_a_cleaner_without_work_looks_again_after_log_cleaner_backoff_ms(backoff_ms: int) -> None:
    async with WholeCluster(BROKER | {"log.cleaner.backoff.ms": str(backoff_ms)}) as cluster:
        await cluster.start(1)
        looked_s = []
        for _ in range(2):
            cluster.wall_ms += 1
            await cluster.until(lambda: statistics(cluster, 1).since_last_look_ms == 0, "a look")
            looked_s.append(asyncio.get_running_loop().time())
        assert looked_s[1] - looked_s[0] == pytest.approx(backoff_ms / 1000, abs=0.01)


async def test_a_small_buffer_reads_batch_after_batch() -> None:
    async with written(100, **{"log.cleaner.io.buffer.size": "0"}) as cluster:
        await until_small(cluster)
        assert len(last_values(log_of(cluster, 1))) == 4


async def test_what_a_cleaner_may_read_a_second_keeps_it_busy_longer() -> None:
    async with written(100, **{"log.cleaner.io.max.bytes.per.second": "100000"}) as cluster:
        await until_small(cluster)
        assert max(each.seconds for each in statistics(cluster, 1).last) > 0.1


async def test_a_log_that_cannot_be_cleaned_is_left_alone_and_the_others_are_not() -> None:
    async with written(records=1) as cluster:
        assert await cluster.create("u", [1, 2, 3], **TOPIC) == 0
        await cluster.until_led("u", 1)
        log = log_of(cluster, 1)
        log.segments[0]._file.file.data[-1] ^= 1  # type: ignore[attr-defined]
        await write(cluster, 60)
        for number in range(60):
            assert await cluster.append(1, "u", batch((f"key-{number % 4}", f"{number}"))) == 0
        await cluster.until(lambda: statistics(cluster, 1).uncleanable_partitions == {"/d": 1}, "an uncleanable log")
        other = cluster.brokers[1]._logs.get("u", 0)
        assert other is not None
        await cluster.until(lambda: len(contents(other)) < 15, "the other log clean")
        assert len(headers(everything(log))) == 61
        assert statistics(cluster, 1).uncleanable_bytes["/d"] > 0
        tries = len(cluster.of(1, Compaction))
        await asyncio.sleep(5)
        assert len(cluster.of(1, Compaction)) == tries
        await cluster.ask(await cluster.controller(1), DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 3)
        await cluster.until(lambda: statistics(cluster, 1).uncleanable_partitions == {"/d": 0}, "forgotten with it")


async def test_what_a_cleaner_counts() -> None:
    async with written() as cluster:
        before = statistics(cluster, 1)
        assert (before.recopy_percent, before.dead_cleaners) == (0, 0) or before.last
        await until_small(cluster)
        after = statistics(cluster, 1)
        (last,) = after.last
        assert 0 < last.bytes_written < last.bytes_read
        assert after.recopy_percent == 100 * last.bytes_written // last.bytes_read
        assert last.buffer_utilization == pytest.approx(4 / 603_979, rel=0.1)
        assert after.since_last_look_ms == 0  # the wall clock of these brokers stands still


async def test_committed_offsets_stay_few() -> None:
    """Compact a topic of 100,000 commits in small."""
    properties = {"offsets.topic.segment.bytes": "4000", "offsets.topic.replication.factor": "1"}
    async with WholeCluster(BROKER | properties | {"default.replication.factor": "1"}) as cluster:
        await cluster.start(1, t=[1])
        await coordinated(cluster)
        for offset in range(2000):
            assert await cluster.commit(1, f"group-{offset % 5}", "t", offset) == 0
        offsets = cluster.brokers[1]._logs.get("__consumer_offsets", 0)
        assert offsets is not None
        assert offsets.settings.compacts
        await cluster.until(lambda: offsets.size_bytes < 12_000, "a small offsets topic")
        assert offsets.log_end_offset >= 2000
        await cluster.stop(1)
        await cluster.start(1)
        await coordinated(cluster)
        committed = [await cluster.committed(1, f"group-{number}", "t") for number in range(5)]
        assert committed == [(0, 1995), (0, 1996), (0, 1997), (0, 1998), (0, 1999)]


async def coordinated(cluster: WholeCluster) -> None:
    async def answers() -> bool:
        return await cluster.coordinator("group-0", 1) == 1 and (await cluster.committed(1, "group-0", "t"))[0] == 0

    await cluster.until(answers, "a coordinator")
