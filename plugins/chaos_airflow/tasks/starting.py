"""When may a task start the cluster of its run, and what becomes of the one of an earlier try?

One cluster at a time: two runs on one machine would disturb each other's clocks and disks. A pool with one slot keeps
the tasks of a run apart but not the runs, because between two tasks of one run its slot is free for the other's first
task. So that task looks whether a cluster of this runs folder is alive, and comes again later. That look and the start
of a cluster are one step, under a lock on the runs folder, for any size of the pool.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos_airflow.runs import Origin, note_airflow_run, publish
from chaos_airflow.tasks.connections import owned
from chaos_airflow.tasks.request import RunRequest, load
from harness import phases
from harness.errors import ScenarioError
from harness.reaper.abandoned_runs import supervised
from harness.store.folder import RunFolder

if TYPE_CHECKING:
    from airflow.sdk import Context

    from harness.scenario.model import Scenario

log = logging.getLogger(__name__)

AROUND_DRIVING_S = 420.0
"""What the drive phase may need beside load and recovery: topics, steady state, a slow heal, signs of life."""


def begin(request: RunRequest, runs: Path, context: "Context", *, drive_timeout: timedelta) -> RunFolder | None:
    """Make a run and start its cluster; None when another run has its turn.

    Raises:
        ScenarioError: the request cannot be run; Refused: not here, or not with this driver.
        ClusterError: the cluster did not come up; nothing of it is left, its folder says so.
    """
    scenario = load(request)
    _fits(scenario, drive_timeout)
    allowed = owned(scenario)
    runs.mkdir(parents=True, exist_ok=True)
    with _turn(runs) as granted:
        if not granted:
            log.info("waiting: another run is being started in %s", runs)
            return None
        for folder in _alive(runs):
            if not _of_same_task(folder, context):
                log.info("waiting: the cluster of %s is alive", folder.run_id)
                return None
            log.info("%s is of an earlier try of this task: it is stopped and closed", folder.run_id)
            _close(folder)
        return _started(phases.create_from(scenario, request.get("seed"), runs, owned=allowed), context, request)


def _close(folder: RunFolder) -> None:
    """End a run that is not continued: with its report it is over, and its verdict is UNKNOWN, as it is not judged."""
    try:
        phases.collect(folder)
    finally:
        phases.stop(folder)
    phases.report(folder)
    publish(folder.root)


def _started(folder: RunFolder, context: "Context", request: RunRequest) -> RunFolder:
    with ExitStack() as undo:
        undo.callback(phases.stop, folder)
        note_airflow_run(folder.root, context, **request)
        phases.start(folder)
        undo.pop_all()
    return folder


def _fits(scenario: "Scenario", drive_timeout: timedelta) -> None:
    needs = timedelta(seconds=scenario.longest_drive_s + AROUND_DRIVING_S)
    if needs > drive_timeout:
        raise ScenarioError(
            f"{scenario.name} could need {needs} under load, and the task drive may take {drive_timeout}"
        )


@contextmanager
def _turn(runs: Path) -> Iterator[bool]:
    """Yield whether this process alone may start a cluster in this runs folder, until the end of the block."""
    descriptor = os.open(runs, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def _alive(runs: Path) -> list[RunFolder]:
    folders = [RunFolder(path) for path in sorted(runs.iterdir()) if path.is_dir()]
    return [folder for folder in folders if supervised(folder)]


def _of_same_task(folder: RunFolder, context: "Context") -> bool:
    """Return whether this very task instance made a run, in an earlier try or before it was cleared."""
    ti: Any = context["ti"]
    try:
        origin = Origin.model_validate_json(folder.origin.read_bytes())
    except (OSError, ValueError):  # the command line made it, or its folder is broken
        return False
    return origin.task == (ti.dag_id, ti.run_id, ti.task_id, ti.map_index)
