"""What a sweep is: many schedules of one scenario, each under its own seed, and the verdict on each; without Spark.

A schedule's seed depends on the sweep's seed and its own number alone, so a longer sweep begins as a shorter one does.
"""

import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from harness.contracts import registry
from harness.errors import ClusterError, EvidenceError
from harness.events import FIELDS
from harness.judging.assessment import within_holes
from harness.judging.needs import evidence_of
from harness.judging.why import Reason, why
from harness.progress import Listener
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan
from harness.scenario.seeds import derived_seed
from harness.store.result import CheckResult, NamedFaultVerdict, NamedSystemVerdict, RunResult, StoredModel, reason_of
from harness.store.seal import Hole
from harness.store.version import VERSION, Logged, require_logged, require_readable
from harness.verdict import ExitCode, FaultVerdict, SystemVerdict

DRIVER = "simulated"
SUMMARY = "summary.json"
ROUNDS = "rounds"
"""Folder of a guided search's histories, one table a round."""
VERDICTS = "verdicts.jsonl"
TABLES = "tables"
"""A column of the histories: typed tables, made of the lines that stand beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What is asked: how many schedules of which scenario, under which seed, and where everything about them goes."""

    scenario: Scenario
    seed: int
    schedules: int
    root: Path
    """Executors write here: on a cluster of several machines it is a folder that they share."""
    replay: str = ""
    """The command that replays a schedule, without its seed; see `replay_command`."""
    logged: Logged | None = None
    """Fields of the state changes in its table, by kind; None: those that brokers log today."""

    @property
    def histories(self) -> Path:
        """All evidence as one Parquet table, one row a schedule."""
        return self.root / "schedules.parquet"

    @property
    def is_simulated(self) -> bool:
        """Whether the table of histories is whole: Spark says so with a file of its own."""
        return (self.histories / "_SUCCESS").exists()

    @property
    def judged(self) -> Path:
        """Folder with one folder a batch of schedules: what the checks found."""
        return self.root / "judged"

    @property
    def verdicts(self) -> Path:
        """One line of JSON a schedule, in the order of their numbers."""
        return self.root / VERDICTS

    @property
    def shrunk(self) -> Path:
        """Folder with a small scenario for each finding, if that was asked for."""
        return self.root / "shrunk"

    @property
    def summary(self) -> Path:
        """What all of it came to, as JSON."""
        return self.root / SUMMARY


class SweepRequest(StoredModel):
    """What a sweep was asked for: `sweep.json`."""

    scenario: str
    """In YAML."""
    seed: int
    schedules: int
    replay: str
    evidence: int
    """Version of the lines in its table."""
    logged: dict[str, tuple[str, ...]] | None = None
    """Fields of the state changes in its table, by kind; None in sweeps of development versions, which are refused."""


def request_file(root: Path) -> Path:
    """Return where a sweep's folder says what was asked."""
    return root / "sweep.json"


def load_sweep(root: Path) -> Sweep:
    """Return the sweep of a folder.

    Raises:
        EvidenceError: it is not the folder of a sweep, or not readable.
        ScenarioError: its scenario is not one that this version knows.
    """
    from harness.scenario.file import read_scenario  # a parser of YAML, which the command line starts without

    path = request_file(root)
    try:
        request = SweepRequest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{path}: cannot be read: {reason_of(error)}") from error
    require_readable(request.evidence, str(root))
    scenario = read_scenario(request.scenario, str(path))
    return Sweep(
        scenario=scenario,
        seed=request.seed,
        schedules=request.schedules,
        root=root,
        replay=request.replay,
        logged=require_logged(request.logged, str(root)),
    )


def new_sweep(scenario: Scenario, seed: int, schedules: int, parent: Path, replay: str) -> Sweep:
    """Return a sweep with a new folder of its own.

    Args:
        scenario: Of all schedules.
        seed: Decides the seeds of all schedules.
        schedules: How many.
        parent: Where the folder is made.
        replay: The command that replays a schedule, without its seed; see `replay_command`.

    Raises:
        ClusterError: the folder cannot be made.
    """
    from harness.scenario.file import scenario_yaml

    instant = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    root = parent.resolve() / f"{scenario.name}-{instant}-{seed:08x}"
    try:
        root.mkdir(parents=True)
        request = SweepRequest(
            scenario=scenario_yaml(scenario),
            seed=seed,
            schedules=schedules,
            replay=replay,
            evidence=VERSION,
            logged=FIELDS,
        )
        request_file(root).write_text(request.model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ClusterError(f"no folder for a sweep can be made in {parent}: {error}") from error
    return Sweep(scenario=scenario, seed=seed, schedules=schedules, root=root, replay=replay, logged=FIELDS)


def discard_empty(sweep: Sweep) -> None:
    """Remove the folder of a sweep of which nothing was begun."""
    if not sweep.histories.exists():
        shutil.rmtree(sweep.root, ignore_errors=True)


def schedule_seed(seed: int, number: int) -> int:
    """Return the seed of one schedule of a sweep."""
    return derived_seed(seed, "schedule", number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One schedule by itself: a scenario, and a plan for it, which need not be the one that its seed makes."""

    scenario: Scenario
    plan: Plan


class SweepProgress(Listener, Protocol):
    """Shows the progress of a sweep."""

    def done(self, what: str, schedules: int, of: int, violated: int = 0) -> None:
        """So many schedules are done of so many, each kind of work from zero; called again and again.

        Promises were broken in the schedules that are `found`.
        """
        ...


class ScheduleVerdict(StoredModel):
    """What became of one schedule: one line of `verdicts.jsonl`."""

    number: int
    seed: int
    run_id: str
    digest: str
    """Hash over its whole history; empty when there is none."""
    error: str
    """Why there is no history, in a sentence; else empty."""
    fault: NamedFaultVerdict
    system: NamedSystemVerdict
    exit_code: ExitCode
    """What `chaos run` returns for it."""
    checks: list[CheckResult] = []
    reasons: list[Reason] = []
    """Why it did not hold."""


def verdict_of(*, number: int, seed: int, digest: str, result: RunResult) -> ScheduleVerdict:
    """Return the verdict on a schedule that was simulated and judged; what rests on missing evidence is UNKNOWN."""
    holes = [
        Hole(place=each.subject, kind=each.evidence, text=each.text)
        for each in result.remarks
        if each.evidence is not None
    ]
    if holes:
        rests_on = evidence_of(registry.check(each.check) for each in result.checks)
        result = result.model_copy(update={"checks": within_holes(result.checks, holes, rests_on)})
    verdicts = result.verdicts
    return ScheduleVerdict(
        number=number,
        seed=seed,
        run_id=result.run_id,
        digest=digest,
        error="",
        fault=verdicts.fault,
        system=verdicts.system,
        exit_code=verdicts.exit_code,
        checks=result.checks,
        reasons=why(result),
    )


def failed(*, number: int, seed: int, run_id: str, error: str) -> ScheduleVerdict:
    """Return the verdict on a schedule that left no history."""
    return ScheduleVerdict(
        number=number,
        seed=seed,
        run_id=run_id,
        digest="",
        error=error,
        fault=FaultVerdict.INCONCLUSIVE,
        system=SystemVerdict.UNKNOWN,
        exit_code=ExitCode.INCONCLUSIVE,
    )


def absent(histories: Path, seeds: Mapping[int, int], numbers: Iterable[int]) -> list[ScheduleVerdict]:
    """Return the verdicts on those schedules that are not of these numbers: nothing is known of them.

    Args:
        histories: The table that they should be in.
        seeds: Of all schedules, by their numbers.
        numbers: Of the schedules that are there.
    """
    error = f"it is not in {histories.name}, or cannot be read there"
    return [
        failed(number=number, seed=seeds[number], run_id="", error=error) for number in sorted({*seeds} - {*numbers})
    ]


def replay_command(scenario: str, planted_bugs: Iterable[str], sets: Iterable[str]) -> str:
    """Return the command that runs one schedule of a sweep with the same options; the seed is to be added."""
    words = ["chaos", "run", scenario, "--driver", DRIVER]
    words += [word for bug in planted_bugs for word in ("--planted-bug", bug)]
    return shlex.join(words + [word for option in sets for word in ("--set", option)])
