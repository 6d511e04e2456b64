"""The phases that ran, their durations and outcomes, and their remarks: `phases.jsonl`."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from harness.errors import ClusterError, EvidenceError, HarnessError, Interrupted
from harness.progress import Progress
from harness.store.folder import RunFolder
from harness.store.history import JsonlWriter, read_jsonl
from harness.store.reserve import with_room
from harness.store.result import Remark, reason_of
from harness.system.pids import ProcessIdentity, identify
from harness.system.writable import describe_error


class Phase(StrEnum):
    """In their order."""

    START = "start"
    DRIVE = "drive"
    COLLECT = "collect"
    STOP = "stop"
    JUDGE = "judge"
    EXPECTATIONS = "expectations"
    REPORT = "report"


GATHERING = frozenset({Phase.DRIVE, Phase.COLLECT})
"""Phases that make the evidence; a retry cannot repeat one that was cut off."""
BEFORE_JUDGING = GATHERING | {Phase.START}
"""Phases after which more evidence comes; `stop` is the last that adds some."""
SIGN_EVERY_S = 0.25
"""A phase that is killed is seen to last up to this much less."""


class Quiescence(BaseModel):
    """Writes to the cluster while the phase collect copied; two empty lists prove that there were none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    loaded: list[str] = []
    """A sentence for each client that still ran: copies of several brokers then show different instants."""
    unsettled: list[str] = []
    """A sentence for each reason why the dumps of replicas cannot be compared."""


@dataclass(slots=True)
class PhaseNotes:
    """The remarks of a phase on evidence and environment."""

    phase: str = ""
    remarks: list[Remark] = field(default_factory=list)
    residue: list[str] = field(default_factory=list)
    quiescence: Quiescence | None = None
    """Of the phase collect, once it has dumped the replicas."""

    def remark(self, text: str, *, subject: str = "", forbids_pass: bool = False, environment: bool = False) -> None:
        """Add a remark on the evidence; the subject is a file, a client, a broker."""
        remark = Remark(
            text=text, phase=self.phase, subject=subject, forbids_pass=forbids_pass, environment=environment
        )
        self.remarks.append(remark)


@contextmanager
def record_phase(folder: RunFolder, phase: Phase, progress: Progress) -> Iterator[PhaseNotes]:
    """Record that a phase runs and, whatever happens in it, how it ended; other errors become the harness's own.

    A phase runs even if this cannot be written: the cluster must be stopped on a full disk too.
    """
    notes = PhaseNotes(phase=phase)
    error = ""
    progress.phase_started(phase)
    started_s = time.monotonic()
    _write(folder, phase, "started", notes, progress, **_here(), **_last_sign(folder))
    try:
        with _giving_signs(folder.sign):
            yield notes
    except (KeyboardInterrupt, Interrupted):
        error = "interrupted"
        notes.remark(f"the phase {phase} was interrupted", forbids_pass=True)
        raise Interrupted(f"the phase {phase} was interrupted") from None
    except (HarnessError, OSError) as failure:
        error = describe_error(failure, folder.root)
        environment = isinstance(failure, (ClusterError, OSError))
        notes.remark(f"the phase {phase} failed: {error}", forbids_pass=True, environment=environment)
        if isinstance(failure, OSError):
            raise ClusterError(error) from failure
        raise
    except BaseException as failure:  # a scheduler's time limit, or a bug
        error = f"{type(failure).__name__}: {failure}"
        notes.remark(f"the phase {phase} broke: {error}", forbids_pass=True)
        raise
    finally:
        duration_s = time.monotonic() - started_s
        _write(folder, phase, "ended", notes, progress, error=error, duration_s=round(duration_s, 3))
        progress.phase_finished(phase, duration_s, error)


@contextmanager
def _giving_signs(path: Path) -> Iterator[None]:
    """Keep a file with the present instant; one that a killed process leaves says how long its phase lasted."""
    over = Event()

    def sign() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the thread of the phase
        with suppress(OSError):  # the folder was moved, or cannot be written
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                while True:
                    os.pwrite(descriptor, datetime.now(UTC).isoformat(timespec="microseconds").encode(), 0)
                    if over.wait(SIGN_EVERY_S):
                        break
            finally:
                os.close(descriptor)

    thread = Thread(target=sign, name="signs of the phase", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _sign_in(folder: RunFolder) -> list[datetime]:
    """Return the last sign that a phase gave; empty if none is left, or if it is torn."""
    try:
        return [datetime.fromisoformat(folder.sign.read_text(encoding="ascii"))]
    except (OSError, ValueError):
        return []


def _here() -> dict[str, Any]:
    """Return the process that carries a phase out, so that another can see later whether it is still alive."""
    me = identify(os.getpid())
    assert me is not None, "this process runs"
    return {"host": socket.gethostname(), "pid": me.pid, "pid_started": me.started}


def _last_sign(folder: RunFolder) -> dict[str, str]:
    """Return the last sign of a phase that was cut off; empty if none was, or if it is unknown."""
    try:
        log = entries(folder)
        if not log or log[-1].over:
            return {}
        written = [path.stat().st_mtime for paths in folder.evidence().values() for path in paths]
    except (EvidenceError, OSError):
        return {}
    signs = [datetime.fromtimestamp(max(written), UTC)] if written else []
    signs += _sign_in(folder)
    return {"last_sign": max(signs).isoformat(timespec="milliseconds")} if signs else {}


def _write(folder: RunFolder, phase: Phase, event: str, notes: PhaseNotes, progress: Progress, **more: Any) -> None:
    line = {
        "phase": phase,
        "event": event,
        "utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "remarks": [remark.model_dump() for remark in notes.remarks],
        "residue": notes.residue,
        **({"quiescence": notes.quiescence.model_dump()} if notes.quiescence else {}),
        **more,
    }
    try:
        folder.root.stat()  # a folder that was moved is not created again
        with JsonlWriter(folder.phases) as writer:
            with_room(folder, lambda: writer.write(line))
    except OSError as error:
        progress.message(f"the run folder cannot be written: {describe_error(error, folder.root)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnd:
    """The outcome of a phase, at its last run."""

    duration_s: float
    error: str
    remarks: list[Remark]
    residue: list[str]
    over: bool = True
    """Whether it ended by itself, well or not; one that was cut off did not."""
    quiescence: Quiescence | None = None
    """None for phases other than collect, and for runs of earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEntry:
    """One time that a phase was entered."""

    phase: Phase
    host: str
    """The machine it ran on; empty if unknown."""
    process: ProcessIdentity | None
    """Process that carried it out; None if the log does not say."""
    error: str | None
    """Its error; empty for success, None while it runs, or if it was cut off."""
    began: datetime | None = None
    ended: datetime | None = None
    """None if it did not end; each of the two also if the log does not say."""

    @property
    def over(self) -> bool:
        """Whether the phase ended by itself, well or not."""
        return self.error is not None


class _Line(BaseModel):
    """One line of the log."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    phase: Phase
    event: Literal["started", "ended"]
    utc: str = ""
    last_sign: str = ""
    """Last write of an earlier phase that was cut off, in UTC."""
    remarks: list[Remark | str] = []
    """Older lines have sentences, and one flag for all of them."""
    damaged: bool = False
    residue: list[str] = []
    quiescence: Quiescence | None = None
    host: str = ""
    pid: int | None = None
    pid_started: int | str = ""
    error: str | None = None
    """Of a phase that ended."""
    duration_s: float = 0.0

    @model_validator(mode="after")
    def _an_end_says_how(self) -> Self:
        if self.event == "ended" and self.error is None:
            raise ValueError("a phase that has ended says whether it failed")
        return self

    def of_phase(self) -> list[Remark]:
        """Return its remarks."""
        return [
            Remark(text=each, phase=self.phase, forbids_pass=self.damaged) if isinstance(each, str) else each
            for each in self.remarks
        ]


def entries(folder: RunFolder) -> list[PhaseEntry]:
    """Return every entry of a phase, in order.

    Raises:
        EvidenceError: the file holds something else.
    """
    known: list[PhaseEntry] = []
    for line in _lines(folder):
        if line.event == "started":
            process = None if line.pid is None else ProcessIdentity(pid=line.pid, started=str(line.pid_started))
            began = _instant(line.utc)
            known.append(PhaseEntry(phase=line.phase, host=line.host, process=process, error=None, began=began))
        elif known and known[-1].phase is line.phase:
            known[-1] = replace(known[-1], error=line.error, ended=_instant(line.utc))
    return known


def _instant(utc: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(utc)
    return None


def started_at(folder: RunFolder) -> str:
    """Return when the first phase began, in UTC; empty when none has."""
    return next((line.utc for line in _lines(folder)), "")


def ends(folder: RunFolder) -> dict[Phase, PhaseEnd]:
    """Return the outcome of each phase, at its last run; a phase without an end was cut off.

    Raises:
        EvidenceError: the file holds something else.
    """
    known: dict[Phase, PhaseEnd] = {}
    lost: dict[Phase, list[Remark]] = {}
    """What an earlier try of a phase missed and a retry cannot repeat."""
    under_way: _Line | None = None
    for line in _lines(folder):
        phase = line.phase
        if line.event == "started":
            if under_way:
                cut_off = known[under_way.phase]
                known[under_way.phase] = replace(cut_off, duration_s=_lasted_s(under_way, line))
            cut = Remark(text=f"the phase {phase} was cut off", phase=phase, forbids_pass=True)
            if phase in GATHERING and phase in known and not known[phase].over:
                lost[phase] = [cut]
            known[phase] = PhaseEnd(duration_s=0.0, error=cut.text, remarks=[cut], residue=[], over=False)
            under_way = line
        else:
            known[phase] = PhaseEnd(
                duration_s=line.duration_s,
                error=line.error or "",
                remarks=lost.get(phase, []) + line.of_phase(),
                residue=line.residue,
                quiescence=line.quiescence,
            )
            under_way = None
    if under_way and (signs := _sign_in(folder)):
        last = _Line(phase=under_way.phase, event="started", utc=signs[0].isoformat())
        known[under_way.phase] = replace(known[under_way.phase], duration_s=_lasted_s(under_way, last))
    return known


def _lasted_s(cut_off: _Line, following: _Line) -> float:
    """Return the duration of a phase that was cut off: until its last sign of life, or until the next one began."""
    if not cut_off.utc or not following.utc:
        return 0.0
    began = datetime.fromisoformat(cut_off.utc)
    signs = [datetime.fromisoformat(text) for text in (following.last_sign, following.utc) if text]
    return next((round((sign - began).total_seconds(), 3) for sign in signs if sign > began), 0.0)


def _lines(folder: RunFolder) -> Iterator[_Line]:
    if folder.phases.exists():
        for line in read_jsonl(folder.phases):
            try:
                yield _Line.model_validate(line)
            except ValidationError as error:
                raise EvidenceError(f"{folder.phases}: not a line of the phase log: {reason_of(error)}") from error
