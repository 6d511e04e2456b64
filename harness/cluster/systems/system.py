"""What must be known of a system to test it: how its brokers are configured and started, and what they tell.

A scenario names one, `python` or `kafka:3.9.1`: its family and, behind the colon, its release. A driver decides where
its processes run.
"""

import importlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.errors import ScenarioError

if TYPE_CHECKING:
    from harness.cluster.broker_properties import DriverProperties
    from harness.cluster.driver import BrokerStatus
    from harness.cluster.layout import ClusterLayout
    from harness.cluster.systems.contained import Contained

EXTERNAL = "external"
"""Whatever somebody else started."""
STARTED = ("python", "kafka")
"""The families that drivers start."""
FAMILIES: dict[str, str] = {
    "python": "harness.cluster.systems.python_broker:PythonBroker",
    "kafka": "harness.cluster.systems.kafka.system:ApacheKafka",
    EXTERNAL: "harness.cluster.systems.external:External",
}
"""Systems without their release, each with the module and class that is imported when it is used."""


class System(Protocol):
    """What is under test."""

    @classmethod
    def releases(cls) -> list[str]:
        """Return the releases that there are; an empty name for what has none."""
        ...

    @classmethod
    def of_release(cls, release: str) -> Self:
        """Return that of a release, or raise ScenarioError."""
        ...

    @property
    def name(self) -> str:
        """As scenarios have it."""
        ...

    @property
    def start_timeout_s(self) -> float:
        """After so long a broker that was started serves, on a machine under heavy load too."""
        ...

    @property
    def gone_timeout_s(self) -> float:
        """After so long a broker that got SIGKILL is gone."""
        ...

    @property
    def first_deletion_s(self) -> float:
        """So long after its start a broker looks for the first time for logs that it may delete."""
        ...

    @property
    def tells(self) -> frozenset[str]:
        """The kinds of state changes (`harness/events.py`) that its brokers tell of."""
        ...

    @property
    def omits(self) -> frozenset[str]:
        """What their lines never say of those, as kind.field; it is null."""
        ...

    @property
    def can_have_planted_bugs(self) -> bool:
        """Whether a bug can be planted in it."""
        ...

    @property
    def zookeeper(self) -> bool:
        """Whether it keeps its metadata in ZooKeeper; if not, its brokers are controllers of a quorum too."""
        ...

    @property
    def writes_logs_apart(self) -> bool:
        """Whether its logs are read and written by calls that nothing else of it goes by: those at a position."""
        ...

    def lacks(self) -> str:
        """Return why it cannot be started on this machine, in a sentence; empty if it can."""
        ...

    @property
    def properties_are_ours(self) -> bool:
        """Whether it takes no other properties, of brokers and topics, than our broker; others are left to it."""
        ...

    def effective(self, brokers: int, requested: Mapping[str, str]) -> dict[str, str]:
        """Return every property of a broker as text: the requested one, else that of chaos runs, else the default."""
        ...

    def configure(
        self, layout: "ClusterLayout", broker_id: int, requested: Mapping[str, str], driver: "DriverProperties"
    ) -> Path:
        """Write what a broker is started with; return its properties file."""
        ...

    def command(self, layout: "ClusterLayout", broker_id: int) -> list[str]:
        """Return the command that starts a broker that is configured."""
        ...

    def contained(self, layout: "ClusterLayout", broker_id: int) -> "Contained":
        """Return how a broker that is configured runs in a container."""
        ...

    def event_log(self, broker: "BrokerStatus") -> Path:
        """Return the file in which a broker tells what it does."""
        ...

    def state_changes(self, lines: bytes, kinds: Collection[str]) -> list[dict[str, Any]]:
        """Return what whole lines of that file tell of these kinds of state changes; a torn line tells nothing."""
        ...

    def dated(self, lines: bytes) -> int | None:
        """Return what its wall clock showed at the last of some whole lines of that file; None where none says it.

        In nanoseconds since 1970.
        """
        ...

    def unsynced(self, folder: Path, sync_log: Path) -> dict[Path, int | None]:
        """Return the files in a data directory that a power loss may leave shorter than they are.

        Of each how many bytes are left for certain, or None if not even the file is. `sync_log` is where a broker that
        can has noted what it has synced. What is known is all that was, or less: then it is an upper bound of the loss.

        Raises:
            OSError: a file cannot be read; FileNotFoundError where the broker should have noted something.
        """
        ...

    def gather(self, broker: "BrokerStatus") -> list[str]:
        """Make a broker's state-change log of what it told, if it wrote none itself; return sentences on what is odd.

        Raises:
            OSError: a file cannot be read or written.
        """
        ...


def all_systems() -> list[System]:
    """Return every system of every release that is known."""
    return [_family(family).of_release(release) for family in FAMILIES for release in _family(family).releases()]


def system_named(name: str) -> System:
    """Return the system of that name.

    Raises:
        ScenarioError: there is none; the message names those that there are.
    """
    family, _, release = name.partition(":")
    if family not in FAMILIES:
        raise ScenarioError(f"unknown system {name!r}; known: {', '.join(FAMILIES)} (as kafka:3.9.1)")
    return _family(family).of_release(release)


def _family(name: str) -> type[System]:
    module, _, attribute = FAMILIES[name].partition(":")
    family: type[System] = getattr(importlib.import_module(module), attribute)
    return family
