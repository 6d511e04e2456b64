"""`chaos explain`: the story of a finding, as lines."""

import re
import shlex
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from harness.cli.options import RunPath, refuse_running, run_folder
from harness.errors import ScenarioError
from harness.progress import number_of

if TYPE_CHECKING:
    from rich.console import Console

    from harness.report.evidence import RunEvidence
    from harness.report.findings import Row
    from harness.report.story import Story
    from harness.store.folder import RunFolder

PLACE = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,9})(?::(?P<offset>\d{1,18}))?")


def explain(
    run_path: RunPath,
    finding: Annotated[
        str | None, typer.Argument(metavar="FINDING", help="A check, e.g. I10; default: the first finding.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="PLACE", help="A partition or record, e.g. orders-0:1422.")
    ] = None,
) -> None:
    """Print the events that lead to a finding, in order: clients, controller, ZooKeeper, replicas."""
    from rich.console import Console

    from harness.report.causes import causes_of
    from harness.report.evidence import RunEvidence
    from harness.report.story import story_of

    folder = run_folder(run_path)
    refuse_running(folder)
    evidence = RunEvidence(folder)
    causes = causes_of(evidence)
    # The cause's own violation comes first: its record is the one that most checks name.
    told = [row for cause in causes for row in (cause.told, *cause.rows)]
    found = [*told, *evidence.findings()]
    if not found and not folder.verdict.exists():
        raise ScenarioError(f"{folder.root} was not judged: chaos rejudge {shlex.quote(str(folder.root))}")
    chosen = _chosen(found, finding, at)
    cause = next((cause for cause in causes if chosen in cause.rows), None)
    show(Console(), evidence, story_of(evidence, chosen, cause), _doubt(folder, chosen))


def _doubt(folder: "RunFolder", finding: "Row") -> str:
    """Return why a finding breaks no promise, as a sentence; empty if it does."""
    from harness.store.result import RunResult
    from harness.verdict import SystemVerdict

    if finding["severity"] != "violation":
        return f"It breaks no promise: {finding['excuse'] or 'it is a note'}."
    checks = RunResult.load(folder.verdict).checks if folder.verdict.exists() else []
    unknown = (each for each in checks if each.verdict is SystemVerdict.UNKNOWN and each.check == finding["check"])
    return next((f"The check is UNKNOWN: {each.reason}." for each in unknown), "")


def _chosen(findings: "list[Row]", check: str | None, at: str | None) -> "Row":
    """Return the first finding that matches.

    Raises:
        ScenarioError: there is none.
    """
    from harness.contracts.registry import check_key

    place = PLACE.fullmatch(at) if at else None
    if at and place is None:
        raise ScenarioError(
            f"--at {at}: not a place; it is TOPIC-PARTITION or TOPIC-PARTITION:OFFSET, e.g. orders-0:1422"
        )
    wanted = {name: text for name, text in place.groupdict().items() if text is not None} if place else {}
    for row in findings:
        if (check is None or row["check"] == check_key(check)) and all(str(row[k]) == v for k, v in wanted.items()):
            return row
    of = f" of {check}" if check else ""
    raise ScenarioError(f"this run has no finding{of}{f' at {at}' if at else ''}; it has {_described(findings)}")


def _described(findings: "list[Row]") -> str:
    from harness.contracts.registry import check_title

    return ", ".join(dict.fromkeys(check_title(row["check"]) for row in findings)) or "none at all"


def show(console: "Console", evidence: "RunEvidence", story: "Story", doubt: str = "") -> None:
    """Print a story: the finding, why it breaks no promise if so, what matters in a sentence, then each moment."""
    from harness.cli.terminal import BAD, DOUBTFUL, new_table
    from harness.contracts.registry import check_title
    from harness.report.step_story import message_of

    finding = story.finding
    style = DOUBTFUL if doubt else BAD
    console.print(f"{check_title(finding['check'])}: {message_of(finding)}", style=style, markup=False, highlight=False)
    if doubt:
        console.print(doubt, markup=False, highlight=False)
    for sentence in (*story.cause, story.sentence):
        if sentence:
            console.print(f"{sentence[0].upper()}{sentence[1:]}.", markup=False, highlight=False)
    table = new_table("", "at", "process", "what", wide=["what"])
    for moment in story.moments:
        since = evidence.seconds_since_start(moment.at_ns)
        table.add_row(f"{since:.3f} s", moment.lane, escape(moment.text), style="bold" if moment.matters else "")
    console.print(table)
    if story.left_out:
        console.print(f"{number_of(story.left_out, 'moment')} of less relevance left out", highlight=False)
    others = [(row, count) for row, count in story.sights if row["check"] != finding["check"]]
    if others:
        console.print("Seen by other checks:", highlight=False)
    for row, count in others:
        text = f"  {check_title(row['check'])}, {count}: {message_of(row)}"
        console.print(text, markup=False, highlight=False)
