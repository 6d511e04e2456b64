"""`chaos list`: faults, workloads, checks, scenarios and other choices."""

import json
from dataclasses import asdict, replace
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
    from harness.scenario.catalogue import broken, entries

    listed = entries(what.value)
    for sentence in broken(what.value):
        typer.echo(f"left out: {sentence}", err=True)
    if as_json:
        typer.echo(json.dumps([asdict(entry) for entry in listed], indent=2))
        return
    if what is Listable.CHECKS:  # whose summaries begin with the names
        listed = [
            replace(each, name=check_title(each.name), summary=each.summary.removeprefix(f"{each.name}: "))
            for each in listed
        ]
    width = max((len(entry.name) for entry in listed), default=0)
    for entry in listed:
        by = f" ({entry.provider})" if entry.provider else ""
        typer.echo(f"{entry.name:<{width}}  {entry.summary}{by}".rstrip())
