"""Goes over every run once, and removes what the dead ones left behind.

What belongs to a run is found by pid file, mark and label (`leftovers`); whether anybody goes on with it is told by its
supervisor and its phase log (`standing`). A cluster is alive exactly while its supervisor is. So:

- The supervisor is alive: nothing is touched. The exception is a run under a scheduler, whose cluster has no owner:
  when the process that carried out its last phase is gone, no other phase has begun for `PATIENCE_S`, and its load is
  over (the drive phase ended or was cut off), then collecting and stopping is all that is left to do, and that is what
  a reaper does with it, by the same functions as the scheduler's own teardown. A scheduler that is later than that
  finds a stopped cluster whose evidence is collected. A cluster that waits for its drive phase is never touched: it
  ends by itself when it expires.
- The supervisor is gone, and the run was stopped: what is left is removed, and was residue; so the run's environment
  verdict becomes RESIDUE.
- The supervisor is gone, and the run was not stopped: it died. At once if no other process can know of it (it died
  while it was started, or `chaos run` did all in one process), else after `PATIENCE_S`, its evidence is collected, all
  is stopped, and it gets a verdict; never PASS, because a phase that was cut off and the collecting by a reaper are
  both remarks that forbid one.
- A phase was cut off after the cluster was stopped: the verdict is put together anew, so that no older one stands.

What may happen at the same time, and why it does no harm:

- Making a folder, before its plan is whole: a half-made folder is only removed when nothing in it changed for a minute
  and nothing else lies in it. Its maker, were it alive, would fail before it starts anything.
- Between the plan and the supervisor: nothing exists but files, and those of a whole run are never removed.
- Launching a supervisor: it takes the lock of the cluster's folder before it writes its pid file, and nothing is
  marked or labelled before that. A reaper holds the same lock while it removes what a dead one left: either the
  reaper finds the lock taken and lets the run be, or the launch is refused.
- Making containers: only under a live supervisor. If that dies meanwhile, the process that carries out the start phase
  is alive, and the run is let be until it is not.
- Removing containers after their supervisor was killed, which their guard does: it holds a lock meanwhile, and a
  reaper comes back another time.
- Another reaper: each locks the run folder that it deals with; the second one lets it be.

One window remains: a scheduler's teardown that is later than `PATIENCE_S` and begins in the very seconds in which a
reaper collects the same run. Both write the same evidence from the same data; a dump that both write may be damaged,
and is then said to be. A run that a reaper has closed never passes, so nothing wrong is claimed.
"""

import fcntl
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cluster.containers.bringing_out import LOCK_NAME as CONTAINERS_LOCK_NAME
from harness.cluster.supervisor import LOCK_NAME
from harness.errors import ClusterError, EvidenceError, HarnessError, Interrupted, PluginError, ScenarioError
from harness.experiment.judge import assemble
from harness.progress import Logged, Progress
from harness.reaper import PATIENCE_S, closing
from harness.reaper.leftovers import Finds, Leftover, looking
from harness.reaper.result import Fate, Item, Kind, Reaped
from harness.reaper.standing import (
    Standing,
    State,
    half_made,
    made_just_now,
    standing_of,
    strangers_in,
    supervised,
)
from harness.store.folder import RunFolder
from harness.system.scratch import abandoned_scratch_folders, remove_scratch_folder

if TYPE_CHECKING:
    from harness.cluster.containers.engine import Made


def reap(
    runs: Sequence[Path],
    *,
    everywhere: bool = False,
    patience_s: float = PATIENCE_S,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Reaped:
    """Remove what dead runs left behind, and return what became of everything that was come upon.

    Args:
        runs: the folders that run folders lie in.
        everywhere: deal also with processes, containers, networks and volumes of this host whose run lies elsewhere.
        patience_s: how long a scheduler has to go on with a run whose worker is gone.
        dry_run: change nothing, and return what would be done.
        progress: is told what happens to a run that is collected and stopped.
    """
    folders = [folder.resolve() for folder in runs]
    with looking() as finds:
        reaper = _Reaper(finds=finds, patience_s=patience_s, dry_run=dry_run, progress=progress or Logged())
        pointed_at = {root for root in finds.roots if everywhere or root.parent in folders}
        roots = pointed_at.union(*(_run_folders(folder) for folder in folders))
        items = [item for root in sorted(roots) for item in reaper.attend(root)]
        items += [_elsewhere(made) for made in finds.elsewhere if everywhere or made.root.parent in folders]
        items += reaper.scratch()
    return Reaped(items=items, remarks=finds.remarks)


def _run_folders(runs: Path) -> set[Path]:
    if not runs.is_dir():
        return set()
    folders = [RunFolder(path) for path in runs.iterdir() if path.is_dir() and not path.is_symlink()]
    return {folder.root for folder in folders if folder.plan.exists() or half_made(folder)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reaper:
    """One round."""

    finds: Finds
    patience_s: float
    dry_run: bool
    progress: Progress

    def attend(self, root: Path) -> list[Item]:
        """Deal with one run folder, or with what points to one; whatever goes wrong, the others have their turn."""
        try:
            if not _there(root):
                return self._without_folder(root)
            with _locked(root) as mine:
                return self._folder(RunFolder(root)) if mine else [_kept(root, "another reaper deals with it")]
        except Interrupted:
            raise
        except (EvidenceError, PluginError, ScenarioError) as error:
            return [_kept(root, str(error))]
        except PermissionError as error:
            return [_run(root, Fate.FAILED, str(error)) if _own(root) else _kept(root, f"another user's: {error}")]
        except (HarnessError, OSError) as error:
            return [_run(root, Fate.FAILED, str(error))]

    def scratch(self) -> list[Item]:
        """Remove Spark's scratch folders whose process is gone."""
        items = []
        for path in abandoned_scratch_folders():
            fate, detail = Fate.DUE, ""
            if not self.dry_run:
                try:
                    remove_scratch_folder(path)
                    fate = Fate.REMOVED
                except OSError as error:
                    fate, detail = Fate.FAILED, str(error)
            items.append(Item(kind=Kind.FOLDER, name=str(path), fate=fate, detail=detail))
        return items

    def _folder(self, run: RunFolder) -> list[Item]:
        if half_made(run):
            return [self._half_made(run)]
        standing = standing_of(run, patience_s=self.patience_s, remember=not self.dry_run)
        if standing.state is State.GOES_ON:
            return [_kept(run.root, standing.reason)]
        if _held(run.cluster / CONTAINERS_LOCK_NAME):
            return [_kept(run.root, "its containers' data is just brought out, or they are removed")]
        if self.dry_run or supervised(run) or not run.cluster.exists():
            return self._dead(run, standing)
        with _locked(run.cluster / LOCK_NAME) as mine:
            return self._dead(run, standing) if mine else [_kept(run.root, "a supervisor starts there")]

    def _half_made(self, run: RunFolder) -> Item:
        """Remove a folder that lacks its plan, unless somebody may still be making it or something else is in it."""
        if strangers := strangers_in(run):
            return _kept(run.root, f"it has no whole plan, and yet there is {', '.join(strangers)} in it")
        if made_just_now(run):
            return _kept(run.root, "it is being made")
        if self.dry_run:
            return Item(kind=Kind.FOLDER, name=str(run.root), run=run.run_id, fate=Fate.DUE)
        for path in run.root.iterdir():
            path.unlink()
        run.root.rmdir()
        return Item(kind=Kind.FOLDER, name=str(run.root), run=run.run_id, fate=Fate.REMOVED)

    def _dead(self, run: RunFolder, standing: Standing) -> list[Item]:
        """Remove what is left of a run, and let its verdict say what it came to."""
        left = self.finds.of(run.root)
        abandoned = standing.state is State.ABANDONED
        if self.dry_run:
            due = abandoned or closing.settle(run, dry_run=True)
            return [_run(run.root, Fate.DUE, standing.reason)] * due + [_item(run.root, it, Fate.DUE) for it in left]
        if abandoned:
            return self._abandoned(run, standing.reason, left)
        if any(it.kind is Kind.CONTAINER for it in left) and run.phases.exists() and not closing.unreadable(run):
            closing.collect_remains(run, "its containers were left", self.progress, again=True)
        swept = self._sweep(run.root, left)
        if swept and run.phases.exists():
            closing.own_up(run, [f"{item.kind} {item.name}" for item in swept], self.progress)
        elif closing.settle(run, dry_run=False):
            return [_run(run.root, Fate.CLOSED, _verdicts(run)), *swept]
        return swept

    def _abandoned(self, run: RunFolder, reason: str, left: list[Leftover]) -> list[Item]:
        """Bring a run to its end as its own phases would have; what even that leaves is removed one by one."""
        if why := closing.unreadable(run):
            return [_kept(run.root, f"{reason}, and it cannot be closed: {why}"), *self._sweep(run.root, left)]
        if not run.phases.exists():
            assemble(run).save(run.verdict)
            return [_run(run.root, Fate.CLOSED, f"{reason}; {_verdicts(run)}")]
        problem = closing.collect_remains(run, reason, self.progress)
        residue = closing.stop(run, self.progress)
        swept = self._sweep(run.root, self.finds.of(run.root))
        if swept:
            residue = closing.stop(run, self.progress)
        detail = "; ".join(filter(None, [reason, problem, *residue, _verdicts(run)]))
        named = {(item.kind, item.name) for item in swept}
        gone = [_item(run.root, it, Fate.REMOVED) for it in left if (it.kind, it.name) not in named]
        return [_run(run.root, Fate.FAILED if residue else Fate.CLOSED, detail), *gone, *swept]

    def _without_folder(self, root: Path) -> list[Item]:
        """Deal with what is left of a run whose folder somebody removed, if that is what became of it."""
        left = self.finds.of(root)
        if not root.parent.is_dir():
            return [_item(root, it, Fate.KEPT, f"{root.parent} is not to be seen from here") for it in left]
        return [_item(root, it, Fate.DUE) for it in left] if self.dry_run else self._sweep(root, left)

    def _sweep(self, root: Path, left: Iterable[Leftover]) -> list[Item]:
        items = []
        for leftover in left:
            try:
                self.finds.remove(leftover)
                items.append(_item(root, leftover, Fate.REMOVED))
            except (ClusterError, OSError) as error:
                items.append(_item(root, leftover, Fate.FAILED, str(error)))
        return items


def _there(root: Path) -> bool:
    """Return whether a folder exists; raises PermissionError when that cannot be seen."""
    try:
        root.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _own(root: Path) -> bool:
    """Return whether a folder belongs to this user."""
    try:
        return root.stat().st_uid == os.geteuid()
    except OSError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the lock of a file or folder and yield True; yield False when somebody else holds it."""
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


def _held(path: Path) -> bool:
    """Return whether somebody holds the lock of a file."""
    if not path.exists():
        return False
    with _locked(path) as mine:
        return not mine


def _verdicts(run: RunFolder) -> str:
    verdicts = assemble(run).verdicts
    return f"fault {verdicts.fault.name}, system {verdicts.system.name}, environment {verdicts.environment.name}"


def _run(root: Path, fate: Fate, detail: str) -> Item:
    return Item(kind=Kind.RUN, name=root.name, run=root.name, fate=fate, detail=detail)


def _kept(root: Path, reason: str) -> Item:
    return _run(root, Fate.KEPT, reason)


def _item(root: Path, leftover: Leftover, fate: Fate, detail: str = "") -> Item:
    return Item(kind=leftover.kind, name=leftover.name, run=root.name, fate=fate, detail=detail)


def _elsewhere(made: "Made") -> Item:
    far = made.host not in ("", socket.gethostname())
    detail = f"made by the harness on {made.host}" if far else "its labels name no run folder of this machine"
    return Item(kind=Kind(made.kind), name=made.name, run=made.run_id, fate=Fate.KEPT, detail=detail)
