"""Does `__consumer_offsets` stay small, and how fast is a log cleaned, here and by real Kafka?

    python -m benchmarks.cleaner [--commits 100000] [--megabytes 100] [--no-kafka]

One broker of each. First groups commit, with segments of 1 MB: how large is the topic in the end, and was meanwhile at
most? Then a topic is filled with records of 100 bytes that have 10,000 keys, compressed by nobody, and made compacted:
how long does the cleaner take, and how much processor time?
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from kafka.admin import ConfigResource, KafkaAdminClient
from rich.console import Console

from benchmarks.measuring import comparison
from benchmarks.peers import Ours, Peer, RealKafka, processor_s
from harness.broker.wire import messages as m
from harness.broker.wire.tcp import TcpTransport
from harness.values import OFFSETS_TOPIC

TIMEOUT_S = 60.0
DEADLINE_S = 900.0
CONNECTIONS = 8
GROUPS = 50
TOPIC = "orders"
KEYS = 10_000
VALUE = b"x" * 88
LOOK_EVERY_S = 0.2
QUIET_S = 5.0
PROPERTIES = {
    "log.cleaner.backoff.ms": "500",
    "offsets.topic.segment.bytes": "1000000",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "default.replication.factor": "1",
}
MB = 1e6


def bytes_in(root: Path, topic: str) -> int:
    """Return what the segments of a topic take, wherever below a cluster's folder they are."""
    total = 0
    for segment in root.glob(f"**/{topic}-0/*.log"):
        try:
            total += segment.stat().st_size
        except FileNotFoundError:  # just cleaned
            continue
    return total


def settled(look: Callable[[], int], below: int | None = None) -> int:
    """Return what is seen once it has not changed for a while, and is less than that if it is said."""
    seen, since_s = look(), time.monotonic()
    deadline_s = since_s + DEADLINE_S
    while time.monotonic() - since_s < QUIET_S or (below is not None and seen >= below):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{seen} bytes after {DEADLINE_S:g} s")
        time.sleep(LOOK_EVERY_S)
        if (now := look()) != seen:
            seen, since_s = now, time.monotonic()
    return seen


async def commit(peer: Peer, commits: int, look: Callable[[], int]) -> int:
    """Have groups commit in turn, over several connections; return the most bytes that were seen."""
    host, _, port = peer.bootstrap_servers.rpartition(":")
    of_topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    largest = 0

    async def through(number: int) -> None:
        nonlocal largest
        connection = await TcpTransport().connect(host, int(port), client_id="cleaner", timeout_s=TIMEOUT_S)
        for offset in range(number, commits, CONNECTIONS):
            partition = of_topic.OffsetCommitRequestPartition(committed_offset=offset)
            request = m.OffsetCommitRequest(
                group_id=f"group-{offset % GROUPS}", topics=[of_topic(name=TOPIC, partitions=[partition])]
            )
            while (await connection.request(request, 7, timeout_s=TIMEOUT_S)).topics[0].partitions[0].error_code:
                find = m.FindCoordinatorRequest(key=f"group-{offset % GROUPS}", key_type=0)
                await connection.request(find, 2, timeout_s=TIMEOUT_S)
                await asyncio.sleep(LOOK_EVERY_S)
            if offset % 1000 == 0:
                largest = max(largest, look())
        connection.close()

    await asyncio.gather(*map(through, range(CONNECTIONS)))
    return largest


def fill(peer: Peer, megabytes: int) -> None:
    """Write that much to the topic."""
    producer = Producer(
        {"bootstrap.servers": peer.bootstrap_servers, "queue.buffering.max.messages": 200_000, "linger.ms": 20}
    )
    for number in range(megabytes * 1_000_000 // 100):
        producer.produce(TOPIC, VALUE, b"key-%07d" % (number % KEYS))
        if number % 10_000 == 0:
            producer.flush(TIMEOUT_S)
    producer.flush(TIMEOUT_S)


def measured(peer: Peer, root: Path, commits: int, megabytes: int) -> dict[str, float]:
    """Return the figures of one cluster."""
    admin = KafkaAdminClient(bootstrap_servers=peer.bootstrap_servers)
    configs = {"segment.bytes": "1000000", "cleanup.policy": "delete", "min.cleanable.dirty.ratio": "0.01"}
    admin.create_topics({TOPIC: {"num_partitions": 1, "replication_factor": 1, "configs": configs}})

    def offsets_bytes() -> int:
        return bytes_in(root, OFFSETS_TOPIC)

    began_s, used_s = time.monotonic(), processor_s(peer, [0])
    largest = asyncio.run(commit(peer, commits, offsets_bytes))
    figures = {
        "commits/s": commits / (time.monotonic() - began_s),
        "processor s for the commits": processor_s(peer, [0]) - used_s,
        "offsets topic at most, MB": largest / MB,
        "offsets topic in the end, MB": settled(offsets_bytes) / MB,
    }
    fill(peer, megabytes)
    before = bytes_in(root, TOPIC)
    began_s, used_s = time.monotonic(), processor_s(peer, [0])
    admin.alter_configs([ConfigResource("TOPIC", TOPIC, configs={**configs, "cleanup.policy": "compact"})])
    after = settled(lambda: bytes_in(root, TOPIC), below=before // 2)
    took_s = time.monotonic() - began_s - QUIET_S
    admin.close()
    return figures | {
        "dirty, MB": before / MB,
        "clean, MB": after / MB,
        "cleaned, MB/s": before / MB / took_s,
        "cleaned, MB a processor s": before / MB / (processor_s(peer, [0]) - used_s),
    }


def main() -> None:
    """Measure one after the other, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=100_000)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--no-kafka", action="store_true")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="cleaner-") as folder:
        for kind in (Ours,) if options.no_kafka else (Ours, RealKafka):
            root = Path(folder) / kind.__name__.lower()
            peer: Peer = kind(root, 1, PROPERTIES)
            try:
                figures[peer.name] = measured(peer, root, options.commits, options.megabytes)
            finally:
                peer.close()
    Console().print(comparison("one broker", figures))


if __name__ == "__main__":
    main()
