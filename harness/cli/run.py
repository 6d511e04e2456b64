"""`chaos run` and `chaos replay`: a whole experiment, and its verdicts."""

import json
import os
import shlex
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness.cli.options import (
    DEFAULT_RUNS,
    ClusterPath,
    Detach,
    Driver,
    EngineName,
    Json,
    Junit,
    Metrics,
    Notify,
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
from harness.system.extras import require

if TYPE_CHECKING:
    from harness.report.notify import Target
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
    notify: Notify = None,
    metrics: Metrics = None,
    detach: Detach = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run a scenario (cluster, load, faults, judging) or the runs of a suite, and print the verdicts.

    An inconclusive run of a suite is tried once more. Several runs (--times) or systems are compared at the end.
    """
    from harness import phases
    from harness.report.junit import write_not_started
    from harness.report.notify import target_of
    from harness.scenario.suite import is_suite

    choose_engine(engine)
    targets = [target_of(text) for text in notify or ()]
    if is_suite(scenario):
        from harness.cli.run_suite import run_suite

        several = str(times) if times > 1 else None
        refuse_for_suite(
            driver=driver,
            system=system,
            cluster=cluster,
            planted_bug=planted_bugs,
            set=sets,
            times=several,
            detach=detach,
            metrics=str(metrics or ""),
        )
        how = {"owned": owned, "as_json": as_json, "verbose": verbose}
        raise typer.Exit(run_suite(scenario, runs, seed=seed, junit=junit, targets=targets, **how))
    systems = system.split(",") if system else [None]
    if times > 1 or len(systems) > 1:
        if detach or targets or metrics:
            raise ScenarioError("--detach, --notify and --metrics do not go with several systems or --times")
        from harness.cli.run_several import Wanted, run_several

        wanted_runs = Wanted(name=scenario, driver=driver, cluster=cluster, planted_bugs=planted_bugs, sets=sets)
        how = {"owned": owned, "as_json": as_json, "verbose": verbose}
        raise typer.Exit(run_several(wanted_runs, systems, times, runs, seed=seed, junit=junit, **how))
    if metrics is not None:
        require("prometheus_client")
    try:
        wanted = scenario_of(scenario, driver, planted_bugs, sets, system, cluster)
        folder = phases.create_from(wanted, seed, runs, owned=owned)
    except HarnessError as error:
        if junit is not None:
            write_not_started(junit, scenario, str(error), refused=isinstance(error, Refused))
        raise
    if detach and _left(folder, as_json=as_json):
        return
    with _metrics_served(folder, metrics):
        _carry_out(folder, junit, targets, as_json=as_json, verbose=verbose)


def _metrics_served(folder: "RunFolder", port: int | None) -> AbstractContextManager[object]:
    """Serve the metrics of a run while this is entered, if a port is given."""
    if port is None:
        return nullcontext()
    from harness.report.openmetrics import served
    from harness.scenario.file import scenario_of as scenario_of_run

    return served(folder, scenario_of_run(folder).name, port)


def _left(folder: "RunFolder", *, as_json: bool) -> bool:
    """Return whether another process carries out the run from now on; print how to reach it."""
    from harness.cli.detached import leave_terminal

    pid = leave_terminal(folder.log)
    if pid is None:
        return False
    if as_json:
        typer.echo(json.dumps({"run": str(folder.root), "pid": pid}))
    else:
        root = shlex.quote(str(folder.root))
        typer.echo(f"run     {folder.root}\nstatus  chaos status {root}\nabort   chaos abort {root}")
    return True


def refuse_for_suite(**options: str | list[str] | bool | None) -> None:
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


def _carry_out(
    folder: "RunFolder", junit: Path | None, targets: "Sequence[Target]" = (), *, as_json: bool, verbose: bool
) -> None:
    from rich.console import Console

    from harness import phases
    from harness.cli.terminal import TerminalProgress, next_steps, show_outcome
    from harness.report.junit import write_junit
    from harness.report.live.watch import Watch

    progress = TerminalProgress(Console(stderr=as_json), Watch(folder))
    outcome = phases.run(folder, owner_pid=os.getpid(), progress=progress)
    if junit is not None:
        write_junit(folder, outcome.result)  # also of a run that was interrupted before its report
        shutil.copyfile(folder.junit, junit)
    if as_json:
        typer.echo(folder.verdict.read_text(encoding="utf-8"), nl=False)
        for error in outcome.errors:
            typer.echo(str(error), err=True)
    else:
        show_outcome(Console(), outcome, next_steps(folder, outcome.result), verbose=verbose)
    if targets:
        from harness.report.conclusion import concluded
        from harness.report.notify import of_run, send_all

        send_all(targets, of_run(concluded(folder)), partial(typer.echo, err=True))
    raise typer.Exit(outcome.exit_code)
