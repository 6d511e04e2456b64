"""`chaos why`: on one screen, why a run did not hold."""

import json
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from harness.cli.options import Json, RunPath, run_folder

if TYPE_CHECKING:
    from rich.console import Console

    from harness.report.why import Reason
    from harness.store.result import RunResult

SHOWN = 300
"""Characters of each reason; `--json` has all."""


def why(run_path: RunPath, as_json: Json = False) -> None:
    """Print why a run did not hold: broken promises, unknown and doubtful answers, and leftovers."""
    from harness.cli.terminal import PatientConsole
    from harness.experiment.judge import assemble
    from harness.report.why import why as reasons_of
    from harness.store.result import RunResult

    folder = run_folder(run_path)
    result = RunResult.load(folder.verdict) if folder.verdict.exists() else assemble(folder)
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
        show(PatientConsole(), result, reasons)
    raise typer.Exit(result.exit_code)


def show(console: "Console", result: "RunResult", reasons: "list[Reason]") -> None:
    """Print the reasons, the most important first, under the three verdicts."""
    from harness.cli.terminal import new_table, show_verdicts, styled

    table = new_table(result.run_id, "verdict", "phase", "of", "why", wide=["why"])
    for reason in reasons:
        text = reason.text if len(reason.text) <= SHOWN else f"{reason.text[:SHOWN]}…"
        table.add_row(styled(reason.verdict), reason.phase, escape(reason.title), escape(text))
    console.print(table if reasons else f"{result.run_id}: every promise held", highlight=False)
    show_verdicts(console, result.verdicts)
