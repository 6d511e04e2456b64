"""Leftovers of a run on this machine, whichever process was to remove them: a sentence for each.

What carries no name of the run is known by the kernel's namespaces: those of its processes are noted while they live.
The kernel reuses the number of one that is gone; so processes that began later do not count.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.cluster.containers.engine import Engine, EngineUnavailable
from harness.cluster.containers.filters import MARK
from harness.cluster.layout import resource_name
from harness.cluster.limits.control_groups import groups_of
from harness.store.folder import RunFolder
from tools.kills.place import Place, contained

_KINDS = ("mnt", "net", "pid")
_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """The kernel's namespaces that processes of a run had, and this one has not."""

    names: frozenset[str] = frozenset()
    """As the kernel calls them."""
    seen_s: float = 0.0
    """When, by the wall clock."""
    mounts: frozenset[str] = frozenset()
    """The mounts that held one of them then, as this process sees them."""


def namespaces_of(place: Place) -> Namespaces:
    """Return those of the processes that a run has now."""
    run = place.run()
    pids = [process.pid for process in place.processes()]
    pids += [pid for _, pid in contained(run)] if run is not None else []
    names = frozenset(name for pid in pids for name in _namespaces(pid)) - frozenset(_namespaces(os.getpid()))
    held = (line for line in _own_mounts() if any(name in line for name in names))
    return Namespaces(names=names, seen_s=time.time(), mounts=frozenset(held))


def left_of(place: Place, namespaces: Namespaces) -> Iterator[str]:
    """Yield what is left; `namespaces` were noted while the run's processes lived."""
    for process in place.processes():
        yield f"process {process.pid} is left: {' '.join(process.cmdline())[:_SHOWN]}"
    for path in place.temporary.iterdir():
        yield f"{path.name} is left in the folder for temporary files"
    yield from _in_namespaces(namespaces)
    yield from _filters()
    run = place.run()
    yield from _mounts((str(place.root), *([] if run is None else [resource_name(run.root, "")])))
    yield from (f"a mount is left: {line[:_SHOWN]}" for line in namespaces.mounts.intersection(_own_mounts()))
    if run is None:
        return
    yield from (f"container, network or volume {name} is left" for name in _resources(run))
    yield from (f"the control group {group.folder} is left" for group in groups_of(run.root))
    yield from (f"the socket {path.relative_to(run.root)} is left" for path in run.cluster.rglob("*.sock"))


def _in_namespaces(namespaces: Namespaces) -> Iterator[str]:
    """Yield the processes still in one of them: beside a server in its container, or behind the supervisor's mounts."""
    for process in psutil.process_iter():
        shared = namespaces.names.intersection(_namespaces(process.pid))
        try:
            if shared and process.create_time() < namespaces.seen_s:
                yield f"process {process.pid} is left in {', '.join(sorted(shared))}"
        except psutil.NoSuchProcess:
            continue


def _mounts(names: tuple[str, ...]) -> Iterator[str]:
    """Yield the mounts, as any process of this machine sees them, that name one of these."""
    seen = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            namespace = (folder / "ns/mnt").readlink()
            lines = [] if namespace in seen else (folder / "mountinfo").read_text(encoding="utf-8").splitlines()
        except OSError:
            continue  # it has ended
        seen.add(namespace)
        for line in lines:
            if any(name in line for name in names):
                yield f"a mount is left, as process {folder.name} sees it: {line[:_SHOWN]}"


def _own_mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()


def _filters() -> Iterator[str]:
    """Yield the packet filters that were set in this machine's own network instead of a container's."""
    program = shutil.which("iptables")
    if program is None or os.geteuid():
        return
    rules = subprocess.run([program, "-w", "-S"], capture_output=True, text=True, check=True).stdout
    ours = (rule for rule in rules.splitlines() if MARK in rule)
    yield from (f"a packet filter is left in this machine's network: {rule}" for rule in ours)


def _resources(run: RunFolder) -> list[str]:
    try:
        with Engine.connect() as engine:
            return [resource.name for resource in engine.resources(run.root)]
    except EngineUnavailable:
        return []


def _namespaces(pid: int) -> Iterator[str]:
    for kind in _KINDS:
        try:
            yield str(Path(f"/proc/{pid}/ns/{kind}").readlink())
        except OSError:
            return  # it has ended
