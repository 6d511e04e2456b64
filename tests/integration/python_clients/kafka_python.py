"""The client kafka-python."""

import sys
from collections.abc import Callable

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.integration.python_clients.telling import MOST_RECORDS, has_ended, show, values_of

SERVERS, COMMAND, *ARGUMENTS = sys.argv[1:]


def transactional(name: str, timeout_ms: int = 60_000) -> KafkaProducer:
    """Return a producer whose session has begun."""
    producer = KafkaProducer(bootstrap_servers=SERVERS, transactional_id=name, transaction_timeout_ms=timeout_ms)
    producer.init_transactions()
    return producer


def write(producer: KafkaProducer, topic: str, number: int) -> None:
    """Begin a transaction and write its values."""
    producer.begin_transaction()
    for partition, value in values_of(number):
        producer.send(topic, value, partition=partition)
    producer.flush()


def commit(producer: KafkaProducer) -> None:
    """Commit, and tell what came of it."""
    try:
        producer.commit_transaction()
        show(error="")
    except KafkaError as error:
        show(error=type(error).__name__)


def session(topic: str, name: str) -> None:
    """Commit, abort and commit again."""
    producer = transactional(name)
    for number, commits in enumerate((True, False, True)):
        write(producer, topic, number)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    show(error="")


def fence(topic: str, name: str) -> None:
    """Have a second producer take over the id of the first, which then tries to commit."""
    first = transactional(name)
    write(first, topic, 0)
    second = transactional(name)
    write(second, topic, 1)
    second.commit_transaction()
    commit(first)


def late(topic: str, name: str) -> None:
    """Commit a transaction that the coordinator has aborted, once a line comes in."""
    producer = transactional(name, 1_000)
    write(producer, topic, 0)
    show(written=True)
    sys.stdin.readline()
    commit(producer)


def copy(from_: str, to: str, group: str, name: str) -> None:
    """Copy what is committed in one topic to another, with the offsets in the transactions."""
    producer = transactional(name, 30_000)
    consumer = KafkaConsumer(
        from_,
        bootstrap_servers=SERVERS,
        group_id=group,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
    )
    while not has_ended():
        fetched = consumer.poll(timeout_ms=500, max_records=MOST_RECORDS)
        if not fetched:
            continue
        try:
            producer.begin_transaction()
            for place, records in fetched.items():
                for each in records:
                    producer.send(to, each.value, partition=place.partition)
            offsets = {place: OffsetAndMetadata(records[-1].offset + 1, "", -1) for place, records in fetched.items()}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
            show(copied=sum(map(len, fetched.values())))
        except KafkaError as error:
            show(failed=type(error).__name__)
            producer.abort_transaction()
            for place in consumer.assignment():
                consumer.seek(place, consumer.committed(place) or 0)


COMMANDS: dict[str, Callable[..., None]] = {"session": session, "fence": fence, "late": late, "copy": copy}

if __name__ == "__main__":
    COMMANDS[COMMAND](*ARGUMENTS)
