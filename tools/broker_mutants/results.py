"""A measurement as data: a file of JSON lines, first what was measured, then a line a mutant."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.broker_mutants.battery import Intact
from tools.broker_mutants.mutants import Mutant
from tools.broker_mutants.trial import Outcome, Trial

RESULTS = Path(__file__).parents[2] / "results" / "broker_mutants"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What was measured."""

    commit: str
    day: str
    sample: int
    seed: int
    """Of the sample."""
    schedules: int
    battery_seed: int
    mutants: int
    """All that there are."""
    equivalent: int
    """Set apart before the sample was drawn."""
    about: str = ""
    """What distinguishes this measurement, in a sentence."""
    enough: int | None = None
    """A mutant with so many schedules that differ was not put to more, and only these are judged; None for no limit."""
    executed: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By room, how many of all mutants the battery executes, and how many there are."""
    never: Sequence[str] = ()
    """Functions of which the battery executes nothing that a mutant changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one mutant."""

    key: str
    room: str
    operator: str
    line: int
    outcome: str
    by: Sequence[str]
    """The checks that fail in the first violated schedule, or what leaves the doubt."""
    says: str
    """The first finding in a sentence."""
    executed: int
    """Schedules that execute what it changes."""
    simulated: int
    differ: int
    """Schedules whose history differs."""
    schedules: int
    """The first violated schedule, counted from 1; 0 where none is."""
    cpu_s: float
    """Processor time of its schedules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One file."""

    about: About
    rows: Sequence[Row]


def executed_of(mutants: Iterable[Mutant], intact: Sequence[Intact]) -> tuple[dict[str, list[int]], list[str]]:
    """Return by room how many mutants some schedule executes and how many there are, and functions without any."""
    rooms: dict[str, list[int]] = {}
    functions: dict[str, bool] = {}
    for mutant in mutants:
        is_executed = any(each.holds and each.runs(mutant) for each in intact)
        of_room = rooms.setdefault(mutant.room, [0, 0])
        of_room[0] += is_executed
        of_room[1] += 1
        function = f"{mutant.module} {mutant.function}"
        functions[function] = functions.get(function, False) or is_executed
    return dict(sorted(rooms.items())), sorted(name for name, is_executed in functions.items() if not is_executed)


def row_of(trial: Trial) -> Row:
    """Return what became of a mutant."""
    violated = trial.violated
    return Row(
        key=trial.mutant.key,
        room=trial.mutant.room,
        operator=trial.mutant.operator,
        line=trial.mutant.lines[0],
        outcome=trial.outcome(),
        by=trial.by(),
        says=trial.says(),
        executed=len(trial.executed),
        simulated=len(trial.simulated),
        differ=len(trial.differing),
        schedules=0 if violated is None else violated + 1,
        cpu_s=round(sum(each.cpu_s for each in trial.simulated.values()), 2),
    )


def line_of(value: About | Row) -> str:
    """Return a line of the file."""
    return json.dumps(asdict(value), ensure_ascii=False) + "\n"


def read_measurement(path: Path) -> Measurement:
    """Return what a file holds."""
    first, *others = path.read_text(encoding="utf-8").splitlines()
    return Measurement(about=About(**json.loads(first)), rows=[Row(**json.loads(line)) for line in others])


def counts(rows: Iterable[Row], key: Callable[[Row], str]) -> Mapping[str, Counter[str]]:
    """Return how many mutants have each outcome, by a property of theirs, in order."""
    counted: dict[str, Counter[str]] = {}
    for row in rows:
        counted.setdefault(key(row), Counter())[row.outcome] += 1
    return dict(sorted(counted.items()))


def cells(counter: Counter[str]) -> list[str]:
    """Return the figures of one row of a table: each outcome, their sum, and which share was found."""
    whole = counter.total()
    of_checks, reached = counter[Outcome.FOUND], whole - counter[Outcome.UNREACHED]
    numbers = [*(str(counter[outcome]) for outcome in Outcome), str(whole)]
    return [*numbers, f"{100 * reached / whole:.0f} %", f"{100 * of_checks / whole:.0f} %"]


HEADINGS = (*Outcome, "all", "reached", "found, %")
