"""Reading from followers (KIP-392), and how much is read where there is little room."""

import asyncio
from typing import Any

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.events import FetchResponse
from tests.broker.handlers.test_data import fetch
from tests.broker.replica_cluster import ReplicaCluster, batch


@pytest.mark.parametrize(
    ("offset", "options", "error", "records"),
    [
        pytest.param(0, {}, ErrorCode.NONE, 1, id="what it knows to be committed"),
        pytest.param(1, {}, ErrorCode.NONE, 0, id="what it has and does not know to be committed is not told"),
        pytest.param(3, {}, ErrorCode.OFFSET_OUT_OF_RANGE, 0, id="beyond its log"),
        pytest.param(0, {"epoch": 1}, ErrorCode.NONE, 1, id="in the current leader epoch"),
        pytest.param(0, {"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH, 0, id="in an older one"),
        pytest.param(0, {"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH, 0, id="in one that it does not know"),
        pytest.param(0, {"partitions": (7,)}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0, id="a partition unknown to all"),
    ],
)
async def test_a_follower_serves_consumers(
    cluster: ReplicaCluster, offset: int, options: dict[str, Any], error: ErrorCode, records: int
) -> None:
    """It has two records and has heard that one is committed."""
    await cluster.elect(1)
    await cluster.replicate(1, "a")
    cluster.network.isolate(3)
    await cluster.produce(1, "b", acks=1)
    await cluster.until(lambda: cluster[2].replica().log.log_end_offset == 2, "the second record")
    [answer] = await fetch(cluster, 2, offset, **options)
    assert (answer.error_code, len(answer.records or b"")) == (error, records * len(batch("a")))
    handed_out = cluster[2].of(FetchResponse)
    assert [event.high_watermark for event in handed_out] == [1] * records


async def test_a_consumer_waits_at_a_follower_for_what_is_committed(cluster: ReplicaCluster) -> None:
    waiting = await cluster.begin(fetch(cluster, 2, 0, wait_ms=60_000))
    await cluster.produce(1, "a")
    began = asyncio.get_running_loop().time()
    [answer] = await waiting
    assert len(answer.records) == len(batch("a"))
    assert asyncio.get_running_loop().time() - began < 1


async def test_a_consumer_that_waits_at_a_follower_hears_of_a_new_epoch(cluster: ReplicaCluster) -> None:
    waiting = await cluster.begin(fetch(cluster, 2, 0, wait_ms=60_000, epoch=0))
    began = asyncio.get_running_loop().time()
    await cluster.elect(3)
    [answer] = await waiting
    assert (answer.error_code, asyncio.get_running_loop().time()) == (ErrorCode.FENCED_LEADER_EPOCH, began)


async def test_an_answer_is_smaller_where_there_is_less_room_when_it_is_made(cluster: ReplicaCluster) -> None:
    """What slow clients have not taken is kept in memory, so that there is less for the next ones."""
    one, room = len(batch("a")), [0]
    waiting = await cluster.begin(fetch(cluster, 1, 0, wait_ms=60_000, min_bytes=2 * one, room=lambda: room[0]))
    room[0] = 2 * one
    for _ in range(3):
        await cluster.produce(1, "a")
    [answer] = await waiting
    assert len(answer.records) == 2 * one
    [answer] = await fetch(cluster, 1, 0, room=lambda: 0)
    assert len(answer.records) == one
