"""`chaos run SUITE`: its runs one after the other, and which of them did not end as expected."""

import json
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import typer
from rich.console import Console

from harness import phases
from harness.cli.terminal import TerminalProgress, new_table, next_steps, show_outcome
from harness.errors import ClusterError, HarnessError, Interrupted, Refused
from harness.progress import number_of
from harness.report.conclusion import REFUSED, Conclusion, SuiteEntry, concluded
from harness.report.junit import write_suite
from harness.report.live.watch import Watch
from harness.report.notify import Target, of_suite, send_all
from harness.scenario.file import load_scenario, scenario_of
from harness.scenario.plan import load_plan
from harness.scenario.source import options
from harness.scenario.suite import SuiteRun, load_suite
from harness.store.folder import RunFolder
from harness.verdict import BROKEN, EXIT_CODES, HELD, INCONCLUSIVE, WRONG, ExitCode

GRAVEST = (ExitCode.VIOLATED, ExitCode.ENVIRONMENT, ExitCode.USAGE, ExitCode.INCONCLUSIVE)
"""Of several runs that did not end as expected, the first of these is the exit code."""
CODES = EXIT_CODES | {HELD: ExitCode.VIOLATED, REFUSED: ExitCode.USAGE}
"""The exit code of an unexpected outcome; a planted bug that is not found is one, too."""


def run_suite(
    name: str,
    runs: Path,
    *,
    seed: int | None,
    owned: bool,
    junit: Path | None,
    targets: Sequence[Target],
    as_json: bool,
    verbose: bool,
) -> ExitCode:
    """Carry out a suite, print how each run ended, and return the exit code.

    Args:
        name: A built-in suite, or FILE:NAME.
        runs: Where the folders of its runs are made.
        seed: Of its first run; each further one has the next. Seeds that the suite names stay.
        owned: Whether existing clusters may be disturbed.
        junit: Where a case for each run is written.
        targets: Receive a notification at the end.
        as_json: Whether JSON is printed instead of a table.
        verbose: Whether each promise that held is printed.

    Raises:
        ScenarioError: there is no such suite, or something in it is wrong.
    """
    suite, entries, console = load_suite(name), list[SuiteEntry](), Console(stderr=as_json)
    try:
        for number, run in enumerate(suite.runs):
            console.print(f"\n{name} {number + 1}/{len(suite.runs)}: {run.scenario}", style="bold", highlight=False)
            own_seed = run.seed if run.seed is not None or seed is None else seed + number
            entries.append(_after_tries(run, own_seed, runs, owned, console, verbose=verbose))
    finally:  # also when one was interrupted
        if junit is not None:
            write_suite(junit, name, entries)
        _show(name, entries, as_json=as_json)
        unexpected = [entry for entry in entries if entry["outcome"] != entry["expect"]]
        send_all(targets, of_suite(name, entries, unexpected), partial(typer.echo, err=True))
    return exit_code(entries)


def exit_code(entries: Iterable[SuiteEntry]) -> ExitCode:
    """Return the gravest of what was not expected."""
    codes = {CODES[entry["outcome"]] for entry in entries if entry["outcome"] != entry["expect"]}
    return next((code for code in GRAVEST if code in codes), ExitCode.HELD)


def _after_tries(
    run: SuiteRun, seed: int | None, runs: Path, owned: bool, console: Console, *, verbose: bool
) -> SuiteEntry:
    """Carry out one run, a second time if the first was inconclusive; the second has the same plan."""
    tries = 1
    try:
        scenario = load_scenario(run.scenario, options(run.driver, run.planted_bugs, run.set))
        folder = phases.create_from(scenario, seed, runs, owned=owned)
        conclusion = carry_out(folder, console, verbose=verbose)
        if conclusion["outcome"] == INCONCLUSIVE:
            tries = 2
            again = phases.create(scenario_of(folder), load_plan(folder.plan), runs, owned=owned)
            conclusion = carry_out(again, console, verbose=verbose)
    except Interrupted:
        raise
    except HarnessError as error:
        console.print(str(error), markup=False, highlight=False)
        outcome = REFUSED if isinstance(error, Refused) else BROKEN if isinstance(error, ClusterError) else WRONG
        conclusion = _not_started(run, seed, outcome, str(error))
    return SuiteEntry(**conclusion, expect=run.expect, tries=tries)


def carry_out(folder: RunFolder, console: Console, *, verbose: bool) -> Conclusion:
    """Carry out a run, print its outcome, and return its conclusion.

    Raises:
        Interrupted: a signal ended it; so does the suite.
    """
    outcome = phases.run(folder, owner_pid=os.getpid(), progress=TerminalProgress(console, Watch(folder)))
    show_outcome(console, outcome, next_steps(folder, outcome.result), verbose=verbose)
    for error in outcome.errors:
        if isinstance(error, Interrupted):
            raise error
    return concluded(folder)


def _not_started(run: SuiteRun, seed: int | None, outcome: str, reason: str) -> Conclusion:
    return Conclusion(
        run="", scenario=run.scenario, driver=run.driver or "", seed=seed or 0, outcome=outcome,
        fault="", system="", environment="", objectives="", reason=reason,
    )  # fmt: skip


def _show(name: str, entries: Sequence[SuiteEntry], *, as_json: bool) -> None:
    unexpected = sum(entry["outcome"] != entry["expect"] for entry in entries)
    if as_json:
        typer.echo(json.dumps({"suite": name, "entries": entries, "unexpected": unexpected}, indent=2))
        return
    table = new_table(name, "scenario", "driver", "seed", "expected", "outcome", "tries", "reason", wide=["reason"])
    for entry in entries:
        mark = "" if entry["outcome"] == entry["expect"] else "[red]"
        table.add_row(
            entry["scenario"], entry["driver"], str(entry["seed"]), entry["expect"], f"{mark}{entry['outcome']}",
            str(entry["tries"]), entry["reason"] if mark else "",
        )  # fmt: skip
    console = Console()
    console.print(table)
    console.print(f"{number_of(len(entries), 'run')}, {unexpected} not as expected", highlight=False)
