"""What the page of a run takes from its facts: figures side by side with other runs, and when its faults were.

A run that did not end as expected is compared with the last good run before it, and a good run with the first bad run
after it. Both runs have the same scenario, system and driver, and the same seed if there is such a run.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chaos_airflow import settings
from chaos_airflow.runs import Origin
from chaos_airflow.views.reading import NotThere, Overview, Runs, State
from harness.errors import EvidenceError
from harness.report.compare.comparison import Comparison, compared
from harness.report.compare.figures import figures_of
from harness.report.evidence import RunEvidence
from harness.store.folder import RunFolder

LOOKED_AT = 200
"""Runs of the same scenario that are looked at, the newest first."""
BAD = (State.VIOLATED, State.HELD, State.MISSED, State.BROKEN)
"""States of a run that is bad and not merely inconclusive. HELD is one where a planted bug was not found."""
MOST = 8
"""Runs on one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A run to look at beside another one."""

    what: str
    name: str


def beside(runs: Runs, shown: Overview, may_see: Callable[[Origin | None], bool]) -> Beside | None:
    """Return the run to look at beside a run that is over; None if there is none."""
    if shown.as_expected is None or shown.result is None:
        return None
    names = [name for name in runs.names() if name.scenario == shown.name.scenario and name != shown.name]
    alike = [
        row
        for row in runs.overviews(names[:LOOKED_AT])
        if may_see(row.origin) and row.as_expected is (not shown.as_expected) and _alike(row, shown)
    ]
    of_seed = [row for row in alike if row.name.seed == shown.name.seed]
    for rows, which in ((of_seed, "with this seed"), (alike, "with another seed")):
        if shown.as_expected:
            later = [row for row in rows if row.name.newness > shown.name.newness and row.state in BAD]
            if later:
                return Beside(what=f"first bad run {which}", name=later[-1].name.text)
        else:
            earlier = [row for row in rows if row.name.newness < shown.name.newness]
            if earlier:
                return Beside(what=f"last good run {which}", name=earlier[0].name.text)
    return None


def _alike(row: Overview, shown: Overview) -> bool:
    """Return whether two runs are of one system, driver and set of planted bugs."""
    one, other = row.result, shown.result
    return (
        one is not None
        and other is not None
        and (one.system, one.driver, one.planted_bugs) == (other.system, other.driver, other.planted_bugs)
    )


def fault_times(name: str) -> dict[int, tuple[float | None, float | None]]:
    """Return when each injection began and was healed, in seconds since the first operation, as far as it is known."""
    if settings.is_remote():
        return {}
    evidence = RunEvidence(RunFolder(settings.local_runs_folder() / name))
    since = evidence.seconds_since_start
    windows = evidence.rows("fault_windows", "intended_ns")
    return {row["injection"]: (since(row["injected_ns"]), since(row["healed_ns"])) for row in windows}


def comparisons(shown: Iterable[Overview]) -> list[Comparison]:
    """Return judged runs side by side, each in a column of its own.

    Raises:
        NotThere: they cannot be compared; says why.
    """
    if settings.is_remote():
        raise NotThere("Runs are in an object store; their figures can be compared where the runs were made.")
    rows = {row.name.text: row for row in shown}
    if not 2 <= len(rows) <= MOST:
        raise NotThere(f"Two to {MOST} runs can be compared, not {len(rows)}.")
    if unjudged := [name for name, row in rows.items() if row.result is None]:
        raise NotThere(f"Not judged yet: {', '.join(unjudged)}.")
    folder = settings.local_runs_folder()
    try:
        return compared({name: [figures_of(RunFolder(folder / name))] for name in rows})
    except EvidenceError as error:
        raise NotThere(str(error)) from error
