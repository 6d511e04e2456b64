"""`chaos trend`: all runs of a folder night by night, as a page."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from harness.cli.options import DEFAULT_RUNS
from harness.errors import ScenarioError

if TYPE_CHECKING:
    from harness.report.trend.summary import RunSummary


def trend(
    runs: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of runs.")] = DEFAULT_RUNS,
    out: Annotated[Path, typer.Option("--out", help="The page to write.")] = Path("trend.html"),
) -> None:
    """Show all runs of a folder night by night: what was not as expected, how long, and what was never tried."""
    from harness.cli.terminal import PatientConsole, TerminalProgress
    from harness.report.trend.page import render
    from harness.report.trend.summary import summaries
    from harness.store.folder import RunFolder
    from harness.system.writable import make_parent

    if not runs.is_dir():
        raise ScenarioError(f"{runs}: no such folder")
    make_parent(out)
    root = runs.resolve()

    def link(run: "RunSummary") -> str:
        report = RunFolder(root / run.name).report
        return quote(os.path.relpath(report, out.resolve().parent)) if report.exists() else ""

    rows = summaries(root, TerminalProgress(PatientConsole(stderr=True)))
    out.write_text(render(rows, link), encoding="utf-8")
    typer.echo(out)
