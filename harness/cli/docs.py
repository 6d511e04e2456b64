"""`chaos docs`: the Data Docs of many runs as one site."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import folder_to_make, run_folders


def docs(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of judged runs.")],
    into: Annotated[
        Path,
        typer.Option(
            "--into",
            metavar="FOLDER",
            callback=folder_to_make,
            help="The site's folder: a new one, or one of an earlier site.",
        ),
    ] = Path("data-docs"),
) -> None:
    """Build one offline site from the Great Expectations pages (Data Docs) of runs; print its path."""
    from harness.contracts import registry

    site = registry.import_module("expectations.site")
    typer.echo(site.write(run_folders(runs), into.resolve(), partial(typer.echo, err=True)))
