"""Time without acknowledged writes around a leader's death and a controlled shutdown, beside real Kafka in one run.

    python -m benchmarks.failover [--rounds 3]

A producer with acks=all writes to one partition 200 times a second; the longest gap between two acknowledgements
around each event is the time without writes. The session time-out is 6 s on both sides.
"""

import argparse
import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.peers import SESSION_TIMEOUT_MS, create_topic, leader_of, peers, running


class Writer:
    """Writes in the background and remembers when each write was acknowledged."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.instants: list[float] = []
        self._topic = topic
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 50,
                "topic.metadata.refresh.fast.interval.ms": 20,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _delivered(self, error: object, _message: object) -> None:
        if error is None:
            self.instants.append(time.monotonic())

    def _write(self) -> None:
        while not self._stop.is_set():
            self._producer.produce(self._topic, b"x" * 100, on_delivery=self._delivered)
            self._producer.poll(0.005)
        self._producer.flush(30)

    def gap_around(self, act: Callable[[], object], settle_s: float) -> float:
        """Do something to the cluster and return the longest time without an acknowledgement until it settled."""
        first = max(len(self.instants) - 1, 0)
        act()
        deadline = time.monotonic() + settle_s
        while time.monotonic() < deadline:
            time.sleep(0.1)
        instants = self.instants[first:]
        return max(b - a for a, b in itertools.pairwise(instants))

    def close(self) -> None:
        """Stop writing."""
        self._stop.set()
        self._thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    session_s = SESSION_TIMEOUT_MS / 1e3
    rows: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        for kind in peers():
            with running(kind, Path(folder)) as peer:
                create_topic(peer, "gaps", 1)
                writer = Writer(peer.bootstrap_servers, "gaps")
                figures: dict[str, list[float]] = {
                    "leader killed": [],
                    "controlled shutdown": [],
                    "SIGTERM to exit": [],
                }
                time.sleep(3)
                for _ in range(options.rounds):
                    leader = leader_of(peer, "gaps")
                    figures["leader killed"].append(writer.gap_around(lambda b=leader: peer.kill(b), session_s + 5))
                    peer.start(leader)
                    time.sleep(6)
                    leader = leader_of(peer, "gaps")
                    took: list[float] = []
                    figures["controlled shutdown"].append(
                        writer.gap_around(lambda b=leader, t=took: t.append(peer.stop(b)), 5)
                    )
                    figures["SIGTERM to exit"] += took
                    peer.start(leader)
                    time.sleep(6)
                writer.close()
                rows[peer.name] = figures
    table = Table("seconds, median (min to max)", *rows, title=f"session time-out {session_s:g} s")
    for figure in rows["ours"]:
        cells = (
            f"{statistics.median(figures[figure]):.2f} ({min(figures[figure]):.2f} to {max(figures[figure]):.2f})"
            for figures in rows.values()
        )
        table.add_row(figure, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
