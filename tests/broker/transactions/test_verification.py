"""What a leader learns when it asks a coordinator whether partitions are part of a transaction."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.verifying import TransactionQuestion
from harness.broker.transactions.peers import Peers
from harness.broker.transactions.verification import CoordinatorQuestions
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import AddPartitionsToTxnResponse
from harness.broker.wire.transport import PeerError
from harness.values import TRANSACTIONS_TOPIC, TopicPartition
from tests.broker.metadata_update import metadata_update
from tests.broker.transactions.coordinating import ID, FakeBrokers

_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_Topic = _Result.AddPartitionsToTxnTopicResult
_Partition = _Topic.AddPartitionsToTxnPartitionResult
T0, T1 = ("t", 0), ("t", 1)


def answering(error: ErrorCode, top: ErrorCode = ErrorCode.NONE) -> Any:
    """Return what answers with an error for partition 1 of every topic, or for all."""

    def answer(message: Any) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            error_code=top,
            results_by_transaction=[
                _Result(
                    transactional_id=each.transactional_id,
                    topic_results=[
                        _Topic(
                            name=topic.name,
                            results_by_partition=[
                                _Partition(partition_index=number, partition_error_code=error if number else 0)
                                for number in topic.partitions
                            ],
                        )
                        for topic in each.topics
                    ],
                )
                for each in message.transactions
            ],
        )

    return answer


def question(name: str = ID, epoch: int = 0, partitions: Sequence[TopicPartition] = (T0, T1)) -> TransactionQuestion:
    return TransactionQuestion(transactional_id=name, producer_id=7, producer_epoch=epoch, partitions=partitions)


def verifier(brokers: FakeBrokers, leader: int = 1) -> CoordinatorQuestions:
    metadata = MetadataCache()
    metadata.update(metadata_update({1: ["REPL"]}, {TRANSACTIONS_TOPIC: {0: (leader, 1, [1])}}, 1))
    peers: Any = brokers
    return CoordinatorQuestions(peers=peers, metadata=metadata, state_partitions=1)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ErrorCode.NONE, id="all are part of it"),
        pytest.param(ErrorCode.TRANSACTION_ABORTABLE, id="one is not"),
        pytest.param(ErrorCode.PRODUCER_FENCED, id="another producer goes on"),
    ],
)
async def test_what_a_coordinator_says(error: ErrorCode) -> None:
    brokers = FakeBrokers(answer=answering(error))
    assert await verifier(brokers).verify(question()) == {T0: ErrorCode.NONE, T1: error}
    assert brokers.requests[0][1].transactions[0].verify_only


async def test_the_time_that_verification_takes_is_counted() -> None:
    asking = verifier(FakeBrokers(answer=answering(ErrorCode.NONE)))
    for _ in range(2):
        await asking.verify(question())
    assert (asking.answered, round(asking.waited_s, 6)) == (2, 0.002)


@pytest.mark.parametrize(
    ("brokers", "leader", "error"),
    [
        pytest.param(FakeBrokers(), 2, ErrorCode.COORDINATOR_NOT_AVAILABLE, id="it is not alive"),
        pytest.param(FakeBrokers(silent={1}), 1, ErrorCode.NETWORK_EXCEPTION, id="it does not answer"),
        pytest.param(
            FakeBrokers(answer=answering(ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)),
            1,
            ErrorCode.UNKNOWN_SERVER_ERROR,
            id="it fails",
        ),
    ],
)
async def test_a_coordinator_that_does_not_say(brokers: FakeBrokers, leader: int, error: ErrorCode) -> None:
    assert await verifier(brokers, leader).verify(question()) == {T0: error, T1: error}


async def test_questions_go_out_together_and_of_two_about_one_id_the_newer_counts() -> None:
    brokers = FakeBrokers(answer=answering(ErrorCode.NONE))
    asking = verifier(brokers)

    async def ask(name: str, epoch: int) -> ErrorCode:
        return (await asking.verify(question(name, epoch, [T0])))[T0]

    asked = [ask("a", 1), ask("a", 1), ask("a", 2), ask("a", 1), ask("b", 0)]
    answers = await asyncio.gather(*asked)
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH
    assert answers == [ErrorCode.NETWORK_EXCEPTION, fenced, ErrorCode.NONE, fenced, ErrorCode.NONE]
    assert [len(message.transactions) for _, message in brokers.requests] == [2]
    assert asking.failures == 3


@dataclass
class FakeConnection:
    closed: bool = False
    fails: bool = False
    requests: list[Any] = field(default_factory=list)

    async def request(self, message: Any, version: int, *, timeout_s: float) -> Any:
        self.requests.append((message, version))
        if self.fails:
            raise PeerError("gone")
        return message

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeTransport:
    opened: list[tuple[str, int]] = field(default_factory=list)
    connections: list[FakeConnection] = field(default_factory=list)

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> FakeConnection:
        self.opened.append((host, port))
        self.connections.append(FakeConnection())
        return self.connections[-1]


async def test_a_connection_is_kept_until_it_fails_or_its_broker_moves() -> None:
    transport, metadata = FakeTransport(), MetadataCache()
    metadata.update(metadata_update({1: ["REPL"]}, {}, 1))
    peers = Peers(transport=transport, metadata=metadata, listener="REPL", client_id="c", timeout_s=1)
    assert await peers.request(1, "a", 4) == "a"
    assert await peers.request(1, "b", 4) == "b"
    assert len(transport.opened) == 1
    transport.connections[0].fails = True
    with pytest.raises(PeerError):
        await peers.request(1, "c", 4)
    await peers.request(1, "d", 4)
    metadata.update(metadata_update({1: ["OTHER", "REPL"]}, {}, 1))
    await peers.request(1, "e", 4)
    assert transport.opened == [("h1", 9000), ("h1", 9000), ("h1", 9001)]
    assert [each.closed for each in transport.connections] == [True, True, False]
    metadata.update(metadata_update({2: ["REPL"]}, {}, 1))
    with pytest.raises(PeerError, match="not alive"):
        await peers.request(1, "f", 4)
