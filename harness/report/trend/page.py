"""The page of many runs: one HTML file without scripts that opens offline."""

from collections.abc import Callable, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from harness.contracts import registry
from harness.progress import number_of
from harness.report.trend.matrix import coverage, lines, matrix
from harness.report.trend.summary import RunSummary


def render(runs: Sequence[RunSummary], link: Callable[[RunSummary], str]) -> str:
    """Return the page; `link` gives the address of a run, or nothing where it has none."""
    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number_of"] = number_of
    roles, covered = coverage(runs, registry.names(registry.Kind.FAULT))
    return environment.get_template("trend.html.j2").render(
        count=len(runs),
        unexpected=sum(not run.as_expected for run in runs),
        matrices={
            "Scenario": matrix(runs, lambda run: [run.scenario]),
            "Fault": matrix(runs, lambda run: [fault.kind for fault in run.faults]),
        },
        lines=lines(runs),
        roles=roles,
        covered=covered,
        link=link,
    )
