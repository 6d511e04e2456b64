"""What many partitions cost: creating them, a controller's failover with them, and memory, beside real Kafka.

    python -m benchmarks.controller [--partitions 1000]

Three brokers, every partition on all of them. The failover is timed from the SIGKILL of the broker that is controller
until the last new leader stands in ZooKeeper, and until the survivors' metadata has a living leader for every
partition; the session time-out is 6 s on both sides.
"""

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient
from rich.console import Console

from benchmarks.measuring import comparison
from benchmarks.peers import SESSION_TIMEOUT_MS, Peer, create_topic, peers, processor_s, running
from harness.zookeeper.kazoo_view import KazooView
from harness.zookeeper.transaction_log import read_transaction_log

BROKERS = 3
TOPIC = "many"
REST_S = 10.0
DEADLINE_S = 300.0
LOOK_EVERY_S = 0.1
"""An answer of a thousand partitions costs a broker of either kind some of the time that is measured."""


def controller_of(peer: Peer) -> int:
    """Return the id of the broker that is controller, by ZooKeeper."""

    async def ask() -> int:
        async with KazooView(peer.zookeeper_connect) as view:
            return (await view.controller()).broker_id

    return asyncio.run(ask())


def memory_mb(peer: Peer) -> float:
    """Return the mean resident memory of the brokers."""
    sizes = [psutil.Process(peer.pid(broker_id)).memory_info().rss for broker_id in range(BROKERS)]
    return sum(sizes) / len(sizes) / 1e6


def failover(peer: Peer, partitions: int) -> dict[str, float]:
    """Kill the controller; return the seconds from there, and from its session's end, to all new leaders.

    On a machine with other work a session ends late, and nothing is quick: hence the processor time.
    """
    controller = controller_of(peer)
    addresses = peer.bootstrap_servers.split(",")
    survivors = [address for broker_id, address in enumerate(addresses) if broker_id != controller]
    clients = [AdminClient({"bootstrap.servers": address, "log_level": 0}) for address in survivors]
    others = [broker_id for broker_id in range(BROKERS) if broker_id != controller]
    began, began_ms, spent_s = time.monotonic(), time.time() * 1000, processor_s(peer, others)
    peer.kill(controller)
    for client in clients:
        while not _all_led(client, partitions, dead=controller):
            if time.monotonic() > began + DEADLINE_S:
                raise TimeoutError(f"{peer.name}: no leaders {DEADLINE_S:g} s after the controller's death")
            time.sleep(LOOK_EVERY_S)
    known_s = time.monotonic() - began
    changes = read_transaction_log(peer.zookeeper_data).changes
    decided_ms = max(change.time_ms for change in changes if change.path.endswith("/state"))
    ended_ms = max(change.time_ms for change in changes if change.path == "/controller" and change.type == "delete")
    return {
        "controller killed to every leader in ZooKeeper, s": (decided_ms - began_ms) / 1000,
        "its session's end to every leader in ZooKeeper, s": (decided_ms - ended_ms) / 1000,
        "controller killed to every leader known, s": known_s,
        "processor time of the others meanwhile, s": processor_s(peer, others) - spent_s,
    }


def _all_led(client: AdminClient, partitions: int, dead: int) -> bool:
    partition_states = client.list_topics(TOPIC, timeout=DEADLINE_S).topics[TOPIC].partitions.values()
    return len(partition_states) == partitions and all(state.leader not in (-1, dead) for state in partition_states)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1000)
    options = parser.parse_args()
    rows: dict[str, dict[str, float]] = {}
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        for kind in peers():
            with running(kind, Path(folder)) as peer:
                time.sleep(REST_S)
                figures = {"memory of a broker at rest, MB": memory_mb(peer)}
                began = time.monotonic()
                create_topic(peer, TOPIC, options.partitions)
                figures[f"{options.partitions} partitions created, s"] = time.monotonic() - began
                time.sleep(REST_S)
                figures["memory of a broker with them, MB"] = memory_mb(peer)
                rows[peer.name] = figures | failover(peer, options.partitions)
    title = f"{options.partitions} partitions on {BROKERS} brokers, session time-out {SESSION_TIMEOUT_MS / 1000:g} s"
    Console().print(comparison("figure", rows, title))
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
