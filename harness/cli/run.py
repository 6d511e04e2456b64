"""`chaos run` and `chaos replay`: a whole experiment, and its verdicts."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness.cli.options import (
    DEFAULT_RUNS,
    ClusterPath,
    Driver,
    EngineName,
    Json,
    Junit,
    Owned,
    PlantedBugs,
    RunPath,
    Runs,
    ScenarioOrSuite,
    Seed,
    Sets,
    Systems,
    Times,
    Verbose,
    run_folder,
    scenario_of,
)
from harness.errors import HarnessError, Refused, ScenarioError
from harness.system.engine import choose_engine

if TYPE_CHECKING:
    from harness.store.folder import RunFolder


def run(
    scenario: ScenarioOrSuite,
    driver: Driver = None,
    system: Systems = None,
    cluster: ClusterPath = None,
    seed: Seed = None,
    times: Times = 1,
    runs: Runs = DEFAULT_RUNS,
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
    owned: Owned = False,
    engine: EngineName = None,
    junit: Junit = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a scenario: cluster, load, faults, judging. Print the verdicts. A suite is several, one after the other.

    An inconclusive run of a suite is tried once more. Several runs (--times) or systems are compared at the end.
    """
    from harness import phases
    from harness.report.junit import write_not_started
    from harness.scenario.suite import is_suite

    choose_engine(engine)
    if is_suite(scenario):
        from harness.cli.run_suite import run_suite

        several = str(times) if times > 1 else None
        refuse_for_suite(
            driver=driver, system=system, cluster=cluster, planted_bug=planted_bugs, set=sets, times=several
        )
        code = run_suite(scenario, runs, seed=seed, owned=owned, junit=junit, as_json=as_json, verbose=verbose)
        raise typer.Exit(code)
    systems = system.split(",") if system else [None]
    if times > 1 or len(systems) > 1:
        from harness.cli.run_several import Wanted, run_several

        wanted_runs = Wanted(name=scenario, driver=driver, cluster=cluster, planted_bugs=planted_bugs, sets=sets)
        how = {"owned": owned, "as_json": as_json, "verbose": verbose}
        raise typer.Exit(run_several(wanted_runs, systems, times, runs, seed=seed, junit=junit, **how))
    try:
        wanted = scenario_of(scenario, driver, planted_bugs, sets, system, cluster)
        folder = phases.create_from(wanted, seed, runs, owned=owned)
    except HarnessError as error:
        if junit is not None:
            write_not_started(junit, scenario, str(error), refused=isinstance(error, Refused))
        raise
    _carry_out(folder, junit, as_json=as_json, verbose=verbose)


def refuse_for_suite(**options: str | list[str] | None) -> None:
    """Refuse what a suite says of each of its runs."""
    if given := [f"--{name.replace('_', '-')}" for name, value in options.items() if value]:
        raise ScenarioError(f"{', '.join(given)}: a suite says this of each of its runs; run a scenario of it alone")


def replay(
    run_path: RunPath,
    runs: Runs = DEFAULT_RUNS,
    owned: Owned = False,
    engine: EngineName = None,
    junit: Junit = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Repeat a run: the same scenario, the same plan."""
    from harness import phases
    from harness.scenario.file import scenario_of as scenario_of_run
    from harness.scenario.plan import load_plan

    choose_engine(engine)
    old = run_folder(run_path)
    folder = phases.create(scenario_of_run(old), load_plan(old.plan), runs, owned=owned)
    _carry_out(folder, junit, as_json=as_json, verbose=verbose)


def _carry_out(folder: "RunFolder", junit: Path | None, *, as_json: bool, verbose: bool) -> None:
    from harness import phases
    from harness.cli.terminal import PatientConsole, TerminalProgress, next_steps, show_outcome
    from harness.report.junit import write_junit
    from harness.report.live import Watch

    progress = TerminalProgress(PatientConsole(stderr=as_json), Watch(folder))
    outcome = phases.run(folder, owner_pid=os.getpid(), progress=progress)
    if junit is not None:
        write_junit(folder, outcome.result)  # also of a run that was interrupted before its report
        shutil.copyfile(folder.junit, junit)
    if as_json:
        typer.echo(folder.verdict.read_text(encoding="utf-8"), nl=False)
        for error in outcome.errors:
            typer.echo(str(error), err=True)
    else:
        show_outcome(PatientConsole(), outcome, next_steps(folder, outcome.result), verbose=verbose)
    raise typer.Exit(outcome.exit_code)
