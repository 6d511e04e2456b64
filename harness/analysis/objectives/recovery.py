"""How long after a heal did every partition under load have its full ISR and acknowledged writes again?

A heal counts if no other fault is in force then. If another fault begins before the recovery, the recovery took at
least until then: it is missed if that is too long, and says nothing otherwise. So does the end of the evidence, but
what it cuts off stays unknown.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from harness.analysis.objectives.measured import NS_PER_S, Measured, Window
from harness.analysis.objectives.writes import with_acks


@dataclass(frozen=True, slots=True, kw_only=True)
class Degraded:
    """A time in which a partition lacked something."""

    what: str
    begin_ns: int
    end_ns: int | None
    """None if it did not end while there was evidence."""


def slowest_recovery(
    windows: Sequence[Window], states: pa.Table, gaps: pa.Table, last_ns: int, limit_s: float
) -> Measured:
    """Return the longest recovery after a heal, in seconds; one that the next fault cuts off only above the limit."""
    if not windows:
        return Measured(reason="no fault was injected")
    if lasting := [window.fault for window in windows if window.healed_ns is None]:
        return Measured(reason=f"never healed: {', '.join(lasting)}")
    if not len(states):
        return Measured(reason="no rows in partition_states, which has the ISRs")
    if None in states["time_ns"].to_pylist() or None in states["assignment"].to_pylist():
        return Measured(reason="of some ISRs it is unknown when they changed, or whether they were full")
    degraded = [*_without_writes(gaps), *_not_full(states)]
    found = [_after(window, windows, degraded, last_ns) for window in _last_of_overlapping(windows)]
    counted = [each for each in found if each.value is not None and not (each.cut_off and each.value <= limit_s)]
    nothing = Measured(reason="the next fault begins before the recovery, after each heal")
    return max(counted, key=lambda each: (each.value or 0.0, each.open), default=nothing)


def _last_of_overlapping(windows: Sequence[Window]) -> Iterator[Window]:
    """Yield those that end while no other is in force."""
    for window in windows:
        others = [each for each in windows if each is not window]
        if not any(each.begin_ns <= (window.healed_ns or 0) < (each.healed_ns or 0) for each in others):
            yield window


def _after(window: Window, windows: Sequence[Window], degraded: Iterable[Degraded], last_ns: int) -> Measured:
    """Return how long the recovery after a heal took, or how long it took at least."""
    healed_ns = window.healed_ns or 0
    until_ns = min((each.begin_ns for each in windows if each.begin_ns > healed_ns), default=last_ns)
    lacking = [each for each in degraded if each.begin_ns <= healed_ns < _end(each)]
    slow = max(lacking, key=_end, default=None)
    after = f"after the heal of {window.fault}"
    if slow is None:
        return Measured(value=0.0, reason=f"nothing was lacking {after}")
    if slow.end_ns is None or slow.end_ns > until_ns:
        cut_off = until_ns != last_ns
        why = f"{slow.what} yet {after}, when the {'next fault begins' if cut_off else 'evidence ends'}"
        return Measured(value=max(until_ns - healed_ns, 0) / NS_PER_S, reason=why, open=True, cut_off=cut_off)
    return Measured(value=(slow.end_ns - healed_ns) / NS_PER_S, reason=f"{slow.what} until then, {after}")


def _end(degraded: Degraded) -> float:
    return math.inf if degraded.end_ns is None else degraded.end_ns


def _without_writes(gaps: pa.Table) -> Iterator[Degraded]:
    for gap in with_acks(gaps).to_pylist():
        yield Degraded(
            what=f"{gap['topic']}-{gap['partition']} had no acknowledged write",
            begin_ns=gap["from_ns"],
            end_ns=None if gap["open"] else gap["to_ns"],
        )


def _not_full(states: pa.Table) -> Iterator[Degraded]:
    """Yield the times in which a partition had a replica outside the ISR, or no leader."""
    by_partition: dict[tuple[str, int], list[tuple[int, bool]]] = defaultdict(list)
    for row in states.sort_by("zxid").to_pylist():
        full = row["leader"] >= 0 and set(row["isr"]) >= set(row["assignment"])
        by_partition[row["topic"], row["partition"]].append((row["time_ns"], full))
    for (topic, partition), changes in by_partition.items():
        begin_ns: int | None = None
        for time_ns, full in changes:
            if full and begin_ns is not None:
                yield Degraded(what=_lacks_isr(topic, partition), begin_ns=begin_ns, end_ns=time_ns)
                begin_ns = None
            elif not full and begin_ns is None:
                begin_ns = time_ns
        if begin_ns is not None:
            yield Degraded(what=_lacks_isr(topic, partition), begin_ns=begin_ns, end_ns=None)


def _lacks_isr(topic: str, partition: int) -> str:
    return f"{topic}-{partition} had no full ISR"
