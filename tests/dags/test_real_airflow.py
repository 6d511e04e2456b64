"""What is left of a run, and what it says of itself, when a real Airflow loses, stops or clears it in the middle."""

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.run.journal import open_injections, read_journal
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, entries
from harness.store.result import RunResult
from harness.system.pids import environment_values
from harness.verdict import EnvironmentVerdict, SystemVerdict
from tests.airflow_server import Airflow

pytestmark = [pytest.mark.airflow, pytest.mark.cluster, pytest.mark.rotating(1)]

SCENARIO = """\
name: {name}
description: A broker is paused for most of the time
cluster: {{brokers: 2}}
topics: [{{name: orders, partitions: 1, replication_factor: 2}}]
workloads: [{{kind: produce-consume, parameters: {{producers: 1, consumers: 1, rate_per_s: 20}}}}]
faults: [{{kind: pause, at_s: 0.2, duration_s: {pause_s}, target: "leader(orders,0)"}}]
duration_s: {duration_s}
"""
STEP_TIMEOUT_S = 300.0
"""For a machine under heavy load, where a dead worker is noticed after a minute; two idle cores take twenty seconds."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one scenario in a real Airflow."""

    airflow: Airflow
    name: str
    file: Path

    @property
    def folders(self) -> list[RunFolder]:
        """In the order in which they were made."""
        paths = self.airflow.server.settings.runs.glob(f"{self.name}-*-*")
        return [RunFolder(path) for path in sorted(paths) if path.is_dir()]

    def wait(self, number: int, phase: Phase, *, over: bool) -> RunFolder:
        """Wait until the run of this number has entered or ended a phase, and return its folder."""

        def reached() -> bool:
            return any(
                entry.phase is phase and entry.over >= over
                for folder in self.folders[number : number + 1]
                for entry in entries(folder)
            )

        what = f"run {number} has {'ended' if over else 'entered'} {phase}"
        self.airflow.wait(reached, what=what, timeout_s=STEP_TIMEOUT_S)
        return self.folders[number]

    def wait_for_fault(self) -> RunFolder:
        """Wait until the fault of the first run is in force."""
        self.airflow.wait(
            lambda: any(open_injections(read_journal(folder.journal)) for folder in self.folders),
            what="a fault in force",
            timeout_s=STEP_TIMEOUT_S,
        )
        return self.folders[0]

    def nothing_is_left(self) -> None:
        mine = [(pid, place) for pid, place in environment_values("CHAOS_CLUSTER") if Path(place).parent in self.roots]
        assert mine == []
        for folder in self.folders:
            assert open_injections(read_journal(folder.journal)) == []

    @property
    def roots(self) -> list[Path]:
        return [folder.root for folder in self.folders]


@pytest.fixture
def runs(airflow_server: Airflow, tmp_path: Path, request: pytest.FixtureRequest) -> Runs:
    """A scenario under a name of its own, long enough for something to happen in the middle."""
    name = f"broken-{abs(hash(request.node.name)) % 10**8}"
    file = tmp_path / f"{name}.yaml"
    file.write_text(SCENARIO.format(name=name, pause_s=50, duration_s=60))
    return Runs(airflow_server, name, file)


def verdict_of(folder: RunFolder) -> RunResult:
    result = RunResult.load(folder.verdict)
    assert result.verdicts.system is SystemVerdict.UNKNOWN, "nothing passes that did not come to its end"
    assert result.verdicts.environment is EnvironmentVerdict.CLEAN, result.residue
    return result


def stop_by_hand(airflow: Airflow, dag_id: str, run_id: str) -> None:
    airflow.api.patch(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}", json={"state": "failed"}).raise_for_status()


def skip_judging(airflow: Airflow, dag_id: str, run_id: str, task_id: str, map_index: int) -> None:
    """Mark a judge failed by hand, before or while it runs: the verdict stays UNKNOWN."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/{map_index}"
    airflow.api.patch(path, json={"new_state": "failed"}).raise_for_status()


def test_a_dag_run_that_is_marked_failed_in_drive_heals_stops_and_stays_failed(runs: Runs) -> None:
    run_id = runs.airflow.trigger("chaos_smoke", {"scenario": str(runs.file)})
    runs.wait_for_fault()
    stop_by_hand(runs.airflow, "chaos_smoke", run_id)
    folder = runs.wait(0, Phase.STOP, over=True)
    state = runs.airflow.end_of("chaos_smoke", run_id, timeout_s=STEP_TIMEOUT_S)
    runs.nothing_is_left()
    assert "the phase drive was interrupted" in map(str, verdict_of(folder).remarks)
    states = runs.airflow.task_states("chaos_smoke", run_id)
    assert (state, states["judge"], states["report"]) == ("failed", "skipped", "failed")
    assert folder.report.exists()


def test_a_worker_that_is_killed_in_drive_leaves_nothing_and_accuses_no_cluster(runs: Runs) -> None:
    run_id = runs.airflow.trigger("chaos_smoke", {"scenario": str(runs.file)})
    folder = runs.wait_for_fault()
    worker = next(entry.process for entry in entries(folder) if entry.phase is Phase.DRIVE)
    assert worker is not None
    os.kill(worker.pid, signal.SIGKILL)
    runs.airflow.end_of("chaos_smoke", run_id, timeout_s=STEP_TIMEOUT_S)
    runs.nothing_is_left()
    result = verdict_of(folder)
    assert "the phase drive was cut off" in map(str, result.remarks)
    assert {check.check for check in result.checks if check.verdict is SystemVerdict.FAIL} == set()
    assert result.checks, "it was judged"
    assert result.phase_durations_s[Phase.DRIVE] > 0
    assert runs.airflow.task_states("chaos_smoke", run_id)["drive"] == "failed"


def test_a_dag_run_that_is_cleared_in_drive_begins_anew_and_the_first_run_is_stopped(runs: Runs) -> None:
    run_id = runs.airflow.trigger("chaos_smoke", {"scenario": str(runs.file)})
    first = runs.wait_for_fault()
    answer = runs.airflow.api.post(f"/api/v2/dags/chaos_smoke/dagRuns/{run_id}/clear", json={"dry_run": False})
    answer.raise_for_status()
    second = runs.wait(1, Phase.DRIVE, over=False)
    assert json.loads(first.origin.read_text()) == json.loads(second.origin.read_text())
    assert "the phase drive was interrupted" in map(str, verdict_of(first).remarks)
    stop_by_hand(runs.airflow, "chaos_smoke", run_id)
    runs.wait(1, Phase.STOP, over=True)
    runs.airflow.end_of("chaos_smoke", run_id, timeout_s=STEP_TIMEOUT_S)
    runs.nothing_is_left()
    verdict_of(second)
    assert len(runs.folders) == 2


def test_the_runs_of_a_suite_follow_each_other(runs: Runs, tmp_path: Path) -> None:
    runs.file.write_text(SCENARIO.format(name=runs.name, pause_s=0.5, duration_s=2))
    suites = tmp_path / "suites.yaml"
    entry: dict[str, Any] = {"scenario": str(runs.file), "seed": 1}
    suites.write_text(json.dumps({"short": {"description": "Twice the same", "runs": [entry, entry | {"seed": 2}]}}))
    run_id = runs.airflow.trigger("chaos_nightly", {"suite": f"{suites}:short"})
    first = runs.wait(0, Phase.STOP, over=True)
    skip_judging(runs.airflow, "chaos_nightly", run_id, "run.judge", 0)
    second = runs.wait(1, Phase.STOP, over=True)
    names = runs.airflow.api.get(f"/api/v2/dags/chaos_nightly/dagRuns/{run_id}/taskInstances").json()["task_instances"]
    assert {f"{runs.name} · process · seed {seed}" for seed in (1, 2)} <= {task["rendered_map_index"] for task in names}
    stop_by_hand(runs.airflow, "chaos_nightly", run_id)
    runs.airflow.end_of("chaos_nightly", run_id, timeout_s=STEP_TIMEOUT_S)
    runs.nothing_is_left()
    began, ended = (
        [json.loads(line)["utc"] for line in folder.phases.read_text().splitlines() if f'"{phase}"' in line]
        for folder, phase in ((second, "start"), (first, "stop"))
    )
    assert max(ended) < min(began)
