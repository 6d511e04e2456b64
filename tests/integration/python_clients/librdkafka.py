"""librdkafka, by confluent-kafka."""

import sys
import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer, KafkaException, Producer

from tests.integration.python_clients.telling import MOST_RECORDS, has_ended, show, values_of

SERVERS, COMMAND, *ARGUMENTS = sys.argv[1:]
PATIENCE_S = 60.0


def transactional(name: str, timeout_ms: int = 60_000) -> Producer:
    """Return a producer whose session has begun."""
    settings = {"bootstrap.servers": SERVERS, "transactional.id": name, "transaction.timeout.ms": timeout_ms}
    producer = Producer(settings | {"log_level": 0})
    producer.init_transactions(PATIENCE_S)
    return producer


def write(producer: Producer, topic: str, number: int) -> None:
    """Begin a transaction and write its values."""
    producer.begin_transaction()
    for partition, value in values_of(number):
        producer.produce(topic, value, partition=partition)
    producer.flush(PATIENCE_S)


def commit(producer: Producer) -> None:
    """Commit, and tell what came of it."""
    try:
        producer.commit_transaction(PATIENCE_S)
        show(error="")
    except KafkaException as error:
        show(error=error.args[0].name())


def session(topic: str, name: str) -> None:
    """Commit, abort and commit again."""
    producer = transactional(name)
    for number, end in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        write(producer, topic, number)
        end(PATIENCE_S)
    show(error="")


def fence(topic: str, name: str) -> None:
    """Have a second producer take over the id of the first, which then tries to commit."""
    first = transactional(name)
    write(first, topic, 0)
    second = transactional(name)
    write(second, topic, 1)
    second.commit_transaction(PATIENCE_S)
    commit(first)


def late(topic: str, name: str) -> None:
    """Commit a transaction that the coordinator has aborted, once a line comes in."""
    producer = transactional(name, 1_000)
    write(producer, topic, 0)
    show(written=True)
    sys.stdin.readline()
    commit(producer)


def retried(work: Callable[[float], object]) -> None:
    """Do something again for as long as the client says that it may succeed."""
    while True:
        try:
            work(PATIENCE_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            time.sleep(0.01)
        else:
            return


def copy(from_: str, to: str, group: str, name: str) -> None:
    """Copy what is committed in one topic to another, with the offsets in the transactions."""
    consumer = Consumer(
        {
            "bootstrap.servers": SERVERS,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 500,
            "log_level": 0,
        }
    )
    producer = transactional(name, 30_000)
    consumer.subscribe([from_])
    while not has_ended():
        messages = [each for each in consumer.consume(MOST_RECORDS, 0.5) if each.error() is None]
        if not messages:
            continue
        try:
            producer.begin_transaction()
            for each in messages:
                producer.produce(to, each.value(), partition=each.partition() or 0)
            places, member = consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
            retried(partial(producer.send_offsets_to_transaction, places, member))
            retried(producer.commit_transaction)
            show(copied=len(messages))
        except KafkaException as error:
            show(failed=error.args[0].name())
            if not error.args[0].txn_requires_abort():
                raise
            retried(producer.abort_transaction)
            for place in consumer.committed(consumer.assignment(), PATIENCE_S):
                place.offset = max(0, place.offset)
                consumer.seek(place)


COMMANDS: dict[str, Callable[..., None]] = {"session": session, "fence": fence, "late": late, "copy": copy}

if __name__ == "__main__":
    COMMANDS[COMMAND](*ARGUMENTS)
