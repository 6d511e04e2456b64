"""What a topic's properties do, from the request that sets them to the log: a whole broker with its disk in memory."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from harness.broker.log.batch import build_batch, parse_header, parse_records
from harness.broker.log.records import Record
from harness.broker.wire.messages import ListOffsetsRequest
from harness.simulation.disk import MemoryStorage
from tests.broker.whole_cluster import WALL_MS, WholeCluster

T = "t"
ALONE = {"offsets.topic.replication.factor": "1", "log.initial.task.delay.ms": "0"}
DAY_MS = 24 * 3_600_000


@pytest.fixture
async def cluster() -> AsyncIterator[WholeCluster]:
    async with WholeCluster(dict(ALONE)) as made:
        await made.start(1)
        yield made


async def created(cluster: WholeCluster, **config: str) -> MemoryStorage:
    """Create a topic with these properties, and return the disk."""
    assert await cluster.create(T, [1], **config) == 0
    await cluster.until_led(T, 1)
    return cluster.disk(1, "/d")


def segments(disk: MemoryStorage, ending: str = ".log") -> list[int]:
    """Return the first offsets of the files of the log that end so."""
    return [int(name[:20]) for name in disk.list(f"{T}-0") if name[20:] == ending]


def records_on(disk: MemoryStorage) -> int:
    """Return how many bytes of records there are."""
    return sum(len(disk.read(f"{T}-0/{first:020d}.log")) for first in segments(disk))


# --- flush.messages, flush.ms ---


async def test_flush_messages_syncs_the_log_after_so_many_records(cluster: WholeCluster) -> None:
    disk = await created(cluster, flush_messages="2")
    for value in "abc":
        assert await cluster.produce(1, T, value) == 0
    whole = records_on(disk)
    disk.lose_power()
    assert records_on(disk) == whole // 3 * 2


@pytest.mark.parametrize(
    ("flush_ms", "after_s", "on_disk"),
    [
        pytest.param("1000", 1.1, True, id="when its time has come"),
        pytest.param("1000", 0.4, False, id="not before"),
        pytest.param("60000", 1.1, False, id="nor where the topic takes longer"),
    ],
)
async def test_flush_ms_syncs_the_log_when_the_scheduler_looks(flush_ms: str, after_s: float, on_disk: bool) -> None:
    """`log.flush.scheduler.interval.ms` says how often that is."""
    async with WholeCluster(ALONE | {"log.flush.scheduler.interval.ms": "500"}) as cluster:
        await cluster.start(1)
        disk = await created(cluster, flush_ms=flush_ms)
        await asyncio.sleep(0.6)
        assert await cluster.produce(1, T, "a") == 0
        await asyncio.sleep(after_s)
        whole = records_on(disk)
        disk.lose_power()
        assert records_on(disk) == (whole if on_disk else 0)


# --- timestamps ---


@pytest.mark.parametrize(
    ("config", "error"),
    [
        pytest.param({}, 0, id="any time, if nothing is said"),
        pytest.param({"message.timestamp.difference.max.ms": str(2 * DAY_MS)}, 0, id="within the difference"),
        pytest.param({"message.timestamp.difference.max.ms": "1000"}, 32, id="outside the difference"),
        pytest.param({"message.timestamp.before.max.ms": "1000"}, 32, id="too long ago"),
        pytest.param({"message.timestamp.after.max.ms": "1000"}, 0, id="long ago is not too far ahead"),
        pytest.param(
            {"message.timestamp.difference.max.ms": "1000", "message.timestamp.before.max.ms": str(2 * DAY_MS)},
            0,
            id="what is said of one side goes before the difference",
        ),
        pytest.param(
            {"message.timestamp.difference.max.ms": "1000", "message.timestamp.type": "LogAppendTime"},
            0,
            id="not checked where the broker's time counts",
        ),
    ],
)
async def test_records_of_a_day_ago(cluster: WholeCluster, config: dict[str, str], error: int) -> None:
    disk = await created(cluster, **config)
    assert await cluster.produce(1, T, "a", timestamp_ms=WALL_MS - DAY_MS) == error
    assert bool(records_on(disk)) == (error == 0)


@pytest.mark.parametrize(
    ("bound", "error"),
    [
        ("message.timestamp.after.max.ms", 32),
        ("message.timestamp.difference.max.ms", 32),
        ("message.timestamp.before.max.ms", 0),
    ],
)
async def test_records_of_tomorrow(cluster: WholeCluster, bound: str, error: int) -> None:
    await created(cluster, **{bound: "1000"})
    assert await cluster.produce(1, T, "a", timestamp_ms=WALL_MS + DAY_MS) == error
    assert await cluster.produce(1, T, "a", timestamp_ms=-1) == 0, "one without a timestamp has no age"


async def test_message_timestamp_type_gives_records_the_brokers_time(cluster: WholeCluster) -> None:
    disk = await created(cluster, message_timestamp_type="LogAppendTime")
    answer = await cluster.produced(1, T, "a", 5)
    assert (answer.error_code, answer.log_append_time_ms) == (0, WALL_MS)
    stored = disk.read(f"{T}-0/{0:020d}.log")
    header = parse_header(stored)
    assert (header.is_log_append_time, header.max_timestamp) == (True, WALL_MS)
    assert [record.timestamp_ms for record in parse_records(stored)] == [WALL_MS]
    topic = ListOffsetsRequest.ListOffsetsTopic
    for timestamp_ms, offset in ((6, 0), (WALL_MS, 0), (WALL_MS + 1, -1)):
        wanted = topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp_ms)
        listed = await cluster.ask(1, ListOffsetsRequest(topics=[topic(name=T, partitions=[wanted])]), 5)
        assert listed.topics[0].partitions[0].offset == offset


async def test_without_it_the_producers_time_stays(cluster: WholeCluster) -> None:
    await created(cluster, message_timestamp_type="CreateTime")
    assert (await cluster.produced(1, T, "a", 5)).log_append_time_ms == -1


# --- segments ---


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({}, [0], id="a week passes first"),
        pytest.param({"segment.ms": "1000"}, [0, 2, 4], id="after a second"),
        pytest.param(
            {"segment.ms": "1000", "segment.jitter.ms": "1000"},
            [0, 1, 2, 4, 5],
            id="or up to one earlier, each by another time",
        ),
        pytest.param({"segment.bytes": "140"}, [0, 2, 4], id="when the file is full"),
        pytest.param({"segment.index.bytes": "24", "index.interval.bytes": "0"}, [0, 3], id="when the index is full"),
    ],
)
async def test_a_new_segment_begins(cluster: WholeCluster, config: dict[str, str], expected: list[int]) -> None:
    disk = await created(cluster, **config)
    for number in range(6):
        assert await cluster.produce(1, T, "a", timestamp_ms=WALL_MS + number * 700) == 0
    assert segments(disk) == expected


@pytest.mark.parametrize(
    ("config", "remaining"),
    [
        pytest.param({}, [0, 1, 2], id="nothing, for a week"),
        pytest.param({"retention.ms": str(DAY_MS)}, [1, 2], id="what is older than a day"),
        pytest.param({"retention.bytes": "60"}, [2], id="more bytes than that"),
        pytest.param({"retention.bytes": "60", "cleanup.policy": "compact"}, [0, 1, 2], id="nothing that is compacted"),
    ],
)
async def test_segments_go(config: dict[str, str], remaining: list[int]) -> None:
    async with WholeCluster(ALONE | {"log.retention.check.interval.ms": "1000"}) as cluster:
        await cluster.start(1)
        disk = await created(cluster, segment_ms="1", **config)
        for days_ago in (2, 0.5, 0):
            sent = [Record(key=b"k", value=b"v", timestamp_ms=WALL_MS - int(days_ago * DAY_MS))]
            assert await cluster.append(1, T, build_batch(sent)) == 0
        await asyncio.sleep(2)
        assert segments(disk) == remaining


@pytest.mark.parametrize(("name", "error"), [("max.message.bytes", 10), ("segment.bytes", 18)])
async def test_a_batch_that_is_too_large_is_refused(cluster: WholeCluster, name: str, error: int) -> None:
    await created(cluster, **{name: "100"})
    assert await cluster.produce(1, T, "a" * 10) == 0
    assert await cluster.produce(1, T, "a" * 100) == error


async def test_file_delete_delay_ms_keeps_the_files_of_a_segment_that_is_deleted() -> None:
    async with WholeCluster(ALONE | {"log.retention.check.interval.ms": "1000"}) as cluster:
        await cluster.start(1)
        disk = await created(cluster, segment_ms="1", retention_ms="1000", file_delete_delay_ms="5000")
        for number in range(2):
            assert await cluster.produce(1, T, "a", timestamp_ms=WALL_MS - DAY_MS + number * DAY_MS) == 0
        await cluster.until(lambda: segments(disk) == [1], "the old segment is gone")
        assert segments(disk, ".log.deleted") == [0]
        await asyncio.sleep(4)
        assert segments(disk, ".log.deleted") == [0]
        await asyncio.sleep(2)
        assert [name for name in disk.list(f"{T}-0") if name.endswith(".deleted")] == []


async def test_files_of_deleted_segments_that_a_broker_left_behind_go_when_it_starts_again() -> None:
    async with WholeCluster(ALONE | {"log.retention.check.interval.ms": "1000"}) as cluster:
        await cluster.start(1)
        disk = await created(cluster, segment_ms="1", retention_ms="1000", file_delete_delay_ms="60000")
        for number in range(2):
            assert await cluster.produce(1, T, "a", timestamp_ms=WALL_MS - DAY_MS + number * DAY_MS) == 0
        await cluster.until(lambda: segments(disk, ".log.deleted") == [0], "the old segment is put aside")
        await cluster.stop(1)
        assert segments(disk, ".log.deleted") == [0]
        await cluster.start(1)
        assert [name for name in disk.list(f"{T}-0") if name.endswith(".deleted")] == []
