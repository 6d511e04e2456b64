"""`chaos report`: a run's report, written anew."""

import typer

from harness.cli.options import RunPath, run_folder


def report(run_path: RunPath) -> None:
    """Write a run's report anew and print its path."""
    from harness import phases
    from harness.progress import Silent

    typer.echo(phases.report(run_folder(run_path), progress=Silent()))
