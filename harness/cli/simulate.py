"""`chaos simulate`: a sweep of schedules, its progress, and its outcome."""

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from harness.cli.options import (
    EngineName,
    Json,
    Master,
    PlantedBugs,
    ScenarioName,
    Seed,
    Sets,
    folder_to_make,
    simulated,
)
from harness.errors import EvidenceError, HarnessError, Interrupted, ScenarioError, SparkError
from harness.progress import number_of
from harness.system.engine import by_jvm, choose_engine
from harness.verdict import ExitCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harness.sweep.summary import Summary
    from harness.sweep.sweep import Sweep

DEFAULT_OUT = Path("sweeps")
MAX_SCHEDULES = 10_000_000
WHY_NO_OBJECTIVES = "a sweep has virtual time and drawn delays, so its durations say nothing about a service"
EVERY_S = 10.0
"""Interval between two lines of progress without a terminal."""


def simulate(
    scenario: ScenarioName,
    schedules: Annotated[int, typer.Option("--schedules", min=1, max=MAX_SCHEDULES, help="Number of schedules.")] = 100,
    seed: Seed = None,
    master: Master = None,
    engine: EngineName = None,
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
    out: Annotated[
        Path, typer.Option("--out", callback=folder_to_make, help="Folder in which the sweep's folder is created.")
    ] = DEFAULT_OUT,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="At the end, shrink the first schedule of each finding.")
    ] = False,
    guided: Annotated[
        bool, typer.Option("--guided", help="Search in rounds for schedules that reach new states.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Simulate many schedules of a scenario in virtual time, judge all, and print how to replay findings."""
    from rich.console import Console

    from harness.phases import new_seed
    from harness.sweep.sweep import discard_empty, new_sweep, replay_command

    choose_engine(engine)
    loaded = simulated(scenario, planted_bugs, sets)
    if guided and loaded.steps:
        raise ScenarioError(
            "--guided moves faults in time, and steps have a fixed order: give a scenario without steps"
        )
    if guided and shrink:
        raise ScenarioError("--guided does not shrink: run `chaos shrink` on the scenario that it writes for a finding")
    if loaded.objectives is not None:
        typer.echo(f"not judged: objectives ({', '.join(loaded.objectives.stated)}); {WHY_NO_OBJECTIVES}", err=True)
    replay = replay_command(scenario, planted_bugs or [], sets or [])
    sweep = new_sweep(loaded, new_seed() if seed is None else seed, schedules, out, replay)
    try:
        with _interruptible(sweep):
            summary = carry_out(sweep, master, shrink=shrink, guided=guided)
    except HarnessError:
        discard_empty(sweep)
        raise
    if as_json:
        typer.echo(json.dumps(summary.model_dump(mode="json") | {"folder": str(sweep.root)}, indent=2))
    else:
        show(Console(), summary, sweep.root)
    raise typer.Exit(summary.exit_code)


def rejudge(root: Path) -> "Summary":
    """Judge a sweep's histories again, and rewrite its summary.

    Raises:
        EvidenceError: the folder is not that of a sweep, or its simulation did not finish.
    """
    from rich.console import Console

    from harness.analysis.engine.session import spark_session
    from harness.sweep import jobs as jobs
    from harness.sweep.summary import earlier_simulated_s
    from harness.sweep.sweep import ROUNDS, load_sweep

    sweep = load_sweep(root.resolve())
    if (sweep.root / ROUNDS).exists():
        raise EvidenceError(f"{root}: a guided search is not judged again; each of its findings has a scenario there")
    if not sweep.is_simulated:
        raise EvidenceError(f"{root}: its simulation did not finish; there is nothing to judge")
    bars = SweepBars(Console(stderr=True))
    session = spark_session(jobs.patient(None), lasting=_lasts(sweep), progress=bars, anywhere=True)
    with _interruptible(sweep), bars as progress, session as spark:
        return _judge(spark, sweep, progress, simulated_s=earlier_simulated_s(sweep))


@contextmanager
def _interruptible(sweep: "Sweep") -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        done = f"; what was done is in {sweep.root}" if sweep.histories.exists() else " before anything was done"
        raise Interrupted(f"the sweep was interrupted{done}") from None
    except SparkError as error:
        if not sweep.is_simulated:
            raise
        raise SparkError(f"{error}; its histories can be judged: chaos rejudge {sweep.root}") from error


def carry_out(sweep: "Sweep", master: str | None, *, shrink: bool, guided: bool = False) -> "Summary":
    """Simulate, judge, shrink findings if requested, and write the summary.

    Apache Spark simulates; the chosen engine judges.
    """
    from rich.console import Console

    from harness.analysis.engine.session import spark_session
    from harness.cli.shrink import with_small_ones
    from harness.cli.terminal import TerminalProgress
    from harness.sweep import jobs as jobs
    from harness.sweep.rounds import judge_rounds, search

    console = Console(stderr=True)
    terminal = TerminalProgress(console)
    simulating = partial(spark_session, jobs.patient(master), lasting=shrink or _lasts(sweep), progress=terminal)
    with ExitStack() as stack:
        spark = stack.enter_context(simulating())
        with SweepBars(console) as progress:
            began_s = time.monotonic()
            tried = search(spark, sweep, progress) if guided else []
            if not guided:
                jobs.simulate(spark, sweep, progress)
            simulated_s = time.monotonic() - began_s
        judging: AbstractContextManager[SparkSession] = nullcontext(spark)
        if not by_jvm():
            stack.close()
            judging = spark_session(progress=terminal, anywhere=True)
        with judging as judge, SweepBars(console) as progress:
            if guided:
                summary = judge_rounds(judge, sweep, tried, progress, simulated_s=simulated_s)
                _write(sweep, summary)
            else:
                summary = _judge(judge, sweep, progress, simulated_s=simulated_s)
        if shrink:
            with simulating() as spark:
                summary = with_small_ones(spark, sweep, summary, terminal)
            _write(sweep, summary)
    return summary


def _lasts(sweep: "Sweep") -> bool:
    """Return whether there is work for minutes: one task's schedules are over before a second compiler pays off."""
    from harness.sweep import jobs as jobs

    return sweep.schedules > jobs.SHARE


def _judge(spark: "SparkSession", sweep: "Sweep", progress: "SweepBars", *, simulated_s: float) -> "Summary":
    """Judge the table of histories and write the summary."""
    from harness.judging.needs import answerable
    from harness.run.emits import emits_of
    from harness.sweep import jobs as jobs
    from harness.sweep.summary import summarize

    began_s = time.monotonic()
    checks = answerable(sweep.scenario, emits_of(sweep.scenario, sweep.logged)).judged
    if checks is None:
        raise EvidenceError(f"{sweep.root}: no check can judge what its brokers logged")
    verdicts = jobs.judge(spark, sweep, checks, progress)
    coverage = jobs.covered(sweep)
    judged_s = time.monotonic() - began_s
    summary = summarize(sweep, verdicts, simulated_s=simulated_s, judged_s=judged_s, coverage=coverage)
    _write(sweep, summary)
    return summary


def _write(sweep: "Sweep", summary: "Summary") -> None:
    sweep.summary.write_text(summary.model_dump_json(indent=2) + "\n", encoding="utf-8")


class SweepBars:
    """A bar for each kind of work on a terminal, occasional lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Bars(
            TextColumn("{task.description:>9}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[outcome]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}
        self._began_s: dict[str, float] = {}
        self._next_s: dict[str, float] = {}
        """When the next line about a kind of work is due, without a terminal."""

    def __enter__(self) -> "SweepBars":
        self._bars.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bars.stop()

    def message(self, text: str) -> None:
        """Show one line."""
        self._console.print(f"           {text}", markup=False, highlight=False)

    def doing(self, what: str) -> bool:
        """Do nothing: the bars show it."""
        return self._console.is_terminal

    def done(self, what: str, schedules: int, of: int, violated: int = 0) -> None:
        """Show the progress, rate and findings of one kind of work."""
        now_s = time.monotonic()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=of, outcome="")
            self._began_s[what] = now_s
        passed_s = now_s - self._began_s[what]
        rate = f"{schedules / passed_s:.1f}/s" if passed_s and schedules else ""
        parts = ", ".join(part for part in (rate, f"{violated} violated" if violated else "") if part)
        self._bars.update(self._tasks[what], completed=schedules, outcome=parts)
        if not self._console.is_terminal and (now_s >= self._next_s.get(what, 0.0) or schedules == of):
            self._next_s[what] = now_s + EVERY_S
            line = f"{what:>9}  {schedules} of {of}" + (f"  {parts}" if parts else "")
            self._console.print(line, markup=False, highlight=False)


def show(console: Console, summary: "Summary", root: Path) -> None:
    """Print a sweep's outcome, and how to see each finding again."""
    from harness.cli.terminal import new_table

    title = (
        f"{summary.scenario}, seed {summary.seed}: {number_of(summary.schedules, 'schedule')}, {summary.distinct} of"
        " them distinct"
    )
    table = new_table(title, "found", "schedules", "seeds", "the first", wide=["the first"])
    for style, findings in (("red", summary.violations), ("yellow", summary.doubts)):
        for finding in findings:
            seeds = "\n".join(map(str, finding.seeds))
            table.add_row(f"[{style}]{finding.title}[/]", str(finding.schedules), seeds, escape(finding.first))
    if table.row_count:
        console.print(table)
    else:
        console.print(title, highlight=False)
    for finding in (*summary.violations, *summary.doubts):
        for what, command in (("replay", finding.replay), ("small", finding.small)):
            if command:
                console.print(f"{what:<9} {finding.title}: {command}", markup=False, highlight=False, soft_wrap=True)
    style = {ExitCode.HELD: "green", ExitCode.VIOLATED: "red"}.get(summary.exit_code, "yellow")
    console.print(
        f"[{style}]{summary.held} held, {summary.violated} violated, {summary.inconclusive} inconclusive"
        f" ({summary.errors} without a history)[/]",
        highlight=False,
    )
    simulated = f"simulated in {summary.simulated_s:.1f} s, " if summary.simulated_s else ""
    console.print(f"{simulated}judged in {summary.judged_s:.1f} s", highlight=False)
    console.print(f"evidence  {root}", markup=False, highlight=False, soft_wrap=True)
