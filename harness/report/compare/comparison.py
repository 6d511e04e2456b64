"""Sides by side: runs of one kind become one column, and what distinguishes two columns is named."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.contracts.objectives import Objectives, unit_of
from harness.contracts.registry import check_title
from harness.progress import number_of
from harness.report.compare.figures import Kind, RunFigures

NONE = "-"
"""Stands for what no run of a column has."""
LARGE = 1000
"""From here on numbers are shown without decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A figure of several runs."""

    least: float
    median: float
    most: float
    runs: int
    """Runs that have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The runs of one side that are of one kind."""

    side: str
    kind: Kind
    runs: list[RunFigures]

    @property
    def title(self) -> str:
        """Side and kind as text."""
        return f"{self.side}: {self.kind.label}" if self.side else self.kind.label

    @property
    def counted_title(self) -> str:
        """The same with the number of runs."""
        return f"{self.title}, {number_of(len(self.runs), 'run')}"

    def counted(self, what: Iterable[str]) -> str:
        """Return texts with the number of runs of each, the most frequent first; of a single run without."""
        if len(self.runs) == 1:
            return ", ".join(what) or NONE
        return ", ".join(f"{number} {text}" for text, number in Counter(what).most_common()) or NONE

    def spread(self, name: str) -> Spread | None:
        """Return the spread of a figure; None if no run has it."""
        values = [run.values[name] for run in self.runs if name in run.values]
        if not values:
            return None
        return Spread(least=min(values), median=median(values), most=max(values), runs=len(values))


Row = tuple[str, list[str]]
"""A name and a text for each column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All columns of one scenario."""

    scenario: str
    columns: list[Column]

    @property
    def shared(self) -> str:
        """The kind that all columns have, as text; empty if they differ in it, or in nothing else."""
        kinds = {column.kind for column in self.columns}
        return self.columns[0].kind.label if len(kinds) == 1 and all(column.side for column in self.columns) else ""

    @property
    def titles(self) -> list[str]:
        """The title of each column, without what all have."""
        if not self.shared:
            return [column.counted_title for column in self.columns]
        single = all(len(column.runs) == 1 for column in self.columns)
        return [
            column.side if single else f"{column.side}, {number_of(len(column.runs), 'run')}" for column in self.columns
        ]

    @property
    def differs(self) -> list[str]:
        """What differs between columns beside the system, a sentence each: figures are then not of like runs."""
        parts = {
            "driver": [column.kind.driver for column in self.columns],
            "machine": [column.kind.machine or "unknown" for column in self.columns],
            "planted bugs": [", ".join(column.kind.planted_bugs) or "none" for column in self.columns],
        }
        return [
            f"the columns differ in their {what}: {', '.join(dict.fromkeys(values))}"
            for what, values in parts.items()
            if len(set(values)) > 1
        ]

    def outcomes(self) -> list[Row]:
        """Return how many runs had each outcome and verdict, then each objective."""
        rows = [("outcome", [column.counted(run.outcome for run in column.runs) for column in self.columns])]
        return [*rows, *self._answers("", "verdicts"), *self._answers("objective ", "objectives")]

    def _answers(self, about: str, of: str) -> Iterable[Row]:
        names = dict.fromkeys(name for column in self.columns for run in column.runs for name in getattr(run, of))
        for name in names:
            words = [[getattr(run, of).get(name, NONE) for run in column.runs] for column in self.columns]
            yield f"{about}{name}", [column.counted(each) for column, each in zip(self.columns, words, strict=True)]

    def findings(self) -> list[Row]:
        """Return the broken promises, and the anomalies that settings allow, in how many runs and how often."""
        rows = []
        for about, of in (("broken", "violations"), ("allowed", "expected")):
            counts: dict[str, list[list[int]]] = defaultdict(lambda: [[] for _ in self.columns])
            several = [len(column.runs) > 1 for column in self.columns]
            for number, column in enumerate(self.columns):
                for run in column.runs:
                    for check, count in getattr(run, of).items():
                        counts[check][number].append(count)
            rows += [
                (f"{about}: {check_title(check)}", [*map(_times, by_column, several)])
                for check, by_column in sorted(counts.items())
            ]
        return rows

    def measured(self) -> list[Row]:
        """Return each figure that a run of some column has."""
        rows = []
        for name in Objectives.model_fields:
            spreads = [column.spread(name) for column in self.columns]
            if any(spreads):
                texts = [
                    describe_spread(spread, unit_of(name), len(column.runs))
                    for spread, column in zip(spreads, self.columns, strict=True)
                ]
                rows.append((name, texts))
        return rows


def compared(sides: Mapping[str, Sequence[RunFigures]]) -> list[Comparison]:
    """Return a comparison for each scenario; runs of a side that are not of one kind are columns of their own."""
    columns: dict[str, dict[tuple[str, Kind], list[RunFigures]]] = defaultdict(dict)
    for side, runs in sides.items():
        for run in runs:
            columns[run.kind.scenario].setdefault((side, run.kind), []).append(run)
    shown = {side: side if len(sides) > 1 else "" for side in sides}
    return [
        Comparison(
            scenario=scenario,
            columns=[Column(side=shown[side], kind=kind, runs=runs) for (side, kind), runs in by_kind.items()],
        )
        for scenario, by_kind in sorted(columns.items())
    ]


def as_data(comparisons: Sequence[Comparison]) -> list[dict[str, object]]:
    """Return comparisons as JSON has them."""
    return [
        {
            "scenario": each.scenario,
            "differs": each.differs,
            "columns": [_column_data(column) for column in each.columns],
        }
        for each in comparisons
    ]


def _column_data(column: Column) -> dict[str, object]:
    spreads = {name: column.spread(name) for name in Objectives.model_fields}
    return {
        "side": column.side,
        "system": column.kind.system,
        "driver": column.kind.driver,
        "machine": column.kind.machine,
        "planted_bugs": list(column.kind.planted_bugs),
        "runs": [
            {
                "run": run.run,
                "outcome": run.outcome,
                "verdicts": run.verdicts,
                "violations": run.violations,
                "expected": run.expected,
                "objectives": run.objectives,
                "measured": run.values,
            }
            for run in column.runs
        ],
        "spread": {
            name: {"unit": unit_of(name), "min": each.least, "median": each.median, "max": each.most, "runs": each.runs}
            for name, each in spreads.items()
            if each is not None
        },
    }


def describe_spread(spread: Spread | None, unit: str, runs: int) -> str:
    """Return a spread as text: median, least and most; and of how many runs unless of all."""
    if spread is None:
        return NONE
    of = f", of {spread.runs} of {runs} runs" if spread.runs < runs else ""
    if spread.runs == 1:
        return f"{_figure(spread.median)} {unit}{of}"
    return f"{_figure(spread.median)} ({_figure(spread.least)} to {_figure(spread.most)}) {unit}{of}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= LARGE else f"{value:.4g}"


def _times(counts: Sequence[int], several: bool) -> str:
    """Return how often something was found, and of several runs in how many."""
    if not counts:
        return NONE
    return f"{sum(counts):,} in {number_of(len(counts), 'run')}" if several else f"{sum(counts):,}"
