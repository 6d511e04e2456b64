"""What does recording cost? CPU time of a record, with a recorder and without one, in one run.

`python -m benchmarks.recorder` measures the recorder alone. With `SERVERS TOPIC` it also sends and reads records by
confluent-kafka, paced at 10,000 a second, in turn with a recorder and without.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import confluent_kafka
import confluent_kafka.admin

from kafka_chaos.recorder import Recorder
from kafka_chaos.recorder.confluent import Consumer, Producer
from kafka_chaos.recorder.recording import value_id

RECORDS = 50_000
PACE_PER_S = 10_000
ROUNDS = 3
ANSWER_S = 10.0
"""A cluster answers within so long."""
SILENCE_S = 30.0
"""After so long without a record, no more are expected."""


def cpu_us(work: Callable[[], object], records: int = RECORDS) -> float:
    """Return the CPU time of a record, in microseconds."""
    began = time.process_time()
    work()
    return (time.process_time() - began) / records * 1e6


def alone(folder: Path) -> None:
    """Print what lines cost that no client waits for."""
    lines = Recorder(folder).lines("alone")
    many = [("orders", 1, offset, f"order-{offset}") for offset in range(500)]

    def send() -> None:
        for number in range(RECORDS):
            start = lines.send_begins("orders", -1, None, value_id(f"order-{number}"), -1)
            lines.send_ends(start, "ok", 1, number)

    def read(records: list[tuple[str, int, int, str]]) -> None:
        for _ in range(RECORDS // len(records)):
            lines.polled(1, "subscribe", records)

    print(f"a send and its end            {cpu_us(send):6.2f} us of CPU time")
    print(f"a record of a poll of 500     {cpu_us(lambda: read(many)):6.2f} us")
    print(f"a record that is polled alone {cpu_us(lambda: read(many[:1])):6.2f} us")


def paced(producer: Any, topic: str, prefix: str) -> float:
    """Send at the pace; return how many records a second were sent."""
    began = time.monotonic()
    for number in range(RECORDS):
        producer.produce(topic, f"{prefix}-{number}")
        if number % 100 == 0:
            producer.poll(0)
            with suppress(ValueError):
                time.sleep(began + number / PACE_PER_S - time.monotonic())
    if left := producer.flush(SILENCE_S):
        raise SystemExit(f"{left:,} of {RECORDS:,} records were not acknowledged within {SILENCE_S:g} s")
    return RECORDS / (time.monotonic() - began)


def require_topic(servers: str, topic: str) -> None:
    """Check that a cluster answers and has the topic; raises SystemExit."""
    client = confluent_kafka.admin.AdminClient({"bootstrap.servers": servers})
    try:
        found = client.list_topics(topic, timeout=ANSWER_S).topics[topic]
    except confluent_kafka.KafkaException as error:
        raise SystemExit(f"no broker of {servers} answers within {ANSWER_S:g} s: {error.args[0].str()}") from None
    if found.error is not None:
        raise SystemExit(f"the topic {topic} cannot be used: {found.error.str()}")


def on_a_cluster(servers: str, topic: str, folder: Path) -> None:
    """Print throughput and CPU time of both sides, with a recorder and without."""
    require_topic(servers, topic)
    for number in range(ROUNDS):
        group = {"bootstrap.servers": servers, "group.id": f"{topic}-{number}", "auto.offset.reset": "earliest"}
        of_producer = {"bootstrap.servers": servers}
        with Recorder(folder / str(number)) as recorder:
            sides: dict[str, tuple[Any, Any]] = {
                "without": (confluent_kafka.Producer(of_producer), confluent_kafka.Consumer(group)),
                "with": (
                    Producer(of_producer, recorder=recorder),
                    Consumer(group | {"group.id": f"{topic}-{number}-recorded"}, recorder=recorder),
                ),
            }
            for name, (producer, consumer) in sides.items():
                began = time.process_time()
                rate = paced(producer, topic, f"{number}-{name}")
                sent = (time.process_time() - began) / RECORDS * 1e6
                consumer.subscribe([topic])
                read = cpu_us(partial(take, consumer))
                print(f"{name:<8} {rate:8,.0f} records/s sent, CPU {sent:6.2f} us a send, {read:6.2f} us a read")


def take(consumer: Any) -> None:
    """Read as many records as were sent at once."""
    left, last_s = RECORDS, time.monotonic()
    while left > 0:
        if records := consumer.consume(500, 1.0):
            left, last_s = left - len(records), time.monotonic()
        elif time.monotonic() - last_s > SILENCE_S:
            raise SystemExit(f"{left:,} of {RECORDS:,} records were not read: none came for {SILENCE_S:g} s")


def main() -> None:
    """Measure what the command line says."""
    with TemporaryDirectory() as folder:
        alone(Path(folder) / "alone")
        if len(sys.argv) == 3:
            on_a_cluster(sys.argv[1], sys.argv[2], Path(folder))


if __name__ == "__main__":
    main()
