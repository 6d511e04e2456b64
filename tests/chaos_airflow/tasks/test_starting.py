"""How a task begins a run: in its turn, alone, and all or nothing."""

import fcntl
import json
import os
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos_airflow.tasks import starting
from chaos_airflow.tasks.request import RunRequest
from harness import phases
from harness.errors import ClusterError, ScenarioError
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, ends
from harness.store.result import RunResult
from tests.fake_cluster import FakeCluster

SMOKE = RunRequest(scenario="smoke", seed=7)
LIMIT = timedelta(minutes=15)


def context(dag_run: str = "manual", map_index: int = -1) -> Any:
    return {"ti": SimpleNamespace(dag_id="chaos_smoke", run_id=dag_run, task_id="start", map_index=map_index)}


class Machine:
    """Clusters in memory, alive from start to stop."""

    def __init__(self) -> None:
        self.alive: set[Path] = set()
        self.broken: set[str] = set()

    def driver_of(self, folder: RunFolder, _scenario: object) -> FakeCluster:
        machine = self

        class Cluster(FakeCluster):
            async def start(self, request: Any) -> Any:
                machine.alive.add(folder.root)
                return await super().start(request)

            async def stop(self) -> None:
                machine.alive.discard(folder.root)
                await super().stop()

        return Cluster(root=folder.root, broken=self.broken)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()

    async def collect(*_arguments: Any) -> None: ...

    monkeypatch.setattr(phases, "driver_of", made.driver_of)
    monkeypatch.setattr(phases, "collect_from", collect)
    monkeypatch.setattr(starting, "supervised", lambda folder: folder.root in made.alive)
    return made


def begin(runs: Path, task: Any, request: RunRequest = SMOKE) -> RunFolder | None:
    return starting.begin(request, runs, task, drive_timeout=LIMIT)


def test_a_run_knows_which_task_made_it(machine: Machine, tmp_path: Path) -> None:
    folder = begin(tmp_path, context(map_index=2))
    assert folder is not None
    assert json.loads(folder.origin.read_text())["map_index"] == 2
    assert machine.alive == {folder.root}


def test_another_run_has_to_wait_until_the_first_cluster_is_gone(machine: Machine, tmp_path: Path) -> None:
    first = begin(tmp_path, context("one"))
    assert first is not None
    assert begin(tmp_path, context("two")) is None
    assert machine.alive == {first.root}
    phases.stop(first)
    assert begin(tmp_path, context("two")) is not None


def test_two_tasks_never_start_at_the_same_time(machine: Machine, tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert begin(tmp_path, context()) is None
    os.close(other)
    assert begin(tmp_path, context()) is not None


def test_a_cleared_task_closes_what_it_started_and_begins_a_new_run(machine: Machine, tmp_path: Path) -> None:
    first, second = begin(tmp_path, context()), begin(tmp_path, context())
    assert first is not None
    assert second is not None
    assert first.root != second.root
    assert machine.alive == {second.root}
    assert [ends(first)[phase].error for phase in (Phase.COLLECT, Phase.STOP, Phase.REPORT)] == [""] * 3
    result = RunResult.load(first.verdict)
    assert (result.exit_code.outcome, "report" in result.phase_durations_s) == ("inconclusive", True), "it is over"


def test_a_run_that_the_command_line_made_is_let_be(machine: Machine, tmp_path: Path) -> None:
    folder = begin(tmp_path, context())
    assert folder is not None
    folder.origin.unlink()
    assert begin(tmp_path, context()) is None
    assert machine.alive == {folder.root}


def test_a_start_that_fails_stops_what_it_started(machine: Machine, tmp_path: Path) -> None:
    machine.broken = {"start"}
    with pytest.raises(ClusterError, match="start is broken"):
        begin(tmp_path, context())
    (folder,) = map(RunFolder, tmp_path.iterdir())
    assert machine.alive == set()
    assert ends(folder)[Phase.STOP].error == ""
    assert json.loads(folder.verdict.read_text())["verdicts"]["system"] == "UNKNOWN"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(RunRequest(scenario="smok"), "unknown scenario", id="no such scenario"),
        pytest.param(RunRequest(scenario="smoke", driver="dockr"), "unknown driver", id="no such driver"),
        pytest.param(
            RunRequest(scenario="smoke", set=["duration_s=3600"]), "could need 1:09:30", id="longer than the task"
        ),
        pytest.param(
            RunRequest(scenario="mix", set=["duration_s=400", "mix.count=40"]),
            "could need 0:25:12",
            id="longer with what is postponed, and spares",
        ),
    ],
)
def test_a_wrong_request_makes_no_folder(machine: Machine, tmp_path: Path, request_: RunRequest, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        begin(tmp_path, context(), request_)
    assert list(tmp_path.iterdir()) == []
