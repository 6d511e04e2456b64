"""Which Kafka properties the brokers of a run get: the harness's profile, what was asked for, what the driver fixes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.broker.configs.config import parse_config
from harness.broker.configs.config_types import ConfigError
from harness.cluster.layout import ClusterLayout
from harness.cluster.ports import LOOPBACK
from harness.errors import ScenarioError

CLIENT_LISTENER = "PLAINTEXT"
PEER_LISTENER = "REPL"
USUAL_REPLICATION_FACTOR = 3

FIXED = frozenset(
    {
        "broker.id",
        "listeners",
        "advertised.listeners",
        "inter.broker.listener.name",
        "log.dir",
        "zookeeper.connect",
        "prometheus.host",
        "prometheus.port",
    }
)
"""What only the driver may set."""
DIRECTORIES = "log.dirs"
"""Several data directories (JBOD), by name: where they lie is the driver's to say."""
_DIRECTORY = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_.]*")


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
        "auto.create.topics.enable": "false",
    }


def directories(given: Mapping[str, str]) -> list[str]:
    """Return the names of the data directories that are asked for; none for the one that every broker has anyway.

    Raises:
        ValueError: a name is a path, could be a replica's, or comes twice.
    """
    text = given.get(DIRECTORIES, "")
    names = [name.strip() for name in text.split(",")] if text else []
    if any(not _DIRECTORY.fullmatch(name) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"expected different names of folders in the broker's own, like disk1,disk2, not {text!r}")
    return names


def check(brokers: int, given: Mapping[str, str]) -> None:
    """Return when brokers would accept these properties.

    Raises:
        ScenarioError: names everything that is wrong with them.
    """
    if brokers < 1:
        raise ScenarioError(f"a cluster has at least one broker, not {brokers}")
    fixed = sorted(FIXED & given.keys())
    if fixed:
        raise ScenarioError(f"broker properties: the driver itself sets {', '.join(fixed)}")
    example = {
        "broker.id": "0",
        "listeners": _listeners(f"{LOOPBACK}:1", f"{LOOPBACK}:2"),
        "inter.broker.listener.name": PEER_LISTENER,
        "log.dir": "/",
        "zookeeper.connect": f"{LOOPBACK}:3",
    }
    try:
        directories(given)
    except ValueError as error:
        raise ScenarioError(f"broker properties: {DIRECTORIES}: {error}") from error
    lines = [name for name, value in given.items() if "\n" in name + value]
    if lines:
        raise ScenarioError(f"broker properties: a line break in {', '.join(lines)}")
    try:
        parse_config({**profile(brokers), **given, **example})
    except ConfigError as error:
        raise ScenarioError(f"broker properties: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a driver alone knows of one broker: its addresses (host:port), and paths as the broker itself sees them."""

    client_address: str
    peer_address: str
    listens_on: tuple[str, str] | None = None
    """Addresses to bind for clients and peers, where those are not the ones that others connect to."""
    metrics_host: str = LOOPBACK
    """The address to serve metrics on, if they are wanted."""
    log_dir: str
    zookeeper_connect: str


def write(layout: ClusterLayout, broker_id: int, given: Mapping[str, str], place: Place) -> Path:
    """Write a broker's properties file and return its path."""
    advertised = _listeners(place.client_address, place.peer_address)
    own = {
        "broker.id": str(broker_id),
        "listeners": advertised if place.listens_on is None else _listeners(*place.listens_on),
        "advertised.listeners": advertised,
        "inter.broker.listener.name": PEER_LISTENER,
        "log.dir": place.log_dir,
        "zookeeper.connect": place.zookeeper_connect,
    }
    if names := directories(given):
        own[DIRECTORIES] = ",".join(f"{place.log_dir}/{name}" for name in names)
    metrics_port = layout.brokers[broker_id].metrics
    if metrics_port is not None:
        own |= {"prometheus.host": place.metrics_host, "prometheus.port": str(metrics_port)}
    path = layout.config_file(broker_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    properties = {**profile(len(layout.brokers)), **given, **own}
    path.write_text("".join(f"{name}={value}\n" for name, value in sorted(properties.items())), encoding="utf-8")
    return path


def _listeners(client: str, peer: str) -> str:
    return f"{CLIENT_LISTENER}://{client},{PEER_LISTENER}://{peer}"
