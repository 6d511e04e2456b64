"""A broker with several data directories: where logs go, and what the failure of one directory costs."""

from collections.abc import AsyncIterator

import pytest

from harness.broker.log.storage import StorageError
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import DescribeLogDirsRequest
from harness.events import LogDirectoryFailure, Recovery
from tests.broker.whole_cluster import WholeCluster

TWO = {"log.dirs": "/a,/b", "log.segment.delete.delay.ms": "0"}
TOPICS = ("t0", "t1", "t2", "t3")


@pytest.fixture
async def cluster() -> AsyncIterator[WholeCluster]:
    """Broker 1 with four topics of a record each."""
    async with WholeCluster(TWO) as cluster:
        await cluster.start(1)
        for topic in TOPICS:
            assert await cluster.create(topic, [1]) == 0
            await cluster.until_led(topic, 1)
            assert await cluster.produce(1, topic, "value") == 0
        yield cluster


async def described(cluster: WholeCluster) -> dict[str, tuple[int, list[str]]]:
    """Return error and topics of every directory, as DescribeLogDirs tells."""
    answer = await cluster.ask(1, DescribeLogDirsRequest(topics=None), 1)
    return {each.log_dir: (each.error_code, [topic.name for topic in each.topics]) for each in answer.results}


async def test_logs_are_spread_over_the_directories_and_found_again(cluster: WholeCluster) -> None:
    """`log.dirs` names two."""
    assert await described(cluster) == {"/a": (0, ["t0", "t2"]), "/b": (0, ["t1", "t3"])}
    await cluster.stop(1)
    for name in ("/a", "/b"):
        disk = cluster.disk(1, name)
        assert disk.exists("meta.properties")
        assert disk.exists(".kafka_cleanshutdown")
        assert disk.exists("replication-offset-checkpoint")
    await cluster.start(1)
    await cluster.until_led("t3", 1)
    assert await described(cluster) == {"/a": (0, ["t0", "t2"]), "/b": (0, ["t1", "t3"])}
    recovered = cluster.of(1, Recovery)
    assert [(event.topic, event.clean, event.log_end_offset, event.high_watermark) for event in recovered] == [
        (topic, True, 1, 1) for topic in ("t0", "t2", "t1", "t3")
    ]


async def test_a_directory_that_fails_takes_its_own_replicas_offline_and_no_others(cluster: WholeCluster) -> None:
    cluster.disk(1, "/b").space_left = 0
    assert await cluster.produce(1, "t1", "lost") == ErrorCode.KAFKA_STORAGE_ERROR

    async def offline() -> bool:
        return await described(cluster) == {"/a": (0, ["t0", "t2"]), "/b": (ErrorCode.KAFKA_STORAGE_ERROR, [])}

    await cluster.until(offline, "the directory offline")
    assert [event.replicas for event in cluster.of(1, LogDirectoryFailure)] == [2]
    assert await cluster.produce(1, "t3", "refused") in (
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_LEADER_FOR_PARTITION,
    )
    assert await cluster.produce(1, "t0", "value") == 0
    assert await cluster.create("t4", [1]) == 0
    await cluster.until_led("t4", 1)
    assert (await described(cluster))["/a"] == (0, ["t0", "t2", "t4"])

    await cluster.stop(1)
    assert cluster.disk(1, "/a").exists(".kafka_cleanshutdown")
    assert not cluster.disk(1, "/b").exists(".kafka_cleanshutdown")
    cluster.disk(1, "/b").space_left = None
    await cluster.start(1)
    await cluster.until_led("t3", 1)
    assert await described(cluster) == {"/a": (0, ["t0", "t2", "t4"]), "/b": (0, ["t1", "t3"])}
    assert cluster.brokers[1].metrics().offline_replicas == 0


async def test_when_the_last_directory_fails_the_broker_lives_on_without_replicas(cluster: WholeCluster) -> None:
    for name, topic in (("/a", "t0"), ("/b", "t1")):
        cluster.disk(1, name).space_left = 0
        assert await cluster.produce(1, topic, "lost") == ErrorCode.KAFKA_STORAGE_ERROR
    await cluster.until(lambda: cluster.brokers[1].metrics().offline_replicas == 4, "all replicas offline")
    assert cluster.brokers[1].metrics().partitions == 0
    assert await cluster.controller(1) == 1


async def test_a_log_in_two_directories_keeps_the_broker_from_starting(cluster: WholeCluster) -> None:
    await cluster.stop(1)
    cluster.disk(1, "/b").make_folder("t0-0")
    broker = cluster.prepare(1)
    with pytest.raises(StorageError, match="more than one data directory holds t0-0"):
        await broker.start()
    await broker.abandon()
