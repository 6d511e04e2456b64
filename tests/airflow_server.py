"""A real Airflow for tests, started as `make airflow` starts it, with a home, a port and a runs folder of its own."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from chaos_airflow.standalone.home import Settings
from chaos_airflow.standalone.server import Server, serving
from harness.cluster.ports import PortReservations
from tests.shared import shared

LOOK_EVERY_S = 0.5
TAIL_LINES = 20
ENDED = frozenset({"success", "failed"})
OPTIONS = {
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # no DAG is edited meanwhile
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",  # a JVM may start on a busy machine meanwhile
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "2",
}


@dataclass(frozen=True, slots=True)
class Airflow:
    """A running Airflow, as tests use it."""

    server: Server
    api: httpx.Client
    """The REST API as the user admin."""

    @property
    def base_url(self) -> str:
        return self.server.base_url

    def unpause(self, dag_id: str) -> None:
        self.api.patch(f"/api/v2/dags/{dag_id}", json={"is_paused": False}).raise_for_status()

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None) -> str:
        """Start a run, and return its id."""
        self.unpause(dag_id)
        answer = self.api.post(f"/api/v2/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": conf or {}})
        return str(answer.raise_for_status().json()["dag_run_id"])

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        content: dict[str, Any] = self.api.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}").raise_for_status().json()
        return content

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Return the state of each task; of a mapped one as `task_id[index]`."""
        answer = self.api.get(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances", params={"limit": 500})
        return {
            task["task_id"] if task["map_index"] < 0 else f"{task['task_id']}[{task['map_index']}]": task["state"]
            for task in answer.raise_for_status().json()["task_instances"]
        }

    def result(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """Return what a task left in XCom."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value"
        return self.api.get(path).raise_for_status().json()["value"]

    def log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1, map_index: int = -1) -> str:
        """Return the log of a task as the API gives it, as text."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}"
        answer = self.api.get(path, params={"map_index": map_index}, headers={"Accept": "application/x-ndjson"})
        return answer.raise_for_status().text

    def failed_since(self, time_s: float) -> Iterator[str]:
        """Yield the end of the log of every task that began since then and failed."""
        since = datetime.fromtimestamp(time_s, UTC).isoformat()
        params: dict[str, str | list[str]] = {"start_date_gte": since, "state": ["failed", "up_for_retry"]}
        answer = self.api.get("/api/v2/dags/~/dagRuns/~/taskInstances", params=params).raise_for_status().json()
        for task in answer["task_instances"]:
            dag_id, run_id, task_id = task["dag_id"], task["dag_run_id"], task["task_id"]
            log = self.log(dag_id, run_id, task_id, task["try_number"], task["map_index"])
            yield "\n".join([f"{dag_id} {run_id} {task_id}: {task['state']}", *log.splitlines()[-TAIL_LINES:]])

    def wait(self, look: Callable[[], bool], *, what: str, timeout_s: float) -> None:
        """Look until it is so."""
        deadline = time.monotonic() + timeout_s
        while not look():
            assert self.server.keeper.running, f"Airflow has ended: {self.server.settings.log}"
            assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s; tasks: {self.unfinished()}"
            time.sleep(LOOK_EVERY_S)

    def unfinished(self) -> list[str]:
        """Return what stands where, of everything that has not come to its end."""
        params: dict[str, int | list[str]] = {
            "limit": 100,
            "state": ["none", "scheduled", "queued", "running", "restarting", "up_for_reschedule"],
        }
        answer = self.api.get("/api/v2/dags/~/dagRuns/~/taskInstances", params=params).raise_for_status().json()
        return [
            f"{task['dag_id']} {task['dag_run_id']} {task['task_id']}: {task['state']}, try {task['try_number']}"
            for task in answer["task_instances"]
        ]

    def end_of(self, dag_id: str, run_id: str, *, timeout_s: float) -> str:
        """Wait until a run has ended, and return its state."""
        self.wait(
            lambda: self.run(dag_id, run_id)["state"] in ENDED, what=f"end of {dag_id} {run_id}", timeout_s=timeout_s
        )
        return str(self.run(dag_id, run_id)["state"])


@pytest.fixture(scope="session")
def airflow_server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """One Airflow for all tests that are marked `airflow`; users `admin` and `viewer`."""
    home = tmp_path_factory.mktemp("airflow-server")
    with shared(pytestconfig, "airflow") as running:
        (port,) = running.enter_context(PortReservations()).reserve(1)  # it listens half a minute later
        settings = Settings(
            home=home / "home",
            runs=home / "runs",
            port=port,
            users={"admin": "admin", "viewer": "viewer"},
            options=OPTIONS | {"AIRFLOW__KAFKA_CHAOS__SCENARIOS": str(tmp_path_factory.getbasetemp())},
        )
        server = running.enter_context(serving(settings))
        yield Airflow(server, running.enter_context(server.client()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what failed in Airflow with a test that fails; by then its logs are gone."""
    report = yield
    airflow = getattr(item, "funcargs", {}).get("airflow_server")
    if report.failed and airflow is not None:
        try:
            failed = "\n\n".join(airflow.failed_since(call.start))
        except httpx.HTTPError as error:
            failed = f"Airflow does not answer: {error}"
        report.sections.append(("Tasks that failed in Airflow", failed or "none"))
    return report
