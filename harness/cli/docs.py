"""`chaos docs`: the Data Docs of many runs as one site."""

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import ScenarioError


def docs(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of judged runs.")],
    into: Annotated[
        Path, typer.Option("--into", metavar="FOLDER", help="The site's folder: a new one, or one of an earlier site.")
    ] = Path("data-docs"),
) -> None:
    """Gather the Data Docs of runs in one site that opens offline, with an index of suites and runs; print its path."""
    from harness.contracts import registry
    from harness.store.folder import RunFolder

    folders = [RunFolder(path.resolve()) for path in runs]
    for folder, path in zip(folders, runs, strict=True):
        if not folder.plan.exists():
            raise ScenarioError(f"{path}: not the folder of a run: it has no {folder.plan.name}")
    typer.echo(registry.import_module("expectations.site").write(folders, into.resolve()))
