"""Throughput and latency of produce with acks=all at replication factor 3, beside real Kafka in one run.

    python -m benchmarks.broker [--seconds 10] [--partitions 6] [--rounds 3]

One confluent-kafka producer fills the brokers as fast as they take records of 100 B and 1 KB; then records are sent
singly at a fixed rate and each one's time to its acknowledgement is measured. Both clusters stand at the same time and
are measured in turns, so that a busy machine troubles both; a broker's processor time depends on that least.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from benchmarks.measuring import comparison
from tools.peers import Peer, create_topic, peers, processor_s, running

BROKERS = 3


def throughput(peer: Peer, topic: str, size: int, seconds: float) -> tuple[float, float, float]:
    """Return records/s and MB/s acknowledged over `seconds` of full load, and the brokers' processor seconds a GB."""
    failed: list[str] = []
    acknowledged = 0

    def delivered(error: object, _message: object) -> None:
        nonlocal acknowledged
        if error is None:
            acknowledged += 1
        else:
            failed.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": peer.bootstrap_servers,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 262_144,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 262_144,
        }
    )
    value = b"x" * size
    producer.produce(topic, value, on_delivery=delivered)
    producer.flush(30)
    acknowledged, spent_s = 0, processor_s(peer, range(BROKERS))
    began_s = time.monotonic()
    while time.monotonic() < began_s + seconds:
        for _ in range(500):
            try:
                producer.produce(topic, value, on_delivery=delivered)
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush(60)
    took_s = time.monotonic() - began_s
    if failed:
        raise RuntimeError(f"{peer.name}: {len(failed)} records failed, e.g. {failed[0]}")
    megabytes = acknowledged * size / 1e6
    return acknowledged / took_s, megabytes / took_s, (processor_s(peer, range(BROKERS)) - spent_s) / megabytes * 1e3


def latencies(peer: Peer, topic: str, rate: float, seconds: float) -> list[float]:
    """Return each record's milliseconds from produce to acknowledgement, sent singly at `rate` a second."""
    producer = Producer({"bootstrap.servers": peer.bootstrap_servers, "acks": "all", "linger.ms": 0})
    latencies_ms: list[float] = []
    began = time.monotonic()
    sent = 0
    while time.monotonic() < began + seconds:
        due = began + sent / rate
        while (wait := due - time.monotonic()) > 0:
            producer.poll(min(wait, 0.0005))
        at = time.monotonic()

        def delivered(error: object, _message: object, at: float = at) -> None:
            if error is None:
                latencies_ms.append((time.monotonic() - at) * 1e3)

        producer.produce(topic, b"x" * 100, on_delivery=delivered)
        producer.poll(0)
        sent += 1
    producer.flush(30)
    return latencies_ms[len(latencies_ms) // 10 :]


def figures_of(peer: Peer, seconds: float) -> dict[str, float]:
    """Return everything that is measured, once."""
    figures: dict[str, float] = {}
    for rate in (100, 300):
        spent_s = processor_s(peer, range(BROKERS))
        latencies_ms = latencies(peer, "single", rate, seconds)
        spent_s = processor_s(peer, range(BROKERS)) - spent_s
        figures[f"p50 at {rate}/s, ms"] = statistics.median(latencies_ms)
        figures[f"p99 at {rate}/s, ms"] = statistics.quantiles(latencies_ms, n=100)[98]
        figures[f"processor ms a record at {rate}/s"] = spent_s / (rate * seconds) * 1e3
    records, _, spent = throughput(peer, "small", 100, seconds)
    figures |= {"100 B, records/s": records, "100 B, processor s/GB": spent}
    _, megabytes, spent = throughput(peer, "large", 1024, seconds)
    return figures | {"1 KB, MB/s": megabytes, "1 KB, processor s/GB": spent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder, ExitStack() as stack:
        clusters = [stack.enter_context(running(kind, Path(folder))) for kind in peers()]
        for peer in clusters:
            for topic in ("small", "large", "single"):
                create_topic(peer, topic, options.partitions)
            latencies(peer, "single", 200, 3)
            throughput(peer, "large", 1024, 3)
        rounds = [[figures_of(peer, options.seconds) for peer in clusters] for _ in range(options.rounds)]
    figures = {}
    for peer, measured in zip(clusters, zip(*rounds, strict=True), strict=True):
        medians = {name: statistics.median(each[name] for each in measured) for name in measured[0]}
        figures[peer.name] = {"start-up, s": peer.startup_s} | medians
    Console().print(comparison("figure, median of rounds", figures))
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
