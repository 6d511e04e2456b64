"""Where a relay listens, for which host, and where it forwards to; written down before it starts."""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

from harness.cluster.ports import LOOPBACK

FILE_NAME = "relay.json"


class Speech(StrEnum):
    """What the relay understands."""

    ZOOKEEPER = "zookeeper"
    """A ZooKeeper server and its client, of which it may lose a reply."""
    KAFKA = "kafka"
    """Kafka's protocol, of which single messages are intercepted."""
    ELECTION = "election"
    """Two ZooKeeper servers, of which one tells the other where it listens itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One port of the relay."""

    port: int
    destination: str
    """The host that it leads to."""
    target_port: int
    """Where that host itself listens."""
    target: str = LOOPBACK
    """The address at which."""
    host: str = ""
    """Where the relay listens, if not where `Setup` says."""
    source: str | None = None
    """The host that alone knows this port; None where several do, and `Setup` says how they are told apart."""
    patience_s: float = 0.0
    """For so long the relay retries a refused port: it has accepted, so the connecting side will not retry."""
    speech: Speech | None = None
    """What is spoken there, if the relay has to understand some of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Everything that a relay receives at its start."""

    listeners: list[Listener]
    listens_on: str = LOOPBACK
    pids: str | None = None
    """Folder of the hosts' pid files, if they are processes beside it; the kernel names the owner of a connection."""
    addresses: dict[str, str] = field(default_factory=dict)
    """The hosts by the addresses that they connect from, if each has its own."""


def save(folder: Path, setup: Setup) -> None:
    """Write it into the relay's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE_NAME).write_text(json.dumps(asdict(setup), indent=2) + "\n", encoding="utf-8")


def load(folder: Path) -> Setup:
    """Read what `save` wrote."""
    values = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
    return Setup(**(values | {"listeners": [Listener(**each) for each in values["listeners"]]}))
