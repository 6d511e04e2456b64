"""What is known of an existing cluster, and what this run has done to it and must undo."""

import asyncio
import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.cluster.external.commands import carry_out, filled
from harness.cluster.external.forwards import Forward
from harness.cluster.readiness import view_of
from harness.errors import ClusterError
from harness.store.folder import RunFolder
from harness.zookeeper.view import OpenableView

FILE_NAME = "external.json"
NOTES_NAME = "disturbed.json"
LOCK_NAME = "disturbed.lock"
CONNECT_TIMEOUT_S = 5.0
OF_A_RUN = re.compile("chaos-[0-9a-f]{10}-")
"""Prefix of the names of a run's topics."""
CUSTOM = "custom "
"""Prefix of the notes on faults of the cluster file."""
LOGS = "logs"
"""The command that copies the logs of a broker."""
TOUCHED = "touched"
"""Every broker that was ever taken down or paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Where one broker is, as its owner's commands name it."""

    host: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalCluster:
    """The scenario's description of it."""

    cluster_id: str
    bootstrap_servers: str
    zookeeper_connect: str
    """Empty if it has none."""
    hosts: dict[int, Host]
    """By broker id; the cluster has no other brokers."""
    commands: dict[str, str]
    """Templates by action: kill, stop, start, pause, resume, bounce, for evidence data, logs and zookeeper, and for
    each fault of the cluster file `NAME.inject`, `NAME.confirm` and `NAME.heal`."""
    timeout_s: float
    """For each command."""
    prefix: str
    """Prefix of the names of all topics and groups of the run."""
    addresses: dict[int, str] = field(default_factory=dict)
    """host:port by broker id, as advertised by the cluster; known after the first look."""
    client: dict[str, str] = field(default_factory=dict)
    """Settings with which clients connect, under Kafka's names, with references in place of secrets."""
    controllers: dict[int, str] = field(default_factory=dict)
    """Where each controller of its quorum listens, host:port by id; empty with ZooKeeper."""
    relay: dict[int, Forward] = field(default_factory=dict)
    """How clients reach each broker through the harness's relay; empty if they connect to brokers."""
    relay_listens_on: str = ""
    """The address at which the relay listens; empty for those that brokers advertise."""
    release: str = ""
    """Of Apache Kafka, whose wording the brokers' logs have; empty if none can be had."""
    configuration: dict[str, str] = field(default_factory=dict)
    """Properties by which runs are judged, each as the cluster file says, else Kafka's default."""
    began_ns: int = 0
    """When the run began, by the wall clock here."""

    @property
    def unseen(self) -> tuple[str, ...]:
        """Kinds of evidence that cannot be collected; a quorum's metadata log is with its voters' data."""
        voters_are_brokers = self.controllers.keys() <= self.hosts.keys()
        metadata = "data" if self.controllers and voters_are_brokers else "zookeeper" if self.zookeeper_connect else ""
        wanted = {"state_changes": LOGS, "replicas": "data", "zookeeper": metadata}
        return tuple(kind for kind, command in wanted.items() if command not in self.commands)

    def direct(self, broker_id: int) -> str:
        """Return the host:port at which a broker itself listens, past the relay."""
        return self.relay[broker_id].target if self.relay else self.addresses[broker_id]

    def view(self) -> OpenableView:
        """Return the view of its metadata, not yet open; controllers of another cluster answer nothing."""
        return view_of(self.zookeeper_connect, self.controllers, self.cluster_id, self.client, self.bootstrap_servers)

    def carry_out(self, action: str, broker_id: int | None = None, into: Path | None = None) -> None:
        """Carry out a command, on a broker or for ZooKeeper; raises ClusterError if there is none or it fails."""
        if action not in self.commands:
            raise ClusterError(f"the scenario gives no command for {action}")
        own = Host(host="", name="") if broker_id is None else self.hosts[broker_id]
        values = {"host": own.host, "name": own.name, "id": "" if broker_id is None else str(broker_id)}
        target = "" if broker_id is None else f" of broker {broker_id}"
        argv = filled(self.commands[action], values | {"into": str(into or ""), "prefix": self.prefix})
        carry_out(argv, f"the command for {action}{target}", self.timeout_s)

    def save(self, root: Path) -> None:
        """Write it into the cluster's folder."""
        _write(RunFolder(root).cluster / FILE_NAME, asdict(self))

    @classmethod
    def load(cls, root: Path) -> "ExternalCluster":
        """Read it; raises ClusterError when no run ever began there."""
        path = RunFolder(root).cluster / FILE_NAME
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            hosts = {int(broker_id): Host(**own) for broker_id, own in data.pop("hosts").items()}
            addresses, controllers = (
                {int(own_id): address for own_id, address in data.pop(name).items()}
                for name in ("addresses", "controllers")
            )
            relay = {int(broker_id): Forward(**own) for broker_id, own in data.pop("relay").items()}
            return cls(hosts=hosts, addresses=addresses, controllers=controllers, relay=relay, **data)
        except FileNotFoundError:
            raise ClusterError(f"no cluster was started in {root}: there is no {path}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ClusterError(f"{path} does not describe a cluster: {error!r}") from error


@dataclass(frozen=True, slots=True)
class Notes:
    """Which brokers this run has taken down or paused; noted first, so that any process of the run can undo it."""

    root: Path

    def of(self, state: str) -> list[int]:
        """Return the brokers that are `down` or `paused` because of this run, or were ever `touched`.

        Or those on which a fault of the cluster file is in force: `custom NAME`.
        """
        return self._all().get(state, [])

    def custom(self) -> list[tuple[str, int]]:
        """Return the faults of the cluster file that are in force, each with its broker."""
        noted = ((state.removeprefix(CUSTOM), brokers) for state, brokers in self._all().items() if CUSTOM in state)
        return [(name, broker) for name, brokers in noted for broker in brokers]

    def add(self, state: str, broker_id: int) -> None:
        """Note a broker, on disk when this returns; that it was `touched` is noted for good."""
        with self._locked():
            for noted in (TOUCHED, state):
                self._put(noted, sorted({*self.of(noted), broker_id}))

    def remove(self, state: str, broker_id: int) -> None:
        """Note that this was undone."""
        with self._locked():
            self._put(state, [other for other in self.of(state) if other != broker_id])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep the driver and the end of a pause from overwriting each other's notes."""
        with (RunFolder(self.root).cluster / LOCK_NAME).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _all(self) -> dict[str, list[int]]:
        try:
            notes: dict[str, list[int]] = json.loads((RunFolder(self.root).cluster / NOTES_NAME).read_bytes())
        except FileNotFoundError:
            return {}
        return notes

    def _put(self, state: str, brokers: list[int]) -> None:
        _write(RunFolder(self.root).cluster / NOTES_NAME, self._all() | {state: brokers})


async def listens(address: str) -> bool:
    """Return whether a server accepts connections at host:port."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def taken_by_runs(topics: Iterable[str], prefix: str) -> str:
    """Return the topics that forbid a run to start: with its own prefix, or another run's; empty if none."""
    names = sorted(topics)
    if own := [name for name in names if name.startswith(prefix)]:
        return f"topics with the run's prefix exist already: {', '.join(own)}"
    return of_other_runs(names, prefix)


def of_other_runs(topics: Iterable[str], prefix: str) -> str:
    """Return the topics of another run, as a reason to end this one; empty if none."""
    others = sorted(name for name in topics if OF_A_RUN.match(name) and not name.startswith(prefix))
    why = "another run uses this cluster, or left topics that must be deleted first"
    return f"{why}: {', '.join(others)}" if others else ""


def _write(path: Path, data: Mapping[str, object]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600)  # the words of commands may hold secrets
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(data, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
