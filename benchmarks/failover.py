"""Time without acknowledged writes around a leader's death and a controlled shutdown, beside real Kafka in one run.

    python -m benchmarks.failover [--rounds 3]

A producer with acks=all writes to one partition 200 times a second; the longest gap between two acknowledgements
around each event is the time without writes. What of it is the brokers' own lies between the new leader in ZooKeeper
and the first write that is acknowledged later than that, by a writer that asks every broker a hundred times a second:
the producer, librdkafka, looks for a new leader once a second. The session time-out is 6 s on both sides.
"""

import argparse
import itertools
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.direct_writer import DirectWriter
from benchmarks.peers import SESSION_TIMEOUT_MS, Peer, create_topic, leader_of, peers, running
from harness.broker.zookeeper.znodes import PartitionStateZnode, partition_state_path
from harness.zookeeper.transaction_log import read_transaction_log

TOPIC = "gaps"
ALIVE_S = 0.5
GIVE_UP_S = 120.0
FIGURES = ("leader killed", "new leader in ZooKeeper to first write", "controlled shutdown", "SIGTERM to exit")


class Writer:
    """Writes in the background and remembers when each write was acknowledged, in seconds of the wall clock."""

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
        while not self.instants:
            time.sleep(0.1)

    def _delivered(self, error: object, _message: object) -> None:
        if error is None:
            self.instants.append(time.time())

    def _write(self) -> None:
        while not self._stop.is_set():
            self._producer.produce(self._topic, b"x" * 100, on_delivery=self._delivered)
            self._producer.poll(0.005)
        self._producer.flush(30)

    def gap_around(self, act: Callable[[], object], settle_s: float) -> float:
        """Do something to the cluster and return the longest time without an acknowledgement until it settled."""
        first = max(len(self.instants) - 1, 0)
        act()
        began = time.monotonic()
        while time.monotonic() < began + settle_s or time.time() - self.instants[-1] > ALIVE_S:
            if time.monotonic() > began + GIVE_UP_S:
                raise TimeoutError(f"no write was acknowledged for {GIVE_UP_S:g} s")
            time.sleep(0.1)
        instants = self.instants[first:]
        return max(b - a for a, b in itertools.pairwise(instants))

    def close(self) -> None:
        """Stop writing."""
        self._stop.set()
        self._thread.join()


def since_elected_s(peer: Peer, acknowledged: list[float]) -> float:
    """Return the seconds from the last change of leader in ZooKeeper to the first acknowledgement after it."""
    path, elected_s, leader = partition_state_path(TOPIC, 0), 0.0, -1
    for change in read_transaction_log(peer.zookeeper_data).changes:
        if change.path == path and change.data:
            state = PartitionStateZnode.decode(TOPIC, 0, change.data.encode())
            if state.leader not in (leader, -1):
                leader, elected_s = state.leader, change.time_ms / 1000
    return next(instant for instant in acknowledged if instant > elected_s) - elected_s


def stop_timed(peer: Peer, broker_id: int, seconds: list[float]) -> None:
    """Stop a broker, and note the seconds that it took."""
    seconds.append(peer.stop(broker_id))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    session_s = SESSION_TIMEOUT_MS / 1e3
    rows: dict[str, dict[str, list[float]]] = {}
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        for kind in peers():
            with running(kind, Path(folder)) as peer:
                create_topic(peer, TOPIC, 1)
                writer, direct = Writer(peer.bootstrap_servers, TOPIC), DirectWriter(peer.bootstrap_servers, TOPIC)
                figures = {name: list[float]() for name in FIGURES}
                time.sleep(3)
                for _ in range(options.rounds):
                    leader = leader_of(peer, TOPIC)
                    figures["leader killed"].append(writer.gap_around(partial(peer.kill, leader), session_s + 5))
                    figures["new leader in ZooKeeper to first write"].append(
                        since_elected_s(peer, sorted(direct.instants))
                    )
                    peer.start(leader)
                    time.sleep(6)
                    leader = leader_of(peer, TOPIC)
                    figures["controlled shutdown"].append(
                        writer.gap_around(partial(stop_timed, peer, leader, figures["SIGTERM to exit"]), 5)
                    )
                    peer.start(leader)
                    time.sleep(6)
                writer.close()
                direct.close()
                rows[peer.name] = figures
    table = Table("seconds, median (min to max)", *rows, title=f"session time-out {session_s:g} s")
    for figure in rows["ours"]:
        cells = (
            f"{statistics.median(figures[figure]):.2f} ({min(figures[figure]):.2f} to {max(figures[figure]):.2f})"
            for figures in rows.values()
        )
        table.add_row(figure, *cells)
    Console().print(table)
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
