"""`chaos shrink`: reduces a failing schedule, and writes the smaller one as a scenario file."""

import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from harness.cli.options import Json, PlantedBugs, SameSeed, ScenarioName, Sets, simulated
from harness.progress import number_of
from harness.verdict import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from harness.progress import Progress
    from harness.sweep.shrink import Shrunk
    from harness.sweep.summary import Summary
    from harness.sweep.sweep import Candidate, ScheduleVerdict, Sweep

FOLDER = Path("shrunk")


def shrink(
    scenario: ScenarioName,
    seed: SameSeed,
    finding: Annotated[
        str | None,
        typer.Option(
            "--finding", metavar="NAME", help="The finding to keep, e.g. I9 or log-matching; default: the first."
        ),
    ] = None,
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The scenario file to write; default: one in the folder shrunk.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Shrink a failing schedule: fewer faults, less load, less time, the same finding."""
    from rich.console import Console

    from harness.analysis.engine.session import spark_session
    from harness.cli.terminal import TerminalProgress
    from harness.scenario.plan import make_plan
    from harness.sweep.jobs import patient
    from harness.sweep.shrink import shrink as shrunk_to
    from harness.sweep.summary import finding_key
    from harness.sweep.sweep import Candidate
    from harness.system.scratch import scratch_folder
    from harness.system.writable import make_parent

    wanted = finding and finding_key(finding)
    loaded = simulated(scenario, planted_bugs, sets)
    progress = TerminalProgress(Console(stderr=True))
    first = Candidate(scenario=loaded, plan=make_plan(loaded, seed))
    if out is not None:
        make_parent(out)
    with spark_session(patient(None), progress=progress) as spark, scratch_folder() as scratch:
        shrunk = shrunk_to(first, SparkJudge(spark, scratch), progress, finding=wanted)
    path = out or FOLDER / f"{shrunk.scenario.name}-{seed}.yaml"
    shrunk.write(path)
    if as_json:
        typer.echo(json.dumps(as_data(shrunk, path), indent=2))
    else:
        show(Console(), shrunk, path)
    raise typer.Exit(shrunk.exit_code)


class SparkJudge:
    """Simulates and judges schedules on an open session; their files are removed at once."""

    def __init__(self, spark: "SparkSession", scratch: Path) -> None:
        self._spark = spark
        self._scratch = scratch
        self._numbers = count()

    def __call__(self, candidates: "Sequence[Candidate]") -> "Sequence[ScheduleVerdict]":
        """Return a verdict on each."""
        import shutil

        from harness.sweep.jobs import judge_candidates

        root = self._scratch / str(next(self._numbers))
        root.mkdir()
        verdicts = judge_candidates(self._spark, candidates, root)
        shutil.rmtree(root)
        return verdicts


def with_small_ones(spark: "SparkSession", sweep: "Sweep", summary: "Summary", progress: "Progress") -> "Summary":
    """Return a sweep's outcome, with the first schedule of each finding shrunk into the sweep's folder.

    A small schedule that shows another finding too counts for both; Ctrl-C ends only the shrinking.
    """
    from harness.errors import ScenarioError
    from harness.scenario.plan import make_plan
    from harness.sweep.shrink import shrink as shrunk_to
    from harness.sweep.summary import findings_of
    from harness.sweep.sweep import Candidate
    from harness.system.scratch import scratch_folder

    small: dict[str, str] = {}
    with scratch_folder() as scratch:
        judge = SparkJudge(spark, scratch)
        for finding in (*summary.violations, *summary.doubts):
            if finding.what in small:
                continue
            progress.message(f"shrinking {finding.title}, seed {finding.seeds[0]}")
            first = Candidate(scenario=sweep.scenario, plan=make_plan(sweep.scenario, finding.seeds[0]))
            try:
                shrunk = shrunk_to(first, judge, progress, finding=finding.what)
            except ScenarioError as error:
                progress.message(str(error))
                continue
            except KeyboardInterrupt:
                break
            path = sweep.shrunk / f"{shrunk.scenario.name}.yaml"
            shrunk.write(path)
            shows = findings_of(shrunk.verdict) if shrunk.verdict else {}
            small = dict.fromkeys([finding.what, *shows], shrunk.replay(path)) | small
            if shrunk.smallest.interrupted:
                break
    violations, doubts = (
        [finding.model_copy(update={"small": small.get(finding.what, "")}) for finding in findings]
        for findings in (summary.violations, summary.doubts)
    )
    return summary.model_copy(update={"violations": violations, "doubts": doubts})


def as_data(shrunk: "Shrunk", path: Path) -> dict[str, Any]:
    """Return a shrunk schedule as data, for programs."""
    return {
        "finding": shrunk.finding,
        "scenario": str(path),
        "seed": shrunk.seed,
        "replay": shrunk.replay(path),
        "rounds": shrunk.smallest.rounds,
        "schedules": shrunk.smallest.candidates,
        "end": shrunk.smallest.end,
        "verdict": shrunk.verdict.model_dump(mode="json") if shrunk.verdict else None,
        "exit_code": int(shrunk.exit_code),
    }


def show(console: Console, shrunk: "Shrunk", path: Path) -> None:
    """Print a shrunk schedule, its findings, and how to see it again."""
    from harness.sweep.search import described
    from harness.sweep.summary import finding_title, findings_of

    def line(what: str, text: str, style: str = "") -> None:
        console.print(f"{what:<9} {text}", style=style, markup=False, highlight=False, soft_wrap=True)

    line("before", described(shrunk.before.scenario))
    line("now", described(shrunk.scenario))
    effort = f"{number_of(shrunk.smallest.rounds, 'round')}, {number_of(shrunk.smallest.candidates, 'schedule')}"
    line("after", f"{effort}: {shrunk.smallest.end}")
    if shrunk.verdict is None:
        line("found", f"{finding_title(shrunk.finding)}; other checks did not run", "yellow")
    else:
        for what, sentence in findings_of(shrunk.verdict).items():
            style = "red" if shrunk.exit_code is ExitCode.VIOLATED else "yellow"
            line("found", f"{finding_title(what)}: {sentence}", style)
        line("verdict", f"fault {shrunk.verdict.fault.name}, system {shrunk.verdict.system.name}")
    line("scenario", str(path))
    line("replay", shrunk.replay(path))
