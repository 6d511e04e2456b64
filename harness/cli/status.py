"""`chaos status` and `chaos abort`: what a run does, in any terminal, and how it is ended in good order."""

import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import DEFAULT_RUNS, Json, RunPath, Runs, run_folder
from harness.errors import DeadlineError, Refused, ScenarioError

if TYPE_CHECKING:
    from harness.store.folder import RunFolder

LOOK_S = 1.0
"""Between two looks at a run; rates are measured in it."""


def status(
    run_path: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="The folder of a run; default: all that are not over.")
    ] = None,
    runs: Runs = DEFAULT_RUNS,
    as_json: Json = False,
) -> None:
    """Show what a run does: its phase, faults in force, sends a second, ISRs; or its outcome if it is over."""
    from harness.store.folder import RunFolder
    from harness.store.running import State, progressed

    if run_path is not None:
        shown = [run_folder(run_path)]
    else:
        if not runs.is_dir() and runs != DEFAULT_RUNS:
            raise ScenarioError(f"{runs} does not exist")
        found = [RunFolder(path) for path in sorted(runs.glob("*"))] if runs.is_dir() else []
        shown = [each for each in found if each.plan.is_file() and progressed(each).state is not State.OVER]
    rows = [_row(folder) for folder in shown]
    if as_json:
        typer.echo(json.dumps({"runs": rows}, indent=2))
        return
    for row in rows:
        parts = (f"{row['run']}: {row['text']}", row["outcome"], row["now"])
        typer.echo(" · ".join(str(part) for part in parts if part))
    if not rows:
        typer.echo(f"every run in {runs} is over" if any(runs.glob("*")) else f"there is no run in {runs}")


def _row(folder: "RunFolder") -> dict[str, str | int]:
    from harness.report.live.watch import Watch
    from harness.store.result import RunResult
    from harness.store.running import State, progressed

    how = progressed(folder)
    row: dict[str, str | int] = {
        "run": str(folder.root),
        "state": how.state,
        "text": how.text,
        "outcome": "",
        "now": "",
    }
    if how.state is State.OVER:
        result = RunResult.load(folder.verdict)
        row |= {"outcome": result.outcome, "exit_code": int(result.exit_code)}
    elif how.state is State.RUNNING:
        watch = Watch(folder)
        watch.look()
        time.sleep(LOOK_S)
        row["now"] = watch.look().line
    return row


def abort(
    run_path: RunPath,
    timeout_s: Annotated[float, typer.Option("--timeout", min=1, help="Seconds to wait for its end.")] = 600.0,
) -> None:
    """End a run early: heal its faults, collect its evidence, and judge it.

    The exit code is that of the run.
    """
    from rich.console import Console

    from harness.cli.terminal import show_result
    from harness.store.result import RunResult
    from harness.store.running import State, progressed

    folder = run_folder(run_path)
    how = progressed(folder)
    if folder.origin.exists() and how.state is not State.OVER:
        raise Refused(f"{folder.run_id}: a task of Airflow carries it out; mark that task as failed there")
    process = how.entry.process if how.entry is not None else None
    if how.state is not State.RUNNING or process is None:
        hint = "; `chaos reap` closes it" if how.state is State.ABANDONED else ""
        raise Refused(f"{folder.run_id} cannot be aborted: {how.text}{hint}")
    process.send(signal.SIGINT)
    typer.echo(f"{folder.run_id}: process {process.pid} heals, collects and judges")
    deadline_s, seen = time.monotonic() + timeout_s, how.text
    while process.alive():
        if time.monotonic() > deadline_s:
            raise DeadlineError(f"the end of process {process.pid}: not within {timeout_s:g} s; {seen}")
        time.sleep(LOOK_S / 2)
        if (now := progressed(folder).text) != seen:
            seen = now
            typer.echo(f"  {seen}")
    result = RunResult.load(folder.verdict)
    show_result(Console(), result)
    raise typer.Exit(result.exit_code)
