"""How long did writes take, and how long was there none? From the facts sends and availability."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.analysis.objectives.measured import NS_PER_S, Measured, Window
from harness.contracts.objectives import SHORTEST_GAP_S

NO_ACKS = "no client sent with acks 1 or all to a partition that is known"
_KEY = ["topic", "partition", "acks"]
PERCENTILE = 0.99


def with_acks(table: pa.Table) -> pa.Table:
    """Return the rows of sends that a broker had to acknowledge, in a partition that is known."""
    return table.filter(pc.and_(pc.not_equal(table["acks"], 0), pc.is_valid(table["partition"])))


def longest_gap(sends: pa.Table, gaps: pa.Table, zero_ns: int) -> Measured:
    """Return the longest time of a partition without an acknowledged write, in seconds."""
    if not len(with_acks(sends)):
        return Measured(reason=NO_ACKS)
    rows = with_acks(gaps).sort_by([("gap_ms", "descending")]).slice(0, 1).to_pylist()
    if not rows:
        return Measured(value=SHORTEST_GAP_S, reason="no time was longer")
    (gap,) = rows
    place = f"{gap['topic']}-{gap['partition']} from {(gap['from_ns'] - zero_ns) / NS_PER_S:.1f} s on"
    until = ", until the end of the load" if gap["open"] else ""
    return Measured(value=gap["gap_ms"] / 1000, reason=place + until, open=gap["open"])


def available_percent(sends: pa.Table, gaps: pa.Table) -> Measured:
    """Return the share of time in which writes were acknowledged, over all partitions."""
    sends = with_acks(sends)
    if not len(sends):
        return Measured(reason=NO_ACKS)
    ends = pc.coalesce(sends["complete_ns"], sends["invoke_ns"])
    last_ns = pc.max(ends).as_py()
    unended = pc.is_null(sends["complete_ns"])
    ends = pc.if_else(unended, pa.scalar(last_ns, pa.int64()), ends)
    spans = sends.append_column("end_ns", ends).group_by(_KEY).aggregate([("invoke_ns", "min"), ("end_ns", "max")])
    down_ms = {
        tuple(row[name] for name in _KEY): row["gap_ms_sum"]
        for row in with_acks(gaps).group_by(_KEY).aggregate([("gap_ms", "sum")]).to_pylist()
    }
    shares, total_ms = [], 0.0
    for row in spans.to_pylist():
        key = tuple(row[name] for name in _KEY)
        span_ms = (row["end_ns_max"] - row["invoke_ns_min"]) / 1e6
        down = down_ms.get(key, 0.0)
        shares.append((100 * (1 - down / span_ms) if span_ms else 100.0, f"{key[0]}-{key[1]}"))
        total_ms += span_ms
    value = 100 * (1 - sum(down_ms.values()) / total_ms) if total_ms else 100.0
    least, where = min(shares)
    return Measured(value=value, reason=f"least in {where}, {least:.4g} %")


def p99_ms(sends: pa.Table, windows: Sequence[Window], *, inside: bool) -> Measured:
    """Return the 99th percentile of the time that acknowledged sends took, of those that overlap a window or not."""
    sends = with_acks(sends)
    sends = sends.filter(pc.and_(pc.equal(sends["outcome"], "ok"), pc.is_valid(sends["complete_ns"])))
    invoke, complete = (sends[name].to_numpy() for name in ("invoke_ns", "complete_ns"))
    overlaps = np.zeros(len(sends), bool)
    for window in windows:
        overlaps |= (complete >= window.begin_ns) & (
            invoke <= (window.healed_ns if window.healed_ns is not None else np.iinfo(np.int64).max)
        )
    took = (complete - invoke)[overlaps == inside]
    where = "in a fault window" if inside else "outside of fault windows"
    if not len(took):
        return Measured(reason=f"no acknowledged send was {where}")
    value = float(np.quantile(took, PERCENTILE, method="higher")) / 1e6
    return Measured(value=value, reason=f"of {len(took):,} acknowledged sends {where}")
