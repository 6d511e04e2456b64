"""What is left when a whole experiment is killed at any instant? `chaos reap` must leave nothing, and no run passes.

    python -m benchmarks.kills [--kills 100] [--drivers process docker] [--seed 1] [--folder FOLDER]

The phases take turns. Within its phase the instant is drawn over the time that the phase took in a whole run before,
and so is whether the command alone dies or all of its processes at once. Exit code 1: something was left, or a run that
was cut off has PASS or FAIL. Each is said with the number of its kill, and the seed draws the same kills again. Where a
driver does not work it is left out, and that is said.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from harness.cluster.containers.engine import Engine, EngineUnavailable
from harness.scenario.capabilities import missing
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, ends, entries
from harness.store.result import RunResult
from harness.verdict import SystemVerdict

SCENARIO = """\
name: brief
description: One fault, quickly
topics: [{name: orders, partitions: 2, config: {min.insync.replicas: 2}}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1, acks: all, rate_per_s: 50}}]
faults: [{kind: kill, at_s: 0.2, duration_s: 0.5, target: "leader(orders,0)"}]
duration_s: 1
"""
LONGEST_S = 600.0
POLL_S = 0.01
GONE_S = 60.0
"""A guard or supervisor may take so long to end what it watches, before a reaper looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One run that is killed, and where."""

    number: int
    driver: str
    phase: Phase
    after_s: float
    """From the beginning of that phase."""
    everything: bool
    """Whether all processes of the run die at once, or the command alone."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a kill came to."""

    kill: Kill
    ended_before: bool = False
    """The command had come to its own end."""
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kill's run has its files, temporary ones included; whatever names it is of that run."""

    root: Path

    @property
    def runs(self) -> Path:
        """The folder that its run is made in."""
        return self.root / "runs"

    @property
    def temporary(self) -> Path:
        """Its folder for temporary files."""
        return self.root / "tmp"

    def run(self) -> RunFolder | None:
        """Return the run folder, once there is one."""
        return next(map(RunFolder, self.runs.glob("brief-*")), None) if self.runs.exists() else None

    def processes(self) -> list[psutil.Process]:
        """Return the live processes whose arguments or environment name this place."""
        return [process for process in psutil.process_iter() if process.pid != os.getpid() and self._names(process)]

    def _names(self, process: psutil.Process) -> bool:
        try:
            texts = [*process.cmdline(), *process.environ().values()]
            return process.status() != psutil.STATUS_ZOMBIE and any(str(self.root) in text for text in texts)
        except psutil.Error:
            return False

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start `chaos` with its temporary files in here."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        with (self.root / "chaos.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "harness", *arguments],
                env=os.environ | {"TMPDIR": str(self.temporary)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def experiment(self, driver: str) -> "subprocess.Popen[bytes]":
        """Start a whole experiment."""
        self.root.mkdir(parents=True, exist_ok=True)
        scenario = self.root / "brief.yaml"
        scenario.write_text(SCENARIO, encoding="utf-8")
        return self.start("run", str(scenario), "--seed", "1", "--driver", driver, "--runs", str(self.runs))


def drawn(kills: int, drivers: Sequence[str], seed: int, durations: dict[str, dict[Phase, float]]) -> Iterator[Kill]:
    """Return which kills there are."""
    rng = random.Random(seed)
    for number in range(kills):
        driver, phase = drivers[number % len(drivers)], list(Phase)[number // len(drivers) % len(Phase)]
        after_s = rng.random() * durations[driver][phase]
        yield Kill(number=number, driver=driver, phase=phase, after_s=after_s, everything=rng.random() < 0.5)


def carried_out(kill: Kill, place: Place) -> Outcome:
    """Start an experiment, kill it, reap, and say what is wrong then."""
    outcome = Outcome(kill=kill)
    command = place.experiment(kill.driver)
    try:
        outcome.ended_before = not _has_begun(kill.phase, command, place) or _ends_within(command, kill.after_s)
    finally:
        for process in place.processes() if kill.everything else ():
            _sigkill(process)
        command.kill()
        command.wait()
    _wait_for_the_end(place)
    reaped = place.start("reap", "--runs", str(place.runs), "--patience", "0").wait()
    outcome.wrong = list(_wrong(outcome, place))
    if reaped:
        outcome.wrong.append(f"chaos reap ended with {reaped}")
    return outcome


def _has_begun(phase: Phase, command: "subprocess.Popen[bytes]", place: Place) -> bool:
    deadline_s = time.monotonic() + LONGEST_S
    while command.poll() is None:
        run = place.run()
        if run is not None and any(entry.phase is phase for entry in entries(run)):
            return True
        if time.monotonic() > deadline_s:
            raise SystemExit(f"{place.root}: the phase {phase} did not begin in {LONGEST_S:g} s")
        time.sleep(POLL_S)
    return False


def _ends_within(command: "subprocess.Popen[bytes]", after_s: float) -> bool:
    try:
        command.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _sigkill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return


def _wait_for_the_end(place: Place) -> None:
    """Return when what watches over a cluster has done its part, or had the time for it."""
    deadline_s = time.monotonic() + GONE_S
    while place.processes() and time.monotonic() < deadline_s:
        time.sleep(0.1)


def _wrong(outcome: Outcome, place: Place) -> Iterator[str]:
    """Yield a sentence for each thing that is left, and for a verdict that should not be."""
    for process in place.processes():
        yield f"process {process.pid} is left: {' '.join(process.cmdline())[:200]}"
    for path in place.temporary.iterdir():
        yield f"{path.name} is left in the folder for temporary files"
    run = place.run()
    if run is None:
        return
    yield from (f"container, network or volume {name} is left" for name in _resources(run))
    yield from (f"{path.relative_to(run.root)} is left" for path in run.cluster.rglob("*.sock"))
    if not run.verdict.exists():
        yield "the run has no verdict"
        return
    whole = Phase.EXPECTATIONS in ends(run) and not ends(run)[Phase.EXPECTATIONS].error
    verdict = RunResult.load(run.verdict).verdicts.system
    if verdict is not SystemVerdict.UNKNOWN and not whole:
        yield f"it was cut off in the phase {outcome.kill.phase} and is {verdict.name}"


def _resources(run: RunFolder) -> list[str]:
    try:
        with Engine.connect() as engine:
            return [resource.name for resource in engine.resources(run.root)]
    except EngineUnavailable:
        return []


def durations_of(driver: str, place: Place) -> dict[Phase, float]:
    """Return how long each phase of a whole run takes.

    Raises:
        SystemExit: it does not hold.
    """
    if status := place.experiment(driver).wait(timeout=LONGEST_S):
        raise SystemExit(f"a run that nobody kills ended with {status}: {place.root / 'chaos.log'}")
    run = place.run()
    assert run is not None, "it has ended well"
    return {phase: end.duration_s for phase, end in ends(run).items()}


def table_of(outcomes: Sequence[Outcome]) -> Table:
    """Return how many kills hit each phase, and how many of them left something."""
    table = Table(title=f"{len(outcomes)} kills")
    for name in ("driver", "phase", "killed", "had ended before", "left something"):
        table.add_column(name, justify="left" if name in ("driver", "phase") else "right")
    for driver, phase in sorted({(each.kill.driver, each.kill.phase) for each in outcomes}, key=_in_order):
        those = [each for each in outcomes if (each.kill.driver, each.kill.phase) == (driver, phase)]
        ended, wrong = sum(each.ended_before for each in those), sum(bool(each.wrong) for each in those)
        table.add_row(driver, phase, str(len(those) - ended), str(ended), str(wrong))
    return table


def _in_order(of: tuple[str, Phase]) -> tuple[str, int]:
    return of[0], list(Phase).index(of[1])


def _can_run(driver: str, console: Console) -> bool:
    """Whether this machine can run clusters so; where it cannot, say why."""
    lacking = missing(driver, ())
    for reason in lacking.values():
        console.print(f"{driver}: left out: {reason}", markup=False)
    return not lacking


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--drivers", nargs="+", default=["process", "docker"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where runs are made; default: a new temporary one")
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="kills-"))).absolute()
    console = Console()
    drivers = [driver for driver in options.drivers if _can_run(driver, console)]
    durations = {driver: durations_of(driver, Place(folder / driver)) for driver in drivers}
    outcomes = []
    for kill in drawn(options.kills, drivers, options.seed, durations):
        outcome = carried_out(kill, Place(folder / f"kill-{kill.number}"))
        outcomes.append(outcome)
        whose = "all processes" if kill.everything else "the command"
        seen = "; ".join(outcome.wrong) or ("it had ended before" if outcome.ended_before else "nothing is left")
        where = f"{kill.number}: {kill.driver}, {kill.phase} + {kill.after_s:.2f} s, {whose}"
        console.print(f"{where}: {seen}", markup=False)
    console.print(table_of(outcomes))
    wrong = {outcome.kill.number: outcome.wrong for outcome in outcomes if outcome.wrong}
    if wrong:
        console.print(json.dumps(wrong, indent=2), markup=False)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
