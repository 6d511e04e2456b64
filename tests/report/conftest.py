"""A judged run folder, small enough to read, in the shape that the analysis leaves behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.analysis.tables.arrow import ARROW_TYPES
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import FINDING_COLUMNS
from harness.report.page import write
from harness.run.run import Run
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, RunResult, SuiteResult
from tests.simulation.scenarios import scenario
from tests.verdicts import CONFIRMED, PASS

SECOND = 1_000_000_000
START = 5_000 * SECOND


def write_fact(folder: RunFolder, name: str, *rows: dict[str, Any]) -> None:
    """Write a fact as the analysis does: a Parquet folder of that name; columns not given are null."""
    columns = TABLES[name].columns
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in columns])
    full = [{column.name: row.get(column.name) for column in columns} | {"run_id": folder.run_id} for row in rows]
    target = folder.facts / f"{name}.parquet"
    target.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(full, schema), target / "part-0.parquet")


def written(folder: RunFolder, *, alone: bool = False) -> Path:
    """Write the report of a run of a small scenario."""
    declared = scenario()
    return write(Run(folder=folder, scenario=declared, plan=make_plan(declared, 7)), alone=alone)


def send(second: float, took_ms: float, outcome: str = "ok", acks: int = -1) -> dict[str, Any]:
    """One send that began `second` seconds into the run."""
    invoke = START + int(second * SECOND)
    return {
        "topic": "orders",
        "partition": 0,
        "acks": acks,
        "outcome": outcome,
        "invoke_ns": invoke,
        "complete_ns": invoke + int(took_ms * 1e6),
    }


def reign(second: float, leader: int, epoch: int, *, unclean: bool = False) -> dict[str, Any]:
    """One leader epoch of orders-0 that began `second` seconds into the run."""
    return {
        "topic": "orders",
        "partition": 0,
        "leader": leader,
        "leader_epoch": epoch,
        "zxid": epoch,
        "time_ns": START + int(second * SECOND),
        "unclean": unclean,
    }


@pytest.fixture
def result() -> RunResult:
    return RunResult(
        run_id="kill-leader-1",
        scenario="kill-leader",
        driver="process",
        seed=7,
        started_at="2026-11-21T05:00:00Z",
        duration_s=31.5,
        phase_durations_s={"start": 3.2},
        faults=[FaultResult(injection=0, fault="kill", targets=["2"], verdict=CONFIRMED, detail="pid 41 is gone")],
        checks=[
            CheckResult(check="I10", promise="An acknowledged record is in every later leader's log", verdict=PASS),
            CheckResult(check="phantom", promise="No value is read that was not sent", verdict=PASS),
        ],
        suites=[SuiteResult(suite="leader_epochs", verdict=PASS, evaluated=4, unsuccessful=0)],
        counts={"sends": 1234},
    )


@pytest.fixture
def folder(tmp_path: Path, result: RunResult) -> RunFolder:
    folder = RunFolder(tmp_path / result.run_id)
    folder.root.mkdir()
    result.save(folder.verdict)
    write_fact(
        folder,
        "sends",
        *(send(second / 10, 3) for second in range(60)),
        send(6.5, 3000),
        send(6.6, 3000, "info"),
        send(7.0, 1, "fail"),
        *(send(second / 10, 4) for second in range(100, 150)),
    )
    write_fact(folder, "polls", *({"time_ns": START + second * SECOND, "offset": second} for second in range(15)))
    write_fact(folder, "leader_epochs", reign(-3, 2, 0), reign(9.5, -1, 1), reign(9.6, 3, 2, unclean=True))
    write_fact(
        folder,
        "isr_changes",
        {"topic": "orders", "partition": 0, "zxid": 1, "time_ns": START - SECOND, "new_isr": [1, 2, 3]},
        {"topic": "orders", "partition": 0, "zxid": 2, "time_ns": START + 10 * SECOND, "new_isr": [1, 3]},
    )
    write_fact(
        folder,
        "fault_windows",
        {
            "injection": 0,
            "fault": "kill",
            "targets": ["2"],
            "intended_ns": START + 6 * SECOND,
            "injected_ns": START + 6 * SECOND,
            "healed_ns": START + 12 * SECOND,
        },
    )
    write_fact(
        folder,
        "availability",
        {
            "topic": "orders",
            "partition": 0,
            "acks": -1,
            "from_ns": START + 6 * SECOND,
            "to_ns": START + 9 * SECOND,
            "gap_ms": 3000.0,
            "open": False,
            "attempts": 12,
        },
    )
    return folder


@pytest.fixture
def add_findings(folder: RunFolder) -> Callable[..., None]:
    """Write the findings of the run; columns not given are null."""

    def add(*rows: dict[str, Any]) -> None:
        schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in FINDING_COLUMNS])
        full = [{name: row.get(name) for name, _ in FINDING_COLUMNS} | {"run_id": folder.run_id} for row in rows]
        folder.findings.mkdir()
        pq.write_table(pa.Table.from_pylist(full, schema), folder.findings / "part-0.parquet")

    return add
