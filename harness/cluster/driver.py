"""What must every cluster driver be able to do, and which capabilities may a fault require?

A driver keeps its whole state in the run folder, so that any process can attach to a running cluster: one Airflow task
starts it, another one drives it, a third one stops it.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

from harness.cluster.capabilities import (
    CanAsk,
    CanCutPower,
    CanDamageDisk,
    CanDelay,
    CanDropPackets,
    CanFailDisk,
    CanFillDisk,
    CanIntercept,
    CanIsolate,
    CanIsolateZookeeper,
    CanKillZookeeper,
    CanLimit,
    CanLoseReplies,
    CanPartition,
    CanPauseZookeeper,
    CanProbe,
    CanReset,
    CanRunCommands,
    CanSendBytes,
    CanSetClock,
    CanSlowSyncs,
    CanStartEarly,
    CanUpgrade,
)
from harness.cluster.releases import Writer
from harness.system.process_state import ProcessState
from harness.values import PYTHON, value_class

if TYPE_CHECKING:
    from harness.cluster.external.place import ExternalCluster
    from harness.progress import Progress
    from harness.store.phase_log import PhaseNotes

RunT_contra = TypeVar("RunT_contra", contravariant=True)
"""A recorded run, which is a value of higher floors (`harness.run.run.Run`)."""


@value_class(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """One broker as the driver sees it."""

    broker_id: int
    state: ProcessState
    """running, paused or stopped."""
    pid: int | None
    client_address: str
    """host:port of the client listener."""
    peer_address: str
    """host:port of the listener for other brokers."""
    log_dir: Path
    state_change_log: Path
    human_log: Path | None
    """None when it writes none."""
    starts: int
    """How often this broker was started in this run."""
    container: str | None = None
    """Name of its container; None when it has none."""
    metrics_url: str | None = None
    """Where Prometheus finds its metrics; None when it serves none."""
    clock_log: Path | None = None
    """Record of the changes of its wall clock; None if it cannot be changed."""
    writers: tuple[Writer, ...] = ()
    """Writers of its log, in order; empty if the cluster's release wrote all of it."""


@value_class(frozen=True, slots=True, kw_only=True)
class ZookeeperStatus:
    """One ZooKeeper server as the driver sees it."""

    server_id: int
    state: ProcessState
    """running, paused or stopped."""
    pid: int | None
    client_address: str
    """host:port, as the harness reaches it."""
    data_dir: Path
    log: Path
    container: str | None = None
    """Name of its container; None when it has none."""


@value_class(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The whole cluster as the driver sees it; `as_dict` is what `chaos cluster status --json` prints."""

    driver: str
    root: Path
    bootstrap_servers: str
    zookeeper_connect: str
    zookeeper: tuple[ZookeeperStatus, ...]
    """Empty without ZooKeeper, or when the cluster is gone and its evidence complete."""
    brokers: tuple[BrokerStatus, ...]
    system: str = PYTHON
    """The system under test, by the name that scenarios use."""
    unseen: tuple[str, ...] = ()
    """Kinds of evidence that cannot be collected from it."""
    prefix: str = ""
    """Prefix of all the run's topics; if set, other topics are no evidence."""
    controllers: dict[int, str] = field(default_factory=dict)
    """Where each controller of its quorum listens, host:port by id; empty with ZooKeeper."""
    client: dict[str, str] = field(default_factory=dict)
    """Settings with which clients connect, under Kafka's names, with references in place of secrets."""
    quorum: tuple[BrokerStatus, ...] = ()
    """Controllers that are not brokers, as `BrokerStatus`; the client address is their listener."""
    severed: str = ""
    """Why intact servers may not reach each other; empty if nothing is known."""

    @property
    def has_metadata(self) -> bool:
        """Whether a metadata service is still up; if not, there is nothing to heal and nothing to merge."""
        return bool(self.zookeeper or self.controllers or self.prefix)

    def broker(self, broker_id: int) -> BrokerStatus:
        """Return the status of one broker, or controller that is none; KeyError for an unknown id."""
        for status in (*self.brokers, *self.quorum):
            if status.broker_id == broker_id:
                return status
        raise KeyError(broker_id)

    def writers(self, broker_id: int) -> tuple[Writer, ...]:
        """Return the writers of a broker's log, in order."""
        return self.broker(broker_id).writers or (Writer(0, self.system),)

    def system_of(self, broker_id: int) -> str:
        """Return the system of a broker, as it runs or will be started, by the name that scenarios use."""
        return self.writers(broker_id)[-1].system

    def running(self, brokers: Iterable[int]) -> list[int]:
        """Return those of these brokers that run and are not paused."""
        return [broker for broker in brokers if self.broker(broker).state == ProcessState.RUNNING]

    def alive(self, brokers: Iterable[int]) -> list[int]:
        """Return those that have a process, paused or not."""
        return [broker for broker in brokers if self.broker(broker).state != ProcessState.STOPPED]

    def starts(self, brokers: Iterable[int]) -> dict[str, int]:
        """Return how often each was started, by its id; the keys are text, as in JSON."""
        return {str(broker): self.broker(broker).starts for broker in brokers}

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON types; `brokers` is a list in the order of their ids.

        `zookeeper_data_dir` and `zookeeper_pid` are those of the first server, for scripts that expect a single one;
        null without any.
        """
        first = self.zookeeper[0] if self.zookeeper else None
        of_first = {"zookeeper_data_dir": first and first.data_dir, "zookeeper_pid": first and first.pid}
        values = asdict(self) | of_first
        return cast("dict[str, Any]", json.loads(json.dumps(values, default=str)))


ENSEMBLES = (1, 3)
"""How many ZooKeeper servers there may be, or controllers of a quorum."""
FIRST_SEPARATE_ID = 101
"""First id of controllers that are not brokers, so that ids do not collide."""


def quorum_ids(brokers: int, controllers: int | None, *, separate: bool) -> range:
    """Return the ids of the controllers without ZooKeeper; None stands for the default number."""
    if separate:
        return range(FIRST_SEPARATE_ID, FIRST_SEPARATE_ID + (controllers or 1))
    return range(controllers or max(number for number in ENSEMBLES if number <= brokers))


@value_class(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """What to start."""

    brokers: int
    properties: dict[str, str]
    system: str = PYTHON
    """The system under test, by the name that scenarios use."""
    planted_bugs: tuple[str, ...] = ()
    zookeeper_servers: int = 1
    """1, or 3 for an ensemble; nothing to a system without ZooKeeper."""
    controllers: int | None = None
    """Number of controllers in a quorum, without ZooKeeper; None for the default."""
    separate_controllers: bool = False
    """Whether controllers are servers of their own; otherwise brokers are controllers too."""
    needs: frozenset[str] = frozenset()
    """The capabilities that faults will use; servers are started so that each is available."""
    zookeeper_syncs: bool = False
    """Whether ZooKeeper's servers sync their writes."""
    sync_traces: bool = False
    """Whether a tracer records the syncs of brokers that cannot do so themselves."""
    metrics: bool = False
    """Whether brokers serve metrics for Prometheus, each on a port of its own."""
    external: "ExternalCluster | None" = None
    """The scenario's description of an existing cluster."""
    owner_pid: int | None = None
    """The cluster ends itself when this process is gone; None for a cluster without an owner."""
    expires_after_s: float | None = None
    """A cluster without an owner ends itself after this time; None when a person will stop it."""

    @property
    def relay(self) -> bool:
        """Whether traffic between brokers, clients and ZooKeeper passes a relay that can disturb links."""
        return not OVER_LINKS.isdisjoint(self.needs)

    @property
    def intercepts(self) -> bool:
        """Whether that relay reads Kafka's messages."""
        return INTERCEPT in self.needs

    @property
    def disk_files(self) -> bool:
        """Whether brokers' files must be where the harness can change them."""
        return not self.needs.isdisjoint({DISK_FILES, POWER})


@runtime_checkable
class ClusterDriver(Protocol):
    """What every driver can do. Every method raises `ClusterError` when the cluster does not do it."""

    families: ClassVar[frozenset[str]]
    """The families of systems that it can start."""

    @property
    def name(self) -> str:
        """What the driver is called, in scenarios too."""
        ...

    @classmethod
    def lacks(cls) -> dict[str, str]:
        """Return why the driver cannot work on this machine: a reason by capability, under `DRIVER` when for all."""
        ...

    async def start(self, request: ClusterRequest) -> ClusterStatus:
        """Start everything; return when brokers are registered, a controller is elected and metadata served."""
        ...

    async def status(self) -> ClusterStatus:
        """Return what runs now."""
        ...

    async def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker with its data; return when it is registered again.

        First wait, for a bounded time, until the registration of its previous process has expired: while that exists,
        the broker would exit, as Kafka's does.
        """
        ...

    async def stop_broker(self, broker_id: int, *, timeout_s: float) -> None:
        """Ask a broker to shut down cleanly (SIGTERM) and wait for its end."""
        ...

    async def copy_data(self) -> list[str]:
        """Copy the servers' data to the paths in `status`; return a sentence for each that could not be copied."""
        ...

    async def stop(self) -> None:
        """Stop all processes, whatever state they are in; idempotent."""
        ...

    async def residue(self) -> list[str]:
        """Return a sentence for each process, port or container of this run that still exists after `stop`."""
        ...


@runtime_checkable
class CanKill(Protocol):
    """Can end a broker without warning."""

    async def kill_broker(self, broker_id: int) -> None:
        """End the process at once (SIGKILL) and return when it is gone."""
        ...


@runtime_checkable
class CanPause(Protocol):
    """Can freeze a broker."""

    async def pause_broker(self, broker_id: int, *, at_most_s: float) -> None:
        """Freeze (SIGSTOP); the driver itself resumes it after `at_most_s`, even when the caller has died."""
        ...

    async def resume_broker(self, broker_id: int) -> None:
        """Thaw (SIGCONT); nothing happens when it runs."""
        ...


@runtime_checkable
class CanRunClients(Protocol):
    """Can run client processes within the run, so that they end with it."""

    async def start_client(self, process: str, argv: list[str], log: Path) -> None:
        """Start a client process under the name `process`."""
        ...

    async def stop_client(self, process: str, *, timeout_s: float, at_once: bool = False) -> int | None:
        """Send SIGTERM, or SIGUSR1 to have it end at once; wait, and return the exit status.

        SIGKILL after the time-out (then None).
        """
        ...


@runtime_checkable
class RunExecutor(Protocol[RunT_contra]):
    """Drives a whole run by itself, because its cluster exists only while it is driven.

    `start` and `stop` do nothing; leftovers are found through `status`, as with any driver.
    """

    @classmethod
    def capabilities(cls) -> frozenset[str]:
        """Return the names of the capabilities that faults and load have in its runs."""
        ...

    @classmethod
    def roles(cls) -> frozenset[str]:
        """Return the roles of workloads that it has clients for: they are its own, not the workload's."""
        ...

    def carry_out(self, run: RunT_contra, progress: "Progress", notes: "PhaseNotes") -> None:
        """Run load and faults against a cluster, as the scenario and the plan of the run say.

        All evidence is left in its folder.

        Not a coroutine: a KeyboardInterrupt ends it.

        Raises:
            ClusterError: the cluster, its topics or the first steady state could not be established.
        """
        ...


BYTES = "bytes"
"""Not available in virtual time, where connections carry messages."""
CLOCK = "clock"
"""Needs libfaketime in brokers on real machines."""
DISK_ERRORS = "disk-errors"
"""Needs libfiu in brokers on real machines."""
DISK_FILES = "disk-files"
"""Needs access to brokers' files on real machines."""
DISK_SPACE = "disk-space"
"""Needs a file system for each broker on real machines."""
INTERCEPT = "intercept"
"""Needs a relay that reads messages on real machines."""
POWER = "power"
"""Needs a record of syncs by brokers on real machines."""
PACKETS = "packets"
"""Needs a network namespace for each broker, and the right to filter there."""
SLOW_SYNCS = "slow-syncs"
"""Needs the right to trace brokers on real machines."""
CPU_LIMIT, FILE_LIMIT, MEMORY_LIMIT = "cpu-limit", "file-limit", "memory-limit"
"""Needs the right to limit processes on real machines."""
COMMANDS = "commands"
"""Needs commands of the owner of the cluster."""
UPGRADE = "upgrade"
"""Needs releases that brokers can be upgraded to."""
CAPABILITIES: dict[str, type[Any]] = {
    "ask": CanAsk,
    BYTES: CanSendBytes,
    "clients": CanRunClients,
    COMMANDS: CanRunCommands,
    CLOCK: CanSetClock,
    CPU_LIMIT: CanLimit,
    "delay": CanDelay,
    DISK_ERRORS: CanFailDisk,
    DISK_FILES: CanDamageDisk,
    DISK_SPACE: CanFillDisk,
    "early-start": CanStartEarly,
    FILE_LIMIT: CanLimit,
    INTERCEPT: CanIntercept,
    "isolate": CanIsolate,
    "kill": CanKill,
    MEMORY_LIMIT: CanLimit,
    PACKETS: CanDropPackets,
    "partition": CanPartition,
    "pause": CanPause,
    POWER: CanCutPower,
    "probe": CanProbe,
    "reset": CanReset,
    SLOW_SYNCS: CanSlowSyncs,
    UPGRADE: CanUpgrade,
    "zookeeper-isolate": CanIsolateZookeeper,
    "zookeeper-kill": CanKillZookeeper,
    "zookeeper-pause": CanPauseZookeeper,
    "zookeeper-replies": CanLoseReplies,
}
"""By the names that faults use."""
OVER_LINKS = frozenset(
    {"delay", INTERCEPT, "isolate", "partition", "probe", "reset", "zookeeper-isolate", "zookeeper-replies"}
)
"""Those that need a relay on real machines."""
DRIVER = "driver"
"""Key of `ClusterDriver.lacks` for what every driver can do."""
