"""Links run folders and Airflow: names, the task that made a run, and where runs are read.

`note_airflow_run` is for the task that makes a run, `publish` for the one that finishes it; both let the API
server, which may share no disk with the worker, show the run.
"""

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from chaos_airflow import settings
from harness.store.folder import LIBRARY, RunFolder
from harness.system.whole_file import replace_text

if TYPE_CHECKING:
    from airflow.sdk import Context, ObjectStoragePath
log = logging.getLogger(__name__)

NAME = re.compile(r"(?P<scenario>[a-z0-9][a-z0-9-]{0,63})-(?P<made>\d{8}T\d{6})-(?P<seed>[0-9a-f]{8,16})(-\d{1,4})?")
UNMAPPED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """The parts of a run folder's name."""

    text: str
    scenario: str
    made: datetime
    """UTC."""
    seed: int

    @classmethod
    def parse(cls, text: str) -> "RunName | None":
        """Return the parts of a name; None for any other text, so that only runs can be addressed by name."""
        match = NAME.fullmatch(text)
        if match is None:
            return None
        try:
            made = datetime.strptime(match["made"], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            return None
        return cls(text=text, scenario=match["scenario"], made=made, seed=int(match["seed"], 16))

    @property
    def newness(self) -> tuple[datetime, str]:
        """The key to sort runs by; total, so that a page can continue where another ended."""
        return self.made, self.text


class Origin(BaseModel):
    """Which task instance of Airflow made a run."""

    model_config = ConfigDict(frozen=True)

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = Field(default=UNMAPPED, ge=UNMAPPED)
    """-1 for a task that is not mapped."""
    expect: str | None = None
    """The expected outcome, where a suite states one."""
    repeats: tuple[str, int] | None = None
    """Task and map index of the inconclusive run of which this is the second try."""

    @property
    def task(self) -> tuple[str, str, str, int]:
        """The task instance, without its expectation."""
        return self.dag_id, self.run_id, self.task_id, self.map_index

    @property
    def group(self) -> str:
        """The task group that carries out the run; empty outside any."""
        return group_of(self.task_id)

    @property
    def load_task(self) -> str:
        """The task that carries out load and faults."""
        return f"{self.group}.drive" if self.group else "drive"

    @property
    def first_try(self) -> tuple[str, str, str, int]:
        """The task instance of the first try."""
        return (self.dag_id, self.run_id, *self.repeats) if self.repeats else self.task


def group_of(task_id: str) -> str:
    """Return the task group that a task belongs to; empty outside any."""
    return task_id.rpartition(".")[0]


def note_airflow_run(folder: Path, context: "Context", **request: Any) -> None:
    """Record in a new run folder its task instance and expected outcome; call it before the cluster starts.

    Pages of the plugin find the run of a DAG run by this note, and decide access by it. If runs are read from
    elsewhere, the run appears there as running; a failure to copy the note is a warning, as the final copy may succeed.
    From the request it takes `expect` and `repeats`, if given.
    """
    ti: Any = context["ti"]
    requested = {name: request[name] for name in ("expect", "repeats") if name in request}
    origin = Origin(dag_id=ti.dag_id, run_id=ti.run_id, task_id=ti.task_id, map_index=ti.map_index, **requested)
    run = RunFolder(folder)
    replace_text(run.origin, json.dumps(origin.model_dump()) + "\n")
    if settings.is_remote():
        try:
            _copy(run, [path for path in (run.scenario, run.plan, run.origin) if path.exists()])
        except OSError as error:
            log.warning("run.announce failed run=%s error=%s", run.run_id, error)


def publish(folder: Path) -> str:
    """Copy a run to where runs are read, if that is not this machine's disk; return its address there.

    The driver's working folder stays here. The file that ends the run is copied last. Copying again replaces files.

    Raises:
        OSError: not all of it could be copied.
    """
    if not settings.is_remote():
        return str(folder)
    run = RunFolder(folder)
    last = [path for path in (run.phases, run.verdict) if path.exists()]
    files = [path for path in _files(folder) if not path.is_relative_to(run.cluster) and path not in last]
    _copy(run, files)
    _copy_libraries(run)
    _copy(run, last)
    log.info("run.publish complete run=%s files=%d", run.run_id, len(files) + len(last))
    return str(settings.runs_folder() / run.run_id)


def _copy_libraries(run: RunFolder) -> None:
    """Copy the chart library of reports, which lies beside the runs, unless it is there."""
    place = settings.runs_folder()
    fs = filesystem_of(place)
    for path in run.root.parent.iterdir():
        target = (place / path.name).path
        if LIBRARY.fullmatch(path.name) and path.is_file() and not fs.exists(target):
            fs.put([str(path)], [target])


def _files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder; links are skipped, as they could lead anywhere."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _copy(run: RunFolder, files: list[Path]) -> None:
    target = settings.runs_folder() / run.run_id
    copies = [(target / path.relative_to(run.root).as_posix()).path for path in files]
    filesystem_of(target).put([str(path) for path in files], copies)


def filesystem_of(path: "ObjectStoragePath") -> Any:
    """Return the fsspec file system of a path.

    Raises:
        OSError: Airflow has no provider for it, or the provider does not load.
    """
    try:
        return path.fs
    except (ValueError, ImportError) as error:
        raise OSError(f"{path}: {error}") from error
