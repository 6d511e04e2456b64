"""Judges the objectives of one run by its facts; what cannot be measured is UNKNOWN, and never met."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc

from harness.analysis.objectives import lag, recovery, writes
from harness.analysis.objectives.measured import Measured, Window
from harness.analysis.tables.stored import fact_table
from harness.contracts.objectives import Objectives, at_least, unit_of
from harness.store.folder import RunFolder
from harness.store.result import ObjectiveResult
from harness.verdict import ObjectiveVerdict

NOTHING_JUDGED = "nothing was judged"


class Facts:
    """The facts of one run that objectives read, each read once."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    @cached_property
    def sends(self) -> pa.Table:
        """All sends."""
        names = ("topic", "partition", "acks", "outcome", "invoke_ns", "complete_ns", "offset", "transaction_outcome")
        return fact_table(self._folder, "sends", names)

    @cached_property
    def gaps(self) -> pa.Table:
        """Times without an acknowledged write."""
        return fact_table(self._folder, "availability")

    @cached_property
    def windows(self) -> list[Window]:
        """Times in which faults were in force."""
        return [
            Window(
                fault=f"{row['fault']} {', '.join(row['targets'] or ())}".strip(),
                begin_ns=row["intended_ns"],
                healed_ns=row["healed_ns"],
            )
            for row in fact_table(self._folder, "fault_windows").to_pylist()
            if row["injected_ns"] is not None
        ]

    @cached_property
    def zero_ns(self) -> int:
        """Instant of the first send."""
        return pc.min(self.sends["invoke_ns"]).as_py() or 0

    def slowest_recovery(self, limit_s: float) -> Measured:
        """Return the longest recovery."""
        states = fact_table(
            self._folder, "partition_states", ("topic", "partition", "zxid", "time_ns", "leader", "isr", "assignment")
        )
        signs = fact_table(self._folder, "liveness", ("time_ns",))["time_ns"]
        states = states.filter(pc.is_in(states["topic"], self.sends["topic"].unique()))
        lasts = [pc.max(each).as_py() for each in (self.sends["complete_ns"], signs)]
        last_ns = max((last for last in lasts if last is not None), default=self.zero_ns)
        return recovery.slowest_recovery(self.windows, states, self.gaps, last_ns, limit_s)

    def lag(self, *, at_end: bool) -> Measured:
        """Return the largest lag."""
        polls = fact_table(self._folder, "polls", ("process", "mode", "topic", "partition", "offset", "time_ns"))
        commits = fact_table(self._folder, "committed_offsets", ("source", "kind", "process", "group"))
        return lag.lag(self.sends, polls, commits, self.zero_ns, at_end=at_end)


Measure = tuple[tuple[str, ...], Callable[[Facts, float], Measured]]
"""Facts on which a measure rests, and how it is made of them; the limit is the second argument."""
MEASURES: dict[str, Measure] = {
    "no_write_s": (("sends",), lambda facts, _: writes.longest_gap(facts.sends, facts.gaps, facts.zero_ns)),
    "available_percent": (("sends",), lambda facts, _: writes.available_percent(facts.sends, facts.gaps)),
    "p99_outside_ms": (
        ("sends", "fault_windows"),
        lambda facts, _: writes.p99_ms(facts.sends, facts.windows, inside=False),
    ),
    "p99_inside_ms": (
        ("sends", "fault_windows"),
        lambda facts, _: writes.p99_ms(facts.sends, facts.windows, inside=True),
    ),
    "recovery_s": (("sends", "fault_windows", "partition_states"), lambda facts, limit: facts.slowest_recovery(limit)),
    "lag_records": (("sends", "polls"), lambda facts, _: facts.lag(at_end=False)),
    "end_lag_records": (("sends", "polls"), lambda facts, _: facts.lag(at_end=True)),
}


def judge_objectives(
    objectives: Objectives, folder: RunFolder, unreliable: Callable[[Sequence[str]], str]
) -> list[ObjectiveResult]:
    """Return the result of each objective that is stated.

    Args:
        objectives: The limits.
        folder: A run whose facts were made.
        unreliable: Returns why some of these facts cannot be relied on; empty if they can.
    """
    facts = Facts(folder)
    return [
        result_of(name, limit, _measured(facts, name, limit, unreliable)) for name, limit in objectives.stated.items()
    ]


def not_judged(objectives: Objectives | None) -> list[ObjectiveResult]:
    """Return the results before anything is judged."""
    stated: Mapping[str, float] = objectives.stated if objectives else {}
    return [result_of(name, limit, Measured(reason=NOTHING_JUDGED)) for name, limit in stated.items()]


def result_of(name: str, limit: float, measured: Measured) -> ObjectiveResult:
    """Return the result of one objective."""
    make = partial(
        ObjectiveResult,
        objective=name,
        limit=limit,
        unit=unit_of(name),
        at_least=at_least(name),
        measured=None if measured.value is None else round(measured.value, 3),
        reason=measured.reason,
    )
    if measured.value is None:
        return make(verdict=ObjectiveVerdict.UNKNOWN)
    if measured.value < limit if at_least(name) else measured.value > limit:
        return make(verdict=ObjectiveVerdict.MISSED)
    return make(verdict=ObjectiveVerdict.UNKNOWN if measured.open else ObjectiveVerdict.MET)


def _measured(facts: Facts, name: str, limit: float, unreliable: Callable[[Sequence[str]], str]) -> Measured:
    names, measure = MEASURES[name]
    if why := unreliable(names):
        return Measured(reason=f"evidence that cannot be relied on: {why}")
    if not len(facts.sends):
        return Measured(reason="no rows in sends")
    return measure(facts, limit)
