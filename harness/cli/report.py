"""`chaos report`: a run's report, written anew."""

from typing import Annotated

import typer

from harness.cli.options import RunPath, run_folder


def report(
    run_path: RunPath,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="A page that needs no file beside it, to be sent or moved: 5 MB.")
    ] = False,
) -> None:
    """Write a run's report anew and print its path."""
    from harness import phases
    from harness.progress import Silent

    typer.echo(phases.report(run_folder(run_path), progress=Silent(), alone=single_file))
