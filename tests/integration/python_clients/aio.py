"""The client aiokafka."""

import asyncio
import sys
from collections.abc import Callable, Coroutine

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from tests.integration.python_clients.telling import MOST_RECORDS, has_ended, show, values_of

SERVERS, COMMAND, *ARGUMENTS = sys.argv[1:]


async def transactional(name: str, timeout_ms: int = 60_000) -> AIOKafkaProducer:
    """Return a producer whose session has begun."""
    producer = AIOKafkaProducer(bootstrap_servers=SERVERS, transactional_id=name, transaction_timeout_ms=timeout_ms)
    await producer.start()
    return producer


async def write(producer: AIOKafkaProducer, topic: str, number: int) -> None:
    """Begin a transaction and write its values."""
    await producer.begin_transaction()
    for partition, value in values_of(number):
        await producer.send(topic, value, partition=partition)
    await producer.flush()


async def commit(producer: AIOKafkaProducer) -> None:
    """Commit, and tell what came of it."""
    try:
        await producer.commit_transaction()
        show(error="")
    except KafkaError as error:
        show(error=type(error).__name__)


async def session(topic: str, name: str) -> None:
    """Commit, abort and commit again."""
    producer = await transactional(name)
    for number, commits in enumerate((True, False, True)):
        await write(producer, topic, number)
        await (producer.commit_transaction() if commits else producer.abort_transaction())
    await producer.stop()
    show(error="")


async def fence(topic: str, name: str) -> None:
    """Have a second producer take over the id of the first, which then tries to commit."""
    first = await transactional(name)
    await write(first, topic, 0)
    second = await transactional(name)
    await write(second, topic, 1)
    await second.commit_transaction()
    await commit(first)


async def late(topic: str, name: str) -> None:
    """Commit a transaction that the coordinator has aborted, once a line comes in."""
    producer = await transactional(name, 1_000)
    await write(producer, topic, 0)
    show(written=True)
    await asyncio.to_thread(sys.stdin.readline)
    await commit(producer)


async def copy(from_: str, to: str, group: str, name: str) -> None:
    """Copy what is committed in one topic to another, with the offsets in the transactions."""
    producer = await transactional(name, 30_000)
    consumer = AIOKafkaConsumer(
        from_,
        bootstrap_servers=SERVERS,
        group_id=group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
    )
    await consumer.start()
    while not has_ended():
        fetched = await consumer.getmany(timeout_ms=500, max_records=MOST_RECORDS)
        if not fetched:
            continue
        async with producer.transaction():
            for place, records in fetched.items():
                for each in records:
                    await producer.send(to, each.value, partition=place.partition)
            offsets = {place: records[-1].offset + 1 for place, records in fetched.items()}
            await producer.send_offsets_to_transaction(offsets, group)
        show(copied=sum(map(len, fetched.values())))
    await consumer.stop()
    await producer.stop()


COMMANDS: dict[str, Callable[..., Coroutine[None, None, None]]] = {
    "session": session,
    "fence": fence,
    "late": late,
    "copy": copy,
}

if __name__ == "__main__":
    asyncio.run(COMMANDS[COMMAND](*ARGUMENTS))
