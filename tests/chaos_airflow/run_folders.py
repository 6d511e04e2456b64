"""Small run folders made by hand, for tests of what the plugin shows."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.scenario.file import load_scenario
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, RunResult, SuiteResult
from harness.sweep.summary import summarize
from harness.sweep.sweep import Sweep, new_sweep, verdict_of
from harness.verdict import FaultVerdict, SystemVerdict
from tests.verdicts import CONFIRMED, FAIL, PASS

FINISHED = {"start": 1.0, "drive": 20.0, "collect": 1.0, "stop": 1.0, "judge": 30.0, "report": 1.0}
NIGHTLY = {"dag_id": "chaos_nightly", "run_id": "scheduled__2026-11-20T02:00:00+00:00", "task_id": "run.start"}
SWEEP = {"dag_id": "chaos_simulate", "run_id": "manual__2026-11-20T03:00:00+00:00", "task_id": "sweep"}
SMOKE = {"dag_id": "chaos_smoke", "run_id": "manual__1", "task_id": "start"}


def result_of(
    run_id: str, *, system: SystemVerdict = PASS, fault: FaultVerdict = CONFIRMED, **changes: Any
) -> RunResult:
    """Return the result of a run that is over."""
    fault_result = FaultResult(injection=0, fault="kill", targets=["1"], verdict=fault, detail="process gone")
    check = CheckResult(check="lost-write", promise="What was acknowledged is there.", verdict=system, reason="")
    suite = SuiteResult(suite="leader_epochs", verdict=PASS, evaluated=4, unsuccessful=0)
    values: dict[str, Any] = {
        "run_id": run_id,
        "scenario": run_id.rsplit("-", 2)[0],
        "driver": "process",
        "seed": 7,
        "started_at": "2026-11-20T02:00:01.000+00:00",
        "duration_s": 54.0,
        "phase_durations_s": FINISHED,
        "faults": [fault_result],
        "checks": [check],
        "suites": [suite],
        "counts": {},
    }
    return RunResult.model_validate(values | changes)


def made(runs: Path, run_id: str, *, origin: dict[str, Any] | None = None, **changes: Any) -> RunFolder:
    """Make the folder of a run that is over."""
    folder = RunFolder(runs / run_id)
    folder.root.mkdir(parents=True)
    result_of(run_id, **changes).save(folder.verdict)
    folder.scenario.write_text("name: x\n", encoding="utf-8")
    if origin is not None:
        folder.origin.write_text(json.dumps(origin), encoding="utf-8")
    return folder


def begun(runs: Path, run_id: str, *lines: dict[str, Any]) -> RunFolder:
    """Make the folder of a run of which no more than these lines of the phase log are known."""
    folder = RunFolder(runs / run_id)
    folder.root.mkdir(parents=True)
    if lines:
        folder.phases.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def swept(runs: Path, name: str, *broken: int, planted_bugs: Sequence[str] = ()) -> Sweep:
    """Make the folder of a sweep of three schedules, with the seeds 70 to 72; these numbers broke a promise."""
    scenario = load_scenario("smoke").model_copy(update={"planted_bugs": [*planted_bugs]})
    place = runs / "sweeps" / name
    sweep = new_sweep(scenario, 7, 3, place, "chaos run smoke --driver simulated")
    (place / "origin.json").write_text(json.dumps(SWEEP), encoding="utf-8")
    verdicts = [
        verdict_of(number=number, seed=70 + number, digest=str(number), result=result_of("smoke-1", system=system))
        for number in range(3)
        for system in [FAIL if number in broken else PASS]
    ]
    sweep.verdicts.write_text("".join(f"{verdict.model_dump_json()}\n" for verdict in verdicts), encoding="utf-8")
    summary = summarize(sweep, verdicts, simulated_s=2.0, judged_s=30.0)
    sweep.summary.write_text(summary.model_dump_json(), encoding="utf-8")
    return sweep


def phase(name: str, event: str, *, when: datetime | None = None, **more: Any) -> dict[str, Any]:
    """Return a line of the phase log; now, unless said otherwise."""
    return {"phase": name, "event": event, "utc": (when or datetime.now(UTC)).isoformat(), **more}


def with_documents(folder: RunFolder) -> None:
    """Add a report and Data Docs."""
    folder.report.write_text("<script>drawCharts()</script>", encoding="utf-8")
    folder.data_docs.mkdir()
    (folder.data_docs / "index.html").write_text("<h1>Data Docs</h1>", encoding="utf-8")
    (folder.data_docs / "secret.py").write_text("no page", encoding="utf-8")
