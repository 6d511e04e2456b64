"""A run in one row, and all runs of a folder as rows, which are kept in a small table beside them.

The table, `.trend.parquet`, is made of the runs and can always be made again: a row stands as long as the run's
`verdict.json` is the one that it was made of. So nothing has to be appended when a run ends, and runs that are judged
again, moved or removed are right at the next look. A look at 10,000 runs that are known costs one listing, a stat each
and one file; Spark would take longer to start.
"""

import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.contracts.targets import parse_target
from harness.errors import HarnessError
from harness.progress import Listener
from harness.report.evidence import RunEvidence
from harness.scenario.plan import load_plan
from harness.store.folder import RunFolder
from harness.store.result import RunResult
from harness.verdict import ExitCode

TABLE = ".trend.parquet"
TOLD_EVERY = 500
HELD, VIOLATED, DAMAGED = "held", "violated", "damaged"
OUTCOMES = {ExitCode.HELD: HELD, ExitCode.VIOLATED: VIOLATED, ExitCode.INCONCLUSIVE: "inconclusive"}
"""By exit code; everything else is an environment that was not clean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSummary:
    """One injection of a run."""

    kind: str
    role: str
    """Whom it was aimed at: leader, controller, ... as the plan says."""
    confirmed: bool
    unavailable_ms: float | None
    """The longest time without an acknowledged write of those that fall into it in part; None where there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run."""

    name: str
    stamp: int
    """When its verdict was written, nanoseconds; another one makes the row stale."""
    started_at: str
    """UTC, ISO 8601."""
    scenario: str
    dag: str
    """Airflow's DAG that started it; empty for the command line."""
    outcome: str
    """held, violated, inconclusive, environment or damaged (nothing can be read of it)."""
    as_expected: bool
    """Whether it ended as whoever started it said or else held, and was violated where a bug was planted."""
    duration_s: float
    expected_losses: int
    """Anomalies that its settings allow."""
    faults: list[FaultSummary]

    @property
    def night(self) -> str:
        """The day, UTC, on which it began."""
        return self.started_at[:10]


_FAULT = pa.struct(
    [("kind", pa.string()), ("role", pa.string()), ("confirmed", pa.bool_()), ("unavailable_ms", pa.float64())]
)
_COLUMNS = pa.schema(
    [
        ("name", pa.string()),
        ("stamp", pa.int64()),
        ("started_at", pa.string()),
        ("scenario", pa.string()),
        ("dag", pa.string()),
        ("outcome", pa.string()),
        ("as_expected", pa.bool_()),
        ("duration_s", pa.float64()),
        ("expected_losses", pa.int64()),
        ("faults", pa.list_(_FAULT)),
    ]
)


def summaries(runs: Path, progress: Listener) -> list[RunSummary]:
    """Return a row of every judged run in a folder, by their beginning; what is no run is left out.

    Raises:
        OSError: the folder cannot be read.
    """
    stamps = dict(_stamps(runs))
    known = {row.name: row for row in _kept(runs) if stamps.get(row.name) == row.stamp}
    missing = sorted(stamps.keys() - known.keys())
    for number, name in enumerate(missing, 1):
        known[name] = _summary(RunFolder(runs / name), stamps[name])
        if number % TOLD_EVERY == 0:
            progress.message(f"{number:,} of {len(missing):,} runs read for the first time")
    rows = sorted(known.values(), key=lambda row: (row.started_at, row.name))
    if missing:
        _keep(runs, rows)
    return rows


def _stamps(runs: Path) -> Iterator[tuple[str, int]]:
    """Yield each run that has a verdict, with the instant at which that was written; links could lead anywhere."""
    with os.scandir(runs) as entries:
        for entry in entries:
            try:
                written = RunFolder(Path(entry.path)).verdict.lstat()
            except (FileNotFoundError, NotADirectoryError):
                continue
            if stat.S_ISREG(written.st_mode) and not entry.is_symlink():
                yield entry.name, written.st_mtime_ns


def _summary(folder: RunFolder, stamp: int) -> RunSummary:
    try:
        result = RunResult.load(folder.verdict)
        roles = _roles(folder)
        gaps = _gaps(RunEvidence(folder))
    except (HarnessError, OSError, ValueError, pa.ArrowException):
        return _damaged(folder, stamp)
    origin = _origin(folder)
    outcome = OUTCOMES.get(result.verdicts.exit_code, "environment")
    return RunSummary(
        name=folder.run_id,
        stamp=stamp,
        started_at=result.started_at,
        scenario=result.scenario,
        dag=origin.get("dag_id", ""),
        outcome=outcome,
        as_expected=outcome == origin.get("expect", VIOLATED if result.planted_bugs else HELD),
        duration_s=result.duration_s,
        expected_losses=sum(check.expected for check in result.checks),
        faults=[
            FaultSummary(
                kind=fault.fault,
                role=roles.get(fault.injection, ""),
                confirmed=fault.verdict.name == "CONFIRMED",
                unavailable_ms=gaps.get(fault.injection),
            )
            for fault in result.faults
        ],
    )


def _roles(folder: RunFolder) -> dict[int, str]:
    """Return by injection whom the plan aims at; nothing where there is no plan any more."""
    if not folder.plan.exists():
        return {}
    return {fault.injection: parse_target(fault.target).role.value for fault in load_plan(folder.plan).faults}


def _damaged(folder: RunFolder, stamp: int) -> RunSummary:
    return RunSummary(
        name=folder.run_id,
        stamp=stamp,
        started_at=datetime.fromtimestamp(stamp / 1e9, UTC).isoformat(),
        scenario=folder.run_id.rsplit("-", 2)[0],
        dag=_origin(folder).get("dag_id", ""),
        outcome=DAMAGED,
        as_expected=False,
        duration_s=0.0,
        expected_losses=0,
        faults=[],
    )


def _origin(folder: RunFolder) -> dict[str, str]:
    """Return what a scheduler noted of the run that it started: texts by name; nothing where none did."""
    try:
        note = json.loads(folder.origin.read_bytes())
    except (OSError, ValueError):
        return {}
    return {name: text for name, text in note.items() if isinstance(text, str)} if isinstance(note, dict) else {}


def _gaps(evidence: RunEvidence) -> dict[int, float]:
    """Return the longest time without an acknowledged write that falls into each injection in part, in milliseconds."""
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


def _kept(runs: Path) -> list[RunSummary]:
    """Return the rows of the last look; none where there is no table, or one that another version wrote."""
    try:
        table = pq.read_table(runs / TABLE)
    except (OSError, pa.ArrowException):
        return []
    if not table.schema.equals(_COLUMNS):
        return []
    return [
        RunSummary(**row | {"faults": [FaultSummary(**fault) for fault in row["faults"]]}) for row in table.to_pylist()
    ]


def _keep(runs: Path, rows: Sequence[RunSummary]) -> None:
    """Write the table for the next look; where that cannot be, as in somebody else's folder, it is made again then."""
    temporary = runs / f"{TABLE}.{secrets.token_hex(4)}.tmp"
    try:
        pq.write_table(pa.Table.from_pylist([asdict(row) for row in rows], _COLUMNS), temporary)
        temporary.replace(runs / TABLE)
    except OSError:
        temporary.unlink(missing_ok=True)
