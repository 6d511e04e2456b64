"""The transactional cases of aiokafka's own tests, on this broker and on Kafka 3.9.1, which must come to the same.

They are those of its `tests/test_transactional_producer.py` and `test_transactional_consumer.py` that talk to a broker;
its source distribution has no tests.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import OutOfOrderSequenceNumber, ProducerFenced
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.structs import OffsetAndMetadata

from tests.integration.transactional_peers import Peer, peer, topic

__all__ = ["peer", "topic"]

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(4)]

PATIENCE_S = 120


class Clients:
    """Clients that are stopped with the test."""

    def __init__(self, servers: str, topic: str, stack: AsyncExitStack) -> None:
        self.servers, self.topic, self.stack = servers, topic, stack

    @property
    def place(self) -> TopicPartition:
        """Partition 0."""
        return TopicPartition(self.topic, 0)

    async def producer(self, name: str | None = "") -> AIOKafkaProducer:
        """Return a producer, with the topic's name as transactional id unless another is given, or None."""
        transactional_id = None if name is None else name or self.topic
        producer = AIOKafkaProducer(bootstrap_servers=self.servers, transactional_id=transactional_id)
        await producer.start()
        self.stack.push_async_callback(producer.stop)
        return producer

    async def consumer(self, isolation: str = "read_committed", **options: object) -> AIOKafkaConsumer:
        """Return a consumer of partition 0 from the start."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.servers, isolation_level=isolation, auto_offset_reset="earliest", **options
        )
        await consumer.start()
        self.stack.push_async_callback(consumer.stop)
        consumer.assign([self.place])
        return consumer


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; the test's time-out bounds it."""
    event = asyncio.Event()
    while not holds():
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), 0.01)


async def committed(clients: Clients, group: str) -> int | None:
    """Return the committed offset of a group in partition 0."""
    consumer = AIOKafkaConsumer(bootstrap_servers=clients.servers, group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([clients.place])
        offset: int | None = await consumer.committed(clients.place)
    finally:
        await consumer.stop()
    return offset


async def commits(clients: Clients) -> None:
    producer = await clients.producer()
    async with producer.transaction():
        sent = await producer.send_and_wait(clients.topic, b"hello", partition=0)
    read = await (await clients.consumer("read_uncommitted")).getone()
    assert (read.offset, read.timestamp, read.value) == (sent.offset, sent.timestamp, b"hello")


async def ends_nothing(clients: Clients) -> None:
    producer = await clients.producer()
    await producer.begin_transaction()
    await producer.commit_transaction()
    await producer.begin_transaction()
    await producer.abort_transaction()
    assert producer._txn_manager.state is TransactionState.READY


async def fences(clients: Clients) -> None:
    first, second = await clients.producer(), await clients.producer()
    async with second.transaction():
        await second.send_and_wait(clients.topic, b"second", partition=0)
    with pytest.raises(ProducerFenced):
        async with first.transaction():
            await first.send_and_wait(clients.topic, b"first", partition=0)


async def gets_its_id_again(clients: Clients) -> None:
    first = await clients.producer()
    known = (first._txn_manager.producer_id, first._txn_manager.producer_epoch)
    await first.stop()
    second = await clients.producer()
    assert (second._txn_manager.producer_id, second._txn_manager.producer_epoch) == (known[0], known[1] + 1)


async def loses_a_record(clients: Clients) -> None:
    producer = await clients.producer()

    async def lose() -> None:
        async with producer.transaction():
            await producer.send_and_wait(clients.topic, b"one", partition=0)
            producer._txn_manager.increment_sequence_number(clients.place, 1)
            await producer.send_and_wait(clients.topic, b"two", partition=0)

    with pytest.raises(OutOfOrderSequenceNumber):
        await lose()
    other, consumer = await clients.producer(None), await clients.consumer()
    await other.send_and_wait(clients.topic, b"outside", partition=0)
    assert (await consumer.getone()).value == b"outside"


async def sends_offsets(clients: Clients) -> None:
    producer = await clients.producer()
    async with producer.transaction():
        offsets = {clients.place: OffsetAndMetadata(7, "some metadata")}
        await producer.send_offsets_to_transaction(offsets, clients.topic)
    while await committed(clients, clients.topic) != 7:  # noqa: ASYNC110  the commit is answered before its markers
        await asyncio.sleep(0.1)


async def aborts_offsets(clients: Clients) -> None:
    producer = await clients.producer()
    await producer.begin_transaction()
    await producer.send_offsets_to_transaction({clients.place: 7}, clients.topic)
    await producer.abort_transaction()
    assert await committed(clients, clients.topic) is None


async def flushes_two_batches(clients: Clients) -> None:
    producer = await clients.producer()
    await producer.begin_transaction()
    sent = []
    for value in (b"1", b"2"):
        batch = producer.create_batch()
        batch.append(timestamp=None, key=None, value=value)
        batch.close()
        sent.append(await producer.send_batch(batch, clients.topic, partition=0))
    await producer.commit_transaction()
    assert [each.done() for each in sent] == [True, True]
    consumer = await clients.consumer()
    assert [(await consumer.getone()).value for _ in range(2)] == [b"1", b"2"]


async def is_cancelled(clients: Clients) -> None:
    producer = await clients.producer()
    states = producer._txn_manager
    for commit in (True, False):
        await producer.begin_transaction()
        await producer.send(clients.topic, b"value", partition=0)
        ending = asyncio.create_task(producer.commit_transaction() if commit else producer.abort_transaction())
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        await until(lambda: states.state is TransactionState.READY)
    assert (await (await clients.consumer()).getone()).value == b"value"


async def _holds_readers_back(clients: Clients, *, commit: bool) -> None:
    producer, other, consumer = await clients.producer(), await clients.producer(None), await clients.consumer()
    await producer.begin_transaction()
    await producer.send_and_wait(clients.topic, b"in it", partition=0)
    await other.send_and_wait(clients.topic, b"outside", partition=0)
    waiting = asyncio.create_task(consumer.getone())
    await until(lambda: consumer.highwater(clients.place) == 2)
    assert (consumer.last_stable_offset(clients.place), waiting.done()) == (0, False)
    await (producer.commit_transaction() if commit else producer.abort_transaction())
    read = [(await waiting).value]
    if commit:
        read.append((await consumer.getone()).value)
    assert read == [b"in it", b"outside"][not commit :]
    while (consumer.last_stable_offset(clients.place), consumer.highwater(clients.place)) != (3, 3):
        assert await consumer.getmany(timeout_ms=200) == {}


async def commits_before_readers(clients: Clients) -> None:
    await _holds_readers_back(clients, commit=True)


async def aborts_before_readers(clients: Clients) -> None:
    await _holds_readers_back(clients, commit=False)


async def _reads_a_marker(clients: Clients, isolation: str) -> None:
    producer = await clients.producer()
    async with producer.transaction():
        sent = await producer.send_and_wait(clients.topic, b"before", partition=0)
    consumer = await clients.consumer(isolation, fetch_max_bytes=10)
    consumer.seek(clients.place, sent.offset + 1)
    waiting = asyncio.create_task(consumer.getone())
    while await consumer.position(clients.place) != sent.offset + 2:  # noqa: ASYNC110  the test's time-out bounds it
        await asyncio.sleep(0.01)
    assert not waiting.done()
    async with producer.transaction():
        await producer.send_and_wait(clients.topic, b"after", partition=0)
    assert (await waiting).value == b"after"


async def reads_a_marker_committed(clients: Clients) -> None:
    await _reads_a_marker(clients, "read_committed")


async def reads_a_marker_uncommitted(clients: Clients) -> None:
    await _reads_a_marker(clients, "read_uncommitted")


async def ends_in_turn(clients: Clients) -> None:
    producer = await clients.producer()
    for number in range(10):
        await producer.begin_transaction()
        await producer.send(clients.topic, str(number).encode(), partition=0)
        await (producer.abort_transaction() if number % 3 else producer.commit_transaction())
    consumer = await clients.consumer()
    assert [(await consumer.getone()).value for _ in range(4)] == [b"0", b"3", b"6", b"9"]
    assert await consumer.getmany(timeout_ms=200) == {}


@asynccontextmanager
async def clients_of(peer: Peer, topic: str) -> AsyncIterator[Clients]:
    """Clients of one test."""
    async with AsyncExitStack() as stack:
        yield Clients(peer.bootstrap_servers, topic, stack)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(commits, id="a record in a transaction is read"),
        pytest.param(ends_nothing, id="an empty transaction is committed and aborted"),
        pytest.param(fences, id="the second producer of an id fences the first"),
        pytest.param(gets_its_id_again, id="a producer that starts again has its id and the next epoch"),
        pytest.param(loses_a_record, id="a lost record is an error, and the transaction is aborted"),
        pytest.param(sends_offsets, id="offsets are committed with a transaction"),
        pytest.param(aborts_offsets, id="offsets of an aborted transaction are not committed"),
        pytest.param(flushes_two_batches, id="a commit waits for two batches of one partition"),
        pytest.param(is_cancelled, id="a cancelled commit and a cancelled abort end the transaction"),
        pytest.param(commits_before_readers, id="an open transaction holds readers back until its commit"),
        pytest.param(aborts_before_readers, id="an open transaction holds readers back until its abort"),
        pytest.param(reads_a_marker_committed, id="a committed reader passes a marker"),
        pytest.param(reads_a_marker_uncommitted, id="an uncommitted reader passes a marker"),
        pytest.param(ends_in_turn, id="of ten transactions every third is committed"),
    ],
)
async def test_a_case_of_aiokafka(peer: Peer, topic: str, case: Callable[[Clients], Awaitable[None]]) -> None:
    async with asyncio.timeout(PATIENCE_S), clients_of(peer, topic) as clients:
        await case(clients)
