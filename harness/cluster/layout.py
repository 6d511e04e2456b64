"""Where the parts of one process cluster lie and which ports they have: all that another process needs to attach."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cluster.ports import LOOPBACK
from harness.errors import ClusterError
from harness.store import RunFolder

FILE_NAME = "cluster.json"
ZOOKEEPER = "zookeeper"
"""Name of ZooKeeper's process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPorts:
    """The two listeners of one broker."""

    client: int
    peer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayout:
    """One cluster under a run folder; fixed from its start to its end."""

    root: Path
    """The run folder."""
    run_id: str
    zookeeper_port: int
    brokers: dict[int, BrokerPorts]
    planted_bugs: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The working folder of the cluster: configuration, pid files, data."""
        return RunFolder(self.root).cluster

    @property
    def zookeeper(self) -> Path:
        """ZooKeeper's configuration, log and data."""
        return self.folder / "zookeeper"

    @property
    def zookeeper_log(self) -> Path:
        """What ZooKeeper printed."""
        return self.zookeeper / "zookeeper.log"

    @property
    def zookeeper_connect(self) -> str:
        """Where clients of ZooKeeper connect to."""
        return f"{LOOPBACK}:{self.zookeeper_port}"

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka clients connect to."""
        return ",".join(f"{LOOPBACK}:{ports.client}" for ports in self.brokers.values())

    @property
    def all_ports(self) -> list[int]:
        """Every port that the cluster listens on."""
        return [self.zookeeper_port, *(port for own in self.brokers.values() for port in (own.client, own.peer))]

    def config_file(self, broker_id: int) -> Path:
        """Return a broker's properties file."""
        return self.folder / "brokers" / str(broker_id) / "broker.properties"

    def log_dir(self, broker_id: int) -> Path:
        """Return where a broker keeps its replicas."""
        return self.folder / "brokers" / str(broker_id) / "data"

    def human_log(self, broker_id: int) -> Path:
        """Return the file with what a broker printed."""
        return RunFolder(self.root).broker(broker_id) / "broker.log"

    def state_change_log(self, broker_id: int) -> Path:
        """Return the file where a broker says what it does."""
        return RunFolder(self.root).state_change_log(broker_id)

    def save(self) -> None:
        """Write the layout into the cluster's folder."""
        data: dict[str, Any] = {
            "run_id": self.run_id,
            "zookeeper_port": self.zookeeper_port,
            "brokers": {str(broker_id): [own.client, own.peer] for broker_id, own in self.brokers.items()},
            "planted_bugs": list(self.planted_bugs),
        }
        path = self.folder / FILE_NAME
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def load(cls, root: Path) -> "ClusterLayout":
        """Read the layout of the cluster under a run folder.

        Raises:
            ClusterError: no cluster was ever started there.
        """
        path = RunFolder(root).cluster / FILE_NAME
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                root=root,
                run_id=data["run_id"],
                zookeeper_port=data["zookeeper_port"],
                brokers={
                    int(broker_id): BrokerPorts(client=client, peer=peer)
                    for broker_id, (client, peer) in data["brokers"].items()
                },
                planted_bugs=tuple(data["planted_bugs"]),
            )
        except FileNotFoundError:
            raise ClusterError(f"no cluster was started in {root}: there is no {path}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise ClusterError(f"{path} does not describe a cluster: {error!r}") from error


def broker_process(broker_id: int) -> str:
    """Return the name of a broker's process."""
    return f"broker-{broker_id}"


def client_process(process: str) -> str:
    """Return the name of a client's process."""
    return f"client-{process}"
