"""Which kills there are, and what each comes to."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import psutil

from harness.cluster import relay
from harness.cluster.containers import guard
from harness.run.journal import read_journal
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep
from harness.store.phase_log import Phase, ends, entries
from harness.store.result import RunResult
from harness.verdict import ExitCode, SystemVerdict
from tools.kills.left import Namespaces, left_of, namespaces_of
from tools.kills.place import Place

T = TypeVar("T")

LONGEST_S = 600.0
POLL_S = 0.01
GONE_S = 240.0
"""A guard or supervisor may take so long to end what it watches, before a reaper looks."""


class Victim(StrEnum):
    """What is killed."""

    HARNESS = "harness"
    """The command alone."""
    ALL = "all"
    """All processes of the run at once, but those in containers."""
    SUPERVISOR = "supervisor"
    GUARD = guard.GUARD
    RELAY = relay.PROCESS
    WORKER = "worker"
    """The process that carries out a phase, where a scheduler calls them one by one."""
    CLIENT = "client"
    """One of the load."""


OF_EVERY_RUN = (Victim.HARNESS, Victim.ALL)
VICTIMS = {
    "process": (*OF_EVERY_RUN, Victim.SUPERVISOR, Victim.RELAY),
    "docker": (*OF_EVERY_RUN, Victim.SUPERVISOR, Victim.GUARD, Victim.RELAY),
}
"""By driver, of a run with a relay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One run in which something is killed, and when."""

    number: int
    driver: str
    scenario: Path
    victim: Victim
    phase: Phase
    fault: int | None = None
    """The injection that is in force then; None where it does not matter."""
    step: InjectionStep = InjectionStep.INTENDED
    """Of that injection, from which on the time is counted."""
    after_s: float
    """From the beginning of that phase, or from that step."""

    def __str__(self) -> str:
        since = self.phase if self.fault is None else f"fault {self.fault}"
        return f"{self.number}: {self.driver}, {since} + {self.after_s:.2f} s, {self.victim}"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a kill came to."""

    kill: Kill
    ended_before: bool = False
    """The command had come to its own end, the fault was healed, or the victim was gone."""
    wrong: list[str] = field(default_factory=list)


def drawn(
    kills: int, drivers: Sequence[str], seed: int, scenario: Path, durations: Mapping[str, Mapping[Phase, float]]
) -> Iterator[Kill]:
    """Yield kills of the command or of everything, the phases in turn, at any instant of each."""
    rng = random.Random(seed)
    for number in range(kills):
        driver, phase = drivers[number % len(drivers)], list(Phase)[number // len(drivers) % len(Phase)]
        after_s = rng.random() * durations[driver][phase]
        victim = Victim.ALL if rng.random() < 0.5 else Victim.HARNESS
        yield Kill(number=number, driver=driver, scenario=scenario, victim=victim, phase=phase, after_s=after_s)


def drawn_under_faults(
    kills: int, driver: str, seed: int, scenario: Path, windows_s: Mapping[int, float]
) -> Iterator[Kill]:
    """Yield kills of any victim while a fault is in force; faults and victims have their turns in an order drawn."""
    rng = random.Random(seed)
    faults, victims = _shuffled(windows_s, rng), _shuffled(VICTIMS[driver], rng)
    for number in range(kills):
        fault = next(faults)
        yield Kill(
            number=number,
            driver=driver,
            scenario=scenario,
            victim=next(victims),
            phase=Phase.DRIVE,
            fault=fault,
            after_s=rng.random() * windows_s[fault],
        )


def _shuffled(things: Iterable[T], rng: random.Random) -> Iterator[T]:
    """Yield all of them in an order, then all in another one, without end."""
    every = list(things)
    while True:
        yield from rng.sample(every, len(every))


def carried_out(kill: Kill, place: Place) -> Outcome:
    """Start an experiment, kill, reap, and say what is wrong then."""
    outcome = Outcome(kill=kill)
    command = place.experiment(kill.scenario, kill.driver)
    namespaces = Namespaces()
    try:
        outcome.ended_before = not comes(kill, command, place)
        namespaces = namespaces_of(place)
        if not outcome.ended_before and kill.victim not in OF_EVERY_RUN:
            outcome.ended_before = not killed(place.pids_of(kill.victim))
            _wait_for(command, lambda: _is_stopped(place), "its cluster was not stopped")
    finally:
        for process in place.processes() if kill.victim is Victim.ALL else ():
            _sigkill(process)
        command.kill()
        command.wait()
    wait_for_the_end(place)
    outcome.wrong = [*left_after_reaping(place, namespaces), *_wrong_verdict(kill, place)]
    return outcome


def left_after_reaping(place: Place, namespaces: Namespaces) -> Iterator[str]:
    """Have a reaper close the run, and yield what is left then."""
    if status := place.start("reap", "--runs", str(place.runs), "--patience", "0").wait():
        yield f"chaos reap ended with {status}"
    yield from left_of(place, namespaces)


def comes(kill: Kill, command: "subprocess.Popen[bytes]", place: Place) -> bool:
    """Return whether the instant of a kill comes; not where the command, or the fault, has come to its own end."""
    if kill.fault is None:
        begun = _wait_for(command, lambda: _has_begun(kill.phase, place), f"the phase {kill.phase} did not begin")
        return begun and not _ends_within(command, kill.after_s)
    under_way = _wait_for(
        command, lambda: kill.step in _steps(kill.fault, place), f"fault {kill.fault} was not {kill.step}"
    )
    if not under_way or _ends_within(command, kill.after_s):
        return False
    return InjectionStep.HEALED not in _steps(kill.fault, place)


def _wait_for(command: "subprocess.Popen[bytes]", come: Callable[[], bool], otherwise: str) -> bool:
    """Wait until something has come, or the command has ended; return whether it has come."""
    deadline_s = time.monotonic() + LONGEST_S
    while command.poll() is None:
        if come():
            return True
        if time.monotonic() > deadline_s:
            raise SystemExit(f"{otherwise} in {LONGEST_S:g} s")
        time.sleep(POLL_S)
    return False


def _has_begun(phase: Phase, place: Place) -> bool:
    run = place.run()
    return run is not None and any(entry.phase is phase for entry in entries(run))


def _is_stopped(place: Place) -> bool:
    run = place.run()
    return run is not None and Phase.STOP in ends(run)


def _steps(fault: int | None, place: Place) -> list[InjectionStep]:
    run = place.run()
    return [] if run is None else [entry.step for entry in read_journal(run.journal) if entry.injection == fault]


def _ends_within(command: "subprocess.Popen[bytes]", after_s: float) -> bool:
    try:
        command.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def killed(pids: Sequence[int]) -> bool:
    """Kill processes; return whether there were any."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return bool(pids)


def _sigkill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return


def wait_for_the_end(place: Place) -> None:
    """Return when what watches over a cluster has done its part, or had the time for it."""
    deadline_s = time.monotonic() + GONE_S
    while place.processes() and time.monotonic() < deadline_s:
        time.sleep(0.1)


def _wrong_verdict(kill: Kill, place: Place) -> Iterator[str]:
    """Yield a sentence for a verdict that should not be, or is missing."""
    run = place.run()
    if run is None:
        return
    if not run.verdict.exists():
        yield "the run has no verdict"
        return
    whole = Phase.EXPECTATIONS in ends(run) and not ends(run)[Phase.EXPECTATIONS].error
    verdict = RunResult.load(run.verdict).verdicts.system
    if verdict is SystemVerdict.FAIL or (verdict is SystemVerdict.PASS and not whole):
        yield f"it was cut off in the phase {kill.phase} and is {verdict.name}"


def whole_run(scenario: Path, driver: str, place: Place) -> RunFolder:
    """Carry out a run without kills.

    Raises:
        SystemExit: it failed. A busy machine may have kept it from proving something.
    """
    status = place.experiment(scenario, driver).wait(timeout=LONGEST_S)
    run = place.run()
    if run is None or status not in (ExitCode.HELD, ExitCode.INCONCLUSIVE):
        raise SystemExit(f"a run without kills ended with {status}: {place.log}")
    return run


def durations_of(run: RunFolder) -> dict[Phase, float]:
    """Return how long each phase of a whole run took."""
    return {phase: end.duration_s for phase, end in ends(run).items()}


def windows_of(run: RunFolder) -> dict[int, float]:
    """Return how long each injection of a whole run was in force, by its number: from its intention to its end."""
    began, lasted = {}, {}
    for entry in read_journal(run.journal):
        if entry.step is InjectionStep.INTENDED:
            began[entry.injection] = entry.time_ns
        elif entry.step is InjectionStep.HEALED:
            lasted[entry.injection] = (entry.time_ns - began[entry.injection]) / 1e9
    return lasted
