"""A night's event starts the DAG of the morning, in a real Airflow."""

import time
from typing import Any

import pytest

from tests.airflow_server import Airflow

pytestmark = pytest.mark.airflow
NIGHT: dict[str, Any] = {
    "suite": "nightly",
    "dag_run": "manual",
    "unexpected": 1,
    "entries": [
        {"run": "/runs/smoke", "scenario": "smoke", "outcome": "held", "expect": "held", "reason": ""},
        {"run": "/runs/pause", "scenario": "pause", "outcome": "violated", "expect": "held", "reason": "a lost write"},
    ],
}


def test_the_verdicts_of_a_night_start_the_morning(airflow_server: Airflow) -> None:
    airflow_server.server.settings.runs.mkdir(exist_ok=True)
    airflow_server.unpause("chaos_morning")
    (asset,) = airflow_server.api.get("/api/v2/assets", params={"name_pattern": "nightly-verdicts"}).json()["assets"]
    event = {"asset_id": asset["id"], "extra": NIGHT}
    airflow_server.api.post("/api/v2/assets/events", json=event).raise_for_status()

    def runs() -> list[str]:
        answer = airflow_server.api.get("/api/v2/dags/chaos_morning/dagRuns").raise_for_status().json()
        return [run["dag_run_id"] for run in answer["dag_runs"]]

    airflow_server.wait(lambda: bool(runs()), what="the morning", timeout_s=120)
    began = time.time()
    (run_id,) = runs()
    assert airflow_server.end_of("chaos_morning", run_id, timeout_s=300) == "success"
    # Airflow keeps the nights that other tests had while this DAG was paused, and hands them over too.
    unexpected = airflow_server.result("chaos_morning", run_id, "unexpected")
    assert [entry for entry in unexpected if entry in NIGHT["entries"]] == NIGHT["entries"][1:]
    log = airflow_server.log("chaos_morning", run_id, "unexpected")
    assert "/runs/pause is violated, expected was held: a lost write" in log
    page = airflow_server.server.settings.runs / "trend.html"
    assert page.stat().st_mtime > began - 300
