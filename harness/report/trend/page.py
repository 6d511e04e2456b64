"""The page of many runs: one HTML file without scripts that opens offline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.progress import number_of
from harness.report.template import part, template
from harness.report.trend.covered import covered
from harness.report.trend.matrix import lines, matrix, turned
from harness.report.trend.summary import RunSummary, Summaries
from harness.store.coverage import Coverage, total

LARGE = 1000
"""From here on numbers are shown without decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSummary:
    """A sweep's part of the coverage."""

    schedules: int
    coverage: Coverage | None
    """None if it was not counted."""


def render(
    summaries: Summaries,
    link: Callable[[RunSummary], str],
    sweeps: Sequence[SweepSummary] = (),
    *,
    compare: Callable[..., str] = lambda *_: "",
    back: str = "",
) -> str:
    """Return the page.

    Args:
        summaries: The runs.
        link: Gives the address of a run, or nothing.
        sweeps: Their coverage is a part of what was tried.
        compare: Gives the address of a page with two runs side by side, or nothing.
        back: Address of the list of runs.
    """
    runs = summaries.rows()
    coverage = total([summaries.coverage(), *(sweep.coverage for sweep in sweeps if sweep.coverage)])
    tried = len(runs) + sum(sweep.schedules for sweep in sweeps)
    return template("trend.html.j2", number_of=number_of, figure=_figure).render(
        css=part("page.css"),
        count=len(runs),
        schedules=tried - len(runs),
        unexpected=sum(not run.as_expected for run in runs),
        matrices={
            "Scenario": matrix(runs, lambda run: [f"{run.scenario} · {run.under_test}"]),
            "Fault": matrix(runs, lambda run: [f"{fault.kind} · {run.under_test}" for fault in run.faults]),
        },
        lines=lines(runs),
        covered=covered(coverage, tried - coverage.runs),
        link=link,
        compare=compare,
        turned=turned,
        back=back,
    )


def _figure(value: float) -> str:
    """Return a number as text."""
    return f"{value:,.0f}" if value >= LARGE else f"{value:.4g}"
