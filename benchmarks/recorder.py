"""What does recording cost? CPU time of a record, with a recorder and without one, in one run.

`python -m benchmarks.recorder` measures the recorder alone. With `SERVERS TOPIC` and, if only some are wanted, names of
libraries, it also sends and reads records by each, paced at 10,000 a second, in turn with a recorder and without.
"""

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import aiokafka
import confluent_kafka
import confluent_kafka.admin
import kafka

from kafka_chaos.recorder import Recorder, aio, confluent, kafka_python
from kafka_chaos.recorder.recording import value_id

RECORDS = 50_000
PACE_PER_S = 10_000
ROUNDS = 3
ANSWER_S = 10.0
"""A cluster answers within so long."""
SILENCE_S = 30.0
"""After so long without a record, no more are expected."""
AT_ONCE = 100
"""Records between two looks at the clock."""
LINGER_MS = 5
"""As long as librdkafka waits for more records of a batch, by default."""


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


class Side(Protocol):
    """A producer and a consumer of one library."""

    async def send(self, values: list[bytes]) -> None:
        """Hand over some records."""

    async def flush(self) -> None:
        """Wait until all are acknowledged."""

    async def read(self) -> int:
        """Return how many records came."""

    async def close(self) -> None:
        """Close both."""


class Confluent:
    """confluent-kafka."""

    def __init__(self, servers: str, topic: str, group: str, recorder: Recorder | None) -> None:
        own: dict[str, Any] = {} if recorder is None else {"recorder": recorder}
        of = confluent_kafka if recorder is None else confluent
        self._topic = topic
        self._producer: Any = of.Producer({"bootstrap.servers": servers}, **own)
        settings = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
        self._consumer: Any = of.Consumer(settings, **own)
        self._consumer.subscribe([topic])

    async def send(self, values: list[bytes]) -> None:
        """Hand over some records."""
        for value in values:
            self._producer.produce(self._topic, value)
        self._producer.poll(0)

    async def flush(self) -> None:
        """Wait until all are acknowledged."""
        if left := self._producer.flush(SILENCE_S):
            raise SystemExit(f"{left:,} records were not acknowledged within {SILENCE_S:g} s")

    async def read(self) -> int:
        """Return how many records came."""
        return len(self._consumer.consume(500, 1.0))

    async def close(self) -> None:
        """Close both."""
        self._consumer.close()


class KafkaPython:
    """kafka-python."""

    def __init__(self, servers: str, topic: str, group: str, recorder: Recorder | None) -> None:
        own: dict[str, Any] = {"bootstrap_servers": servers} | ({} if recorder is None else {"recorder": recorder})
        self._topic = topic
        producer: Any = kafka.KafkaProducer if recorder is None else kafka_python.Producer
        consumer: Any = kafka.KafkaConsumer if recorder is None else kafka_python.Consumer
        self._producer = producer(linger_ms=LINGER_MS, acks="all", **own)
        self._consumer = consumer(topic, group_id=group, auto_offset_reset="earliest", **own)

    async def send(self, values: list[bytes]) -> None:
        """Hand over some records."""
        for value in values:
            self._producer.send(self._topic, value)

    async def flush(self) -> None:
        """Wait until all are acknowledged."""
        self._producer.flush(SILENCE_S)

    async def read(self) -> int:
        """Return how many records came."""
        return sum(map(len, self._consumer.poll(1000, 500).values()))

    async def close(self) -> None:
        """Close both."""
        self._producer.close()
        self._consumer.close()


class Aiokafka:
    """aiokafka."""

    def __init__(self, servers: str, topic: str, group: str, recorder: Recorder | None) -> None:
        own: dict[str, Any] = {"bootstrap_servers": servers} | ({} if recorder is None else {"recorder": recorder})
        self._topic = topic
        self._started = False
        producer: Any = aiokafka.AIOKafkaProducer if recorder is None else aio.Producer
        consumer: Any = aiokafka.AIOKafkaConsumer if recorder is None else aio.Consumer
        self._producer = producer(linger_ms=LINGER_MS, acks="all", **own)
        self._consumer = consumer(topic, group_id=group, auto_offset_reset="earliest", **own)

    async def send(self, values: list[bytes]) -> None:
        """Hand over some records."""
        if not self._started:
            self._started = True
            await self._producer.start()
            await self._consumer.start()
        for value in values:
            await self._producer.send(self._topic, value)

    async def flush(self) -> None:
        """Wait until all are acknowledged."""
        await self._producer.flush()

    async def read(self) -> int:
        """Return how many records came."""
        return sum(map(len, (await self._consumer.getmany(timeout_ms=1000, max_records=500)).values()))

    async def close(self) -> None:
        """Close both."""
        await self._producer.stop()
        await self._consumer.stop()


LIBRARIES: Mapping[str, Callable[[str, str, str, Recorder | None], Side]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}


async def paced(side: Side, prefix: str) -> float:
    """Send at the pace; return how many records a second were sent."""
    began = time.monotonic()
    for first in range(0, RECORDS, AT_ONCE):
        await side.send([f"{prefix}-{number}".encode() for number in range(first, first + AT_ONCE)])
        await asyncio.sleep(max(0.0, began + first / PACE_PER_S - time.monotonic()))
    await side.flush()
    return RECORDS / (time.monotonic() - began)


async def take(side: Side) -> None:
    """Read as many records as were sent at once."""
    left, last_s = RECORDS, time.monotonic()
    while left > 0:
        if count := await side.read():
            left, last_s = left - count, time.monotonic()
        elif time.monotonic() - last_s > SILENCE_S:
            raise SystemExit(f"{left:,} of {RECORDS:,} records were not read: none came for {SILENCE_S:g} s")


def require_topic(servers: str, topic: str) -> None:
    """Check that a cluster answers and has the topic; raises SystemExit."""
    client = confluent_kafka.admin.AdminClient({"bootstrap.servers": servers})
    try:
        found = client.list_topics(topic, timeout=ANSWER_S).topics[topic]
    except confluent_kafka.KafkaException as error:
        raise SystemExit(f"no broker of {servers} answers within {ANSWER_S:g} s: {error.args[0].str()}") from None
    if found.error is not None:
        raise SystemExit(f"the topic {topic} cannot be used: {found.error.str()}")


async def measured(work: Awaitable[float | None]) -> tuple[float, float]:
    """Return what the work returns, if anything, and its CPU time in seconds."""
    began = time.process_time()
    result = await work
    return result or 0.0, time.process_time() - began


async def on_a_cluster(library: str, servers: str, topic: str, folder: Path) -> None:
    """Print throughput and CPU time of both sides, with a recorder and without, and what recording adds."""
    spent: dict[str, list[float]] = defaultdict(list)
    rates: dict[str, list[float]] = defaultdict(list)
    for number in range(ROUNDS):
        for name in ("without", "with"):
            with Recorder(folder / library / f"{number}-{name}") as recorder:
                group = f"{topic}-{library}-{number}-{name}"
                side = LIBRARIES[library](servers, topic, group, recorder if name == "with" else None)
                rate, sending_s = await measured(paced(side, group))
                _, reading_s = await measured(take(side))
                await side.close()
            spent[name].append(sending_s + reading_s)
            rates[name].append(rate)
            print(
                f"{library} {name:<8} {rate:8,.0f} records/s sent, CPU {sending_s:5.2f} s for the sends,"
                f" {reading_s:5.2f} s for the reads of {RECORDS:,} records"
            )
    cpu, rate = (median(each["with"]) / median(each["without"]) for each in (spent, rates))
    print(f"{library}: with a recorder {rate:.3f} of the throughput and {cpu:.2f} of the CPU time, medians of {ROUNDS}")


def main() -> None:
    """Measure what the command line says."""
    with TemporaryDirectory() as folder:
        alone(Path(folder) / "alone")
        if len(sys.argv) >= 3:
            servers, topic, *wanted = sys.argv[1:]
            require_topic(servers, topic)
            for library in wanted or LIBRARIES:
                asyncio.run(on_a_cluster(library, servers, topic, Path(folder)))


if __name__ == "__main__":
    main()
