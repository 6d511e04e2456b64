"""What the report shows of facts and findings, and how it is read from a run's folder without Spark."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.analysis.tables.stored import fact_table
from harness.report.findings import SEVERITIES, FindingGroup, Row, grouped
from harness.store.folder import RunFolder

SHOWN_OPERATIONS = 3_000
"""As points; a browser draws this many at once."""
OUTCOMES = ("ok", "info", "fail")
_SEND = ("process", "topic", "partition", "acks", "outcome", "invoke_ns", "complete_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Second:
    """Clients' throughput in one second of a run."""

    second: int
    """Seconds since the first operation."""
    acknowledged: int
    failed: int
    unknown: int
    consumed: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One send that ended."""

    end_s: float
    """Seconds since the first operation."""
    took_ms: float
    outcome: str
    what: str
    """What was sent, and by which process, to which partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """The sends of a run, thinned where there are many."""

    shown: list[Operation]
    count: int
    """All sends that ended, except those without acknowledgement."""
    every_s: float | None
    """If set, only the slowest and the quickest send of each outcome are shown in this time; None if all are."""


class Evidence(ABC):
    """Facts and findings of one run or history, wherever they are."""

    def __init__(self) -> None:
        """Look for the first and the last instant."""
        clients = [self._span("sends", "invoke_ns", "complete_ns"), self._span("polls", "time_ns", "time_ns")]
        faults = self._span("fault_windows", "intended_ns", "healed_ns")
        instants = [first for first, _ in clients if first is not None]
        windows = [] if faults[0] is None else [faults[0]]
        self.zero_ns: int = min(instants or windows, default=0)
        """Instant of the first operation; all times in the report are seconds since then."""
        self.last_ns: int = max((last for _, last in (*clients, faults) if last is not None), default=self.zero_ns)

    @abstractmethod
    def rows(self, name: str, order: str, *, descending: bool = False) -> list[Row]:
        """Return a fact that is small by nature (elections, faults, gaps) as dictionaries, ordered by a column."""

    @abstractmethod
    def groups(self) -> list[FindingGroup]:
        """Return the findings, violations first, then by check; an unjudged run has none."""

    @abstractmethod
    def per_second(self) -> list[Second]:
        """Return throughput and latency of every second from the first operation to the last."""

    def operations(self) -> Operations:
        """Return the sends that ended, at most about `SHOWN_OPERATIONS` of them."""
        count = self._ended()
        spans = SHOWN_OPERATIONS // (2 * len(OUTCOMES))
        every_ns = 0 if count <= SHOWN_OPERATIONS else max((self.last_ns - self.zero_ns) // spans, 1)
        return Operations(
            shown=[
                Operation(
                    end_s=(row["complete_ns"] - self.zero_ns) / 1e9,
                    took_ms=(row["complete_ns"] - row["invoke_ns"]) / 1e6,
                    outcome=row["outcome"],
                    what=f"{row['process']} to {place(row)}",
                )
                for row in self._sends(every_ns)
            ],
            count=count,
            every_s=every_ns / 1e9 if every_ns else None,
        )

    def instants(self, findings: Sequence[Row]) -> list[int | None]:
        """Return the instant of each finding: when its record was first acknowledged, or else when its epoch began."""
        epochs = {
            (row["topic"], row["partition"], row["leader_epoch"]): row["time_ns"]
            for row in self.rows("leader_epochs", "zxid")
        }
        sends = self._sends_at({row["offset"] for row in findings if row["offset"] is not None})
        acknowledged = {
            (row["topic"], row["partition"], row["offset"]): row["complete_ns"]
            for row in sorted(sends, key=lambda row: -row["complete_ns"])
        }
        return [
            row.get("at_ns")
            or acknowledged.get((row["topic"], row["partition"], row["offset"]))
            or epochs.get((row["topic"], row["partition"], row["leader_epoch"]))
            for row in findings
        ]

    @abstractmethod
    def _ended(self) -> int:
        """Return the number of sends that ended, except those without acknowledgement."""

    @abstractmethod
    def _sends(self, every_ns: int) -> list[Row]:
        """Return sends; of each outcome the slowest and the quickest in each such interval, or with 0 all."""

    @abstractmethod
    def _sends_at(self, offsets: Collection[int]) -> list[Row]:
        """Return the sends that were acknowledged at these offsets: topic, partition, offset, when."""

    @abstractmethod
    def _span(self, name: str, first: str, last: str) -> tuple[int | None, int | None]:
        """Return the smallest instant in one column of a fact, and the largest in another."""

    def seconds_since_start(self, time_ns: int | None) -> float | None:
        """Return an instant as seconds since the first operation."""
        return None if time_ns is None else (time_ns - self.zero_ns) / 1e9

    def end_s(self) -> float:
        """Return the last instant that the report draws."""
        return (self.last_ns - self.zero_ns) / 1e9


class RunEvidence(Evidence):
    """Facts and findings in a folder, without Spark; a missing fact is an empty table, so a report is always made."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        super().__init__()

    def table(self, name: str, columns: Iterable[str] | None = None) -> pa.Table:
        """Return one fact; empty with the right columns when the run has none."""
        return fact_table(self._folder, name, columns)

    def rows(self, name: str, order: str, *, descending: bool = False) -> list[Row]:
        """Return a fact as dictionaries."""
        rows: list[Row] = self.table(name).sort_by([(order, "descending" if descending else "ascending")]).to_pylist()
        return rows

    def matching(self, name: str, **equal: Any) -> list[Row]:
        """Return the rows of a fact whose columns have these values, as dictionaries; only those rows are read."""
        path = self._folder.facts / f"{name}.parquet"
        if not path.exists():
            return []
        rows: list[Row] = pq.read_table(
            path, filters=[(column, "=", value) for column, value in equal.items()]
        ).to_pylist()
        return rows

    def findings(self) -> list[Row]:
        """Return the findings, violations first, then by check and place; an unjudged run has none."""
        if not self._folder.findings.exists():
            return []
        rows: list[Row] = pq.read_table(self._folder.findings).to_pylist()
        return sorted(
            rows,
            key=lambda row: (
                SEVERITIES.index(row["severity"]),
                row["check"],
                row["topic"] or "",
                -1 if row["partition"] is None else row["partition"],
                -1 if row["offset"] is None else row["offset"],
            ),
        )

    def groups(self) -> list[FindingGroup]:
        """Return the findings by severity and check."""
        return grouped(self.findings())

    def _ended(self) -> int:
        return len(self._asking_sends())

    def _sends(self, every_ns: int) -> list[Row]:
        sends = self._asking_sends()
        if every_ns:
            took = pc.subtract(sends["complete_ns"], sends["invoke_ns"])
            span = pc.divide(pc.subtract(sends["complete_ns"], self.zero_ns), every_ns)
            row = pa.array(range(len(sends)))
            by_time = pa.table({"outcome": sends["outcome"], "span": span, "took": took, "row": row}).sort_by("took")
            groups = by_time.group_by(["outcome", "span"], use_threads=False)
            ends = groups.aggregate([("row", "first"), ("row", "last")])
            sends = sends.take(pc.unique(pa.chunked_array([*ends["row_first"].chunks, *ends["row_last"].chunks])))
        rows: list[Row] = sends.to_pylist()
        return rows

    def _asking_sends(self) -> pa.Table:
        sends = self.table("sends", _SEND)
        return sends.filter(pc.and_(pc.is_valid(sends["complete_ns"]), pc.not_equal(sends["acks"], 0)))

    def _sends_at(self, offsets: Collection[int]) -> list[Row]:
        if not offsets:
            return []
        sends = self.table("sends", ["topic", "partition", "offset", "complete_ns"])
        named = pc.is_in(sends["offset"], pa.array(offsets, pa.int64()))
        rows: list[Row] = sends.filter(pc.and_(named, pc.is_valid(sends["complete_ns"]))).to_pylist()
        return rows

    def _span(self, name: str, first: str, last: str) -> tuple[int | None, int | None]:
        table = self.table(name, {first, last})
        return pc.min_max(table[first])["min"].as_py(), pc.min_max(table[last])["max"].as_py()

    def per_second(self) -> list[Second]:
        """Return the counts of each second, latency by t-digest."""
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


def place(row: Row) -> str:
    """Return a row's partition as text; the topic alone while that is unknown."""
    return row["topic"] if row["partition"] is None else f"{row['topic']}-{row['partition']}"
