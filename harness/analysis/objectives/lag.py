"""How many acknowledged records had a consumer, or a group, yet to read?

A reader is expected to read every partition of a topic of which it reads one. Processes that commit for one group are
one reader. Records of aborted transactions do not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.analysis.objectives.measured import NS_PER_S, Measured

Partition = tuple[str, int]
Steps = tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]
"""Instants in order, and an offset at each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """The lag of one reader in one partition."""

    reader: str
    partition: Partition
    largest: int
    largest_at_ns: int
    last: int


def lag(sends: pa.Table, polls: pa.Table, commits: pa.Table, zero_ns: int, *, at_end: bool) -> Measured:
    """Return the largest lag, of the whole run or at its end, in records."""
    lags = list(_lags(sends, polls, commits))
    if not lags:
        return Measured(reason="no consumer reads a topic that has acknowledged records")
    most = max(lags, key=lambda each: each.last if at_end else each.largest)
    place = f"{most.reader} in {most.partition[0]}-{most.partition[1]}"
    if at_end:
        return Measured(value=most.last, reason=place)
    return Measured(value=most.largest, reason=f"{place} at {(most.largest_at_ns - zero_ns) / NS_PER_S:.1f} s")


def _lags(sends: pa.Table, polls: pa.Table, commits: pa.Table) -> Iterator[Lag]:
    ends = _ends(sends)
    positions = _positions(polls, commits)
    for reader, topic in sorted({(reader, topic) for reader, topic, _ in positions}):
        for partition, (written_ns, end) in ends.items():
            if partition[0] != topic:
                continue
            read_ns, position = positions.get((reader, *partition), (np.array([], "int64"), np.array([], "int64")))
            behind = end - np.concatenate([[0], position])[np.searchsorted(read_ns, written_ns, side="right")]
            worst = int(np.argmax(behind))
            yield Lag(
                reader=reader,
                partition=partition,
                largest=max(int(behind[worst]), 0),
                largest_at_ns=int(written_ns[worst]),
                last=max(int(end[-1]) - (int(position[-1]) if len(position) else 0), 0),
            )


def _ends(sends: pa.Table) -> dict[Partition, Steps]:
    """Return where each partition ended after each acknowledgement."""
    counts = pc.fill_null(pc.equal(sends["transaction_outcome"], "committed"), True)
    answered = pc.and_(pc.is_valid(sends["offset"]), pc.is_valid(sends["complete_ns"]))
    acknowledged = sends.filter(pc.and_(counts, pc.and_(answered, pc.equal(sends["outcome"], "ok"))))
    return {
        (topic, partition): (times, np.maximum.accumulate(offsets + 1))
        for (topic, partition), (times, offsets) in _grouped(acknowledged, ["topic", "partition"], "complete_ns")
    }


def _positions(polls: pa.Table, commits: pa.Table) -> dict[tuple[str, str, int], Steps]:
    """Return the position of each reader in each partition after each record."""
    own = commits.filter(pc.and_(pc.equal(commits["source"], "client"), pc.equal(commits["kind"], "commit")))
    groups = {row["process"]: row["group"] for row in own.group_by(["process", "group"]).aggregate([]).to_pylist()}
    read = polls.filter(pc.not_equal(polls["mode"], "reread"))
    names = [groups.get(name, name) for name in read["process"].unique().to_pylist()]
    encoded = pc.index_in(read["process"], read["process"].unique())
    read = read.append_column("reader", pc.take(pa.array(names, pa.string()), encoded))
    return {
        key: (times, offsets + 1)
        for key, (times, offsets) in _grouped(read, ["reader", "topic", "partition"], "time_ns")
    }


def _grouped(table: pa.Table, keys: list[str], time: str) -> Iterator[tuple[Any, Steps]]:
    """Yield instants and offsets of each group, in the order of the instants."""
    rows = table.sort_by([(time, "ascending"), ("offset", "ascending")])
    groups = rows.group_by(keys, use_threads=False).aggregate([(time, "list"), ("offset", "list")])
    for number in range(len(groups)):
        key = tuple(groups[name][number].as_py() for name in keys)
        times, offsets = (groups[f"{name}_list"][number].values.to_numpy() for name in (time, "offset"))
        yield key, (times, offsets)
