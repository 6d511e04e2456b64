"""The page of many runs: one HTML file without scripts that opens offline."""

from collections.abc import Callable, Sequence

from harness.contracts import registry
from harness.progress import number_of
from harness.report.template import template
from harness.report.trend.matrix import coverage, lines, matrix
from harness.report.trend.summary import RunSummary


def render(runs: Sequence[RunSummary], link: Callable[[RunSummary], str]) -> str:
    """Return the page; `link` gives the address of a run, or nothing where it has none."""
    roles, covered = coverage(runs, registry.names(registry.Kind.FAULT))
    return template("trend.html.j2", number_of=number_of).render(
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
