"""Which runs a page of the list shows: filters by name cost nothing, filters by content read as little as they can."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from chaos_airflow.runs import Origin, RunName
from chaos_airflow.views.reading import Overview, Runs, State

NARROWING = ("scenario", "outcome", "system", "driver", "seed", "since", "until", "dag_id", "run_id")
PAGE = 50
SCANNED = 1000
"""How many runs one page looks into for those that are asked for; the link to older ones goes on from there."""
ORIGINS_SCANNED = 5000
"""How far back the runs of a DAG run are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the list is narrowed to; empty means everything."""

    scenario: str = ""
    outcome: State | None = None
    system: str = ""
    driver: str = ""
    seed: int | None = None
    since: date | None = None
    until: date | None = None
    """Days, UTC, both included."""
    dag_id: str = ""
    run_id: str = ""
    before: str = ""
    """Name of the run that the page before this one ended with."""
    skipped: int = 0
    """How many after it were looked at there, and not shown."""

    @property
    def whole_dag_run(self) -> bool:
        """Whether all runs of one DAG run are asked for."""
        return bool(self.dag_id and self.run_id) and self.asked.keys() <= {"dag_id", "run_id"}

    @property
    def asked(self) -> dict[str, str]:
        """What is not empty, as text, without what asks for a further page."""
        values = {name: getattr(self, name) for name in NARROWING}
        return {name: str(value) for name, value in values.items() if value not in (None, "")}

    def names(self, name: RunName) -> bool:
        """Return whether a run's name is of what is asked for."""
        day = name.made.date()
        return (
            self.scenario in ("", name.scenario)
            and self.seed in (None, name.seed)
            and (self.since is None or day >= self.since)
            and (self.until is None or day <= self.until)
        )

    def has(self, row: Overview) -> bool:
        """Return whether a run, once it is read, is of what is asked for."""
        return self.system in ("", row.system) and self.driver in ("", row.driver) and self.outcome in (None, row.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of the list."""

    rows: list[Overview]
    scenarios: list[str]
    """Of all runs that the reader may see, for the filter."""
    older: dict[str, str]
    """What asks for the page after this one; empty when that was all. It names no run that this one does not show."""
    counts: dict[State, int]
    """Of the rows, by what became of them."""


def page_of(runs: Runs, filters: Filters, may_see: Callable[[Origin | None], bool]) -> Page:
    """Return the newest runs that are asked for and that the reader may see."""
    names = runs.names()
    chosen = [name for name in names if filters.names(name)]
    if filters.dag_id or filters.run_id:
        chosen = [name for name, _ in made_by(runs, chosen, filters.dag_id, filters.run_id)]
    if before := RunName.parse(filters.before):
        chosen = [name for name in chosen if name.newness < before.newness]
    chosen = chosen[filters.skipped :]
    rows: list[Overview] = []
    looked_at, last, skipped = 0, filters.before, filters.skipped
    for row in _read(runs, chosen[:SCANNED]):
        looked_at += 1
        skipped += 1
        if may_see(row.origin) and filters.has(row):
            rows.append(row)
            last, skipped = row.name.text, 0
            if len(rows) == PAGE:
                break
    return Page(
        rows=rows,
        scenarios=_scenarios(runs, names, may_see),
        older={"before": last, "skipped": str(skipped)} if looked_at < len(chosen) else {},
        counts=dict(Counter(row.state for row in rows)),
    )


def _scenarios(runs: Runs, names: Sequence[RunName], may_see: Callable[[Origin | None], bool]) -> list[str]:
    """Return the scenarios of the runs that the reader may see; of each, as few are looked into as need be."""
    scenarios: set[str] = set()
    looked_into = 0
    while names and looked_into < ORIGINS_SCANNED:
        looked_at, names = names[:PAGE], names[PAGE:]
        looked_into += PAGE
        origins = zip(looked_at, runs.origins(looked_at), strict=True)
        scenarios |= {name.scenario for name, origin in origins if may_see(origin)}
        names = [name for name in names if name.scenario not in scenarios]
    return sorted(scenarios)


def made_by(runs: Runs, names: Sequence[RunName], dag_id: str, run_id: str) -> list[tuple[RunName, Origin]]:
    """Return which of these runs a DAG run made, and its tasks that did; in the same order."""
    recent = names[:ORIGINS_SCANNED]
    return [
        (name, origin)
        for name, origin in zip(recent, runs.origins(recent), strict=True)
        if origin and (origin.dag_id, origin.run_id) == (dag_id, run_id)
    ]


def _read(runs: Runs, names: Sequence[RunName]) -> Iterator[Overview]:
    """Yield runs as they are now; a page's worth is read at once."""
    for start in range(0, len(names), PAGE):
        yield from runs.overviews(names[start : start + PAGE])
