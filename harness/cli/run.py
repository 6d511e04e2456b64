"""`chaos run` and `chaos replay`: a whole experiment, and its verdicts."""

import os
from typing import TYPE_CHECKING

import typer

from harness.cli.options import (
    DEFAULT_RUNS,
    ClusterPath,
    Driver,
    EngineName,
    Json,
    Owned,
    PlantedBugs,
    RunPath,
    Runs,
    ScenarioName,
    Seed,
    Sets,
    System,
    Verbose,
    run_folder,
    scenario_of,
)
from harness.system.engine import choose_engine

if TYPE_CHECKING:
    from harness.store.folder import RunFolder


def run(
    scenario: ScenarioName,
    driver: Driver = None,
    system: System = None,
    cluster: ClusterPath = None,
    seed: Seed = None,
    runs: Runs = DEFAULT_RUNS,
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
    owned: Owned = False,
    engine: EngineName = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a scenario: cluster, load, faults, judging. Print three verdicts."""
    from harness import phases

    choose_engine(engine)
    wanted = scenario_of(scenario, driver, planted_bugs, sets, system, cluster)
    _carry_out(phases.create_from(wanted, seed, runs, owned=owned), as_json=as_json, verbose=verbose)


def replay(
    run_path: RunPath,
    runs: Runs = DEFAULT_RUNS,
    owned: Owned = False,
    engine: EngineName = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Repeat a run: the same scenario, the same plan."""
    from harness import phases
    from harness.scenario.file import scenario_of as scenario_of_run
    from harness.scenario.plan import load_plan

    choose_engine(engine)
    old = run_folder(run_path)
    _carry_out(
        phases.create(scenario_of_run(old), load_plan(old.plan), runs, owned=owned), as_json=as_json, verbose=verbose
    )


def _carry_out(folder: "RunFolder", *, as_json: bool, verbose: bool) -> None:
    from harness import phases
    from harness.cli.terminal import PatientConsole, TerminalProgress, next_steps, show_outcome
    from harness.report.live import Watch

    progress = TerminalProgress(PatientConsole(stderr=as_json), Watch(folder))
    outcome = phases.run(folder, owner_pid=os.getpid(), progress=progress)
    if as_json:
        typer.echo(folder.verdict.read_text(encoding="utf-8"), nl=False)
        for error in outcome.errors:
            typer.echo(str(error), err=True)
    else:
        show_outcome(PatientConsole(), outcome, next_steps(folder, outcome.result), verbose=verbose)
    raise typer.Exit(outcome.exit_code)
