"""`chaos plan`: the plan of a run, without running it."""

import typer

from harness.cli.options import ClusterPath, Driver, Json, PlantedBugs, ScenarioName, Seed, Sets, scenario_of


def plan(
    scenario: ScenarioName,
    seed: Seed = None,
    driver: Driver = None,
    cluster: ClusterPath = None,
    planted_bugs: PlantedBugs = None,
    sets: Sets = None,
    as_json: Json = False,
) -> None:
    """Show the plan: instants, targets, needed capabilities; nothing is started."""
    from harness.phases import new_seed
    from harness.scenario.plan import make_plan

    made = make_plan(
        scenario_of(scenario, driver, planted_bugs, sets, cluster=cluster), new_seed() if seed is None else seed
    )
    if as_json:
        typer.echo(made.to_json(), nl=False)
        return
    from rich.console import Console

    from harness.cli.terminal import show_plan

    show_plan(Console(), made)
