"""What the properties of followers and of fetches do, on the replicas of three brokers."""

import asyncio
from collections.abc import Callable

import pytest

from harness.broker.wire.dispatch import CloseConnection, RequestContext
from harness.broker.wire.messages import ApiKey, FetchRequest
from harness.broker.wire.transport import Message
from tests.broker.replica_cluster import TOPIC, ReplicaCluster, batch, context

FOLLOWERS = {2, 3}


def listen(cluster: ReplicaCluster, answers: Callable[[], bool] = lambda: True) -> list[FetchRequest]:
    """Return what the leader is asked by followers from now on; without an answer the connection closes."""
    requests: list[FetchRequest] = []
    serve = cluster[1].data.fetch

    async def heard(request: FetchRequest, asking: RequestContext) -> Message | None:
        requests.append(request)
        if not answers():
            raise CloseConnection("no answer")
        return await serve(request, asking)

    cluster[1].dispatcher._handlers[ApiKey.FETCH] = heard
    return requests


async def test_followers_ask_for_what_their_properties_say() -> None:
    """`replica.fetch.wait.max.ms`, `replica.fetch.min.bytes`, `replica.fetch.max.bytes` and that of the response."""
    async with ReplicaCluster(
        replica_fetch_wait_max_ms="700",
        replica_fetch_min_bytes="2",
        replica_fetch_max_bytes="3000",
        replica_fetch_response_max_bytes="4000",
    ) as cluster:
        requests = listen(cluster)
        await cluster.elect(1)
        await cluster.replicate(1, "a")
        assert {(request.max_wait_ms, request.min_bytes, request.max_bytes) for request in requests} == {(700, 2, 4000)}
        parts = [partition for request in requests for topic in request.topics for partition in topic.partitions]
        assert {partition.partition_max_bytes for partition in parts} == {3000}


@pytest.mark.parametrize(("backoff_ms", "rounds"), [("1000", range(8, 13)), ("100", range(80, 121))])
async def test_replica_fetch_backoff_ms_passes_after_a_failure(backoff_ms: str, rounds: range) -> None:
    async with ReplicaCluster(replica_fetch_backoff_ms=backoff_ms) as cluster:
        requests = listen(cluster, answers=lambda: False)
        await cluster.elect(1)
        await asyncio.sleep(5)
        assert {request.replica_id for request in requests} == FOLLOWERS
        assert len(requests) in rounds


@pytest.mark.parametrize(("timeout_ms", "rounds"), [("1000", 5), ("3000", 2)])
async def test_replica_socket_timeout_ms_passes_when_the_leader_is_silent(timeout_ms: str, rounds: int) -> None:
    async with ReplicaCluster(replica_socket_timeout_ms=timeout_ms, replica_fetch_backoff_ms="1") as cluster:
        requests: list[FetchRequest] = []

        async def silent(request: FetchRequest, _: RequestContext) -> Message | None:
            requests.append(request)
            await asyncio.sleep(3600)
            return None

        cluster[1].dispatcher._handlers[ApiKey.FETCH] = silent
        await cluster.elect(1)
        await asyncio.sleep(4.9)
        assert sum(request.replica_id == 2 for request in requests) == rounds


@pytest.mark.parametrize(("lag_ms", "isr"), [("1000", (1, 2)), ("9000", (1, 2, 3))])
async def test_replica_lag_time_max_ms_is_how_long_a_laggard_counts(lag_ms: str, isr: tuple[int, ...]) -> None:
    async with ReplicaCluster(replica_lag_time_max_ms=lag_ms) as cluster:
        await cluster.elect(1)
        await cluster.replicate(1, "a")
        cluster.network.isolate(3)
        await cluster.produce(1, "b", acks=1)
        await asyncio.sleep(4)
        assert cluster.state()[0].isr == isr


@pytest.mark.parametrize(("most", "batches"), [("1024", 1024 // len(batch("a"))), ("57671680", 30)])
async def test_fetch_max_bytes_is_the_most_that_anybody_gets(most: str, batches: int) -> None:
    async with ReplicaCluster(fetch_max_bytes=most) as cluster:
        await cluster.elect(1)
        for _ in range(30):
            await cluster.replicate(1, "a")
        topic = FetchRequest.FetchTopic
        partition = topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(max_bytes=1 << 20, topics=[topic(topic=TOPIC, partitions=[partition])])
        response = await cluster[1].data.fetch(request, context(ApiKey.FETCH, 11))
        assert len(bytes(response.responses[0].partitions[0].records or b"")) == batches * len(batch("a"))
