"""Whether a run is still going on, or abandoned, by its supervisor and its phase log."""

import json
import re
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.cluster.supervision.supervisor import PIDS_NAME, SUPERVISOR_PID_NAME
from harness.reaper import PATIENCE_S
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, PhaseEntry, entries
from harness.system.pids import read_pid_file

MAKING_S = 60.0
"""More than it takes to write a new run folder's two small files."""
UNATTENDED_NAME = "unattended"
"""File in the cluster's folder; its age is the time since a reaper first saw no process at work on the run."""
RUN_NAME = re.compile(r".+-\d{8}T\d{6}-[0-9a-f]{8,16}(-\d+)?")
"""As `phases.create` names run folders."""


class State(StrEnum):
    """Whether a run continues."""

    ACTIVE = "goes on"
    ABANDONED = "abandoned"
    """It was not stopped, and no process will continue it."""
    ENDED = "ended"
    """Its cluster was stopped, or it is not a run but a single cluster whose supervisor has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """A run's state, and the reason for it in a sentence."""

    state: State
    reason: str


def supervised(folder: RunFolder) -> bool:
    """Return whether the supervisor of the run's cluster is alive; the cluster lives exactly as long."""
    supervisor = read_pid_file(folder.cluster / PIDS_NAME / SUPERVISOR_PID_NAME)
    return supervisor is not None and supervisor.alive()


def stopped(log: Sequence[PhaseEntry]) -> bool:
    """Return whether the last stop phase was completed."""
    return next((entry.over for entry in reversed(log) if entry.phase is Phase.STOP), False)


def status_of(folder: RunFolder, *, patience_s: float = PATIENCE_S, remember: bool = True) -> RunStatus:
    """Return whether a run continues, and why.

    Args:
        folder: the run's.
        patience_s: how long a run may be without a worker while its scheduler may still start one.
        remember: save in the cluster's folder since when it has no worker.

    Raises:
        EvidenceError: the phase log cannot be read.
    """
    log, alive = entries(folder), supervised(folder)
    if not log:
        return _without_phases(folder, alive=alive, patience_s=patience_s)
    last = log[-1]
    if last.host not in ("", socket.gethostname()):
        return RunStatus(state=State.ACTIVE, reason=f"its phases ran on {last.host}: reap it there")
    if last.process is not None and last.process.alive() and not (last.over and stopped(log)):
        return RunStatus(state=State.ACTIVE, reason=f"process {last.process.pid} carries out the phase {last.phase}")
    if not alive and stopped(log):
        return RunStatus(state=State.ENDED, reason="its cluster was stopped")
    reason = f"abandoned after the phase {last.phase}" + ("" if last.over else ", which was cut off")
    if not alive and _unfinishable(log):
        return RunStatus(state=State.ABANDONED, reason=reason)
    if alive and last.phase is Phase.START and last.over:
        return RunStatus(state=State.ACTIVE, reason="its cluster waits for the load, and then ends by itself")
    unattended_s = _unattended_s(folder, remember=remember)
    if unattended_s < patience_s:
        seen = f"idle for {unattended_s:.0f} s; its scheduler has {patience_s:g} s to continue it"
        return RunStatus(state=State.ACTIVE, reason=seen)
    return RunStatus(state=State.ABANDONED, reason=reason)


def _without_phases(folder: RunFolder, *, alive: bool, patience_s: float) -> RunStatus:
    if alive:
        return RunStatus(state=State.ACTIVE, reason="its supervisor is alive")
    if not folder.plan.exists():
        return RunStatus(state=State.ENDED, reason="its supervisor is gone")
    if time.time() - folder.plan.stat().st_mtime < max(patience_s, MAKING_S):
        return RunStatus(state=State.ACTIVE, reason="it was made just now")
    return RunStatus(state=State.ABANDONED, reason="it was never started")


def _unfinishable(log: Sequence[PhaseEntry]) -> bool:
    """Return whether no process can continue the run: it did not start, or one process did all phases and is gone."""
    first, last = log[0], log[-1]
    if last.phase is Phase.START:
        return last.error != ""
    return not last.over and last.process == first.process


def _unattended_s(folder: RunFolder, *, remember: bool) -> float:
    """Return the seconds since a reaper first saw no process at work; 0 when a phase was entered since then."""
    since = folder.cluster / UNATTENDED_NAME
    if since.exists() and since.stat().st_mtime >= folder.phases.stat().st_mtime:
        return time.time() - since.stat().st_mtime
    if remember:
        folder.cluster.mkdir(exist_ok=True)
        since.touch()
    return 0.0


def half_made(folder: RunFolder) -> bool:
    """Return whether the creation of a run folder was cut off: it has a run's name, and no valid plan."""
    if not RUN_NAME.fullmatch(folder.run_id):
        return False
    try:
        json.loads(folder.plan.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return True
    return False


def foreign_files(folder: RunFolder) -> list[str]:
    """Return the names of files in a half-made folder that its creation does not write."""
    own = {folder.scenario.name, folder.plan.name, folder.origin.name}
    return sorted(path.name for path in folder.root.iterdir() if path.name not in own or not path.is_file())


def made_just_now(folder: RunFolder) -> bool:
    """Return whether a process may still be writing into a half-made folder."""
    latest = max(path.stat().st_mtime for path in (folder.root, *folder.root.iterdir()))
    return time.time() - latest < MAKING_S
