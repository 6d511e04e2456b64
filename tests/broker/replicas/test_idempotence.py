"""Idempotent producers against several brokers: a retry is written once, with any leader at that time."""

import pytest

from harness.broker.administration.producer_ids import BLOCK_SIZE
from harness.broker.replicas.appending import AppendResult
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import InitProducerIdRequest
from tests.broker.log.logs import from_producer
from tests.broker.replica_cluster import ReplicaCluster
from tests.broker.whole_cluster import WholeCluster


async def send(cluster: ReplicaCluster, broker_id: int, sequence: int, *, acks: int = -1) -> AppendResult:
    return await cluster[broker_id].append(from_producer(sequence), acks=acks)


async def test_a_retry_at_the_next_leader_is_answered_with_the_offset_of_the_first_try(cluster: ReplicaCluster) -> None:
    assert [(await send(cluster, 1, n)).base_offset for n in range(3)] == [0, 1, 2]
    await cluster.elect(2)
    again = await send(cluster, 2, 2)
    assert (again.error, again.base_offset, again.log_append_time) == (ErrorCode.NONE, 2, 0)
    assert (await send(cluster, 2, 3)).base_offset == 3


async def test_a_duplicate_is_answered_only_when_the_first_try_is_committed(cluster: ReplicaCluster) -> None:
    cluster.network.isolate(1)
    await send(cluster, 1, 0, acks=1)
    retry = await cluster.begin(send(cluster, 1, 0))
    assert not retry.done()
    cluster.network.heal()
    assert (await retry).error is ErrorCode.NONE
    assert cluster[1].replica().high_watermark == 1


@pytest.mark.parametrize(
    ("planted_bugs", "base_offset"),
    [pytest.param([], 1, id="remembered"), pytest.param(["producer-state-lost"], 2, id="lost by the planted bug")],
)
async def test_what_a_broker_knows_of_producers_outlives_its_restart(planted_bugs: list[str], base_offset: int) -> None:
    async with ReplicaCluster(planted_bugs=planted_bugs) as cluster:
        await cluster.elect(1)
        for sequence in range(2):
            await send(cluster, 1, sequence)
        await cluster.kill(1)
        await cluster.start(1)
        await cluster.elect(1)
        assert (await send(cluster, 1, 1)).base_offset == base_offset


@pytest.mark.parametrize(
    ("transactional_id", "error", "producer_id"),
    [
        pytest.param(None, ErrorCode.NONE, 0, id="idempotent"),
        pytest.param("tx", ErrorCode.NOT_COORDINATOR, -1, id="transactional, before it has a coordinator"),
        pytest.param("", ErrorCode.INVALID_REQUEST, -1, id="an empty transactional id"),
    ],
)
async def test_any_broker_gives_out_ids(transactional_id: str | None, error: ErrorCode, producer_id: int) -> None:
    async with WholeCluster() as cluster:
        await cluster.start(1, 2)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
        answers = [await cluster.ask(broker_id, request, 1) for broker_id in (1, 2)]
        assert [answer.error_code for answer in answers] == [error, error]
        wanted = [producer_id, BLOCK_SIZE if producer_id == 0 else producer_id]
        assert [answer.producer_id for answer in answers] == wanted
        assert answers[0].producer_epoch == (0 if error is ErrorCode.NONE else -1)
