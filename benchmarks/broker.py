"""Throughput and latency of produce with acks=all at replication factor 3, beside real Kafka in one run.

    python -m benchmarks.broker [--seconds 10] [--partitions 6]

One confluent-kafka producer fills the brokers as fast as they take records of 100 B and 1 KB; then records are sent
singly at a fixed rate and each one's time to its acknowledgement is measured. Prints medians side by side.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.peers import Peer, create_topic, peers, running


def throughput(peer: Peer, topic: str, size: int, seconds: float) -> tuple[float, float]:
    """Return records/s and MB/s acknowledged over `seconds` of full load."""
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
    acknowledged = 0
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        for _ in range(500):
            try:
                producer.produce(topic, value, on_delivery=delivered)
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush(60)
    took = time.monotonic() - began
    if failed:
        raise RuntimeError(f"{peer.name}: {len(failed)} records failed, e.g. {failed[0]}")
    return acknowledged / took, acknowledged * size / took / 1e6


def latencies(peer: Peer, topic: str, rate: float, seconds: float) -> list[float]:
    """Return each record's milliseconds from produce to acknowledgement, sent singly at `rate` a second."""
    producer = Producer({"bootstrap.servers": peer.bootstrap_servers, "acks": "all", "linger.ms": 0})
    taken: list[float] = []
    began = time.monotonic()
    sent = 0
    while time.monotonic() < began + seconds:
        due = began + sent / rate
        while (wait := due - time.monotonic()) > 0:
            producer.poll(min(wait, 0.0005))
        at = time.monotonic()

        def delivered(error: object, _message: object, at: float = at) -> None:
            if error is None:
                taken.append((time.monotonic() - at) * 1e3)

        producer.produce(topic, b"x" * 100, on_delivery=delivered)
        producer.poll(0)
        sent += 1
    producer.flush(30)
    return taken[len(taken) // 10 :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--partitions", type=int, default=6)
    options = parser.parse_args()
    rows: dict[str, dict[str, float]] = {}
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        for kind in peers():
            with running(kind, Path(folder)) as peer:
                for topic in ("small", "large", "single"):
                    create_topic(peer, topic, options.partitions)
                figures = {"start-up, s": peer.startup_s}
                latencies(peer, "single", 200, 3)
                for rate in (100, 300):
                    taken = latencies(peer, "single", rate, options.seconds)
                    figures[f"p50 at {rate}/s, ms"] = statistics.median(taken)
                    figures[f"p99 at {rate}/s, ms"] = statistics.quantiles(taken, n=100)[98]
                figures["100 B, records/s"], _ = throughput(peer, "small", 100, options.seconds)
                _, figures["1 KB, MB/s"] = throughput(peer, "large", 1024, options.seconds)
                rows[peer.name] = figures
    table = Table("figure", *rows, *(["ours / Kafka"] if len(rows) == 2 else []))
    for figure in rows["ours"]:
        values = [figures[figure] for figures in rows.values()]
        ratio = [f"{values[0] / values[1]:.2f}"] if len(values) == 2 else []
        table.add_row(figure, *(f"{value:,.2f}" for value in values), *ratio)
    Console().print(table)
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
