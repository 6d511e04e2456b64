"""What can a driver do to the disks of its brokers, where these are folders of this machine?"""

import asyncio
import contextlib
import os
import random
import shutil
import sys
from pathlib import Path

from harness.broker.log.file_storage import FileStorage
from harness.broker.log.meta_properties import META_PROPERTIES
from harness.cluster.disks import ballast, disk_errors, small_disks
from harness.cluster.disks.damage import Damage, do_damage, states, torn
from harness.cluster.disks.disk_errors import DiskError
from harness.cluster.layout import ClusterLayout, broker_process
from harness.cluster.processes.traced_disks import TracedDisks, breaker
from harness.cluster.supervised_driver import NEVER_STARTED, SupervisedDriver
from harness.cluster.supervision.client import SupervisorGone
from harness.cluster.supervision.supervision import BROKER_STAGE, GONE_TIMEOUT_S
from harness.cluster.systems.system import System, system_named
from harness.errors import ClusterError
from harness.system.process_state import ProcessState


class FilePowers(SupervisedDriver):
    """Implements CanDamageDisk; CanCutPower, if the cluster was started for that."""

    async def damage_disk(self, broker_id: int, damage: Damage) -> None:
        """Change what is in the folder of a broker that does not run."""
        layout = self._layout_with(broker_id)
        if (await self._servers(layout)).get(broker_process(broker_id), NEVER_STARTED).state != ProcessState.STOPPED:
            raise ClusterError(f"broker {broker_id} runs")
        do_damage([*map(FileStorage, _directories(self._disk(layout, broker_id)))], damage)

    async def files(self, broker_id: int) -> dict[str, str]:
        """Return what each file of a broker is, by its path, in words."""
        return states(FileStorage(self._disk(self._layout_with(broker_id), broker_id)))

    async def cut_power(self, broker_id: int, *, torn: bool) -> None:
        """Kill it, and take from its files what it has not synced, as far as that is known; names of files stay.

        Unlike with a host that is gone, those that it was connected to learn at once that it is.
        """
        layout = self._layout_with(broker_id)
        if not layout.syncs:
            raise ClusterError("syncs are not recorded: this cluster was not started for power losses")
        starts = (await self._servers(layout))[broker_process(broker_id)].starts
        await self.kill_broker(broker_id)
        rng = random.Random(f"{self._run_id} {broker_id} {starts}") if torn else None  # noqa: S311  repeatable
        try:
            _lose(system_named(layout.system), self._disk(layout, broker_id), layout.sync_log(broker_id), rng)
        except OSError as error:
            raise ClusterError(f"what broker {broker_id} has not synced could not be taken: {error}") from error

    async def bytes_on_disk(self, broker_id: int) -> int:
        """Return how much is in a broker's files, whether it runs or not."""
        return sum(map(_size, self._disk(self._layout_with(broker_id), broker_id).rglob("*")))

    def _disk(self, layout: ClusterLayout, broker_id: int) -> Path:
        """Return where a broker's files are seen; raises ClusterError where they are not."""
        return layout.log_dir(broker_id)


class FolderDiskPowers(FilePowers, TracedDisks):
    """`FilePowers` and `TracedDisks`, with CanFillDisk if the cluster was started for that."""

    async def fill_disk(self, broker_id: int, *, at_most_s: float) -> None:
        """Have a child of the supervisor fill a broker's disk, and free it after `at_most_s` at the latest."""
        layout = self._layout_with_disks(broker_id)
        await self.free_disk(broker_id)
        folder, name = str(layout.log_dir(broker_id).resolve()), _filler(broker_id)
        argv = [sys.executable, "-m", ballast.__name__, folder, str(at_most_s)]
        await self._supervision.spawn(name, argv, layout.folder / f"{name}.log", BROKER_STAGE)

    async def free_disk(self, broker_id: int) -> None:
        """Make the space available again; nothing happens when it is."""
        layout = self._layout_with_disks(broker_id)
        await self._supervision.end_child(_filler(broker_id))
        with contextlib.suppress(SupervisorGone):  # and what filled the disk went with it
            (self._disk(layout, broker_id) / ballast.NAME).unlink(missing_ok=True)  # of a filler that was killed

    async def disk_is_full(self, broker_id: int) -> bool:
        """Return whether a broker's disk has no block left."""
        return os.statvfs(self._disk(self._layout_with_disks(broker_id), broker_id)).f_bavail == 0

    async def fail_disk(self, broker_id: int, error: DiskError, *, at_most_s: float) -> None:
        """Have a child of the supervisor let the disk fail for the process that runs, and mend it in the end.

        By libfiu, for any log, where these are written by calls of their own.
        """
        layout = self._layout_with(broker_id)
        if not system_named(layout.system).writes_logs_apart:
            await super().fail_disk(broker_id, error, at_most_s=at_most_s)
            return
        if not layout.disk_errors:
            raise ClusterError("no disk can be made to fail: this cluster was started without libfiu")
        await self.mend_disk(broker_id)
        pid, name = await self._server_pid(layout, broker_process(broker_id)), breaker(broker_id)
        pipe = disk_errors.pipe_of(layout.folder.resolve(), broker_process(broker_id), pid)
        argv = [sys.executable, "-m", disk_errors.__name__, str(pipe), error, str(at_most_s)]
        await self._supervision.spawn(name, argv, layout.folder / f"{name}.log", BROKER_STAGE)

    async def copy_data(self) -> list[str]:
        """Copy what is on small disks to the paths in `status`; elsewhere it is there already."""
        layout = ClusterLayout.load(self._root)
        missing = []
        for broker_id in layout.brokers if layout.disks else ():
            try:
                await self._copy_from_disk(layout, broker_id)
            except (OSError, ClusterError) as error:
                missing.append(f"the data of broker {broker_id} could not be copied from its own disk: {error}")
        return missing

    async def _copy_from_disk(self, layout: ClusterLayout, broker_id: int) -> None:
        """Copy what is on a small disk, all or nothing; raises OSError or ClusterError."""
        destination = layout.log_dir(broker_id)
        partial = destination.with_name(f"{destination.name}.part")  # half a copy must not look like a whole one
        shutil.rmtree(partial, ignore_errors=True)
        try:
            await asyncio.to_thread(_copy, self._disk(layout, broker_id), partial)
            self._disk(layout, broker_id)  # had it gone meanwhile, every file of it would have been left out
            _move(partial, destination)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    async def _mount_disks(self, layout: ClusterLayout) -> None:
        """Give every broker's data directory a file system of its own; raises ClusterError."""
        for broker_id in layout.brokers:
            folder, name = layout.log_dir(broker_id), f"mount-{broker_id}"
            folder.mkdir(parents=True, exist_ok=True)
            log = layout.folder / f"{name}.log"
            await self._supervision.spawn(name, small_disks.mounting(folder.resolve()), log, BROKER_STAGE)
            if (await self._supervision.ended(name, GONE_TIMEOUT_S))["status"] != 0:
                raise ClusterError(f"{name}: {log.read_text(encoding='utf-8').strip()}")

    def _log_dir_of(self, layout: ClusterLayout, broker_id: int, pid: int) -> Path:
        return self._disk(layout, broker_id).absolute()  # as it is: behind /proc nothing is to be resolved

    def _disk(self, layout: ClusterLayout, broker_id: int) -> Path:
        """Return where a broker's files are seen; raises ClusterError when they went with the supervisor."""
        folder = layout.log_dir(broker_id)
        return self._supervision.folder_seen_by_it(folder) if layout.disks else folder

    def _layout_with_disks(self, broker_id: int) -> ClusterLayout:
        layout = self._layout_with(broker_id)
        if not layout.disks:
            raise ClusterError("no disk can be filled: this cluster was started without disks of its own")
        return layout


def _filler(broker_id: int) -> str:
    """Return the name of the child that keeps a broker's disk full."""
    return f"ballast-{broker_id}"


def _copy(source: Path, destination: Path) -> None:
    """Copy a folder that may change meanwhile; files that disappear are left out; raises OSError."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for name, _, files in os.walk(source, onerror=refuse):
        folder = Path(name)
        copied = destination / folder.relative_to(source)
        copied.mkdir(parents=True)
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(folder / file, copied / file)


def _move(source: Path, destination: Path) -> None:
    """Put what is in one folder in place of what is in another.

    That one itself stays: for the supervisor a file system is mounted there, and the kernel takes that away from it
    when another process renames or removes the folder.
    """
    for old in destination.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for path in source.iterdir():
        path.rename(destination / path.name)


def _directories(folder: Path) -> list[Path]:
    """Return the data directories in the folder of a broker; without `log.dirs` it is one itself."""
    return [mark.parent for mark in sorted(folder.glob(f"*/{META_PROPERTIES}"))] or [folder]


def _lose(system: System, folder: Path, sync_log: Path, rng: random.Random | None) -> None:
    """Leave of each file what is on the disk for certain and, drawn from `rng`, perhaps more; raises OSError."""
    for path, size in sorted(system.unsynced(folder, sync_log).items()):
        if size is None:
            path.unlink()
            continue
        with path.open("r+b") as file:
            file.seek(size)
            tail = b"" if rng is None else torn(file.read(), rng)
            file.truncate(size)
            file.seek(size)
            file.write(tail)


def _size(path: Path) -> int:
    """Return the bytes of a file; none of a folder, and of what is gone by now."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0
