"""Fetch sessions as a client has them of a broker, and as followers use them."""

import asyncio
from collections.abc import Sequence

import pytest

from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiKey, FetchRequest
from harness.broker.wire.transport import Message
from tests.broker.replica_cluster import TOPIC, ReplicaCluster, batch, context

_Topic = FetchRequest.FetchTopic
ONE = len(batch("a"))


async def fetch(
    cluster: ReplicaCluster,
    session_id: int,
    epoch: int,
    *named: tuple[int, int],
    forgotten: Sequence[int] = (),
    wait_ms: int = 0,
    replica: int = -1,
    version: int = 11,
) -> tuple[int, int, list[tuple[int, int, int, int]]]:
    """Ask broker 1 for (partition, offset) pairs: error, session, and (partition, error, high watermark, bytes)."""
    request = FetchRequest(
        replica_id=replica,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            _Topic(
                topic=TOPIC,
                partitions=[_Topic.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)],
            )
            for number, offset in named
        ],
        forgotten_topics_data=[FetchRequest.ForgottenTopic(topic=TOPIC, partitions=list(forgotten))],
    )
    response = await cluster[1].data.fetch(request, context(ApiKey.FETCH, version))
    parts = [
        (p.partition_index, p.error_code, p.high_watermark, len(p.records or b""))
        for topic in response.responses
        for p in topic.partitions
    ]
    return response.error_code, response.session_id, parts


async def test_a_session_from_its_first_fetch_to_its_last() -> None:
    async with ReplicaCluster() as cluster:
        for partition in (0, 1):
            await cluster.elect(1, partition=partition)
        await cluster.produce(1, "a")
        _, session, parts = await fetch(cluster, 0, 0, (0, 0), (1, 0))
        assert parts == [(0, 0, 1, ONE), (1, 0, 0, 0)]
        assert await fetch(cluster, session, 1, (0, 1)) == (0, session, [])
        await cluster.produce(1, "b", partition=1)
        assert await fetch(cluster, session, 2) == (0, session, [(1, 0, 1, ONE)])
        assert await fetch(cluster, session, 2) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
        assert await fetch(cluster, session, 3, (7, 0)) == (0, session, [(1, 0, 1, ONE), (7, 3, -1, 0)])
        assert await fetch(cluster, session, 4, (1, 1), forgotten=[7]) == (0, session, [])
        assert await fetch(cluster, session, -1, (0, 1)) == (0, 0, [(0, 0, 1, 0)])
        assert await fetch(cluster, session, 5) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])


async def test_a_session_waits_for_any_of_its_partitions() -> None:
    async with ReplicaCluster() as cluster:
        for partition in (0, 1):
            await cluster.elect(1, partition=partition)
        _, session, _ = await fetch(cluster, 0, 0, (0, 0), (1, 0))
        waiting = await cluster.begin(fetch(cluster, session, 1, wait_ms=60_000))
        await cluster.produce(1, "b", partition=1)
        assert await waiting == (0, session, [(1, 0, 1, ONE)])


async def test_of_two_requests_at_once_the_earlier_is_refused(cluster: ReplicaCluster) -> None:
    _, session, _ = await fetch(cluster, 0, 0, (0, 0))
    waiting = await cluster.begin(fetch(cluster, session, 1, wait_ms=60_000))
    await fetch(cluster, session, 2)
    await cluster.produce(1, "a")
    assert await waiting == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session, [])


async def test_followers_name_only_what_changed() -> None:
    async with ReplicaCluster() as cluster:
        for partition in range(3):
            await cluster.elect(1, partition=partition)
            await cluster.produce(1, "a", partition=partition)
            await cluster.settled(partition)
        requests: list[FetchRequest] = []
        serve = cluster[1].data.fetch

        async def listen(request: FetchRequest, context: RequestContext) -> Message | None:
            requests.append(request)
            return await serve(request, context)

        cluster[1].dispatcher._handlers[ApiKey.FETCH] = listen
        await cluster.produce(1, "b", partition=2)
        await cluster.settled(2)
        await asyncio.sleep(2)
        assert len(cluster[1].sessions) == 2
        assert {request.session_epoch > 0 for request in requests} == {True}
        named = [(p.partition, p.fetch_offset) for r in requests for t in r.topics for p in t.partitions]
        assert named == [(2, 2), (2, 2)]


@pytest.mark.parametrize("slots", ["0", "1", "1000"], ids=["no sessions", "one for two followers", "sessions for all"])
async def test_replicas_become_equal_whatever_sessions_there_are(slots: str) -> None:
    async with ReplicaCluster(max_incremental_fetch_session_cache_slots=slots) as cluster:
        for partition in (0, 1):
            await cluster.elect(1, partition=partition)
        for value in "abc":
            for partition in (0, 1):
                await cluster.produce(1, value, partition=partition)
        await cluster.elect(2, partition=1)
        await cluster.produce(2, "d", partition=1)
        for partition in (0, 1):
            await cluster.settled(partition)
        assert len(cluster[1].sessions) == min(int(slots), 2)


async def test_followers_whose_sessions_the_leader_has_lost_begin_anew(cluster: ReplicaCluster) -> None:
    await cluster.replicate(1, "a")
    before = set(cluster[1].sessions._sessions)
    cluster[1].sessions._sessions.clear()
    began = asyncio.get_running_loop().time()
    await cluster.replicate(1, "b")
    assert before.isdisjoint(cluster[1].sessions._sessions)
    assert asyncio.get_running_loop().time() - began < 1
