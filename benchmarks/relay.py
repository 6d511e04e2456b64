"""What does a relay cost: round trips, bytes a second, connections a second, with and without it?

    python -m benchmarks.relay [--megabytes 1000]

Both ways between the same ends in one run, by turns; the relay is a process of its own, as in a run. `framed` is a
link to ZooKeeper, whose frames the relay makes whole. The kernel is asked once a connection who it is that connects.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks.measuring import cpu_seconds, table_of_columns
from harness.cluster.ports import LOOPBACK, PortReservations
from harness.cluster.relay import SOCKET_NAME
from harness.cluster.relay.listeners import Listener, Setup, Speech, save
from harness.cluster.supervision.client import SOURCE_ROOT
from harness.system.pids import identify, write_pid_file
from harness.system.waiting import until

ROUND_TRIPS = 5_000
CONNECTIONS = 1_000
MESSAGE = bytes([0, 0, 0, 96]) + bytes(96)
"""A whole frame of ZooKeeper's protocol."""
CHUNK = bytes(1 << 16)
READ_BYTES = 1 << 20
READY_TIMEOUT_S = 30.0


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send short messages back; swallow long ones, and say when all was heard."""
    while data := await reader.read(READ_BYTES):
        if len(data) == len(MESSAGE):
            writer.write(data)
    writer.close()


@asynccontextmanager
async def relayed(folder: Path, target_port: int) -> AsyncIterator[tuple[dict[str, int], psutil.Process]]:
    """Start a relay; yield the ports by what they are, and its process."""
    with PortReservations() as ports:
        plain, asking, framed = ports.reserve(3)
        listeners = [
            Listener(port=plain, destination="broker-0", target_port=target_port, source="clients"),
            Listener(port=asking, destination="broker-0", target_port=target_port),
            Listener(
                port=framed,
                destination="zookeeper-1",
                target_port=target_port,
                source="broker-0",
                speech=Speech.ZOOKEEPER,
            ),
        ]
        save(folder, Setup(listeners=listeners, pids=str(folder / "pids")))
        me = identify(os.getpid())
        assert me is not None, "this process runs"
        write_pid_file(folder / "pids" / "broker-0.pid", me)
        env = {**os.environ, "PYTHONPATH": str(SOURCE_ROOT)}
        argv = [sys.executable, "-m", "harness.cluster.relay", str(folder)]
        relay = await asyncio.create_subprocess_exec(*argv, env=env)

        async def ready() -> bool:
            return (folder / SOCKET_NAME).exists()

        try:
            await until(ready, bool, what="the relay", timeout_s=READY_TIMEOUT_S)
            yield {"relay": plain, "relay, asks the kernel": asking, "relay, framed": framed}, psutil.Process(relay.pid)
        finally:
            relay.terminate()
            await relay.wait()


async def round_trips_us(port: int) -> list[float]:
    """Return how long each of many short questions took until its answer."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    taken = []
    for _ in range(ROUND_TRIPS):
        began_s = time.perf_counter()
        writer.write(MESSAGE)
        await reader.readexactly(len(MESSAGE))
        taken.append((time.perf_counter() - began_s) * 1e6)
    writer.close()
    return taken


async def megabytes_a_second(port: int, megabytes: int) -> float:
    """Send much one way, until the other end has heard all."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    began_s = time.perf_counter()
    for _ in range(megabytes * (1 << 20) // len(CHUNK)):
        writer.write(CHUNK)
        await writer.drain()
    writer.write_eof()
    await reader.read()
    writer.close()
    return megabytes / (time.perf_counter() - began_s)


async def connection_us(port: int) -> float:
    """Connect, be heard and go, many times."""
    began_s = time.perf_counter()
    for _ in range(CONNECTIONS):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write_eof()
        await reader.read()
        writer.close()
    return (time.perf_counter() - began_s) / CONNECTIONS * 1e6


async def measured(name: str, port: int, megabytes: int, relay: psutil.Process) -> dict[str, str]:
    """Return one column of the table."""
    column = {"": name, "MB a second": "", "CPU of the relay, ms a MB": ""}
    taken = await round_trips_us(port)
    column["round trip, median, µs"] = f"{statistics.median(taken):.0f}"
    column["round trip, 99 of 100, µs"] = f"{statistics.quantiles(taken, n=100)[98]:.0f}"
    if "framed" not in name:  # what is sent here is no frames
        before_s = cpu_seconds(relay)
        column["MB a second"] = f"{await megabytes_a_second(port, megabytes):,.0f}"
        column["CPU of the relay, ms a MB"] = f"{(cpu_seconds(relay) - before_s) * 1000 / megabytes:.2f}"
    before_s = cpu_seconds(relay)
    column["a connection, µs"] = f"{await connection_us(port):.0f}"
    column["CPU of the relay, µs a connection"] = f"{(cpu_seconds(relay) - before_s) * 1e6 / CONNECTIONS:.0f}"
    return column


async def compare(folder: Path, megabytes: int) -> list[dict[str, str]]:
    """Measure the same with and without."""
    server = await asyncio.start_server(echo, LOOPBACK, 0, limit=READ_BYTES)
    port = server.sockets[0].getsockname()[1]
    async with server, relayed(folder, port) as (ports, relay):
        ways = {"direct": port, **ports}
        return [await measured(name, port, megabytes, relay) for name, port in ways.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pids").mkdir()
        columns = asyncio.run(compare(Path(folder), options.megabytes))
    Console().print(table_of_columns("What a relay costs", columns))


if __name__ == "__main__":
    main()
