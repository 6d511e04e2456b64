"""The built-in broker, which writes its own state-change log with every kind of event."""

import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from harness.broker.log.sync_log import read_syncs
from harness.cluster import broker_properties
from harness.cluster.systems.contained import BROKER_CONFIG, BROKER_LOGS, BROKER_SYNCS, Contained
from harness.cluster.systems.system import System
from harness.errors import ScenarioError
from harness.events import KINDS

if TYPE_CHECKING:
    from harness.cluster.broker_properties import DriverProperties
    from harness.cluster.driver import BrokerStatus
    from harness.cluster.layout import ClusterLayout


@dataclass(frozen=True, slots=True)
class PythonBroker:
    """Implements System."""

    name: ClassVar[str] = "python"
    start_timeout_s: ClassVar[float] = 60.0
    """Two idle cores take three seconds."""
    steady_timeout_s: ClassVar[float] = 60.0
    recovery_timeout_s: ClassVar[float] = 30.0
    load_timeouts_ms: ClassVar[Mapping[str, int]] = MappingProxyType({})
    first_deletion_s: ClassVar[float] = 0.0
    gone_timeout_s: ClassVar[float] = 5.0
    emits: ClassVar[frozenset[str]] = frozenset(KINDS)
    missing_fields: ClassVar[frozenset[str]] = frozenset()
    can_have_planted_bugs: ClassVar[bool] = True
    properties_are_ours: ClassVar[bool] = True
    writes_logs_apart: ClassVar[bool] = True
    syncs_are_traced: ClassVar[bool] = False
    zookeeper: ClassVar[bool] = True
    in_containers: ClassVar[bool] = True

    @classmethod
    def releases(cls) -> list[str]:
        """Return that it has none."""
        return [""]

    @classmethod
    def of_release(cls, release: str) -> Self:
        """Return it; raises ScenarioError for a release."""
        if release:
            raise ScenarioError(f"the system {cls.name} has no releases: there is no {cls.name}:{release}")
        return cls()

    def lacks(self) -> str:
        """Return an empty string: what runs this runs the broker."""
        return ""

    def effective(self, brokers: int, requested: Mapping[str, str]) -> dict[str, str]:
        """Return every property of a broker as text."""
        return broker_properties.effective(brokers, requested)

    def configure(
        self, layout: "ClusterLayout", broker_id: int, requested: Mapping[str, str], driver: "DriverProperties"
    ) -> Path:
        """Write a broker's properties file and return its path."""
        return broker_properties.write(layout, broker_id, requested, driver)

    def command(self, layout: "ClusterLayout", broker_id: int) -> list[str]:
        """Return the command that starts a broker."""
        state_log = layout.state_change_log(broker_id).resolve()
        state_log.parent.mkdir(parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "harness.broker"]
        argv += ["--config", str(layout.config_file(broker_id).resolve()), "--state-log", str(state_log)]
        if layout.syncs:
            argv += ["--sync-log", str(layout.sync_log(broker_id).resolve())]
        for bug in layout.planted_bugs:
            argv += ["--planted-bug", bug]
        return argv

    def contained(self, layout: "ClusterLayout", broker_id: int) -> Contained:
        """Return how a broker runs in a container."""
        command = ["--config", BROKER_CONFIG]
        command += ["--state-log", f"{BROKER_LOGS}/{layout.state_change_log(broker_id).name}"]
        command += ["--log", f"{BROKER_LOGS}/{layout.human_log(broker_id).name}"]
        if layout.syncs:
            command += ["--sync-log", BROKER_SYNCS]
        for bug in layout.planted_bugs:
            command += ["--planted-bug", bug]
        return Contained(image="broker", command=command)

    def upgrades(self) -> list[str]:
        """Return that there is no other release."""
        return []

    def upgraded(self, release: str) -> Self:
        """Raise ScenarioError."""
        raise ScenarioError(f"the system {self.name} has one release only, and nothing to upgrade to")

    def configure_again(self, layout: "ClusterLayout", broker_id: int) -> None:
        """Do nothing: there is no other release."""

    def event_log(self, broker: "BrokerStatus") -> Path:
        """Return its state-change log."""
        return broker.state_change_log

    def state_changes(self, lines: bytes, kinds: Collection[str]) -> list[dict[str, Any]]:
        """Return the lines of these kinds; one torn by a kill and continued by the next process is none."""
        likely = (line for line in lines.splitlines() if any(kind.encode() in line for kind in kinds))
        return [event for event in map(_object, likely) if event.get("ev") in kinds]

    def dated(self, lines: bytes) -> int | None:
        """Return the wall clock of the last line."""
        return next((event["ts"] for event in map(_object, reversed(lines.splitlines())) if "ts" in event), None)

    def release_in(self, lines: bytes) -> str:
        """Return that nothing says it."""
        return ""

    def unsynced(self, folder: Path, sync_log: Path) -> dict[Path, int | None]:
        """Return the files of which more was written than synced, by the broker's own log of its syncs."""
        synced = read_syncs(sync_log)
        files = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
        return {path: synced[it.st_ino] for path, it in files.items() if synced.get(it.st_ino, it.st_size) < it.st_size}

    def gather(self, broker: "BrokerStatus") -> list[str]:
        """Do nothing: the log is there."""
        return []


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


PLUGIN: type[System] = PythonBroker
