"""The rows that the report shows, read from a run's Parquet facts without Spark."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.analysis.arrow import ARROW_TYPES
from harness.analysis.schemas import TABLES
from harness.store import RunFolder

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """What clients got done in one second of a run."""

    second: int
    """Seconds since the first operation."""
    acknowledged: int
    failed: int
    unknown: int
    consumed: int
    p50_ms: float | None
    p99_ms: float | None


class RunEvidence:
    """Facts and findings of one run; a fact that is missing is an empty table, for the report must always appear."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        instants = [*self._column("sends", "invoke_ns"), *self._column("polls", "time_ns")]
        windows = self._column("fault_windows", "intended_ns")
        self.zero_ns: int = min(instants or windows, default=0)
        """Instant of the first operation; all times in the report are seconds since then."""

    def table(self, name: str, columns: Iterable[str] | None = None) -> pa.Table:
        """Return one fact; empty with the right columns when the run has none."""
        path = self._folder.facts / f"{name}.parquet"
        wanted = list(columns) if columns is not None else [column.name for column in TABLES[name].columns]
        if path.exists():
            return pq.read_table(path, columns=wanted)
        types = {column.name: ARROW_TYPES[column.type] for column in TABLES[name].columns}
        return pa.table({name: pa.array([], types[name]) for name in wanted})

    def rows(self, name: str, order: str | None = None) -> list[Row]:
        """Return a fact that is small by nature (elections, faults, gaps) as dictionaries, ordered by a column."""
        table = self.table(name)
        rows: list[Row] = (table.sort_by(order) if order else table).to_pylist()
        return rows

    def findings(self) -> list[Row]:
        """Return the findings, violations first, then by check and place; an unjudged run has none."""
        if not Path(self._folder.findings).exists():
            return []
        rank = {"violation": 0, "expected": 1, "note": 2}
        rows: list[Row] = pq.read_table(self._folder.findings).to_pylist()
        return sorted(
            rows,
            key=lambda row: (
                rank.get(row["severity"], 3),
                row["check"],
                row["topic"] or "",
                -1 if row["partition"] is None else row["partition"],
                -1 if row["offset"] is None else row["offset"],
            ),
        )

    def seconds_since_start(self, time_ns: int | None) -> float | None:
        """Return an instant as seconds since the first operation."""
        return None if time_ns is None else (time_ns - self.zero_ns) / 1e9

    def end_s(self) -> float:
        """Return when the last thing that the report draws happened."""
        instants = [
            *self._column("sends", "complete_ns", last=True),
            *self._column("polls", "time_ns", last=True),
            *self._column("fault_windows", "healed_ns", last=True),
        ]
        return (max(instants) - self.zero_ns) / 1e9 if instants else 0.0

    def per_second(self) -> list[Second]:
        """Return throughput and latency of every second from the first operation to the last."""
        sends = self.table("sends", ["outcome", "invoke_ns", "complete_ns", "acks"])
        sends = sends.filter(pc.is_valid(sends["complete_ns"]))
        outcomes = self._counted(sends, "complete_ns", "outcome")
        consumed = self._counted(self.table("polls", ["time_ns"]), "time_ns")
        answered = sends.filter(pc.and_(pc.equal(sends["outcome"], "ok"), pc.not_equal(sends["acks"], 0)))
        latency = pc.divide(pc.cast(pc.subtract(answered["complete_ns"], answered["invoke_ns"]), pa.float64()), 1e6)
        quantiles = self._quantiles(self._seconds(answered["complete_ns"]), latency)
        seconds = {second for second, _ in outcomes} | {second for second, _ in consumed}
        return [
            Second(
                second=second,
                acknowledged=outcomes.get((second, "ok"), 0),
                failed=outcomes.get((second, "fail"), 0),
                unknown=outcomes.get((second, "info"), 0),
                consumed=consumed.get((second, ""), 0),
                p50_ms=quantiles.get(second, (None, None))[0],
                p99_ms=quantiles.get(second, (None, None))[1],
            )
            for second in range(max(seconds, default=-1) + 1)
        ]

    def _column(self, table: str, column: str, *, last: bool = False) -> list[int]:
        """Return the smallest (or largest) instant of a column, as a list of one or none."""
        bound = pc.min_max(self.table(table, [column])[column])["max" if last else "min"].as_py()
        return [] if bound is None else [int(bound)]

    def _seconds(self, instants: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.divide(pc.subtract(instants, self.zero_ns), 1_000_000_000)

    def _counted(self, table: pa.Table, instant: str, by: str | None = None) -> dict[tuple[int, str], int]:
        keys = pa.table(
            {"second": self._seconds(table[instant]), "by": table[by] if by else pa.nulls(len(table), "str")}
        )
        counts = keys.group_by(["second", "by"]).aggregate([([], "count_all")]).to_pylist()
        return {(row["second"], row["by"] or ""): row["count_all"] for row in counts}

    @staticmethod
    def _quantiles(seconds: pa.ChunkedArray, values: pa.ChunkedArray) -> dict[int, tuple[float, float]]:
        options = pc.TDigestOptions(q=[0.5, 0.99])
        groups = pa.table({"second": seconds, "value": values}).group_by("second")
        rows = groups.aggregate([("value", "tdigest", options)]).to_pylist()
        return {row["second"]: tuple(row["value_tdigest"]) for row in rows}
