"""An existing cluster as the system under test: only what clients see of it is known."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from harness.broker.configs.config import PROPERTIES
from harness.cluster.systems.kafka.kraft import session_timeout
from harness.cluster.systems.system import OF_A_JVM, System
from harness.errors import ScenarioError

if TYPE_CHECKING:
    from harness.cluster.broker_properties import DriverProperties
    from harness.cluster.driver import BrokerStatus
    from harness.cluster.layout import ClusterLayout
    from harness.cluster.systems.contained import Contained

NEVER = "brokers of an existing cluster are never configured or started from here"


@dataclass(frozen=True, slots=True)
class External:
    """Implements System."""

    name: ClassVar[str] = "external"
    start_timeout_s: ClassVar[float] = 240.0
    steady_timeout_s: ClassVar[float] = 120.0
    recovery_timeout_s: ClassVar[float] = 60.0
    load_timeouts_ms: ClassVar[Mapping[str, int]] = OF_A_JVM
    first_deletion_s: ClassVar[float] = 30.0
    gone_timeout_s: ClassVar[float] = 60.0
    emits: ClassVar[frozenset[str]] = frozenset()
    missing_fields: ClassVar[frozenset[str]] = frozenset()
    zookeeper: ClassVar[bool] = True
    in_containers: ClassVar[bool] = False
    can_have_planted_bugs: ClassVar[bool] = False
    properties_are_ours: ClassVar[bool] = False
    writes_logs_apart: ClassVar[bool] = False
    syncs_are_traced: ClassVar[bool] = False

    @classmethod
    def releases(cls) -> list[str]:
        """Return that it has none that matters."""
        return [""]

    @classmethod
    def of_release(cls, release: str) -> Self:
        """Return it; raises ScenarioError for a release."""
        if release:
            raise ScenarioError(f"the system {cls.name} has no releases: there is no {cls.name}:{release}")
        return cls()

    def lacks(self) -> str:
        """Return an empty string: it runs already."""
        return ""

    def effective(self, brokers: int, requested: Mapping[str, str]) -> dict[str, str]:
        """Return what the scenario says that brokers are configured with, else Kafka's defaults."""
        defaults = {prop.name: prop.default or "" for prop in PROPERTIES}
        return defaults | session_timeout(requested, defaults) | dict(requested)

    def configure(
        self, layout: "ClusterLayout", broker_id: int, requested: Mapping[str, str], driver: "DriverProperties"
    ) -> Path:
        """Raise AssertionError, as the next two do: no caller configures an existing cluster."""
        raise AssertionError(NEVER)

    def command(self, layout: "ClusterLayout", broker_id: int) -> list[str]:
        """Raise AssertionError."""
        raise AssertionError(NEVER)

    def contained(self, layout: "ClusterLayout", broker_id: int) -> "Contained":
        """Raise AssertionError."""
        raise AssertionError(NEVER)

    def upgrades(self) -> list[str]:
        """Return that there is none that is known."""
        return []

    def upgraded(self, release: str) -> Self:
        """Raise ScenarioError."""
        raise ScenarioError(NEVER)

    def configure_again(self, layout: "ClusterLayout", broker_id: int) -> None:
        """Raise AssertionError."""
        raise AssertionError(NEVER)

    def event_log(self, broker: "BrokerStatus") -> Path:
        """Return a file that there never is."""
        return broker.state_change_log

    def state_changes(self, lines: bytes, kinds: Collection[str]) -> list[dict[str, Any]]:
        """Return nothing."""
        return []

    def dated(self, lines: bytes) -> int | None:
        """Return that nothing says it."""
        return None

    def release_in(self, lines: bytes) -> str:
        """Return that nothing says it."""
        return ""

    def unsynced(self, folder: Path, sync_log: Path) -> dict[Path, int | None]:
        """Raise AssertionError: no power is cut here."""
        raise AssertionError(NEVER)

    def gather(self, broker: "BrokerStatus") -> list[str]:
        """Do nothing: there is nothing to make a log of."""
        return []


PLUGIN: type[System] = External
