"""The sweeps that `chaos_simulate` made: read from the disk of the worker, which simulated them."""

import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from chaos_airflow import settings
from chaos_airflow.runs import Origin
from chaos_airflow.tasks.sweep import FOLDER, INSTANT, ORIGIN
from chaos_airflow.views.reading import FOUND, MAX_SMALL_BYTES, MISSED, NotThere, State, TooLarge
from harness.progress import number_of
from harness.sweep.summary import Summary
from harness.sweep.sweep import SUMMARY, VERDICTS, ScheduleVerdict, SweepRequest, request_file
from harness.verdict import ExitCode

NAME = re.compile(r"[0-9]{8}T[0-9]{6}")
Model = TypeVar("Model", bound=BaseModel)
SHOWN = 100
"""Of all sweeps; their folders stay."""
NO_SUMMARY = "no summary: still running, or stopped early; its task in Airflow says which"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOverview:
    """A sweep, by the files in its folder."""

    name: str
    root: Path
    """Where its table of histories and its verdicts are."""
    made: datetime
    """UTC."""
    origin: Origin | None
    replay: str
    """The command that does a schedule again, without its seed; empty where nothing says so."""
    summary: Summary | None
    detail: str
    """Why there is no summary."""

    @property
    def state(self) -> State | None:
        """What it came to."""
        return State(self.summary.exit_code.outcome) if self.summary else None

    @property
    def surprise(self) -> str:
        """What that means where a planted bug had to be found; else empty."""
        if self.summary is None or not self.summary.planted_bugs:
            return ""
        return {ExitCode.VIOLATED: FOUND, ExitCode.HELD: MISSED}.get(self.summary.exit_code, "")

    def replay_of(self, seed: int) -> str:
        """Return the command that does the schedule with that seed again; empty where nothing says so."""
        return f"{self.replay} --seed {seed}" if self.replay else ""

    def schedule(self, seed: int) -> ScheduleVerdict:
        """Return what became of the schedule with that seed.

        Raises:
            NotThere: the sweep has none, or not yet.
        """
        mark = f'"seed":{seed},'.encode()
        path = self.root / VERDICTS
        try:
            if path.is_symlink() or not path.is_file():
                raise FileNotFoundError
            with path.open("rb") as lines:
                verdicts = (ScheduleVerdict.model_validate_json(line) for line in lines if mark in line)
                return next(verdict for verdict in verdicts if verdict.seed == seed)
        except (FileNotFoundError, StopIteration, ValidationError):
            raise NotThere(f"{self.name} has no verdict on a schedule with seed {seed}") from None


def all_sweeps() -> list[SweepOverview]:
    """Return the newest sweeps, the newest first."""
    return [sweep(name) for name in _names()[:SHOWN]]


def sweep(name: str) -> SweepOverview:
    """Return one sweep, of several tries the last: a task that was cleared makes another.

    Raises:
        NotThere: there is none of that name.
    """
    root = _folder() / name
    made = _made(name)
    if made is None or root.is_symlink() or not root.is_dir():
        raise NotThere(f"no sweep {name}")
    tries = [
        path.parent for path in sorted(root.glob(f"*/{request_file(Path()).name}")) if not path.parent.is_symlink()
    ]
    last = tries[-1] if tries else root
    summary, detail = _summary(last / SUMMARY)
    return SweepOverview(
        name=name,
        root=last,
        made=made,
        origin=_stored(Origin, root / ORIGIN),
        replay=request.replay if (request := _stored(SweepRequest, request_file(last))) else "",
        summary=summary,
        detail=detail,
    )


def sweep_of(dag_id: str, run_id: str) -> SweepOverview | None:
    """Return the sweep that a DAG run made."""
    if settings.is_remote():
        return None
    origins = ((name, _stored(Origin, _folder() / name / ORIGIN)) for name in _names())
    names = (name for name, origin in origins if origin and origin.task[:2] == (dag_id, run_id))
    return next(map(sweep, names), None)


def _folder() -> Path:
    if settings.is_remote():
        raise NotThere("Runs are in an object store; sweeps stay on the worker that made them.")
    return settings.local_runs_folder() / FOLDER


def _names() -> list[str]:
    """Return the names of all sweeps, the newest first."""
    folders = (path for path in _folder().glob("*") if path.is_dir() and not path.is_symlink())
    return sorted((path.name for path in folders if _made(path.name)), reverse=True)


def _made(name: str) -> datetime | None:
    """Return the instant that a sweep's name is; None for any other name."""
    try:
        return datetime.strptime(name, INSTANT).replace(tzinfo=UTC) if NAME.fullmatch(name) else None
    except ValueError:
        return None


def _summary(path: Path) -> tuple[Summary | None, str]:
    """Return a summary, or why there is none."""
    try:
        return Summary.model_validate_json(_content(path)), ""
    except FileNotFoundError:
        return None, NO_SUMMARY
    except ValidationError as error:
        return None, f"{path.name} is not a summary: {number_of(error.error_count(), 'wrong value')}"
    except (OSError, TooLarge) as error:
        return None, str(error)


def _stored(model: type[Model], path: Path) -> Model | None:
    """Return what a file holds; None where there is no such file, or nothing of that kind in it."""
    try:
        return model.model_validate_json(_content(path))
    except (OSError, TooLarge, ValidationError):
        return None


def _content(path: Path) -> bytes:
    """Return a small file's content; no link is followed, and a pipe is never opened."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path.name} is not a file")
    if status.st_size > MAX_SMALL_BYTES:
        raise TooLarge(f"{path.name} is larger than {MAX_SMALL_BYTES >> 20} MiB")
    return path.read_bytes()
