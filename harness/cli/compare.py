"""`chaos compare`: runs, nights or releases side by side, with the spread of repeated runs."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import Json, say_left_out
from harness.errors import EvidenceError, ScenarioError
from harness.store.folder import LIBRARY, RunFolder

if TYPE_CHECKING:
    from harness.report.compare.comparison import Comparison

Page = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Also write the comparison as an HTML page.")]


def compare(
    places: Annotated[
        list[Path], typer.Argument(metavar="SIDE...", help="A run, or a folder of runs; each is one side.")
    ],
    out: Page = None,
    as_json: Json = False,
) -> None:
    """Compare runs, nights or releases: outcomes, findings, objectives, availability and latencies.

    Runs of one side that differ in scenario, system, driver or machine are never mixed: each kind is a column.
    """
    from harness.report.compare.comparison import compared
    from harness.report.compare.figures import figures_of

    refused: list[str] = []
    sides = {}
    places = [place for place in dict.fromkeys(places) if not LIBRARY.fullmatch(place.name)]
    names = [place.name for place in places]
    for place in places:
        runs = []
        try:
            folders = _runs_of(place)
        except EvidenceError as error:
            refused.append(str(error))
            continue
        for folder in folders:
            try:
                runs.append(figures_of(folder))
            except EvidenceError as error:
                refused.append(str(error))
        sides[place.name if names.count(place.name) == 1 else str(place)] = runs
    say_left_out(refused, some=any(sides.values()))
    show(compared(sides), out=out, as_json=as_json)


def show(comparisons: "Sequence[Comparison]", *, out: Path | None, as_json: bool) -> None:
    """Print comparisons, and write them as a page."""
    from rich.console import Console

    from harness.cli.terminal import new_table
    from harness.report.compare.comparison import as_data
    from harness.report.compare.page import render
    from harness.system.writable import make_parent

    if out is not None:
        make_parent(out)
        out.write_text(render(comparisons), encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({"comparisons": as_data(comparisons)}, indent=2))
        return
    console = Console()
    for each in comparisons:
        table = new_table(" · ".join(filter(None, (each.scenario, each.shared))), "", *each.titles, wide=each.titles)
        for section in (each.outcomes(), each.findings(), each.measured()):
            for name, texts in section:
                table.add_row(name, *texts)
            table.add_section()
        console.print(table)
        for sentence in each.differs:
            console.print(f"not alike: {sentence}", style="yellow", markup=False, highlight=False)
    if out is not None:
        console.print(f"page      {out}", markup=False, highlight=False, soft_wrap=True)


def _runs_of(place: Path) -> list[RunFolder]:
    """Return the runs of a side, in their order.

    Raises:
        ScenarioError: nothing is there.
        EvidenceError: it is no run, and no judged run is in it.
    """
    if not place.exists() and not place.is_symlink():
        raise ScenarioError(f"{place}: no such folder")
    if not place.is_dir():
        raise EvidenceError(f"{place}: not the folder of a run")
    root = RunFolder(Path(os.path.realpath(place)))
    if root.plan.is_file():
        return [root]
    runs = [RunFolder(path) for path in sorted(root.root.iterdir()) if not LIBRARY.fullmatch(path.name)]
    judged = [run for run in runs if run.plan.is_file() and run.verdict.is_file()]
    if not judged:
        raise EvidenceError(f"{place}: neither a run nor a folder with judged runs")
    return judged
