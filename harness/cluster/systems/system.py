"""What must be known of a system to test it: how its brokers are configured and started, and what they log.

A scenario names one, `python` or `kafka:3.9.1`: its family and, behind the colon, its release. A driver decides where
its processes run.
"""

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.errors import ScenarioError
from harness.system import plugins

if TYPE_CHECKING:
    from harness.cluster.broker_properties import DriverProperties
    from harness.cluster.driver import BrokerStatus
    from harness.cluster.layout import ClusterLayout
    from harness.cluster.systems.contained import Contained

OF_A_JVM: Mapping[str, int] = MappingProxyType({"message_timeout_ms": 10_000, "request_timeout_ms": 4000})
"""Time-outs of clients of brokers in Java, which begin slowly on a machine under heavy load."""
EXTERNAL = "external"
"""A cluster that existed before the run."""


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
    def steady_timeout_s(self) -> float:
        """After so long the first steady state is reached."""
        ...

    @property
    def recovery_timeout_s(self) -> float:
        """After so long it is reached again once everything is healed, where a scenario says nothing else."""
        ...

    @property
    def load_timeouts_ms(self) -> Mapping[str, int]:
        """Time-outs of a load's clients where a scenario says nothing else, by parameter; else they are the load's."""
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
    def emits(self) -> frozenset[str]:
        """The kinds of state changes (`harness/events.py`) that its brokers log."""
        ...

    @property
    def missing_fields(self) -> frozenset[str]:
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
    def in_containers(self) -> bool:
        """Whether it runs in a container of one of our images."""
        ...

    @property
    def writes_logs_apart(self) -> bool:
        """Whether its logs are read and written by calls at a position, which it uses for nothing else."""
        ...

    @property
    def syncs_are_traced(self) -> bool:
        """Whether only a tracer can tell which files it has synced."""
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

    def upgrades(self) -> list[str]:
        """Return the releases that one of its brokers can be upgraded to; an empty list where there are none."""
        ...

    def upgraded(self, release: str) -> "System":
        """Return that of a release that one of its brokers can be upgraded to.

        Raises:
            ScenarioError: it cannot; the message says why.
        """
        ...

    def configure_again(self, layout: "ClusterLayout", broker_id: int) -> None:
        """Change what a broker is started with, which another release has configured, for this one."""
        ...

    def event_log(self, broker: "BrokerStatus") -> Path:
        """Return the file of a broker's own log."""
        ...

    def state_changes(self, lines: bytes, kinds: Collection[str]) -> list[dict[str, Any]]:
        """Return the state changes of these kinds in whole lines of that file; a torn line is skipped."""
        ...

    def dated(self, lines: bytes) -> int | None:
        """Return what its wall clock showed at the last of some whole lines of that file; None where none says it.

        In nanoseconds since 1970.
        """
        ...

    def release_in(self, lines: bytes) -> str:
        """Return which release the last process is that says so in whole lines of that file; empty where none does."""
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

        Whichever releases wrote the log, the result has the kinds of this one only.

        Raises:
            OSError: a file cannot be read or written.
        """
        ...


@cache
def families() -> tuple[str, ...]:
    """Return the systems without their release; ours is the first, as scenarios get it that name none."""
    names = dict.fromkeys(each.name for each in plugins.found(plugins.Kind.SYSTEM).plugins)
    return tuple(sorted(names, key=lambda name: name == EXTERNAL))


def started() -> frozenset[str]:
    """Return the families that drivers start."""
    return frozenset(families()) - {EXTERNAL}


def all_systems() -> list[System]:
    """Return every system of every release that is known."""
    every = map(family_named, families())
    return [family.of_release(release) for family in every for release in family.releases()]


def system_named(name: str) -> System:
    """Return the system of that name.

    Raises:
        ScenarioError: there is none; the message names those that there are.
        PluginError: it is a plugin that cannot be loaded.
    """
    family, _, release = name.partition(":")
    if family not in families():
        raise ScenarioError(f"unknown system {name!r}; known: {', '.join(families())} (as kafka:3.9.1)")
    return family_named(family).of_release(release)


def family_named(name: str) -> type[System]:
    """Return a system without its release; raises PluginError."""
    family: type[System] = plugins.load(plugins.only(plugins.Kind.SYSTEM, name))
    return family
