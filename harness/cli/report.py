"""`chaos report`: rewrites a run's report."""

from typing import Annotated

import typer

from harness.cli.options import RunPath, refuse_running, run_folder


def report(
    run_path: RunPath,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Write one self-contained file of 5 MB, to send or move.")
    ] = False,
) -> None:
    """Rewrite a run's report and print its path."""
    from harness import phases
    from harness.progress import Silent

    folder = run_folder(run_path)
    refuse_running(folder)
    typer.echo(phases.report(folder, progress=Silent(), alone=single_file))
