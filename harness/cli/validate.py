"""`chaos validate`: every error of scenarios at once."""

from typing import Annotated

import typer

from harness.errors import ScenarioError


def validate(
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Built-in names or paths.")],
) -> None:
    """Check scenarios and show every error with its file, its line and what is allowed."""
    from harness.scenario.file import load_scenario

    problems = []
    for name in scenarios:
        try:
            load_scenario(name)
        except ScenarioError as error:
            problems.append(str(error))
        else:
            typer.echo(f"{name}: valid")
    if problems:
        raise ScenarioError("\n".join(problems))
