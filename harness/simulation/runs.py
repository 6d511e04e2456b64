"""Whole runs in virtual time, for the phases: the cluster exists only while it is driven, and then its evidence does.

What does the work is imported when a run is driven, because every command asks drivers for their capabilities.
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NoReturn

from harness.cluster.driver import (
    BYTES,
    CAPABILITIES,
    COMMANDS,
    CPU_LIMIT,
    FILE_LIMIT,
    MEMORY_LIMIT,
    PACKETS,
    SLOW_SYNCS,
    UPGRADE,
    BrokerStatus,
    ClusterRequest,
    ClusterStatus,
)
from harness.errors import ClusterError
from harness.progress import Progress
from harness.store.folder import RunFolder
from harness.store.phase_log import PhaseNotes
from harness.system.process_state import ProcessState
from harness.values import PYTHON

if TYPE_CHECKING:
    from harness.run.run import Run

SIMULATED = frozenset(CAPABILITIES) - {
    BYTES,
    COMMANDS,
    CPU_LIMIT,
    FILE_LIMIT,
    MEMORY_LIMIT,
    PACKETS,
    SLOW_SYNCS,
    UPGRADE,
}
"""Whatever reaches a broker from outside is simulated, and so are the clients; but computing and syncing take no time,
processes share memory, connections carry messages instead of bytes and packets, and all brokers have one release."""
ROLES = frozenset(
    {"administrator", "producer", "transactor", "pipe", "consumer", "committer", "lister", "member", "script-player"}
)
"""What kinds of clients those are (`harness.simulation.load`)."""


class SimulatedRuns:
    """Implements `ClusterDriver`, for what happens around the load, and `RunExecutor` for all the rest."""

    name = "simulated"
    families: ClassVar[frozenset[str]] = frozenset({PYTHON})

    def __init__(self, root: Path, run_id: str) -> None:
        self._folder = RunFolder(root)
        self._run_id = run_id

    @classmethod
    def lacks(cls) -> dict[str, str]:
        """Return nothing: it runs anywhere."""
        return {}

    @classmethod
    def capabilities(cls) -> frozenset[str]:
        """Return what faults and load find in a simulation."""
        return SIMULATED

    @classmethod
    def roles(cls) -> frozenset[str]:
        """Return the roles of workloads that there is a simulated client for."""
        return ROLES

    def carry_out(self, run: "Run", progress: Progress, notes: PhaseNotes) -> None:
        """Simulate the run's scenario and plan, and leave the evidence in its folder.

        Raises:
            SimulationError: something reached out of the simulation.
        """
        from harness.simulation.run_folder import leave_evidence
        from harness.simulation.schedule import simulate_plan

        history = simulate_plan(run.scenario, run.plan, progress=progress)
        progress.message(f"{history.virtual_s:.1f} s of virtual time in {history.events} events")
        leave_evidence(history, run.folder, notes)

    async def start(self, request: ClusterRequest) -> ClusterStatus:
        """Start nothing, and return that nothing is there."""
        return self._status(())

    async def status(self) -> ClusterStatus:
        """Return where the evidence of every broker lies.

        Raises:
            ClusterError: the simulation did not come to its end, before which it leaves nothing.
        """
        from harness.simulation.run_folder import disks_in

        disks = disks_in(self._folder)
        if not disks.is_dir():
            raise ClusterError("a simulation leaves its evidence when it ends, and this one did not end")
        broker_ids = sorted(int(path.name) for path in disks.iterdir())
        return self._status(tuple(map(self._broker, broker_ids)))

    async def start_broker(self, broker_id: int) -> None:
        """Refuse: there is none any more."""
        self._refuse()

    async def stop_broker(self, broker_id: int, *, timeout_s: float) -> None:
        """Refuse: there is none any more."""
        self._refuse()

    async def copy_data(self) -> list[str]:
        """Return nothing: all evidence is in the run folder already."""
        return []

    async def stop(self) -> None:
        """Do nothing: it ended with the load."""

    async def residue(self) -> list[str]:
        """Return nothing: what was made was in memory."""
        return []

    def _status(self, brokers: tuple[BrokerStatus, ...]) -> ClusterStatus:
        return ClusterStatus(
            driver=self.name,
            root=self._folder.root,
            bootstrap_servers="",
            zookeeper_connect="",
            zookeeper=(),
            brokers=brokers,
        )

    def _broker(self, broker_id: int) -> BrokerStatus:
        from harness.simulation.run_folder import disk_of

        return BrokerStatus(
            broker_id=broker_id,
            state=ProcessState.STOPPED,
            pid=None,
            client_address="",
            peer_address="",
            log_dir=disk_of(self._folder, broker_id),
            state_change_log=self._folder.state_change_log(broker_id),
            human_log=None,
            starts=0,
        )

    def _refuse(self) -> NoReturn:
        raise ClusterError(f"the simulated cluster of {self._run_id} existed only under its load")
