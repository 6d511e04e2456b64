"""The ports and folders of one cluster, saved so that another process can attach."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.cluster.ports import LOOPBACK
from harness.errors import ClusterError
from harness.store.folder import RunFolder
from harness.system.whole_file import replace_text
from harness.values import PYTHON

FILE_NAME = "cluster.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPorts:
    """The ports of one broker on this host's loopback."""

    client: int
    peer: int | None = None
    """None where other brokers reach it by name, on a container network."""
    metrics: int | None = None
    """None when it serves no metrics."""
    controller: int | None = None
    """None when it is no controller of a quorum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperPorts:
    """The ports of one ZooKeeper server on this host's loopback."""

    client: int
    quorum: int | None = None
    """With `election`, for the other servers of an ensemble; None for a single server, or one reached by name."""
    election: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayPorts:
    """Where the relay listens for clients of one broker, and for the broker's own connections."""

    client: int
    peer: int
    zookeeper: dict[int, int]
    """By ZooKeeper server, where this broker reaches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRelayPorts:
    """Where the relay listens for one ZooKeeper server, by the server that it is to reach there."""

    quorum: dict[int, int]
    election: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLayout:
    """One cluster under a run folder; fixed from its start to its end."""

    root: Path
    """The run folder."""
    run_id: str
    driver: str
    zookeeper: dict[int, ZookeeperPorts]
    brokers: dict[int, BrokerPorts]
    planted_bugs: tuple[str, ...]
    system: str = PYTHON
    quorum: dict[int, int] = field(default_factory=dict)
    """Ports of controllers that are not brokers, by id; empty if brokers are controllers."""
    relay: dict[int, RelayPorts] = field(default_factory=dict)
    """By broker; empty without a relay."""
    relay_servers: dict[int, ServerRelayPorts] = field(default_factory=dict)
    """By ZooKeeper server; empty for a single one, or without a relay."""
    relay_controllers: dict[int, int] = field(default_factory=dict)
    """Ports of the relay for connections to a controller, by its id; empty without a quorum or a relay."""
    clocks: bool = False
    """Whether brokers load the library that sets their wall clocks."""
    syncs: bool = False
    """Whether brokers that can do so record their syncs."""
    sync_traces: bool = False
    """Whether a tracer records the syncs of brokers that cannot do so."""
    intercepts: bool = False
    """Whether the relay reads Kafka's messages."""
    zookeeper_syncs: bool = False
    """Whether ZooKeeper's servers sync their writes."""
    disk_files: bool = False
    """Whether brokers in containers have their data in folders of this machine."""
    disks: bool = False
    """Whether each broker's data directory is a file system of its own, visible to the cluster's processes only."""
    disk_errors: bool = False
    """Whether brokers load the library that makes their disks fail."""

    @property
    def folder(self) -> Path:
        """The working folder of the cluster: configuration, pid files, data."""
        return RunFolder(self.root).cluster

    @property
    def zookeeper_connect(self) -> str:
        """Where clients of ZooKeeper on this host connect to: all servers."""
        return ",".join(f"{LOOPBACK}:{ports.client}" for ports in self.zookeeper.values())

    @property
    def controllers(self) -> dict[int, str]:
        """Where each controller of the quorum listens, host:port by its id; empty with ZooKeeper."""
        of_brokers = {id_: own.controller for id_, own in self.brokers.items() if own.controller is not None}
        return {id_: f"{LOOPBACK}:{port}" for id_, port in (of_brokers | self.quorum).items()}

    @property
    def quorum_addresses(self) -> dict[int, str]:
        """Where servers reach each controller: where it listens, or where the relay does, if there is one."""
        return self.controllers | {id_: f"{LOOPBACK}:{port}" for id_, port in self.relay_controllers.items()}

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka clients connect to."""
        return ",".join(map(self.client_address, self.brokers))

    @property
    def all_ports(self) -> list[int]:
        """Every port of this host's loopback that the cluster listens on."""
        servers = [port for own in self.zookeeper.values() for port in (own.client, own.quorum, own.election)]
        brokers = [
            port for own in self.brokers.values() for port in (own.client, own.peer, own.metrics, own.controller)
        ]
        relay = [port for own in self.relay.values() for port in (own.client, own.peer, *own.zookeeper.values())]
        relay += [
            port for own in self.relay_servers.values() for port in (*own.quorum.values(), *own.election.values())
        ]
        relay += self.relay_controllers.values()
        return [port for port in (*servers, *brokers, *self.quorum.values(), *relay) if port is not None]

    def client_address(self, broker_id: int) -> str:
        """Return where clients reach a broker."""
        return f"{LOOPBACK}:{self.relay.get(broker_id, self.brokers[broker_id]).client}"

    def zookeeper_connect_of(self, broker_id: int) -> str:
        """Return where a broker connects to ZooKeeper."""
        relay = self.relay.get(broker_id)
        if relay is None:
            return self.zookeeper_connect
        return ",".join(f"{LOOPBACK}:{port}" for port in relay.zookeeper.values())

    def ensemble_of(self, server_id: int, own: str, relay_host: str, others: Mapping[int, str]) -> dict[int, str]:
        """Return host:quorum:election of every server, as one of them is configured; empty for a single one.

        Its `own` is where it listens; the `others` are reached there, or through the relay, if there is one.
        """
        if len(self.zookeeper) == 1:
            return {}
        relayed = self.relay_servers.get(server_id)
        if relayed is not None:
            others = {id_: f"{relay_host}:{relayed.quorum[id_]}:{relayed.election[id_]}" for id_ in relayed.quorum}
        return {id_: own if id_ == server_id else others[id_] for id_ in self.zookeeper}

    def zookeeper_folder(self, server_id: int) -> Path:
        """Return the folder with one ZooKeeper server's configuration, log and data."""
        return self.folder / "zookeeper" / str(server_id)

    def zookeeper_data(self, server_id: int) -> Path:
        """Return where one ZooKeeper server's transaction logs and snapshots lie."""
        return self.zookeeper_folder(server_id) / "data"

    def zookeeper_log(self, server_id: int) -> Path:
        """Return one ZooKeeper server's log file."""
        return self.zookeeper_folder(server_id) / "log" / "zookeeper.log"

    def config_file(self, broker_id: int) -> Path:
        """Return a broker's properties file."""
        return self.folder / "brokers" / str(broker_id) / "broker.properties"

    def log_dir(self, broker_id: int) -> Path:
        """Return the folder of a broker's replicas."""
        return self.folder / "brokers" / str(broker_id) / "data"

    def sync_log(self, broker_id: int) -> Path:
        """Return the file of a broker's record of syncs."""
        return self.log_dir(broker_id).with_name("sync.log")

    def human_log(self, broker_id: int) -> Path:
        """Return a broker's log for people."""
        return RunFolder(self.root).broker(broker_id) / "broker.log"

    def state_change_log(self, broker_id: int) -> Path:
        """Return a broker's state-change log."""
        return RunFolder(self.root).state_change_log(broker_id)

    def save(self) -> None:
        """Write the layout into the cluster's folder."""
        data: dict[str, Any] = {
            "run_id": self.run_id,
            "driver": self.driver,
            "system": self.system,
            "zookeeper": {str(server_id): asdict(own) for server_id, own in self.zookeeper.items()},
            "brokers": {str(broker_id): asdict(own) for broker_id, own in self.brokers.items()},
            "quorum": {str(controller_id): port for controller_id, port in self.quorum.items()},
            "planted_bugs": list(self.planted_bugs),
            "relay": {str(broker_id): asdict(own) for broker_id, own in self.relay.items()},
            "relay_servers": {str(server_id): asdict(own) for server_id, own in self.relay_servers.items()},
            "relay_controllers": {str(id_): port for id_, port in self.relay_controllers.items()},
            "clocks": self.clocks,
            "syncs": self.syncs,
            "sync_traces": self.sync_traces,
            "disk_files": self.disk_files,
            "disks": self.disks,
            "disk_errors": self.disk_errors,
            "intercepts": self.intercepts,
            "zookeeper_syncs": self.zookeeper_syncs,
        }
        replace_text(self.folder / FILE_NAME, json.dumps(data, indent=2) + "\n")

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
                driver=data["driver"],
                system=data["system"],
                zookeeper={int(server_id): ZookeeperPorts(**own) for server_id, own in data["zookeeper"].items()},
                brokers={int(broker_id): BrokerPorts(**own) for broker_id, own in data["brokers"].items()},
                quorum={int(controller_id): port for controller_id, port in data.get("quorum", {}).items()},
                planted_bugs=tuple(data["planted_bugs"]),
                relay={int(broker_id): _relay_ports(own) for broker_id, own in data.get("relay", {}).items()},
                relay_servers={
                    int(id_): _server_relay_ports(own) for id_, own in data.get("relay_servers", {}).items()
                },
                relay_controllers={int(id_): port for id_, port in data.get("relay_controllers", {}).items()},
                clocks=data.get("clocks", False),
                syncs=data.get("syncs", False),
                sync_traces=data.get("sync_traces", False),
                disk_files=data.get("disk_files", False),
                disks=data.get("disks", False),
                disk_errors=data.get("disk_errors", False),
                intercepts=data.get("intercepts", False),
                zookeeper_syncs=data.get("zookeeper_syncs", False),
            )
        except FileNotFoundError:
            raise ClusterError(f"no cluster was started in {root}: there is no {path}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise ClusterError(f"{path} does not describe a cluster: {error!r}") from error


def _relay_ports(own: dict[str, Any]) -> RelayPorts:
    zookeeper = {int(server_id): port for server_id, port in own["zookeeper"].items()}
    return RelayPorts(client=own["client"], peer=own["peer"], zookeeper=zookeeper)


def _server_relay_ports(own: dict[str, Any]) -> ServerRelayPorts:
    return ServerRelayPorts(**{kind: {int(id_): port for id_, port in ports.items()} for kind, ports in own.items()})


def resource_name(root: Path, process: str) -> str:
    """Return the name of a resource of the machine, or of an engine, for a process of the run in this folder."""
    return f"chaos-{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:10]}-{process}"


def zookeeper_process(server_id: int) -> str:
    """Return the name of a ZooKeeper server's process."""
    return f"zookeeper-{server_id}"


def broker_process(broker_id: int) -> str:
    """Return the name of a broker's process."""
    return f"broker-{broker_id}"


def client_process(process: str) -> str:
    """Return the name of a client's process."""
    return f"client-{process}"
