"""Faults of a broker's disk by tracing its process; a child of the supervisor traces it, and releases it."""

import sys
from pathlib import Path

from harness.cluster.disks import failing_calls, slow_syncs
from harness.cluster.disks.disk_errors import DiskError
from harness.cluster.layout import ClusterLayout, broker_process
from harness.cluster.supervised_driver import NEVER_STARTED, SupervisedDriver
from harness.cluster.supervision.supervision import BROKER_STAGE
from harness.errors import ClusterError


class TracedDisks(SupervisedDriver):
    """Implements CanFailDisk and CanSlowSyncs."""

    async def fail_disk(self, broker_id: int, error: DiskError, *, at_most_s: float) -> None:
        """Have the calls of the process that runs fail, on the logs that it has."""
        layout = self._layout_with(broker_id)
        await self.mend_disk(broker_id)
        pid, name = await self._server_pid(layout, broker_process(broker_id)), breaker(broker_id)
        trace = layout.folder.resolve() / f"{name}.trace"
        folders = [str(self._log_dir_of(layout, broker_id, pid)), self._log_dir_seen_by(layout, broker_id), str(trace)]
        argv = [sys.executable, "-m", failing_calls.__name__, str(pid), error, str(at_most_s), *folders]
        await self._supervision.spawn(name, argv, layout.folder / f"{name}.log", BROKER_STAGE)

    async def mend_disk(self, broker_id: int) -> None:
        """Let the disk work again; nothing happens when it does."""
        self._layout_with(broker_id)
        await self._supervision.end_child(breaker(broker_id))

    async def slow_syncs(self, process: str, extra_s: float, *, at_most_s: float) -> None:
        """Hold back the syncs of the process that runs, and let go of it in the end."""
        layout = ClusterLayout.load(self._root)
        await self.restore_syncs(process)
        pid, trace, name = await self._server_pid(layout, process), _trace(layout, process), _delayer(process)
        trace.unlink(missing_ok=True)
        what = [str(pid), str(extra_s), str(at_most_s), str(trace)]
        argv = [sys.executable, "-m", slow_syncs.__name__, *what]
        await self._supervision.spawn(name, argv, layout.folder / f"{name}.log", BROKER_STAGE)

    async def restore_syncs(self, process: str) -> None:
        """Let them take what they take; nothing happens when they do."""
        await self._supervision.end_child(_delayer(process))

    async def slow_sync_times(self, process: str) -> list[float]:
        """Return how long each took since `slow_syncs`, in seconds, as strace measured it."""
        return slow_syncs.times_s(_trace(ClusterLayout.load(self._root), process))

    async def _server_pid(self, layout: ClusterLayout, process: str) -> int:
        """Return the process of a server that runs, as this machine numbers it; raises ClusterError."""
        pid = (await self._servers(layout)).get(process, NEVER_STARTED).pid
        if pid is None:
            raise ClusterError(f"{process} does not run")
        return pid

    def _log_dir_of(self, layout: ClusterLayout, broker_id: int, pid: int) -> Path:
        """Return where the data directory of a broker's process is seen from here."""
        return layout.log_dir(broker_id).resolve()

    def _log_dir_seen_by(self, layout: ClusterLayout, broker_id: int) -> str:
        """Return where its process sees it."""
        return str(layout.log_dir(broker_id).resolve())


def breaker(broker_id: int) -> str:
    """Return the name of the child that lets a broker's disk fail."""
    return f"disk-error-{broker_id}"


def _delayer(process: str) -> str:
    """Return the name of the child that holds a server's syncs back."""
    return f"slow-syncs-{process}"


def _trace(layout: ClusterLayout, process: str) -> Path:
    """Return where it stands how long the syncs took that were held back last."""
    return layout.folder.resolve() / f"{_delayer(process)}.trace"
