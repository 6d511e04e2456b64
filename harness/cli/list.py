"""`chaos list`: faults, workloads, checks, scenarios and other choices."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from harness.cli.options import Json


class Listable(StrEnum):
    """The kinds that `chaos list` lists."""

    SCENARIOS = "scenarios"
    SUITES = "suites"
    FAULTS = "faults"
    WORKLOADS = "workloads"
    CHECKS = "checks"
    DRIVERS = "drivers"
    SYSTEMS = "systems"
    PLANTED_BUGS = "planted-bugs"


def list_(what: Annotated[Listable, typer.Argument(help="What to list.")], as_json: Json = False) -> None:
    """List faults, workloads, checks, scenarios, suites, systems, drivers or planted bugs."""
    from harness.contracts.registry import check_title
    from harness.scenario.catalogue import catalogue

    entries = catalogue(what.value)
    if as_json:
        typer.echo(json.dumps([{"name": name, "summary": summary} for name, summary in entries], indent=2))
        return
    if what is Listable.CHECKS:  # the summary of a check begins with its name
        entries = [(check_title(name), summary.partition(": ")[2]) for name, summary in entries]
    width = max((len(name) for name, _ in entries), default=0)
    for name, summary in entries:
        typer.echo(f"{name:<{width}}  {summary}".rstrip())
