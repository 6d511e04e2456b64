"""Removes what dead runs left: one round over all runs.

`leftovers` finds what belongs to a run by pid file, environment variable and label; `abandoned_runs` decides by
supervisor and phase log whether the run continues. A cluster is alive exactly while its supervisor is. So:

- The supervisor is alive: nothing is touched. The exception is a run under a scheduler, whose cluster has no owner:
  when the process of its last phase is gone, no other phase has begun for `PATIENCE_S`, and its load is over (the drive
  phase ended or was cut off), only collecting and stopping are left to do, and the reaper does them by the same
  functions as the scheduler's teardown. A teardown that comes later finds a stopped cluster with its evidence
  collected. A cluster that waits for its drive phase is never touched: it ends by itself when it expires.
- The supervisor is gone, and the run was stopped: what is left is removed. It was residue, so the run's environment
  verdict becomes RESIDUE.
- The supervisor is gone, and the run was not stopped: it died. Its evidence is collected, everything is stopped, and it
  gets a verdict: at once if no other process can go on with it (it died during its start, or `chaos run` did all phases
  in one process), else after `PATIENCE_S`. The verdict is never PASS, because a phase that was cut off and collecting
  by a reaper are both remarks that forbid one.
- A phase was cut off after the cluster was stopped: the verdict is assembled and saved again, to replace an older one.

What may happen at the same time, and why it does no harm:

- A run folder is being made and its plan is incomplete: a half-made folder is only removed when nothing in it changed
  for a minute and it has no other files. Were its maker still alive, it would fail before it starts anything.
- Between plan and supervisor: only files exist, and those of a complete run folder are never removed.
- A supervisor is being launched: it takes the lock of the cluster's folder before it writes its pid file, and nothing
  is marked or labelled before that. A reaper holds the same lock while it removes leftovers: either it finds the lock
  taken and keeps the run, or the launch is refused.
- Containers are being created: only under a live supervisor. If that dies, the process of the start phase is alive, and
  the run is kept until it is not.
- The guard removes the containers of a killed supervisor: it holds a lock meanwhile, and the reaper keeps the run until
  its next round.
- Another reaper: each locks the run folder that it works on; the second one keeps it.

One race remains: a scheduler's teardown that is later than `PATIENCE_S` and begins in the very seconds in which a
reaper collects the same run. Both write the same evidence from the same data; a dump that both write may be damaged,
which a remark then says. A run that a reaper has closed never passes, so no wrong PASS can follow.
"""

import fcntl
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster.containers.data_copy import LOCK_NAME as CONTAINERS_LOCK_NAME
from harness.cluster.supervision.supervisor import LOCK_NAME, PIDS_NAME
from harness.errors import ClusterError, EvidenceError, HarnessError, Interrupted, PluginError, ScenarioError
from harness.judging.assessment import assemble
from harness.progress import Logged, Progress
from harness.reaper import PATIENCE_S, closing
from harness.reaper.abandoned_runs import (
    RunStatus,
    State,
    foreign_files,
    half_made,
    made_just_now,
    status_of,
    supervised,
)
from harness.reaper.leftovers import Leftover, Leftovers, find_leftovers, process_left
from harness.reaper.result import Fate, Item, ItemKind, ReapResult
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.system.pids import ProcessIdentity, remove_stale_pid_files
from harness.system.scratch import abandoned_processes, abandoned_scratch_folders, remove_scratch_folder

if TYPE_CHECKING:
    from harness.cluster.containers.engine import Resource


def reap(
    runs: Sequence[Path],
    *,
    everywhere: bool = False,
    patience_s: float = PATIENCE_S,
    dry_run: bool = False,
    progress: Progress | None = None,
    credentials: Callable[[RunFolder], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> ReapResult:
    """Remove what dead runs left behind; return every leftover that was found, with its fate.

    Args:
        runs: the folders that run folders lie in.
        everywhere: include processes, containers, networks and volumes of this host whose run is in another folder.
        patience_s: how long a scheduler has to go on with a run whose worker is gone.
        dry_run: change nothing; return what would be done.
        progress: shows the phases of a run that is collected and stopped.
        credentials: has what the run's existing cluster asks for in the environment, while the run is closed.
    """
    folders = [folder.resolve() for folder in runs]
    with find_leftovers() as leftovers:
        reaper = _Reaper(
            leftovers=leftovers,
            patience_s=patience_s,
            dry_run=dry_run,
            progress=progress or Logged(),
            credentials=credentials,
        )
        labelled = {root for root in leftovers.roots if everywhere or root.parent in folders}
        roots = labelled.union(*(_run_folders(folder) for folder in folders))
        items = [item for root in sorted(roots) for item in reaper.attend(root)]
        items += [_foreign(it) for it in leftovers.foreign if everywhere or it.root.parent in folders]
        items += reaper.scratch()
    missing = [] if everywhere else [f"{folder}: no such folder" for folder in runs if not folder.is_dir()]
    return ReapResult(items=items, remarks=[*leftovers.remarks, *missing])


def _run_folders(runs: Path) -> set[Path]:
    if not runs.is_dir():
        return set()
    folders = [RunFolder(path) for path in runs.iterdir() if path.is_dir() and not path.is_symlink()]
    return {folder.root for folder in folders if folder.plan.exists() or half_made(folder)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reaper:
    """One round."""

    leftovers: Leftovers
    patience_s: float
    dry_run: bool
    progress: Progress
    credentials: Callable[[RunFolder], AbstractContextManager[None]]

    def attend(self, root: Path) -> list[Item]:
        """Handle one run folder, or its name; an error becomes an item, so that the round continues."""
        try:
            if not _exists(root):
                return self._without_folder(root)
            with _locked(root) as locked:
                return self._folder(RunFolder(root)) if locked else [_left_alone(root, "another reaper works on it")]
        except Interrupted:
            raise
        except (EvidenceError, PluginError, ScenarioError) as error:
            return [_left_alone(root, str(error))]
        except PermissionError as error:
            return [
                _run(root, Fate.FAILED, str(error))
                if _belongs_to_user(root)
                else _left_alone(root, f"another user's: {error}")
            ]
        except (HarnessError, OSError) as error:
            return [_run(root, Fate.FAILED, str(error))]

    def scratch(self) -> list[Item]:
        """End Spark where its process is gone, and remove its scratch folders."""
        items: list[Item] = []
        known: set[ProcessIdentity] = set()
        while new := [process for process in abandoned_processes() if process not in known]:  # one may start another
            known.update(new)
            left = [process_left(process) for process in new]
            items += [_item(None, it, Fate.DUE) for it in left] if self.dry_run else self._sweep(None, left)
        for path in abandoned_scratch_folders():
            fate, detail = Fate.DUE, ""
            if not self.dry_run:
                try:
                    remove_scratch_folder(path)
                    fate = Fate.REMOVED
                except OSError as error:
                    fate, detail = Fate.FAILED, str(error)
            items.append(Item(kind=ItemKind.FOLDER, name=str(path), fate=fate, detail=detail))
        return items

    def _folder(self, run: RunFolder) -> list[Item]:
        if half_made(run):
            return [self._half_made(run)]
        status = status_of(run, patience_s=self.patience_s, remember=not self.dry_run)
        if status.state is State.ACTIVE:
            return [_left_alone(run.root, status.reason)]
        if _is_locked(run.cluster / CONTAINERS_LOCK_NAME):
            return [_left_alone(run.root, "another process copies its containers' data or removes them")]
        if self.dry_run or supervised(run) or not run.cluster.exists():
            return self._dead(run, status)
        with _locked(run.cluster / LOCK_NAME) as locked:
            return self._dead(run, status) if locked else [_left_alone(run.root, "a supervisor is starting there")]

    def _half_made(self, run: RunFolder) -> Item:
        """Remove a folder that lacks its plan, unless it may still be in the making or has other files."""
        if others := foreign_files(run):
            return _left_alone(
                run.root, f"its plan is missing or incomplete, but it has other files: {', '.join(others)}"
            )
        if made_just_now(run):
            return _left_alone(run.root, "it is being made")
        if self.dry_run:
            return Item(kind=ItemKind.FOLDER, name=str(run.root), run=run.run_id, fate=Fate.DUE)
        for path in run.root.iterdir():
            path.unlink()
        run.root.rmdir()
        return Item(kind=ItemKind.FOLDER, name=str(run.root), run=run.run_id, fate=Fate.REMOVED)

    def _dead(self, run: RunFolder, status: RunStatus) -> list[Item]:
        """Remove what is left of a run that does not go on, and save its verdict."""
        left = self.leftovers.of(run.root)
        abandoned = status.state is State.ABANDONED
        if self.dry_run:
            due = abandoned or closing.refresh_verdict(run, dry_run=True)
            return [_run(run.root, Fate.DUE, status.reason)] * due + [_item(run.root, it, Fate.DUE) for it in left]
        if abandoned:
            with self.credentials(run):
                return self._abandoned(run, status.reason, left)
        if any(it.kind is ItemKind.CONTAINER for it in left) and run.phases.exists() and not closing.unreadable(run):
            closing.collect_remains(run, "its containers were left", self.progress, again=True)
        swept = self._sweep(run.root, left)
        remove_stale_pid_files(run.cluster / PIDS_NAME)
        if swept and run.phases.exists():
            closing.record_residue(run, [f"{item.kind} {item.name}" for item in swept], self.progress)
        elif closing.refresh_verdict(run, dry_run=False):
            return [_run(run.root, Fate.CLOSED, _verdicts(run)), *swept]
        return swept

    def _abandoned(self, run: RunFolder, reason: str, left: list[Leftover]) -> list[Item]:
        """Collect and stop a run as its own phases would have; what they leave is removed one by one."""
        if why := closing.unreadable(run):
            return [_left_alone(run.root, f"{reason}, and it cannot be closed: {why}"), *self._sweep(run.root, left)]
        if not run.phases.exists():
            assemble(Run.load(run)).save(run.verdict)
            return [_run(run.root, Fate.CLOSED, f"{reason}; {_verdicts(run)}")]
        problem = closing.collect_remains(run, reason, self.progress)
        residue = closing.stop(run, self.progress)
        swept = self._sweep(run.root, self.leftovers.of(run.root))
        if swept:
            residue = closing.stop(run, self.progress)
        detail = "; ".join(filter(None, [reason, problem, *residue, _verdicts(run)]))
        named = {(item.kind, item.name) for item in swept}
        gone = [_item(run.root, it, Fate.REMOVED) for it in left if (it.kind, it.name) not in named]
        return [_run(run.root, Fate.FAILED if residue else Fate.CLOSED, detail), *gone, *swept]

    def _without_folder(self, root: Path) -> list[Item]:
        """Remove what is left of a run whose folder is gone, but not when only its file system is not mounted here."""
        left = self.leftovers.of(root)
        if not root.parent.is_dir():
            return [_item(root, it, Fate.KEPT, f"{root.parent} does not exist on this machine") for it in left]
        return [_item(root, it, Fate.DUE) for it in left] if self.dry_run else self._sweep(root, left)

    def _sweep(self, root: Path | None, left: Iterable[Leftover]) -> list[Item]:
        items = []
        for leftover in left:
            try:
                self.leftovers.remove(leftover)
                items.append(_item(root, leftover, Fate.REMOVED))
            except (ClusterError, OSError) as error:
                items.append(_item(root, leftover, Fate.FAILED, str(error)))
        return items


def _exists(root: Path) -> bool:
    """Return whether a folder exists; raises PermissionError when it cannot be accessed."""
    try:
        root.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _belongs_to_user(root: Path) -> bool:
    """Return whether a folder belongs to this user."""
    try:
        return root.stat().st_uid == os.geteuid()
    except OSError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or folder and yield True; yield False when another process holds it."""
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    lock = os.open(path, flags, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)


def _is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of a file."""
    if not path.exists():
        return False
    with _locked(path) as locked:
        return not locked


def _verdicts(run: RunFolder) -> str:
    verdicts = assemble(Run.load(run)).verdicts
    return f"fault {verdicts.fault.name}, system {verdicts.system.name}, environment {verdicts.environment.name}"


def _run(root: Path, fate: Fate, detail: str) -> Item:
    return Item(kind=ItemKind.RUN, name=root.name, run=root.name, fate=fate, detail=detail)


def _left_alone(root: Path, reason: str) -> Item:
    return _run(root, Fate.KEPT, reason)


def _item(root: Path | None, leftover: Leftover, fate: Fate, detail: str = "") -> Item:
    run = "" if root is None else root.name
    return Item(kind=leftover.kind, name=leftover.name, run=run, fate=fate, detail=detail)


def _foreign(it: "Resource") -> Item:
    far = it.host not in ("", socket.gethostname())
    detail = f"made by the harness on {it.host}" if far else "its labels name no run folder of this machine"
    return Item(kind=ItemKind(it.kind), name=it.name, run=it.run_id, fate=Fate.KEPT, detail=detail)
