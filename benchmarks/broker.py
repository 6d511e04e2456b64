"""Throughput and latency of produce with acks=all at replication factor 3, beside real Kafka in one run.

    python -m benchmarks.broker [--seconds 10] [--partitions 6] [--rounds 3] [--record]

One confluent-kafka producer fills the brokers as fast as they take records of 100 B and 1 KB; then records are sent
singly at a fixed rate and each one's time to its acknowledgement is measured. Both clusters stand at the same time and
are measured in turns, so that a busy machine troubles both; a broker's processor time depends on that least.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from benchmarks.measuring import comparison
from tools.peers import Peer, create_topic, peers, processor_s, running
from tools.results.rows import record

BROKERS = 3
FEW, MANY_PARTITIONS = 6, 100


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


RECORDED = {
    "start-up, s": "start_s",
    "p50 at 100/s, ms": "p50_100_ms",
    "p99 at 100/s, ms": "p99_100_ms",
    "p99 at 300/s, ms": "p99_300_ms",
    "100 B, records/s": "small_records_s",
    "100 B, processor s/GB": "cpu_small_gb_s",
    "1 KB, MB/s": "large_mb_s",
    "1 KB, processor s/GB": "cpu_gb_s",
}
"""Ids of results/figures.json, without their area, by the names of the table."""
MANY = {"small_records_s": "small_records_100_s", "large_mb_s": "large_mb_100_s"}
"""The same with 100 partitions; other figures and other numbers of partitions have no id."""


def recorded(figures: Mapping[str, float], partitions: int) -> dict[str, float]:
    """Return figures by their ids."""
    ids = {name: id_ for name, id_ in RECORDED.items() if partitions == FEW or id_ in MANY}
    if partitions not in (FEW, MANY_PARTITIONS):
        raise SystemExit(f"--record takes --partitions {FEW} or {MANY_PARTITIONS}: results/figures.json has no others")
    return {f"broker.{id_ if partitions == FEW else MANY[id_]}": figures[name] for name, id_ in ids.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="append the figures to results/measurements.json")
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
    if options.record:
        ours, *others = (recorded(each, options.partitions) for each in figures.values())
        record(f"python -m benchmarks.broker --partitions {options.partitions}", ours, *others)
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
