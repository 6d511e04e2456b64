"""`chaos keep`: one simulated schedule recorded with its verdict, for the tests of judges and broker."""

from pathlib import Path
from typing import Annotated

import typer

from harness.errors import ScenarioError
from harness.scenario.plan import MAX_SEED
from harness.sweep.sweep import DRIVER


def keep(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A built-in scenario, or the path of a YAML file.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder, e.g. tests/histories/my-bug.")],
    seed: Annotated[int, typer.Option("--seed", min=0, max=MAX_SEED, help="Of the schedule.")],
    about: Annotated[str, typer.Option("--about", help="What it shows, and which sweep found it, in a sentence.")],
    planted_bugs: Annotated[
        list[str] | None, typer.Option("--planted-bug", metavar="NAME", help="Break a protocol guard too; repeatable.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a value; YAML; repeatable.")
    ] = None,
) -> None:
    """Simulate a schedule, judge it, and keep its history with the verdict, for tests that do both again."""
    from harness.analysis.session import spark_session
    from harness.scenario.capabilities import require_capabilities
    from harness.scenario.file import load_scenario
    from harness.scenario.plan import make_plan
    from harness.scenario.source import options
    from harness.sweep.jobs import judge_candidates, patient
    from harness.sweep.recorded import History
    from harness.sweep.sweep import Candidate, found_in
    from harness.system.scratch import scratch_folder
    from harness.system.writable import make_parent

    loaded = load_scenario(scenario, options(DRIVER, planted_bugs or [], sets or []))
    require_capabilities(loaded)
    if folder.exists():
        raise ScenarioError(f"{folder} exists already")
    make_parent(folder)
    with spark_session(patient(None)) as spark, scratch_folder() as scratch:
        candidate = Candidate(scenario=loaded, plan=make_plan(loaded, seed))
        (verdict,) = judge_candidates(spark, [candidate], scratch)
        if verdict.error:
            raise ScenarioError(f"seed {seed} leaves no history: {verdict.error}")
        History(folder).write(loaded, scratch / "schedules.parquet", verdict, about)
    typer.echo(f"{folder}: {', '.join(found_in(verdict)) or 'held'}")
