"""`chaos keep`: one simulated schedule recorded with its verdict, for the tests of judges and broker."""

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import PlantedBugs, SameSeed, ScenarioName, Sets, simulated
from harness.errors import ScenarioError


def keep(
    scenario: ScenarioName,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder, e.g. tests/histories/my-bug.")],
    seed: SameSeed,
    about: Annotated[str, typer.Option("--about", help="One sentence: what it shows, and which sweep found it.")],
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
) -> None:
    """Simulate and judge one schedule, and keep its history and verdict for tests."""
    from rich.console import Console

    from harness.analysis.engine.session import spark_session
    from harness.cli.terminal import TerminalProgress
    from harness.scenario.plan import make_plan
    from harness.sweep.jobs import judge_candidates, patient
    from harness.sweep.recorded import History
    from harness.sweep.summary import finding_title, findings_of
    from harness.sweep.sweep import Candidate
    from harness.system.scratch import scratch_folder
    from harness.system.writable import make_parent

    loaded = simulated(scenario, planted_bugs, sets)
    if folder.exists():
        raise ScenarioError(f"{folder} exists already")
    make_parent(folder)
    progress = TerminalProgress(Console(stderr=True))
    with spark_session(patient(None), progress=progress) as spark, scratch_folder() as scratch:
        candidate = Candidate(scenario=loaded, plan=make_plan(loaded, seed))
        (verdict,) = judge_candidates(spark, [candidate], scratch)
        if verdict.error:
            raise ScenarioError(f"seed {seed} leaves no history: {verdict.error}")
        History(folder).write(loaded, scratch / "schedules.parquet", verdict, about)
    typer.echo(f"{folder}: {', '.join(map(finding_title, findings_of(verdict))) or 'held'}")
