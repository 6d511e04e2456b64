"""Faults of the disks of brokers in containers.

For changes to files, a broker's data is in a folder of this machine instead of a volume of the engine. For full
disks, each is a small file system in memory, and an extra container keeps them while no broker has them mounted.
"""

import asyncio
from pathlib import Path

from harness.cluster.containers import plans
from harness.cluster.containers.engine import Engine
from harness.cluster.containers.servers import child_of
from harness.cluster.disks import ballast
from harness.cluster.disks.damage import Damage
from harness.cluster.disks.small_disks import seen_through
from harness.cluster.layout import ClusterLayout
from harness.cluster.processes.disks import FilePowers
from harness.cluster.processes.traced_disks import TracedDisks
from harness.cluster.systems.contained import BROKER_DATA
from harness.errors import ClusterError
from harness.system.waiting import until

_FREE_TIMEOUT_S = 5.0
_IN_PYTHON = ("python3", "-c")


class ContainerDisks(FilePowers, TracedDisks):
    """`FilePowers` and `TracedDisks`, with CanFillDisk if the cluster was started for that."""

    async def damage_disk(self, broker_id: int, damage: Damage) -> None:
        """Change files in the folder of a stopped broker; new files belong to the broker's user."""
        await super().damage_disk(broker_id, damage)
        for path in self._disk(self._layout_with(broker_id), broker_id).rglob("*"):
            plans.own(path)

    async def fill_disk(self, broker_id: int, *, at_most_s: float) -> None:
        """Run a process beside the broker that fills its disk, and frees it after `at_most_s` at the latest."""
        await self.free_disk(broker_id)
        argv = ["python3", "-m", ballast.__name__, plans.disk_of(broker_id), str(at_most_s)]
        await self._beside(broker_id, argv, detached=True)

    async def free_disk(self, broker_id: int) -> None:
        """Free the space; no-op if it is free, or if the disks went with the run."""
        if self._keeper_pid() is None:
            return
        path = f"{plans.disk_of(broker_id)}/{ballast.NAME}"
        await self._beside(broker_id, [*_IN_PYTHON, f"import pathlib; pathlib.Path('{path}').unlink(missing_ok=True)"])

        async def is_full() -> bool:  # until the filler has ended
            return await self.disk_is_full(broker_id)

        await until(is_full, lambda full: not full, what="space on the disk", timeout_s=_FREE_TIMEOUT_S)

    async def disk_is_full(self, broker_id: int) -> bool:
        """Return whether a broker's disk has no block left."""
        look = f"import os; print(os.statvfs('{plans.disk_of(broker_id)}').f_bavail)"
        return await self._beside(broker_id, [*_IN_PYTHON, look]) == "0"

    async def _beside(self, broker_id: int, argv: list[str], *, detached: bool = False) -> str:
        """Run a command where the disks are kept; return its output, unless it is detached."""
        if not self._layout_with(broker_id).disks:
            raise ClusterError("no disk can be filled: this cluster was started without disks of its own")

        def run() -> str:
            with Engine.connect() as engine:
                return engine.run_inside(plans.Names(self._root).of(plans.DISKS), argv, detached=detached)

        return await asyncio.to_thread(run)

    async def _server_pid(self, layout: ClusterLayout, process: str) -> int:
        return child_of(await super()._server_pid(layout, process))

    def _log_dir_of(self, layout: ClusterLayout, broker_id: int, pid: int) -> Path:
        return Path(f"/proc/{pid}/root{BROKER_DATA}")

    def _log_dir_seen_by(self, layout: ClusterLayout, broker_id: int) -> str:
        return BROKER_DATA

    def _disk(self, layout: ClusterLayout, broker_id: int) -> Path:
        if not layout.disk_files:
            raise ClusterError("brokers' files are not seen: this cluster was started with volumes of the engine")
        if not layout.disks:
            return super()._disk(layout, broker_id)
        pid = self._keeper_pid()
        if pid is None:
            raise ClusterError("nothing keeps the brokers' disks any more")
        return seen_through(pid, Path(plans.disk_of(broker_id)))

    def _keeper_pid(self) -> int | None:
        """Return the process of the container that keeps the brokers' disks; None when there is none."""
        with Engine.connect() as engine:
            state = engine.state(plans.Names(self._root).of(plans.DISKS))
        return None if state is None else state.pid
