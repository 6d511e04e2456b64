"""The CI door on a real Airflow without any service up: parsing, shape, and one whole run by `dag.test()`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
HEAVY = {"pyspark", "great_expectations", "docker", "confluent_kafka"}

PARSE = """
import json, sys
import airflow.sdk
import chaos_smoke
dag = chaos_smoke.smoke
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "tasks": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
    "setups": [task.task_id for task in dag.tasks if task.is_setup],
    "teardowns": [task.task_id for task in dag.tasks if task.is_teardown],
    "without_timeout": [task.task_id for task in dag.tasks if task.execution_timeout is None],
}))
"""

RUN = """
import json, sys
import chaos_smoke
run = chaos_smoke.smoke.test(run_conf=json.loads(sys.argv[1]))
print("RESULT", json.dumps({"state": run.state, "tasks": {ti.task_id: ti.state for ti in run.get_task_instances()}}))
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An Airflow home of its own with a fresh metadata database, as environment variables."""
    home = tmp_path_factory.mktemp("airflow")
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "CHAOS_RUNS": str(home / "runs"),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "dags"), str(ROOT / "plugins"), str(ROOT))),
    }
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    return environment


def python(
    code: str, *arguments: str, environment: dict[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    """Run a snippet in a fresh interpreter with this Airflow."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what the snippet printed after RESULT."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stdout[-3000:] + done.stderr[-3000:]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return found


@pytest.fixture(scope="module")
def parsed(airflow: dict[str, str]) -> dict[str, Any]:
    done = python(PARSE, environment=airflow, timeout_s=120)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_parsing_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert HEAVY & set(parsed["modules"]) == set()


def test_the_teardown_follows_the_drive_and_judging_follows_both(parsed: dict[str, Any]) -> None:
    assert parsed["tasks"] == {
        "start": [],
        "drive": ["start"],
        "collect_and_stop": ["drive", "start"],
        "judge": ["collect_and_stop", "drive"],
        "expectations": ["judge"],
        "report": ["collect_and_stop", "expectations", "judge"],
    }
    assert (parsed["setups"], parsed["teardowns"]) == (["start"], ["collect_and_stop"])
    assert parsed["without_timeout"] == []


@pytest.mark.cluster
@pytest.mark.spark
def test_the_smoke_scenario_holds(airflow: dict[str, str]) -> None:
    result = result_of(python(RUN, json.dumps({"scenario": "smoke", "seed": 1}), environment=airflow, timeout_s=400))
    (run,) = Path(airflow["CHAOS_RUNS"]).glob("smoke-*")
    assert result["state"] == "success", (run / "verdict.json").read_text()
    assert json.loads((run / "verdict.json").read_text())["verdicts"] == {
        "fault": "CONFIRMED",
        "system": "PASS",
        "environment": "CLEAN",
    }
    assert (run / "report.html").exists()


@pytest.mark.cluster
def test_a_scenario_that_is_wrong_fails_before_anything_starts(airflow: dict[str, str]) -> None:
    result = result_of(python(RUN, json.dumps({"scenario": "no-such"}), environment=airflow, timeout_s=120))
    assert result["state"] == "failed"
    assert not list(Path(airflow["CHAOS_RUNS"]).glob("no-such*"))
