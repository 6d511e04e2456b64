"""`chaos reap`: removes leftovers, and prints the fate of each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import DEFAULT_RUNS, Json
from harness.reaper import PATIENCE_S

if TYPE_CHECKING:
    from rich.console import Console

    from harness.reaper.result import ReapResult

STYLES = {"removed": "green", "closed": "green", "due": "yellow", "kept": "dim", "failed": "red"}
"""By `Fate`."""


def reap(
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            "--runs",
            metavar="DIR",
            help="Only remains of runs in this folder; repeatable. Default: all on this host.",
        ),
    ] = None,
    patience_s: Annotated[
        float,
        typer.Option(
            "--patience",
            min=0,
            metavar="SECONDS",
            help="Seconds without a task after which an Airflow run is abandoned.",
        ),
    ] = PATIENCE_S,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; print what would be done.")] = False,
    as_json: Json = False,
) -> None:
    """Remove what ended runs left on this machine, and close abandoned runs with a verdict.

    A process, container, network, volume, socket or folder is removed only if a pid file or a label marks it as part of
    a run whose supervisor is gone. Exit code 4: something could not be removed.
    """
    from rich.console import Console

    from harness.cli.terminal import TerminalProgress
    from harness.reaper.reap import reap as go_over

    reaped = go_over(
        runs or [DEFAULT_RUNS],
        everywhere=not runs,
        patience_s=patience_s,
        dry_run=dry_run,
        progress=TerminalProgress(Console(stderr=True)),
    )
    if as_json:
        typer.echo(reaped.model_dump_json(indent=2))
    else:
        show(Console(), reaped)
    raise typer.Exit(reaped.exit_code)


def show(console: "Console", reaped: "ReapResult") -> None:
    """Print the fate of each leftover, and what could not be checked; one line each, so that no name is broken."""
    for item in reaped.items:
        console.print(str(item), style=STYLES[item.fate], markup=False, highlight=False, soft_wrap=True)
    if not reaped.items:
        console.print("nothing is left of any run")
    for remark in reaped.remarks:
        console.print(remark, style="yellow", markup=False, highlight=False, soft_wrap=True)
