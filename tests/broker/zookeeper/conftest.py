import subprocess
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from harness.cluster import embedded_zookeeper
from harness.cluster.embedded_zookeeper import ServerPlan
from harness.cluster.ports import PortReservations


@pytest.fixture(scope="session")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a real ZooKeeper server."""
    folder = tmp_path_factory.mktemp("zookeeper")
    with PortReservations() as ports, (folder / "log").open("wb") as log:
        (port,) = ports.reserve(1)
        command = embedded_zookeeper.prepare(folder, ServerPlan(client_port=port, data_dir=str(folder / "data")))
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            first = KazooClient(f"127.0.0.1:{port}")
            first.start(timeout=120)
            first.stop()
            first.close()
            yield port
        finally:
            process.kill()
            process.wait()
