"""Which run shall a task group carry out? The one value that goes into it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Required, TypedDict

if TYPE_CHECKING:
    from harness.scenario.model import Scenario


class RunRequest(TypedDict, total=False):
    """One run, as JSON: what `chaos run` takes, under the same names."""

    scenario: Required[str]
    """Name of a built-in scenario, or the path of a YAML file."""
    driver: str | None
    seed: int | None
    planted_bugs: list[str]
    set: list[str]
    """Values to override, each key=value."""
    expect: str
    """`held`, or `violated` where a planted bug must be detected."""
    repeats: tuple[str, int]
    """Task and map index that made the run which this one repeats, because it was inconclusive."""


def request_of(params: Mapping[str, Any]) -> RunRequest:
    """Return the request in the parameters of a DAG run that have the names of its keys."""
    request = RunRequest(scenario=params["scenario"])
    request["driver"] = params.get("driver")
    request["seed"] = params.get("seed")
    request["planted_bugs"] = params.get("planted_bugs", [])
    request["set"] = params.get("set", [])
    return request


def load(request: RunRequest) -> "Scenario":
    """Return the scenario of a request, with its overrides.

    Raises:
        ScenarioError: there is no such scenario, or it cannot be run like this.
    """
    from harness.scenario.file import load_scenario
    from harness.scenario.source import options

    overrides = options(request.get("driver"), request.get("planted_bugs", []), request.get("set", []))
    return load_scenario(request["scenario"], overrides)
