"""Where does a relay listen, on whose behalf, and where does it lead? Written down before it starts."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_NAME = "relay.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One port of the relay."""

    port: int
    destination: str
    """The host that it leads to."""
    target_port: int
    """Where that host itself listens."""
    source: str | None = None
    """The host that alone knows this port; None where several do, and the kernel is asked whose a connection is."""
    zookeeper: bool = False
    """Whether it leads to a ZooKeeper server, whose framing the relay then follows."""


def save(folder: Path, listeners: Iterable[Listener]) -> None:
    """Write them into the cluster's folder."""
    (folder / FILE_NAME).write_text(json.dumps([asdict(each) for each in listeners], indent=2) + "\n", encoding="utf-8")


def load(folder: Path) -> list[Listener]:
    """Read what `save` wrote."""
    return [Listener(**each) for each in json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))]
