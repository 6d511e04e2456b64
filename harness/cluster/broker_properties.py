"""Which Kafka properties does a broker of a run get: from the harness's profile, the scenario and the driver?"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.broker.configs.config import PROPERTIES, parse_config
from harness.broker.configs.config_types import ConfigError
from harness.cluster.layout import ClusterLayout
from harness.cluster.ports import LOOPBACK
from harness.errors import ScenarioError
from harness.properties_file import ENCODING, escaped, properties_in

CLIENT_LISTENER = "PLAINTEXT"
PEER_LISTENER = "REPL"
PROTOCOLS = f"{CLIENT_LISTENER}:PLAINTEXT,{PEER_LISTENER}:PLAINTEXT"
USUAL_REPLICATION_FACTOR = 3

SET_BY_DRIVER = frozenset(
    {
        "broker.id",
        "listeners",
        "advertised.listeners",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "log.dir",
        "zookeeper.connect",
        "prometheus.host",
        "prometheus.port",
    }
)
"""Properties that only the driver may set."""
SET_FOR_QUORUM = frozenset(
    {
        "process.roles",
        "node.id",
        "controller.listener.names",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "metadata.log.dir",
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
    }
)
"""The same without ZooKeeper: the voters of the quorum, and that its log stays in place and complete."""
LOG_DIRS = "log.dirs"
"""A scenario gives names of data directories (JBOD); the driver makes paths of them."""
RACK = "broker.rack"
"""A scenario may give several names, separated by commas: brokers get them in turn, by their ids."""
_DIRECTORY_NAME = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.]*")


def profile(brokers: int) -> dict[str, str]:
    """Return the defaults of chaos runs: Kafka's, with time-outs short enough to see several faults a minute."""
    replication_factor = str(min(USUAL_REPLICATION_FACTOR, brokers))
    return {
        "zookeeper.session.timeout.ms": "4000",
        "replica.lag.time.max.ms": "3000",
        "replica.fetch.backoff.ms": "100",
        "replica.high.watermark.checkpoint.interval.ms": "1000",
        "controller.socket.timeout.ms": "5000",
        "controlled.shutdown.retry.backoff.ms": "500",
        "default.replication.factor": replication_factor,
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": replication_factor,
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": replication_factor,
        "transaction.state.log.min.isr": str(min(2, brokers)),
        "auto.create.topics.enable": "false",
    }


def effective(brokers: int, requested: Mapping[str, str]) -> dict[str, str]:
    """Return every property of a broker as text: the requested one, else the profile's, else Kafka's default."""
    return {prop.name: prop.default or "" for prop in PROPERTIES} | profile(brokers) | dict(requested)


def data_directories(requested: Mapping[str, str]) -> list[str]:
    """Return the names of the requested data directories; an empty list means the usual single one.

    Raises:
        ValueError: a name is a path, looks like a replica's folder, or is there twice.
    """
    text = requested.get(LOG_DIRS, "")
    names = [name.strip() for name in text.split(",")] if text else []
    if any(not _DIRECTORY_NAME.fullmatch(name) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"expected different names of folders in the broker's own, like disk1,disk2, not {text!r}")
    return names


def rack(broker_id: int, requested: Mapping[str, str]) -> dict[str, str]:
    """Return a broker's own rack as a property; none where no racks are requested."""
    names = [name.strip() for name in requested.get(RACK, "").split(",")]
    return {RACK: names[broker_id % len(names)]} if any(names) else {}


def set_by_driver(*, zookeeper: bool) -> frozenset[str]:
    """Return the properties that only the driver may set, of brokers with ZooKeeper or without."""
    return SET_BY_DRIVER if zookeeper else SET_BY_DRIVER | SET_FOR_QUORUM


def validate(brokers: int, requested: Mapping[str, str], *, ours: bool = True, zookeeper: bool = True) -> None:
    """Check that brokers accept these properties; for Apache Kafka, only that a properties file can hold them.

    Raises:
        ScenarioError: they would not; the message names the properties.
    """
    if brokers < 1:
        raise ScenarioError(f"a cluster has at least one broker, not {brokers}")
    if reserved := sorted(set_by_driver(zookeeper=zookeeper) & requested.keys()):
        raise ScenarioError(f"broker properties: the driver itself sets {', '.join(reserved)}")
    example = {
        "broker.id": "0",
        "listeners": _listeners(f"{LOOPBACK}:1", f"{LOOPBACK}:2"),
        "inter.broker.listener.name": PEER_LISTENER,
        "listener.security.protocol.map": PROTOCOLS,
        "log.dir": "/",
        "zookeeper.connect": f"{LOOPBACK}:3",
    }
    try:
        data_directories(requested)
    except ValueError as error:
        raise ScenarioError(f"broker properties: {LOG_DIRS}: {error}") from error
    if multiline := [name for name, value in requested.items() if "\n" in name + value]:
        raise ScenarioError(f"broker properties: a line break in {', '.join(multiline)}")
    try:
        if ours:
            parse_config({**profile(brokers), **requested, **example})
    except ConfigError as error:
        raise ScenarioError(f"broker properties: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverProperties:
    """What only the driver knows of one broker: its addresses (host:port), and paths as the broker itself sees them."""

    client_address: str
    peer_address: str
    listens_on: tuple[str, str] | None = None
    """Addresses to bind for clients and for peers; None if they are the advertised ones."""
    metrics_host: str = LOOPBACK
    """The address to serve metrics on, if the layout has a port for them."""
    log_dir: str
    zookeeper_connect: str
    controllers: Mapping[int, str] = field(default_factory=dict)
    """Where servers reach each controller, host:port by id; empty with ZooKeeper."""
    controller_listens_on: str | None = None
    """The address to bind as a controller; None if it is the advertised one."""


def write(
    layout: ClusterLayout,
    broker_id: int,
    requested: Mapping[str, str],
    driver: DriverProperties,
    change: Callable[[dict[str, str]], dict[str, str]] = dict,
) -> Path:
    """Write a broker's properties file, as its system needs the properties, and return its path."""
    advertised = _listeners(driver.client_address, driver.peer_address)
    own = {
        "broker.id": str(broker_id),
        "listeners": advertised if driver.listens_on is None else _listeners(*driver.listens_on),
        "advertised.listeners": advertised,
        "inter.broker.listener.name": PEER_LISTENER,
        "listener.security.protocol.map": PROTOCOLS,
        "log.dir": driver.log_dir,
        "zookeeper.connect": driver.zookeeper_connect,
    } | rack(broker_id, requested)
    if names := data_directories(requested):
        own[LOG_DIRS] = ",".join(f"{driver.log_dir}/{name}" for name in names)
    broker = layout.brokers.get(broker_id)
    if broker is not None and broker.metrics is not None:
        own |= {"prometheus.host": driver.metrics_host, "prometheus.port": str(broker.metrics)}
    path = layout.config_file(broker_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    _save(path, change({**profile(len(layout.brokers)), **requested, **own}))
    return path


def add(path: Path, properties: Mapping[str, str]) -> None:
    """Add properties to a broker's file; those already there stay."""
    _save(path, {**properties, **properties_in(path.read_text(encoding=ENCODING))})


def _save(path: Path, properties: Mapping[str, str]) -> None:
    lines = (f"{name}={escaped(value)}\n" for name, value in sorted(properties.items()))
    path.write_text("".join(lines), encoding=ENCODING)


def _listeners(client: str, peer: str) -> str:
    return f"{CLIENT_LISTENER}://{client},{PEER_LISTENER}://{peer}"
