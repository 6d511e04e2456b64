"""Many runs as a matrix by night, and as lines over the nights."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from harness.report.trend.summary import RunSummary

NIGHTS = 30
"""Number of nights with runs that are shown."""
ALONE = 2.0
"""How far the line of a single value extends to each side, in a picture 100 wide."""


SYMBOLS = {"bad": "✗", "open": "?", "good": "✓"}
"""By class, the gravest first; they do not depend on colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """The runs of a cell that ended alike."""

    mood: str
    """The class: good, bad or open."""
    text: str
    """A symbol, with the number of these runs if the cell has several."""
    description: str
    first: RunSummary
    """The run to open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The runs of one night that belong to a row, in their order."""

    runs: list[RunSummary]

    @property
    def parts(self) -> list[Alike]:
        """The runs by how they ended, the gravest first."""
        alike: dict[tuple[str, str], list[RunSummary]] = defaultdict(list)
        for run in self.runs:
            alike[_mood(run), run.outcome if run.as_expected else f"{run.outcome}, not as expected"].append(run)
        return [
            Alike(
                mood=mood,
                text=SYMBOLS[mood] + (str(len(alike[mood, ended])) if len(self.runs) > 1 else ""),
                description=f"{len(alike[mood, ended])} {ended}",
                first=alike[mood, ended][0],
            )
            for mood, ended in sorted(alike, key=lambda key: ([*SYMBOLS].index(key[0]), key[1]))
        ]


def _mood(run: RunSummary) -> str:
    if run.as_expected:
        return "good"
    return "open" if run.outcome == "inconclusive" else "bad"


def turned(cells: Iterable[Cell]) -> tuple[RunSummary, RunSummary] | None:
    """Return the last good run of a row and the first bad one after it, of one seed if there are such."""
    conclusive = (run for cell in cells for run in cell.runs if _mood(run) != "open")
    runs = sorted(conclusive, key=lambda run: run.started_at)
    seeds = {run.name.rsplit("-", 1)[-1] for run in runs}
    of_seeds = [[run for run in runs if run.name.endswith(f"-{seed}")] for seed in seeds]
    turns = [pair for of_seed in of_seeds if (pair := _turn(of_seed))]
    return max(turns, key=lambda pair: pair[1].started_at) if turns else _turn(runs)


def _turn(runs: Sequence[RunSummary]) -> tuple[RunSummary, RunSummary] | None:
    pairs = [pair for pair in pairwise(runs) if (_mood(pair[0]), _mood(pair[1])) == ("good", "bad")]
    return pairs[-1] if pairs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One row a scenario or kind of fault, one column a night, the newest first."""

    nights: list[str]
    rows: dict[str, list[Cell]]


def nights_of(runs: Iterable[RunSummary]) -> list[str]:
    """Return the last nights with runs, in order."""
    return sorted({run.night for run in runs})[-NIGHTS:]


def matrix(runs: Sequence[RunSummary], keys: Callable[[RunSummary], Iterable[str]]) -> Matrix:
    """Return runs by night and by each of their keys, such as the scenario."""
    nights = nights_of(runs)[::-1]
    by_row: dict[str, dict[str, list[RunSummary]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        for key in dict.fromkeys(keys(run)):
            by_row[key][run.night].append(run)
    rows = {key: [Cell(runs=by_night[night]) for night in nights] for key, by_night in sorted(by_row.items())}
    return Matrix(nights=nights, rows={key: row for key, row in rows.items() if any(cell.runs for cell in row)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One number over the nights."""

    name: str
    unit: str
    values: list[float | None]
    """None for a night without one."""

    @property
    def points(self) -> str:
        """The line in a picture of 100 by 20, largest at the top; a single value is a short level line."""
        top, steps = self.worst or 1, max(len(self.values) - 1, 1)
        known = [
            (100 * index / steps, 20 - 18 * value / top) for index, value in enumerate(self.values) if value is not None
        ]
        if len(known) == 1:
            known = [(end, y) for x, y in known for end in (max(x - ALONE, 0), min(x + ALONE, 100))]
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in known)

    @property
    def last(self) -> float | None:
        """The value of the last night that has one."""
        return next((value for value in reversed(self.values) if value is not None), None)

    @property
    def worst(self) -> float | None:
        """The largest."""
        return max((value for value in self.values if value is not None), default=None)


def lines(runs: Sequence[RunSummary]) -> list[Series]:
    """Return how long runs took, how long writes failed after each kind of fault, losses, and objectives.

    Each number is of one system and driver: a mean of several would move with their shares.
    """
    nights = nights_of(runs)
    systems = sorted({run.under_test for run in runs})
    return [each for system in systems for each in _lines([run for run in runs if run.under_test == system], nights)]


def _lines(runs: Sequence[RunSummary], nights: Sequence[str]) -> list[Series]:
    """Return the lines of one system and driver."""
    by_night = {night: [run for run in runs if run.night == night] for night in nights}

    def line(
        name: str, unit: str, values: Callable[[list[RunSummary]], list[float]], sum_up: Callable[..., float]
    ) -> Series:
        numbers = [values(by_night[night]) for night in nights]
        return Series(
            name=f"{name} · {runs[0].under_test}",
            unit=unit,
            values=[sum_up(of_night) if of_night else None for of_night in numbers],
        )

    def unavailable(kind: str) -> Callable[[list[RunSummary]], list[float]]:
        return lambda of_night: [
            fault.unavailable_ms / 1000
            for run in of_night
            for fault in run.faults
            if fault.kind == kind and fault.unavailable_ms is not None
        ]

    drawn = [
        line("runs", "", lambda of_night: [float(len(of_night))], max),
        line("a run takes, median", "s", lambda of_night: [run.duration_s for run in of_night], median),
        line("expected losses", "", lambda of_night: [float(sum(run.expected_losses for run in of_night))], max),
    ]
    for kind in sorted({fault.kind for run in runs for fault in run.faults}):
        drawn.append(line(f"no write after {kind}, median", "s", unavailable(kind), median))
        drawn.append(line(f"no write after {kind}, longest", "s", unavailable(kind), max))
    stated = {(run.scenario, each.objective, each.unit) for run in runs for each in run.objectives}
    for scenario, objective, unit in sorted(stated):
        drawn.append(line(f"{scenario}: {objective}, median", unit, _measured(scenario, objective), median))
    return [each for each in drawn if any(value is not None for value in each.values)]


def _measured(scenario: str, objective: str) -> Callable[[list[RunSummary]], list[float]]:
    return lambda of_night: [
        each.measured
        for run in of_night
        if run.scenario == scenario
        for each in run.objectives
        if each.objective == objective
    ]
