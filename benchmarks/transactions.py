"""Transactions of confluent-kafka's producers, beside real Kafka in one run.

    python -m benchmarks.transactions [--seconds 5] [--rounds 3] [--record]

Three brokers, replication factor 3, three partitions. Measured are committed transactions a second of one and of ten
producers, records a second inside of transactions of 1,000 records and without transactions (by one producer, which
waits for each commit, and by ten), what a reader of committed records gets beside one of all records, and the time from
the kill of a coordinator to the next commit. Both clusters stand at the same time and are measured in turns, so that a
busy machine troubles both.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from rich.console import Console

from benchmarks.measuring import comparison
from harness.kafka.placement import partition_of
from harness.values import TRANSACTIONS_TOPIC
from tools.peers import Peer, create_topic, peers, running
from tools.results.rows import record

PARTITIONS, SMALL, LARGE, TEN = 3, 10, 1_000, 10
VALUE = b"x" * 100
PATIENCE_S = 60.0
RETRY_S = 0.01
BATCH = 500
"""Records that a reader takes at a time; the clock starts after the first."""
TOPICS = ("small", "large", "plain")
PROPERTIES = {"transaction.state.log.min.isr": "1"}


def producer_of(peer: Peer, transactional_id: str | None) -> Producer:
    """Return a producer whose session has begun; without an id it is idempotent, and has no transactions."""
    settings: dict[str, object] = {
        "bootstrap.servers": peer.bootstrap_servers,
        "enable.idempotence": True,
        "linger.ms": 1,
        "log_level": 0,
    }
    if transactional_id is None:
        return Producer(settings)
    producer = Producer(settings | {"transactional.id": transactional_id, "transaction.timeout.ms": 60_000})
    producer.init_transactions(PATIENCE_S)
    return producer


def transact(producer: Producer, topic: str, records: int) -> None:
    """Commit one transaction over all partitions."""
    producer.begin_transaction()
    for number in range(records):
        producer.produce(topic, VALUE, partition=number % PARTITIONS)
    producer.commit_transaction(PATIENCE_S)


def rate(work: Callable[[], object], seconds: float) -> float:
    """Return how often a second something can be done, over so many seconds."""
    work()
    began_s, times = time.monotonic(), 0
    while time.monotonic() < began_s + seconds:
        work()
        times += 1
    return times / (time.monotonic() - began_s)


def total_rate(work: Callable[[Producer], object], producers: Sequence[Producer], seconds: float) -> float:
    """Return how often a second all producers together do something, each in a thread of its own."""
    with ThreadPoolExecutor(len(producers)) as pool:
        return sum(pool.map(lambda each: rate(lambda: work(each), seconds), producers))


def plain_batch(producer: Producer) -> None:
    """Write as many records as a large transaction has, without one."""
    for number in range(LARGE):
        producer.produce("plain", VALUE, partition=number % PARTITIONS)
    if producer.flush(PATIENCE_S):
        raise RuntimeError("records were not written in time")


def read_rate(peer: Peer, topic: str, isolation: str, records: int) -> float:
    """Return the records a second of a reader that begins at the start."""
    consumer = Consumer(
        {
            "bootstrap.servers": peer.bootstrap_servers,
            "group.id": isolation,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    try:
        first, began_s = 0, 0.0
        seen, until_s = 0, time.monotonic() + PATIENCE_S
        while seen < records:
            messages = consumer.consume(min(BATCH, records - seen), PATIENCE_S)
            seen += sum(message.error() is None for message in messages)
            if not began_s:
                first, began_s = seen, time.monotonic()
            if time.monotonic() > until_s:
                raise RuntimeError(f"{peer.name}: {seen} of {records} records in {PATIENCE_S:g} s")
        return (seen - first) / (time.monotonic() - began_s)
    finally:
        consumer.close()


def after_a_kill_s(peer: Peer, transactional_id: str) -> float:
    """Return the seconds from the kill of a coordinator until the next transaction is committed."""
    producer = producer_of(peer, transactional_id)
    transact(producer, "small", SMALL)
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers, "log_level": 0})
    states = admin.list_topics(TRANSACTIONS_TOPIC, timeout=PATIENCE_S).topics[TRANSACTIONS_TOPIC].partitions
    coordinator = states[partition_of(transactional_id, len(states))].leader
    producer.begin_transaction()
    for number in range(SMALL):
        producer.produce("small", VALUE, partition=number % PARTITIONS)
    producer.flush(PATIENCE_S)
    began_s = time.monotonic()
    peer.kill(coordinator)
    while True:
        try:
            producer.commit_transaction(PATIENCE_S)
            break
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > began_s + PATIENCE_S:
                raise
            time.sleep(RETRY_S)
    took_s = time.monotonic() - began_s
    peer.start(coordinator)
    return took_s


def figures_of(peer: Peer, seconds: float, round_: int) -> dict[str, float]:
    """Return everything that is measured, once."""
    one = producer_of(peer, f"one-{round_}")
    ten = [producer_of(peer, f"ten-{round_}-{number}") for number in range(TEN)]
    plain = [producer_of(peer, None) for _ in range(TEN)]

    def small(producer: Producer) -> None:
        transact(producer, "small", SMALL)

    def large(producer: Producer) -> None:
        transact(producer, "large", LARGE)

    figures = {
        "transactions/s, one producer": total_rate(small, [one], seconds),
        "transactions/s, ten producers": total_rate(small, ten, seconds),
    }
    for count, of in ((1, "one"), (TEN, "ten")):
        inside = total_rate(large, ten[:count], seconds) * LARGE
        outside = total_rate(plain_batch, plain[:count], seconds) * LARGE
        figures |= {
            f"records/s in transactions, {of}": inside,
            f"in transactions / without, {of}": inside / outside,
        }
    with_offsets = Consumer({"bootstrap.servers": peer.bootstrap_servers, "group.id": "ends"})
    ends = [with_offsets.get_watermark_offsets(TopicPartition("large", each), PATIENCE_S) for each in range(PARTITIONS)]
    with_offsets.close()
    batches = sum(high for _, high in ends) // (LARGE + PARTITIONS)
    committed, everything = (
        read_rate(peer, "large", isolation, batches * LARGE) for isolation in ("read_committed", "read_uncommitted")
    )
    figures["read_committed / read_uncommitted"] = committed / everything
    return figures | {"coordinator killed, s": after_a_kill_s(peer, f"killed-{round_}")}


RECORDED = {
    "transactions/s, one producer": "broker.transactions_s",
    "transactions/s, ten producers": "broker.transactions_10_s",
    "in transactions / without, one": "broker.transactions_ratio",
    "in transactions / without, ten": "broker.transactions_ratio_10",
    "read_committed / read_uncommitted": "broker.read_committed_ratio",
    "coordinator killed, s": "broker.transaction_coordinator_killed_s",
}
"""Ids of results/figures.json by the names of the table."""


def recorded(figures: Mapping[str, float]) -> dict[str, float]:
    """Return figures by their ids."""
    return {id_: figures[name] for name, id_ in RECORDED.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="append the figures to results/measurements.json")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder, ExitStack() as stack:
        clusters = [stack.enter_context(running(kind, Path(folder), properties=PROPERTIES)) for kind in peers()]
        for peer in clusters:
            for topic in TOPICS:
                create_topic(peer, topic, PARTITIONS)
        rounds = [[figures_of(peer, options.seconds, number) for peer in clusters] for number in range(options.rounds)]
    figures = {
        peer.name: {name: statistics.median(each[name] for each in measured) for name in measured[0]}
        for peer, measured in zip(clusters, zip(*rounds, strict=True), strict=True)
    }
    Console().print(comparison("figure, median of rounds", figures))
    if options.record:
        ours, *others = (recorded(each) for each in figures.values())
        record("python -m benchmarks.transactions", ours, *others)
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
