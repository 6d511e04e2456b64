import asyncio
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from harness.cluster import embedded_zookeeper
from harness.cluster.embedded_zookeeper import ServerPlan
from harness.cluster.ports import PortReservations
from harness.system.waiting import until


@dataclass(frozen=True)
class Server:
    hosts: str
    data_dir: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real ZooKeeper server of this module's own."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with PortReservations() as ports, (folder / "log").open("wb") as log:
        (port,) = ports.reserve(1)
        plan = ServerPlan(client_port=port, data_dir=str(folder / "data"))
        process = subprocess.Popen(embedded_zookeeper.prepare(folder, plan), stdout=log, stderr=log)
        try:

            async def serves() -> bool:
                return await embedded_zookeeper.serves(port)

            asyncio.run(until(serves, bool, what="ZooKeeper", timeout_s=120))
            yield Server(f"127.0.0.1:{port}", Path(plan.data_dir))
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def client(server: Server) -> Iterator[KazooClient]:
    """A session of another client."""
    client = KazooClient(hosts=server.hosts)
    client.start(timeout=120)
    yield client
    client.stop()
    client.close()
