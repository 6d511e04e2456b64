"""`chaos why`: on one screen, why a run did not hold."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.markup import escape

from harness.cli.options import Json, RunPath, refuse_running, run_folder
from harness.errors import ScenarioError
from harness.progress import number_of

if TYPE_CHECKING:
    from rich.console import Console

    from harness.ingest.answer import HistoryResult
    from harness.judging.why import Reason
    from harness.store.folder import RunFolder
    from harness.store.result import RunResult

SHOWN = 300
"""Characters of each reason; `--json` has all."""


def why(run_path: RunPath, as_json: Json = False) -> None:
    """List the reasons why a run, or a judged history, is not a PASS: violations, missing evidence, leftovers."""
    from rich.console import Console

    from harness.ingest.answer import HistoryResult, is_judged_history
    from harness.judging.assessment import assemble
    from harness.judging.why import why as reasons_of
    from harness.run.run import Run
    from harness.store.folder import RunFolder
    from harness.store.result import RunResult

    if is_judged_history(run_path):
        _refuse_kept(run_path)
        _of_history(RunFolder(run_path), HistoryResult.load(RunFolder(run_path).verdict), as_json=as_json)
    folder = run_folder(run_path)
    refuse_running(folder)
    result = RunResult.load(folder.verdict) if folder.verdict.exists() else assemble(Run.load(folder))
    reasons = reasons_of(result)
    if as_json:
        rows = [reason.model_dump(mode="json") | {"title": reason.title} for reason in reasons]
        data = {
            "verdicts": result.verdicts.names,
            "exit_code": int(result.exit_code),
            "reasons": rows,
            "folder": str(folder.root),
        }
        typer.echo(json.dumps(data, indent=2))
    else:
        show(Console(), result, reasons)
    raise typer.Exit(result.exit_code)


def _refuse_kept(path: Path) -> None:
    """Refuse a history of `chaos keep`: its recorded verdict has no reasons.

    Raises:
        ScenarioError: it is one; the message has what was found, and how to see it again.
    """
    from harness.sweep.recorded import History
    from harness.sweep.summary import finding_title

    history = History(path)
    if history.table.is_file():
        recorded = history.recorded()
        found = ", ".join(map(finding_title, recorded.found)) or "held"
        again = shlex.join(["chaos", "run", str(history.scenario), "--seed", str(recorded.seed)])
        raise ScenarioError(f"{path}: a kept history, not a run; its verdict: {found}; to run its scenario: {again}")


def _of_history(folder: "RunFolder", result: "HistoryResult", *, as_json: bool) -> NoReturn:
    """Print why a judged history did not hold, and what else it would take; exit with its code."""
    from rich.console import Console

    from harness.cli.terminal import styled
    from harness.judging.why import why_of

    reasons = why_of(result.checks, (), result.remarks)
    if as_json:
        rows = [reason.model_dump(mode="json") | {"title": reason.title} for reason in reasons]
        data = {"verdict": result.verdict.name, "exit_code": int(result.exit_code), "reasons": rows}
        typer.echo(json.dumps(data | {"folder": str(folder.root)}, indent=2))
    else:
        console = Console()
        _show_reasons(console, result.name, reasons)
        for remark in result.remarks:
            if not remark.forbids_pass:
                console.print(f"remark    {remark}", style="yellow", markup=False, highlight=False)
        counted = f"{number_of(len(result.checks), 'promise')} judged, {len(result.unjudged)} not"
        console.print(f"system {styled(result.verdict)}   {counted}", highlight=False)
    raise typer.Exit(result.exit_code)


def show(console: "Console", result: "RunResult", reasons: "list[Reason]") -> None:
    """Print the reasons, those that matter most first, under the three verdicts."""
    from harness.cli.terminal import show_verdicts

    _show_reasons(console, result.run_id, reasons)
    show_verdicts(console, result.verdicts)


def _show_reasons(console: "Console", name: str, reasons: "list[Reason]") -> None:
    from harness.cli.terminal import new_table, styled

    table = new_table(name, "verdict", "phase", "of", "why", wide=["why"])
    for reason in reasons:
        text = reason.text if len(reason.text) <= SHOWN else f"{reason.text[:SHOWN]}…"
        table.add_row(styled(reason.verdict), reason.phase, escape(reason.title), escape(text))
    console.print(table if reasons else f"{name}: every promise held", highlight=False)
