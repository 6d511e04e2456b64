"""`chaos trend`: many runs night by night, and their coverage with that of sweeps, as a page."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from harness.cli.options import DEFAULT_RUNS, say_left_out
from harness.errors import EvidenceError, ScenarioError
from harness.store.folder import LIBRARY, RunFolder

if TYPE_CHECKING:
    from harness.report.trend.page import SweepSummary
    from harness.report.trend.summary import RunSummary, Summaries


def trend(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FOLDER...",
            help=f"Runs, sweeps, or folders of them. Default: the folder {DEFAULT_RUNS}.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="The page to write.")] = Path("trend.html"),
) -> None:
    """Show runs night by night: unexpected outcomes, durations, and coverage."""
    from harness.report.trend.page import render
    from harness.system.writable import make_parent

    named = _sorted_out(places or [str(DEFAULT_RUNS)])
    make_parent(out)

    def link(run: "RunSummary") -> str:
        reports = (RunFolder(root / run.name).report for root in named.runs)
        report = next((report for report in reports if report.exists()), None)
        return quote(os.path.relpath(report, out.resolve().parent)) if report else ""

    out.write_text(render(_summaries(named), link, _sweeps(named)), encoding="utf-8")
    typer.echo(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """The paths of the command line."""

    runs: dict[Path, set[str] | None] = field(default_factory=dict)
    """Folders of runs, and the chosen runs of each; None for all."""
    sweeps: list[Path] = field(default_factory=list)
    """Folders of sweeps, or with sweeps."""


def _sorted_out(places: Iterable[str]) -> _Named:
    """Return the kinds of these paths; other paths among runs, as behind `runs/*`, are skipped with a message.

    Raises:
        ScenarioError: one does not exist or is not on this machine, or there is nothing to show.
    """
    from harness.sweep.summary import summaries_in
    from harness.sweep.sweep import request_file

    named, refused = _Named(), []
    for place in dict.fromkeys(places):
        if "://" in place:
            raise ScenarioError(
                f"{place}: a page of many runs is made of a folder on this machine; copy the runs here, or at least the"
                " verdict.json, coverage.json, plan.json and facts/ of each"
            )
        path = Path(place)
        if not path.exists() and not path.is_symlink():
            raise ScenarioError(f"{place}: no such folder")
        root = Path(os.path.realpath(path))
        if RunFolder(root).verdict.is_file() and RunFolder(root).plan.is_file():
            if (names := named.runs.setdefault(root.parent, set())) is not None:
                names.add(root.name)
        elif any(summaries_in(root, depth=0)):
            named.sweeps.append(root)
        elif not root.is_dir() or RunFolder(root).plan.exists() or request_file(root).exists():
            if not LIBRARY.fullmatch(root.name):
                refused.append(f"{place}: {'not judged yet' if root.is_dir() else 'not the folder of a run'}")
        else:
            named.runs[root] = None
            named.sweeps.append(root)
    say_left_out(refused, some=bool(named.runs or named.sweeps))
    return named


def _sweeps(named: _Named) -> "list[SweepSummary]":
    """Return the summary of each sweep, each once; a damaged one is skipped with a warning.

    Raises:
        ScenarioError: all are damaged, and there is nothing else to show.
    """
    from harness.report.trend.page import SweepSummary
    from harness.sweep.summary import load_summary, summaries_in

    sweeps, refused = [], []
    for path in {path.resolve(): path for folder in named.sweeps for path in summaries_in(folder)}.values():
        try:
            summary = load_summary(path)
        except EvidenceError as error:
            refused.append(str(error))
        else:
            sweeps.append(SweepSummary(schedules=summary.schedules, coverage=summary.coverage))
    say_left_out(refused, some=bool(named.runs or sweeps))
    return sweeps


def _summaries(named: _Named) -> "Summaries":
    from rich.console import Console

    from harness.cli.terminal import TerminalProgress
    from harness.report.trend.summary import joined, summaries

    progress = TerminalProgress(Console(stderr=True))
    parts = ((summaries(root, progress), names) for root, names in named.runs.items())
    return joined(part if names is None else part.named(names) for part, names in parts)
