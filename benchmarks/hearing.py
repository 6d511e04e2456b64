"""How long does a broker not hear its clients while many partitions are made, and while a controller fails with them?

    python -m benchmarks.hearing [--partitions 2000]

Three brokers, every partition on all of them; each broker is asked for its ApiVersions every 20 ms. What a late answer
kept from being asked counts as asked. First with all work done in as few steps as it was before it was sliced
(`harness/broker/background.py`), then with slices, in one run.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console

from benchmarks.controller import DEADLINE_S, TOPIC, controller_of
from benchmarks.measuring import table_of_columns
from benchmarks.peers import Ours
from harness.broker.wire.messages import ApiVersionsRequest
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import PeerError
from harness.zookeeper.kazoo_view import KazooView

BROKERS = 3
EVERY_S = 0.02
REST_S = 3.0
WHOLE = "from harness.broker import background\nbackground.PARTITIONS_A_REQUEST = background.DECISIONS_A_STEP = 10**9\n"
"""What a Python of the brokers does as it starts, for work that is not sliced."""


@contextmanager
def in_whole_steps(folder: Path) -> Iterator[None]:
    """Have processes that are started meanwhile slice nothing."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WHOLE, encoding="utf-8")
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), str(Path.cwd()), before)))
    try:
        yield
    finally:
        os.environ["PYTHONPATH"] = before


async def ask(address: str, answers_s: list[float]) -> None:
    """Ask a broker again and again, and note how long each answer took, until it is gone."""
    host, _, port = address.rpartition(":")
    try:
        connection = await TcpTransport().connect(host, int(port), client_id="hearing", timeout_s=DEADLINE_S)
        while True:
            began_s = time.monotonic()
            await connection.request(ApiVersionsRequest(), 0, timeout_s=DEADLINE_S)
            took_s = time.monotonic() - began_s
            answers_s.append(took_s)
            while (took_s := took_s - EVERY_S) > 0:
                answers_s.append(took_s)
            await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began_s)))
    except PeerError:
        return


async def heard(peer: Ours, partitions: int) -> dict[str, float]:
    """Return the figures of one cluster."""
    addresses = peer.bootstrap_servers.split(",")
    answers_s: list[list[float]] = [[] for _ in addresses]
    asking = [asyncio.create_task(ask(*each)) for each in zip(addresses, answers_s, strict=True)]
    figures: dict[str, float] = {}

    def done(what: str, began_s: float) -> None:
        everything = sorted(took_s for of_broker in answers_s for took_s in of_broker)
        figures[f"{what}, s"] = time.monotonic() - began_s
        figures[f"p99 of ApiVersions during {what}, ms"] = 1000 * everything[int(0.99 * len(everything))]
        figures[f"longest during {what}, ms"] = 1000 * everything[-1]
        for of_broker in answers_s:
            of_broker.clear()

    async with KazooView(peer.zookeeper_connect) as view:

        async def led_but_by(dead: int) -> None:
            while True:
                states = [each for each in await view.partitions() if each.topic == TOPIC]
                if len(states) == partitions and all(each.leader not in (-1, dead) for each in states):
                    return
                await asyncio.sleep(1)

        await asyncio.sleep(REST_S)
        for of_broker in answers_s:
            of_broker.clear()
        began_s = time.monotonic()
        admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers})
        new = NewTopic(TOPIC, num_partitions=partitions, replication_factor=BROKERS)
        created = admin.create_topics([new], operation_timeout=DEADLINE_S, request_timeout=DEADLINE_S)[TOPIC]
        await asyncio.to_thread(created.result)
        await led_but_by(-1)
        await asyncio.sleep(REST_S)
        done("creation", began_s)
        controller = await asyncio.to_thread(controller_of, peer)
        began_s = time.monotonic()
        await asyncio.to_thread(peer.kill, controller)
        await asyncio.wait_for(led_but_by(controller), DEADLINE_S)
        await asyncio.sleep(REST_S)
        done("failover", began_s)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    return figures


def measured(folder: Path, partitions: int) -> dict[str, float]:
    """Return the figures of a cluster of its own."""
    peer = Ours(folder, BROKERS, {})
    try:
        return asyncio.run(heard(peer, partitions))
    finally:
        peer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=2000)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        with in_whole_steps(Path(folder) / "site"):
            rows = {"in whole steps": measured(Path(folder) / "whole", options.partitions)}
        rows["in slices"] = measured(Path(folder) / "sliced", options.partitions)
    columns = [{"": name} | {figure: f"{value:,.1f}" for figure, value in of.items()} for name, of in rows.items()]
    Console().print(table_of_columns(f"{options.partitions} partitions on {BROKERS} brokers", columns))
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
