"""Limits CPU time or memory of one process for a while, in a control group of its own.

The kernel's groups are folders, of version 1 (a tree for each resource) or 2. Creating one needs a privilege; its
name contains the run, so that a reaper finds it. A group counts what its processes take from then on; earlier use
counts in the earlier group.
"""

import contextlib
import functools
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.cluster.layout import resource_name
from harness.cluster.limits.resources import Resource, Usage
from harness.errors import ClusterError

RESOURCES = (Resource.CPU, Resource.MEMORY)
PERIOD_US = 100_000
_PROBE_CPUS = 0.5
_PROBE_BYTES = 64 << 20
_REMOVAL_S = 2.0
_POLL_S = 0.01
_UNLIMITED = 1 << 62
"""A limit of at least that many bytes means that none is set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The groups for one resource."""

    resource: Resource
    unified: bool
    """Whether they are of version 2."""
    root: Path
    home: Path
    """The group of this process, to which the others return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group, existing or not. All methods raise OSError if the kernel refuses."""

    tree: Tree
    name: str

    @property
    def folder(self) -> Path:
        """Its folder in the kernel's file system."""
        return self.tree.root / self.name

    def limit(self, amount: float) -> None:
        """Create the group, if needed, and limit it: to a number of CPUs, or of bytes."""
        self.folder.mkdir(exist_ok=True)
        for file, value in self._settings(amount).items():
            if (self.folder / file).exists():  # not without swap
                (self.folder / file).write_text(value, encoding="ascii")

    def add(self, pid: int) -> None:
        """Move a process here."""
        (self.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def usage(self) -> Usage:
        """Return the kernel's counters; without a group there is no limit."""
        with contextlib.suppress(FileNotFoundError):
            return Usage(limit=self._limit(), hits=self._hits())
        return Usage(limit=None)

    def remove(self) -> None:
        """Move its processes to this process's group, and remove it; no-op if it is gone."""
        deadline = time.monotonic() + _REMOVAL_S
        while self.folder.exists():
            for pid in self._pids():
                with contextlib.suppress(ProcessLookupError):
                    (self.tree.home / "cgroup.procs").write_text(pid, encoding="ascii")
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:  # a process that has been killed is there until its end
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)

    def _pids(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "cgroup.procs").read_text(encoding="ascii").split()
        return []

    def _settings(self, amount: float) -> dict[str, str]:
        """Return the settings to write, by file and in order."""
        match self.tree.resource, self.tree.unified:
            case Resource.CPU, True:
                return {"cpu.max": f"{round(amount * PERIOD_US)} {PERIOD_US}"}
            case Resource.CPU, False:
                return {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(round(amount * PERIOD_US))}
            case _, True:
                return {"memory.swap.max": "0", "memory.max": str(round(amount))}
            case _:
                return dict.fromkeys(("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), str(round(amount)))

    def _limit(self) -> float | None:
        if self.tree.resource is Resource.CPU:
            if self.tree.unified:
                quota, period = self._read("cpu.max").split()
            else:
                quota, period = self._read("cpu.cfs_quota_us"), self._read("cpu.cfs_period_us")
            return None if quota in ("max", "-1") else int(quota) / int(period)
        most = self._read("memory.max" if self.tree.unified else "memory.limit_in_bytes")
        return None if most == "max" or int(most) > _UNLIMITED else float(most)

    def _hits(self) -> int:
        if self.tree.resource is Resource.CPU:
            return self._count("cpu.stat", "nr_throttled")
        return self._count("memory.events" if self.tree.unified else "memory.oom_control", "oom_kill")

    def _count(self, file: str, key: str) -> int:
        return int(dict(line.split() for line in self._read(file).splitlines())[key])

    def _read(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="ascii").strip()


def group_of(root: Path, process: str, resource: Resource) -> Group:
    """Return the group for limits of a process of a run; raises ClusterError if there are no groups."""
    return Group(tree=_tree(resource), name=f"{resource_name(root, process)}")


def groups_of(root: Path) -> Iterator[Group]:
    """Yield the existing groups of a run, which may be dead."""
    for resource in RESOURCES:
        with contextlib.suppress(ClusterError):
            tree = _tree(resource)
            for folder in sorted(tree.root.glob(f"{resource_name(root, '')}*")):
                yield Group(tree=tree, name=folder.name)


@functools.cache
def lacking(resource: Resource) -> str:
    """Return why no process can be limited so here; empty if one can. It is tried with one that sleeps."""
    try:
        group = Group(tree=_tree(resource), name=f"chaos-probe-{os.getpid()}")
        sleeper = subprocess.Popen(["sleep", "60"])  # noqa: S607
        try:
            wanted = _PROBE_CPUS if resource is Resource.CPU else _PROBE_BYTES
            group.limit(wanted)
            group.add(sleeper.pid)
            limit = group.usage().limit
        finally:
            sleeper.kill()
            sleeper.wait()
            group.remove()
    except ClusterError as error:
        return str(error)
    except OSError as error:
        return f"no control group can be made: {error}"
    return "" if limit == wanted else f"a control group was to have {wanted:g} of {resource}, and has {limit}"


def _tree(resource: Resource) -> Tree:
    """Find the kernel's file system of groups; raises ClusterError if there is none."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ClusterError(f"no control groups here: {error}") from error
    homes = {
        controller: path for line in own for _, names, path in [line.split(":", 2)] for controller in names.split(",")
    }
    for line in mounts:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split()
        seen, mounted = before.split()[3:5]
        controllers = options.split(",") if kind == "cgroup" else _enabled(Path(mounted)) if kind == "cgroup2" else ()
        home = PurePosixPath(homes.get(resource if kind == "cgroup" else "", "/"))
        if resource in controllers and home.is_relative_to(seen):
            place = Path(mounted)
            return Tree(resource=resource, unified=kind == "cgroup2", root=place, home=place / home.relative_to(seen))
    raise ClusterError(f"this machine has no control groups for {resource}")


def _enabled(root: Path) -> list[str]:
    """Return the resources that groups below this one limit."""
    with contextlib.suppress(OSError):
        return (root / "cgroup.subtree_control").read_text(encoding="ascii").split()
    return []
