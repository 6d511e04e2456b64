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
    from harness.store.result import RunResult

    folder = run_folder(run_path)
    refuse_running(folder)
    RunResult.load(folder.verdict)  # before the phase is recorded: the run of a killed process would look over
    typer.echo(phases.report(folder, progress=Silent(), alone=single_file))
