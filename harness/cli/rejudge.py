"""`chaos rejudge`: judges recorded runs and sweeps again, and lists changed answers."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from harness.cli import simulate as sweep_command
from harness.cli.options import EngineName, Json, Verbose, refuse_running, run_folders, say_left_out
from harness.errors import HarnessError, ScenarioError
from harness.progress import number_of
from harness.system.engine import choose_engine
from harness.system.extras import require
from harness.verdict import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from harness.rejudging.rejudge import Rejudged
    from harness.store.folder import RunFolder

SHOWN_WHOLE = 3
"""Up to this many runs, all answers are printed; beyond it, only changed ones."""


def rejudge(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or of whole sweeps.")],
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show which answers of the checks would change, and write nothing; runs only."),
    ] = False,
    engine: EngineName = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Judge recorded runs again, without a cluster, list the changed answers, and rewrite their reports.

    All runs are judged by one set of Spark jobs; suites and report follow for each.
    """
    from rich.console import Console

    from harness.sweep.sweep import request_file

    choose_engine(engine)
    console = Console()
    sweeps = list({path.resolve(): path for path in paths if request_file(path).exists()}.values())
    folders = run_folders((path for path in paths if not request_file(path).exists()), some=bool(sweeps))
    if folders and not dry_run:
        require("great_expectations")
    folders, refused = _whole(folders)
    say_left_out(refused, some=bool(folders or sweeps))
    if dry_run and sweeps:
        raise ScenarioError(f"{sweeps[0]}: --dry-run takes runs only: judging a sweep again replaces its summary")
    codes, printed = [ExitCode.INCONCLUSIVE for _ in refused], []
    for root in sweeps:
        summary = sweep_command.rejudge(root)
        codes.append(summary.exit_code)
        printed.append(summary.model_dump(mode="json") | {"folder": str(root)})
        if not as_json:
            sweep_command.show(console, summary, root)
    answers = []
    for each in _rejudged(folders, dry_run):
        answers.append(each)
        codes.append(each.result.exit_code)
        if not as_json:
            _show(console, each, whole=verbose or len(folders) <= SHOWN_WHOLE, verbose=verbose)
    if as_json:
        typer.echo(json.dumps(printed + [_printed(each) for each in answers], indent=2))
    elif answers:
        changed = sum(1 for each in answers if each.differences)
        judged = number_of(len(answers), "run")
        console.print(f"{judged} judged again, {changed} with changed answers", highlight=False)
    raise typer.Exit(worst(codes))


def _whole(folders: "list[RunFolder]") -> "tuple[list[RunFolder], list[str]]":
    """Return the runs that can be judged, and why others cannot: one that is damaged or goes on stops no others."""
    from harness.run.run import Run
    from harness.store.version import require_version

    whole, refused = [], []
    for folder in folders:
        try:
            refuse_running(folder)
            Run.load(folder)
            require_version(folder)
        except HarnessError as error:
            refused.append(str(error))
        else:
            whole.append(folder)
    return whole, refused


def _rejudged(folders: "Sequence[RunFolder]", dry_run: bool) -> "Iterator[Rejudged]":
    from rich.console import Console

    from harness.cli.terminal import TerminalProgress
    from harness.rejudging import rejudge as rejudging

    if not folders:
        return iter(())
    progress = TerminalProgress(Console(stderr=True))
    return rejudging.compare(folders, progress) if dry_run else rejudging.rejudge(folders, progress)


def _printed(each: "Rejudged") -> dict[str, Any]:
    return {
        "verdicts": each.result.verdicts.names,
        "exit_code": int(each.result.exit_code),
        **each.result.model_dump(mode="json"),
        "differences": [difference.model_dump(mode="json") for difference in each.differences],
        "folder": str(each.folder.root),
    }


def _show(console: "Console", each: "Rejudged", *, whole: bool, verbose: bool) -> None:
    from harness.cli.terminal import new_table, show_result, styled

    if whole:
        show_result(console, each.result, verbose=verbose)
    else:
        console.print(f"{styled(each.result.verdicts.system)} {escape(each.folder.run_id)}", highlight=False)
    if each.differences:
        table = new_table("changed answers", "", "name", "before", "now")
        for difference in each.differences:
            table.add_row(difference.kind, difference.title, difference.before, difference.after)
        console.print(table)


def worst(codes: Sequence[ExitCode]) -> ExitCode:
    """Return the exit code of several runs: a violation outranks a broken environment, which outranks the rest."""
    order = (ExitCode.VIOLATED, ExitCode.ENVIRONMENT, ExitCode.INCONCLUSIVE, ExitCode.HELD)
    return next((code for code in order if code in codes), ExitCode.INCONCLUSIVE)
