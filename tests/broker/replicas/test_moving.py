"""AlterReplicaLogDirs: a replica moves to another data directory of its broker while clients use it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.broker.replicas import moving
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import AlterReplicaLogDirsRequest, DescribeLogDirsRequest
from tests.broker.whole_cluster import WholeCluster

TWO = {"log.dirs": "/a,/b", "log.segment.bytes": "100", "log.segment.delete.delay.ms": "0"}
Dir = AlterReplicaLogDirsRequest.AlterReplicaLogDir
NONE = ErrorCode.NONE


@pytest.fixture
async def cluster() -> AsyncIterator[WholeCluster]:
    """Broker 1 with a topic in `/a`, of several segments."""
    async with WholeCluster(TWO) as cluster:
        await cluster.start(1)
        assert await cluster.create("t", [1]) == 0
        await cluster.until_led("t", 1)
        for number in range(5):
            assert await cluster.produce(1, "t", f"value {number}") == 0
        yield cluster


async def asked(cluster: WholeCluster, topic: str, directory: str) -> ErrorCode:
    """Return the answer to a request to move partition 0 of a topic."""
    wanted = Dir(path=directory, topics=[Dir.AlterReplicaLogDirTopic(name=topic, partitions=[0])])
    (result,) = (await cluster.ask(1, AlterReplicaLogDirsRequest(dirs=[wanted]), 2)).results
    assert (result.topic_name, [each.partition_index for each in result.partitions]) == (topic, [0])
    return ErrorCode(result.partitions[0].error_code)


async def where(cluster: WholeCluster) -> dict[str, list[tuple[str, bool]]]:
    """Return the topics of each directory, and whether it has a copy that is not complete yet."""
    answer = await cluster.ask(1, DescribeLogDirsRequest(topics=None), 1)
    return {
        each.log_dir: [(topic.name, part.is_future_key) for topic in each.topics for part in topic.partitions]
        for each in answer.results
    }


async def moved(cluster: WholeCluster, topic: str, directory: str) -> None:
    """Wait until a topic is in a directory alone."""

    async def is_there() -> bool:
        found = {name: [each for each in topics if each[0] == topic] for name, topics in (await where(cluster)).items()}
        return found == {name: [(topic, False)] if name == directory else [] for name in found}

    await cluster.until(is_there, f"{topic} in {directory}")


def values(cluster: WholeCluster, topic: str = "t") -> Any:
    """Return partition 0 as its broker has it."""
    partition = cluster.brokers[1].replicas.replicas.get(topic, 0)
    assert partition is not None
    return partition


async def test_a_replica_moves_and_goes_on_in_the_other_directory(cluster: WholeCluster) -> None:
    before = values(cluster).log
    batches = before.read(0, max_bytes=10_000, up_to=5, at_least_one=True)
    assert await asked(cluster, "t", "/b") is NONE
    assert await cluster.produce(1, "t", "meanwhile") == 0
    await moved(cluster, "t", "/b")
    log = values(cluster).log
    assert log is not before
    assert log.read(0, max_bytes=10_000, up_to=5, at_least_one=True) == batches
    assert (log.log_end_offset, list(log.epochs)) == (6, list(before.epochs))
    assert await cluster.produce(1, "t", "afterwards") == 0
    assert [name for name in cluster.disk(1, "/a").list("") if name.startswith("t-")] == []
    assert [name for name in cluster.disk(1, "/b").list("") if name.startswith("t-")] == ["t-0"]

    await cluster.stop(1)
    await cluster.start(1)
    await cluster.until_led("t", 1)
    assert await where(cluster) == {"/a": [], "/b": [("t", False)]}
    assert (values(cluster).log.log_end_offset, values(cluster).high_watermark) == (7, 7)


async def test_a_log_that_is_cut_meanwhile_is_copied_again(
    cluster: WholeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "CHUNK_BYTES", 1)
    partition, mover = values(cluster), cluster.brokers[1].replicas.mover
    assert mover.ask(("t", 0), "/b") is NONE
    for _ in range(8):
        await asyncio.sleep(0)
    copy = mover.moves["t", 0].future
    assert copy is not None
    assert 0 < copy.log_end_offset < 5
    partition.log.delete_oldest(2)
    start = partition.log.log_start_offset
    await moved(cluster, "t", "/b")
    assert copy.cuts > 0, "it is closed"
    assert (start, partition.log.log_start_offset, partition.log.log_end_offset) == (2, 2, 5)


async def test_a_deleted_topic_ends_its_move(cluster: WholeCluster) -> None:
    assert await asked(cluster, "t", "/b") is NONE
    cluster.brokers[1].replicas.replicas.delete("t", 0)

    async def nothing_left() -> bool:
        return not [name for name in cluster.disk(1, "/b").list("") if name.startswith("t-")]

    await cluster.until(nothing_left, "no copy")
    assert cluster.brokers[1].replicas.mover.moves == {}


async def test_another_directory_ends_a_move_and_the_next_start_removes_what_is_left(cluster: WholeCluster) -> None:
    assert await asked(cluster, "t", "/b") is NONE
    assert await asked(cluster, "t", "/a") is NONE
    assert cluster.brokers[1].replicas.mover.moves == {}
    cluster.disk(1, "/b").make_folder("t-0.0-future")
    await cluster.stop(1)
    await cluster.start(1)
    await cluster.until_led("t", 1)
    assert await where(cluster) == {"/a": [("t", False)], "/b": []}
    assert not cluster.disk(1, "/b").exists("t-0.0-future")


@pytest.mark.parametrize(
    ("topic", "directory", "error"),
    [
        pytest.param("t", "/a", NONE, id="where it is already"),
        pytest.param("t", "/c", ErrorCode.LOG_DIR_NOT_FOUND, id="no such directory"),
        pytest.param("t", "/a/", ErrorCode.LOG_DIR_NOT_FOUND, id="another spelling of a directory"),
        pytest.param("new", "/b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param("x" * 249, "/b", ErrorCode.INVALID_TOPIC_EXCEPTION, id="a name that leaves no room for a suffix"),
    ],
)
async def test_the_answers_of_kafka_3_9_1(cluster: WholeCluster, topic: str, directory: str, error: ErrorCode) -> None:
    assert await asked(cluster, topic, directory) is error
    assert await where(cluster) == {"/a": [("t", False)], "/b": []}


async def test_a_replica_is_created_in_the_directory_that_was_asked_for(cluster: WholeCluster) -> None:
    assert await asked(cluster, "new", "/a") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await cluster.create("new", [1]) == 0
    await cluster.until_led("new", 1)
    assert await where(cluster) == {"/a": [("new", False), ("t", False)], "/b": []}


async def test_a_replica_of_another_broker_is_not_available(cluster: WholeCluster) -> None:
    await cluster.start(2)
    assert await cluster.create("other", [2]) == 0
    await cluster.until_led("other", 2, by=1)
    assert await asked(cluster, "other", "/b") is ErrorCode.REPLICA_NOT_AVAILABLE


async def test_nothing_moves_while_a_directory_has_failed(cluster: WholeCluster) -> None:
    assert await asked(cluster, "new", "/b") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await cluster.create("new", [1]) == 0
    await cluster.until_led("new", 1)
    cluster.disk(1, "/b").space_left = 0
    assert await cluster.produce(1, "new", "lost") == ErrorCode.KAFKA_STORAGE_ERROR
    assert await asked(cluster, "t", "/b") is ErrorCode.KAFKA_STORAGE_ERROR
    assert await asked(cluster, "new", "/a") is ErrorCode.KAFKA_STORAGE_ERROR
