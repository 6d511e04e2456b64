"""What the pages show, read from wherever runs lie: half-made, damaged and foreign folders are answers too.

Only what is shown is read: names carry scenario, instant and seed, so that a list of thousands of runs is one listing
and a few small files a row.
"""

import json
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from chaos_airflow.runs import Origin, RunName, filesystem_of
from harness import verdict
from harness.errors import EvidenceError
from harness.report.conclusion import expected
from harness.scenario.source import parse_yaml
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from harness.store.result import RunResult
from harness.system.pids import ProcessIdentity

if TYPE_CHECKING:
    from airflow.sdk import ObjectStoragePath

NAMES = RunFolder(Path())
"""What things are called within a run folder."""
REPORTED = Phase.REPORT.value
"""The last phase: with its duration in the result, the run is over."""
SILENCE = timedelta(hours=3)
"""Within a phase on another machine: no task of a run may take longer, so the run counts as abandoned then."""
PAUSE = timedelta(minutes=30)
"""Between two phases, which is time that tasks wait in a queue."""
FOUND, MISSED = "found, as it must be", "a planted bug was not found"
MAX_SMALL_BYTES = 4 << 20
MAX_FILE_BYTES = 128 << 20


class State(StrEnum):
    """The outcome of a run, by the files in its folder."""

    HELD = verdict.HELD
    VIOLATED = verdict.VIOLATED
    MISSED = verdict.MISSED
    INCONCLUSIVE = verdict.INCONCLUSIVE
    BROKEN = verdict.BROKEN
    RUNNING = "running"
    CUT_OFF = "cut off"
    DAMAGED = "damaged"


class NotThere(Exception):
    """Nothing lies there, or nothing that may be shown."""


class TooLarge(Exception):
    """A file is larger than a page should load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One run as a line of the list shows it."""

    name: RunName
    state: State
    detail: str
    """What it is doing, where it was cut off, or what is damaged; empty for a run that is over."""
    result: RunResult | None
    """As far as it is known; before the run is over it may still change."""
    origin: Origin | None
    """Which task made it; None for the command line."""
    system: str = ""
    """What is under test; empty if unknown."""
    driver: str = ""

    @property
    def expect(self) -> str:
        """The expected outcome: what a suite states, or else that a planted bug is found and all other runs hold."""
        stated = self.origin.expect if self.origin else None
        return stated or expected(self.result.planted_bugs if self.result else ())

    @property
    def as_expected(self) -> bool | None:
        """Whether it ended as expected; None before its end."""
        return None if self.state is State.RUNNING else self.state == self.expect

    @property
    def surprise(self) -> str:
        """What a verdict means where a planted bug had to be found; else empty."""
        if self.expect != State.VIOLATED:
            return ""
        return {State.VIOLATED: FOUND, State.HELD: MISSED}.get(self.state, "")


class Runs:
    """All runs at one place, as they are when this is made: what a storage remembers of earlier looks is forgotten.

    Every method raises OSError when the place itself cannot be read.
    """

    def __init__(self, root: "ObjectStoragePath") -> None:
        self._root = root.path.rstrip("/")
        self._fs: Any = filesystem_of(root)
        self._fs.invalidate_cache()
        self._on_disk = os.path.realpath(root.path) if root.protocol in ("", "file", "local") else None

    def names(self) -> list[RunName]:
        """Return every run's name, the newest first; a place that does not exist yet has none."""
        try:
            paths = self._fs.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        names = [name for path in paths if (name := RunName.parse(path.rstrip("/").rsplit("/", 1)[-1]))]
        return sorted(names, key=lambda name: name.newness, reverse=True)

    def overviews(self, names: Sequence[RunName]) -> list[Overview]:
        """Return these runs as they are now, in the same order."""
        results = self._read_each(names, str(NAMES.verdict))
        origins = self.origins(names)
        read = [_result(content, name) for content, name in zip(results, names, strict=True)]
        unfinished = [
            name
            for name, result in zip(names, read, strict=True)
            if result is None or (isinstance(result, RunResult) and not _is_over(result))
        ]
        phases = dict(zip(unfinished, self._read_each(unfinished, str(NAMES.phases)), strict=True))
        scenarios = dict(zip(unfinished, self._read_each(unfinished, str(NAMES.scenario)), strict=True))
        return [
            replace(_overview(name, result, origin, phases.get(name)), system=system, driver=driver)
            for name, result, origin in zip(names, read, origins, strict=True)
            for system, driver in [_under_test(result, scenarios.get(name))]
        ]

    def origins(self, names: Sequence[RunName]) -> list[Origin | None]:
        """Return which task made each run; None for the command line, and for a note that is damaged."""
        return [_origin(content) for content in self._read_each(names, str(NAMES.origin))]

    def overview(self, name: str) -> Overview:
        """Return one run.

        Raises:
            NotThere: there is no such run.
        """
        parsed = RunName.parse(name)
        if parsed is None or not self._fs.isdir(self._inside(parsed.text, "")):
            raise NotThere(f"no run {name}")
        return self.overviews([parsed])[0]

    def has(self, name: RunName, file: str) -> bool:
        """Return whether a run has this file."""
        try:
            return bool(self._fs.isfile(self._inside(name.text, file)))
        except NotThere:
            return False

    def read(self, name: RunName, file: str) -> bytes:
        """Return a file of a run; `file` is relative to the run's folder and must stay within.

        Raises:
            NotThere: there is no such file, or it lies outside.
            TooLarge: it is to be read elsewhere.
        """
        path = self._inside(name.text, file)
        if not self._fs.isfile(path):
            raise NotThere(f"{name.text} has no {file}")
        content: bytes = self._fs.cat_file(path, start=0, end=MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            raise TooLarge(f"{file} is larger than {MAX_FILE_BYTES >> 20} MiB; read it in the run's folder")
        return content

    def files(self, name: RunName) -> list[str]:
        """Return the files of a run that may be read, relative to its folder; not the cluster's working folder."""
        root = self._inside(name.text, "")
        found = (path.removeprefix(root).lstrip("/") for path in sorted(self._fs.find(root)))
        return [file for file in found if not file.startswith(f"{NAMES.cluster}/") and self.has(name, file)]

    def beside(self, file: str) -> bytes:
        """Return a file that lies beside the runs; no link is followed.

        Raises:
            NotThere: there is no such file.
        """
        path = f"{self._root}/{file}"
        if not self._fs.isfile(path) or (self._on_disk is not None and Path(path).is_symlink()):
            raise NotThere(f"no {file}")
        content: bytes = self._fs.cat_file(path)
        return content

    def _inside(self, run: str, file: str) -> str:
        """Return the path of something in a run, which no name and no link can lead out of that run."""
        parts = PurePosixPath(file)
        if parts.is_absolute() or ".." in parts.parts or "\\" in file or "\0" in file:
            raise NotThere("a path outside the run")
        path = f"{self._root}/{run}/{file}".rstrip("/")
        if self._on_disk is not None and not f"{os.path.realpath(path)}/".startswith(f"{self._on_disk}/{run}/"):
            raise NotThere("a path outside the run")
        return path

    def _read_each(self, names: Sequence[RunName], file: str) -> list[bytes | OSError]:
        """Return the same small file of many runs, or why it cannot be had; one request where the place can do that."""
        paths = []
        for name in names:
            try:
                path = self._inside(name.text, file)
            except NotThere:
                path = ""
            paths.append("" if self._on_disk is not None and Path(path).is_fifo() else path)
        wanted = [path for path in paths if path]
        got = self._fs.cat_ranges(wanted, [0] * len(wanted), [MAX_SMALL_BYTES] * len(wanted), on_error="return")
        content = dict(zip(wanted, got, strict=True))
        return [
            _read(content[path]) if path else PermissionError("it leads out of the runs folder, or is a pipe")
            for path in paths
        ]


def _read(content: object) -> bytes | OSError:
    """Return what was read; what came instead of it as an error of reading."""
    if isinstance(content, bytes):
        return content
    return content if isinstance(content, OSError) else OSError(str(content))


def _result(content: bytes | OSError, name: RunName) -> RunResult | str | None:
    """Return the result, what is wrong with it, or None when there is none yet."""
    if isinstance(content, FileNotFoundError):
        return None
    if isinstance(content, OSError):
        return f"{NAMES.verdict} cannot be read: {content.strerror or content}"
    try:
        result = RunResult.from_json(content, str(NAMES.verdict))
        _ = result.verdicts
    except (EvidenceError, KeyError) as error:
        return f"{name.text}: {error}"
    return result


def _is_over(result: RunResult) -> bool:
    """Return whether no phase follows: the report is written, or the cluster was not started."""
    not_started = any(remark.environment and remark.phase == Phase.START for remark in result.remarks)
    return not_started or REPORTED in result.phase_durations_s


def _origin(content: bytes | OSError) -> Origin | None:
    try:
        return None if isinstance(content, OSError) else Origin.model_validate_json(content)
    except ValidationError:
        return None


def _under_test(result: RunResult | str | None, scenario: bytes | OSError | None) -> tuple[str, str]:
    """Return system and driver, of the result or else of the scenario as it is run; empty if neither can be read."""
    if isinstance(result, RunResult):
        return result.system, result.driver
    text = scenario.decode("utf-8", "replace") if isinstance(scenario, bytes) else ""
    stated = parse_yaml(text, str(NAMES.scenario)).data
    known = stated if isinstance(stated, dict) else {}
    return str(known.get("system", "")), str(known.get("driver", ""))


def _overview(
    name: RunName, result: RunResult | str | None, origin: Origin | None, phases: bytes | OSError | None
) -> Overview:
    if isinstance(result, str):
        return Overview(name=name, state=State.DAMAGED, detail=result, result=None, origin=origin)
    if phases is None:
        assert result is not None, "a run without a result has its phases read"
        state, detail = State(result.outcome), ""
    else:
        state, detail = _progress(name, phases)
    return Overview(name=name, state=state, detail=detail, result=result, origin=origin)


def _progress(name: RunName, phases: bytes | OSError) -> tuple[State, str]:
    """Return whether an unfinished run is still worked on, and its last sign of progress."""
    if isinstance(phases, OSError) and not isinstance(phases, FileNotFoundError):
        return State.DAMAGED, f"{NAMES.phases} cannot be read: {phases.strerror or phases}"
    last: dict[str, Any] = {}
    for line in _lines(b"" if isinstance(phases, OSError) else phases):
        last = line
    if not last:
        gone = datetime.now(UTC) - name.made > PAUSE
        return (State.CUT_OFF if gone else State.RUNNING), "it was made and not started"
    try:
        when = datetime.fromisoformat(str(last["utc"]))
        what = f"{last['phase']} {last['event']} {when:%H:%M:%S}"
        within = last["event"] == "started"
        gone = datetime.now(UTC) - when > (SILENCE if within else PAUSE) or (within and _left_alone(last))
    except (KeyError, ValueError, TypeError) as error:
        return State.DAMAGED, f"{NAMES.phases}: not a line of the phase log: {error!r}"
    return (State.CUT_OFF if gone else State.RUNNING), what


def _left_alone(line: dict[str, Any]) -> bool:
    """Return whether the process that entered a phase is known to be gone; unknown on another machine."""
    if line.get("host") != socket.gethostname() or "pid" not in line:
        return False
    return not ProcessIdentity(pid=int(line["pid"]), started=str(line["pid_started"])).alive()


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    """Yield the whole lines of a log that may still be written; a torn last line is left out."""
    for line in content.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
