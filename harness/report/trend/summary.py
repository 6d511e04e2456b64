"""A run in one row, and all runs of a folder as rows, which are kept in a small table beside them.

The table, `.trend.parquet`, is made from the runs and can always be made again: a row is valid as long as the run's
`verdict.json` is unchanged. So nothing is appended when a run ends, and runs that are judged
again, moved or removed are right at the next look. A look at 10,000 runs that are known costs one listing, a stat each
and one file; Spark would take longer to start.
"""

import json
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import compress, islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.errors import EvidenceError, HarnessError
from harness.progress import Listener
from harness.report.conclusion import expected
from harness.report.evidence import RunEvidence
from harness.store.coverage import Counts, Coverage, Injected
from harness.store.folder import RunFolder
from harness.store.result import RunResult
from harness.verdict import FaultVerdict

Part = TypeVar("Part")

TABLE = ".trend.parquet"
MESSAGE_EVERY = 2_000
"""Runs read between two messages: about ten seconds."""
DAMAGED = "damaged"
OF_LOSSES = ("lost-write", "unseen")
"""Checks that count each lost record once; other expected findings are duplicates, or show the same losses again."""
VERSION = {b"version": b"6"}
"""Version of the table; one of another version is made again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSummary:
    """One injection of a run."""

    kind: str
    confirmed: bool
    unavailable_ms: float | None
    """The longest time without an acknowledged write that overlaps it; None if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveSummary:
    """One measured objective of a run."""

    objective: str
    measured: float
    limit: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run."""

    name: str
    stamp: int
    """Modification time of its verdict, in nanoseconds; another one makes the row stale."""
    started_at: str
    """UTC, ISO 8601."""
    scenario: str
    system: str
    """The system under test; empty if unknown."""
    driver: str
    dag: str
    """Airflow DAG that started it; empty for the command line."""
    outcome: str
    """As `RunResult.outcome` has it, or damaged (unreadable)."""
    as_expected: bool
    """Whether it ended as declared when it was started, else held, or violated if a bug was planted."""
    duration_s: float
    expected_losses: int
    """Acknowledged records that were lost, as its settings allow."""
    faults: list[FaultSummary]
    objectives: list[ObjectiveSummary] = field(default_factory=list)
    """Those that could be measured."""

    @property
    def under_test(self) -> str:
        """System and driver, as text."""
        return ", ".join(filter(None, (self.system, self.driver))) or "unknown"

    @property
    def night(self) -> str:
        """The day, UTC, on which it began."""
        return self.started_at[:10]


_FAULT = pa.struct([("kind", pa.string()), ("confirmed", pa.bool_()), ("unavailable_ms", pa.float64())])
_OBJECTIVE = pa.struct(
    [("objective", pa.string()), ("measured", pa.float64()), ("limit", pa.float64()), ("unit", pa.string())]
)
_INJECTED = pa.struct(
    [
        ("fault", pa.string()),
        ("role", pa.string()),
        ("when", pa.string()),
        ("tried", pa.int64()),
        ("confirmed", pa.int64()),
    ]
)
_SEEN = pa.struct([("of", pa.string()), ("name", pa.string()), ("times", pa.int64())])
_OF_RUN = [
    ("name", pa.string()),
    ("stamp", pa.int64()),
    ("started_at", pa.string()),
    ("scenario", pa.string()),
    ("system", pa.string()),
    ("driver", pa.string()),
    ("dag", pa.string()),
    ("outcome", pa.string()),
    ("as_expected", pa.bool_()),
    ("duration_s", pa.float64()),
    ("expected_losses", pa.int64()),
]
_COLUMNS = pa.schema(
    [
        *_OF_RUN,
        ("faults", pa.list_(_FAULT)),
        ("objectives", pa.list_(_OBJECTIVE)),
        ("counted", pa.bool_()),
        ("injected", pa.list_(_INJECTED)),
        ("transitions", pa.list_(_SEEN)),
        ("errors", pa.list_(_SEEN)),
    ]
)
"""A run, and its coverage, which is only summed and never becomes objects."""
_ORDER = [("started_at", "ascending"), ("name", "ascending")]


@dataclass(frozen=True, slots=True)
class Summaries:
    """Many runs in the order of their starts, as a table."""

    _table: pa.Table

    def __len__(self) -> int:
        return len(self._table)

    def of_dags(self, wanted: Callable[[str], bool]) -> "Summaries":
        """Return the runs of those DAGs; an empty name stands for the command line."""
        dags = [dag for dag in self._table["dag"].unique().to_pylist() if wanted(dag)]
        return Summaries(self._table.filter(pc.is_in(self._table["dag"], pa.array(dags, pa.string()))))

    def named(self, names: Collection[str]) -> "Summaries":
        """Return the runs with these names."""
        return Summaries(self._table.filter(pc.is_in(self._table["name"], pa.array(names, pa.string()))))

    def rows(self) -> list[RunSummary]:
        """Return each run."""
        names = [name for name, _ in _OF_RUN]
        columns = [self._table[name].to_pylist() for name in names]
        return [
            RunSummary(**dict(zip(names, values, strict=True)), faults=faults, objectives=objectives)
            for *values, faults, objectives in zip(
                *columns, self._parts("faults", FaultSummary), self._parts("objectives", ObjectiveSummary), strict=True
            )
        ]

    def _parts(self, column: str, part: Callable[..., Part]) -> list[list[Part]]:
        """Return the parts of each run."""
        lists = self._table[column].combine_chunks()
        names = [each.name for each in lists.type.value_type]
        columns = [values.to_pylist() for values in lists.flatten().flatten()]
        parts = iter([part(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)])
        return [list(islice(parts, number)) for number in pc.list_value_length(lists).to_pylist()]

    def coverage(self) -> Coverage:
        """Return the summed coverage of those runs that have one."""
        injected = self._added_up("injected", ["fault", "role", "when"], ["tried", "confirmed"])
        return Coverage(
            runs=pc.sum(self._table["counted"]).as_py() or 0,
            injected=[Injected(**row) for row in injected],
            transitions=self._counts("transitions"),
            errors=self._counts("errors"),
        )

    def _counts(self, column: str) -> Counts:
        counts: Counts = {}
        for row in self._added_up(column, ["of", "name"], ["times"]):
            counts.setdefault(row["of"], {})[row["name"]] = row["times"]
        return counts

    def _added_up(self, column: str, keys: list[str], numbers: list[str]) -> list[dict[str, Any]]:
        parts = self._table[column].combine_chunks().flatten()
        added = pa.Table.from_struct_array(parts).group_by(keys).aggregate([(number, "sum") for number in numbers])
        by = [(key, "ascending") for key in keys]
        rows: list[dict[str, Any]] = added.rename_columns([*keys, *numbers]).sort_by(by).to_pylist()
        return rows


def joined(parts: Iterable[Summaries]) -> Summaries:
    """Return the runs of several folders."""
    return Summaries(pa.concat_tables([_COLUMNS.empty_table(), *(part._table for part in parts)]).sort_by(_ORDER))


def summaries(runs: Path, progress: Listener) -> Summaries:
    """Return every judged run in a folder; other folders are skipped.

    Raises:
        OSError: the folder cannot be read.
    """
    stamps = dict(_stamps(runs))
    table = _load_table(runs)
    names = table["name"].to_pylist()
    holds = [stamps.get(name) == stamp for name, stamp in zip(names, table["stamp"].to_pylist(), strict=True)]
    table = table.filter(pa.array(holds, pa.bool_()))
    missing = sorted(stamps.keys() - compress(names, holds))
    rows = []
    for number, name in enumerate(missing, 1):
        rows.append(_row(RunFolder(runs / name), stamps[name]))
        if number % MESSAGE_EVERY == 0:
            progress.message(f"{number:,} of {len(missing):,} runs read for the first time")
    if rows:
        table = pa.concat_tables([table, pa.Table.from_pylist(rows, _COLUMNS)]).sort_by(_ORDER)
        _save_table(runs, table)
    return Summaries(table)


def _stamps(runs: Path) -> Iterator[tuple[str, int]]:
    """Yield each run that has a verdict, with its modification time; links are not followed."""
    verdict = RunFolder(Path()).verdict.name
    with os.scandir(runs) as entries:
        for entry in entries:
            try:
                written = os.lstat(os.path.join(entry.path, verdict))  # noqa: PTH118  ten thousand times
            except (FileNotFoundError, NotADirectoryError):
                continue
            if stat.S_ISREG(written.st_mode) and not entry.is_symlink():
                yield entry.name, written.st_mtime_ns


def _row(folder: RunFolder, stamp: int) -> dict[str, Any]:
    """Return a run as a row of the table."""
    try:
        coverage = Coverage.load(folder.coverage)
    except EvidenceError:
        coverage = None
    return asdict(_summary(folder, stamp)) | {
        "counted": coverage is not None,
        "injected": [each.model_dump(mode="json") for each in coverage.injected] if coverage else [],
        "transitions": _seen(coverage.transitions) if coverage else [],
        "errors": _seen(coverage.errors) if coverage else [],
    }


def _seen(counts: Counts) -> list[dict[str, Any]]:
    return [
        {"of": of, "name": name, "times": times} for of, by_name in counts.items() for name, times in by_name.items()
    ]


def _summary(folder: RunFolder, stamp: int) -> RunSummary:
    try:
        result = RunResult.load(folder.verdict)
        gaps = _gaps(RunEvidence(folder))
    except (HarnessError, OSError, ValueError, pa.ArrowException):
        return _damaged(folder, stamp)
    origin = _origin(folder)
    outcome = result.outcome
    return RunSummary(
        name=folder.run_id,
        stamp=stamp,
        started_at=result.started_at,
        scenario=result.scenario,
        system=result.system,
        driver=result.driver,
        dag=origin.get("dag_id", ""),
        outcome=outcome,
        as_expected=outcome == (origin.get("expect") or expected(result.planted_bugs)),
        duration_s=result.duration_s,
        expected_losses=sum(check.expected for check in result.checks if check.check in OF_LOSSES),
        faults=[
            FaultSummary(
                kind=fault.fault,
                confirmed=fault.verdict is FaultVerdict.CONFIRMED,
                unavailable_ms=gaps.get(fault.injection),
            )
            for fault in result.faults
        ],
        objectives=[
            ObjectiveSummary(objective=each.objective, measured=each.measured, limit=each.limit, unit=each.unit)
            for each in result.objectives
            if each.measured is not None
        ],
    )


def _damaged(folder: RunFolder, stamp: int) -> RunSummary:
    return RunSummary(
        name=folder.run_id,
        stamp=stamp,
        started_at=datetime.fromtimestamp(stamp / 1e9, UTC).isoformat(),
        scenario=folder.run_id.rsplit("-", 2)[0],
        system="",
        driver="",
        dag=_origin(folder).get("dag_id", ""),
        outcome=DAMAGED,
        as_expected=False,
        duration_s=0.0,
        expected_losses=0,
        faults=[],
    )


def _origin(folder: RunFolder) -> dict[str, str]:
    """Return a scheduler's notes on the run that it started: texts by name; empty without a scheduler."""
    try:
        note = json.loads(folder.origin.read_bytes())
    except (OSError, ValueError):
        return {}
    return {name: text for name, text in note.items() if isinstance(text, str)} if isinstance(note, dict) else {}


def _gaps(evidence: RunEvidence) -> dict[int, float]:
    """Return the longest time without an acknowledged write that overlaps each injection, in milliseconds."""
    gaps = evidence.rows("availability", "from_ns")
    longest = {}
    for window in evidence.rows("fault_windows", "injection"):
        began, healed = window["injected_ns"], window["healed_ns"]
        under = [
            gap["gap_ms"]
            for gap in gaps
            if began is not None and gap["to_ns"] >= began and (healed is None or gap["from_ns"] <= healed)
        ]
        if under:
            longest[window["injection"]] = max(under)
    return longest


def _load_table(runs: Path) -> pa.Table:
    """Return the table of the last call; empty if there is none, or one of another version."""
    try:
        table = pq.read_table(runs / TABLE)
    except (OSError, pa.ArrowException):
        return _COLUMNS.empty_table()
    known = table.schema.equals(_COLUMNS) and table.schema.metadata == VERSION
    return table.replace_schema_metadata(None) if known else _COLUMNS.empty_table()


def _save_table(runs: Path, table: pa.Table) -> None:
    """Write the table as a cache for the next call; in a folder that is not writable it is built again each time."""
    temporary = runs / f"{TABLE}.{secrets.token_hex(4)}.tmp"
    try:
        pq.write_table(table.replace_schema_metadata(VERSION), temporary)
        temporary.replace(runs / TABLE)
    except OSError:
        temporary.unlink(missing_ok=True)
