"""A run for CI on a real Airflow without any service up: parsing, shape, and one whole run by `dag.test()`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

ROOT = Path(__file__).resolve().parent.parent.parent
HEAVY = {"pyspark", "great_expectations", "docker", "confluent_kafka"}

PARSE = """
import json, sys
import chaos_smoke
dag = chaos_smoke.smoke
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "tasks": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
    "setups": [task.task_id for task in dag.tasks if task.is_setup],
    "teardowns": [task.task_id for task in dag.tasks if task.is_teardown],
    "without_timeout": [task.task_id for task in dag.tasks if task.execution_timeout is None],
    "slow_to_go_on": [task.task_id for task in dag.tasks if task.retry_delay.total_seconds() > 30],
}))
"""

IN_CI = """
import json, sys
from tests.dags import faked_phases
from chaos_airflow.ci import main
codes = {}
for outcome in OUTCOMES:
    faked_phases.install({"smoke": [outcome]})
    sys.argv = ["chaos_smoke.py", "--runs", f"{FOLDER}/{outcome}", "--junit", f"{FOLDER}/{outcome}.xml", "--seed", "7"]
    try:
        main("chaos_smoke", "smoke")
    except SystemExit as exit:
        codes[outcome] = exit.code
print("RESULT", json.dumps(codes))
"""
OUTCOMES = {
    "PASS": (0, {}),
    "FAIL": (1, {"smoke.checks": (Failure, "FAIL it is")}),
    "UNKNOWN": (3, {"smoke.checks": (Error, "UNKNOWN it is")}),
    "lost in drive": (4, {"smoke.evidence": (Error, "the phase drive failed: the cluster is gone")}),
    "refused": (2, {"smoke.start": (Skipped, "the driver process cannot do this here")}),
}
"""What a run comes to → exit code, and in JUnit XML: a violation is a failure, no answer and a hole in the evidence are
errors, what cannot be done here is skipped."""

RUN = """
import json, sys
import chaos_smoke
run = chaos_smoke.smoke.test(run_conf=json.loads(sys.argv[1]))
print("RESULT", json.dumps({"state": run.state, "tasks": {ti.task_id: ti.state for ti in run.get_task_instances()}}))
"""


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
    result: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return result


@pytest.fixture(scope="module")
def parsed(airflow: dict[str, str]) -> dict[str, Any]:
    done = python(PARSE, environment=airflow, timeout_s=120)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_parsing_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert HEAVY & set(parsed["modules"]) == set()


def test_the_teardown_follows_the_drive_and_judging_follows_it(parsed: dict[str, Any]) -> None:
    assert parsed["tasks"] == {
        "start": [],
        "drive": ["start"],
        "collect_and_stop": ["drive", "start"],
        "judge": ["collect_and_stop"],
        "expectations": ["judge"],
        "report": ["collect_and_stop", "expectations", "judge"],
    }
    assert (parsed["setups"], parsed["teardowns"]) == (["start"], ["collect_and_stop", "report"])
    assert parsed["without_timeout"] == []
    assert parsed["slow_to_go_on"] == [], "a task that is cleared while it runs waits for its retry_delay"


@pytest.mark.cluster
def test_the_smoke_scenario_holds(airflow: dict[str, str]) -> None:
    result = result_of(python(RUN, json.dumps({"scenario": "smoke", "seed": 1}), environment=airflow, timeout_s=400))
    (run,) = Path(airflow["AIRFLOW__KAFKA_CHAOS__RUNS"]).glob("smoke-*")
    assert result["state"] == "success", (run / "verdict.json").read_text()
    assert json.loads((run / "verdict.json").read_text())["verdicts"] == {
        "fault": "CONFIRMED",
        "system": "PASS",
        "environment": "CLEAN",
    }
    assert (run / "report.html").exists()


@pytest.mark.rotating(3, of="dag.test()")
def test_a_run_for_ci_ends_with_an_exit_code_and_junit_xml(airflow: dict[str, str], tmp_path: Path) -> None:
    code = f"OUTCOMES, FOLDER = {list(OUTCOMES)!r}, {str(tmp_path)!r}\n{IN_CI}"
    assert result_of(python(code, environment=airflow, timeout_s=400)) == {
        outcome: OUTCOMES[outcome][0] for outcome in OUTCOMES
    }
    for outcome, (_, cases) in OUTCOMES.items():
        assert {
            case.classname: (type(result), result.message)
            for suite in JUnitXml.fromfile(str(tmp_path / f"{outcome}.xml"))
            for case in suite
            for result in case.result
        } == cases
    (report,) = (tmp_path / "PASS").glob("*/report.html")
    assert report.read_text(encoding="utf-8") == "a page that stands alone", "it is sent"


@pytest.mark.parametrize("junit", [pytest.param("none/junit.xml", id="no folder"), pytest.param("", id="a folder")])
def test_where_junit_xml_cannot_be_written_nothing_is_begun(tmp_path: Path, junit: str) -> None:
    command = [sys.executable, str(ROOT / "dags" / "chaos_smoke.py"), "--junit", str(tmp_path / junit)]
    command += ["--runs", str(tmp_path / "runs")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 2, done.stdout[-3000:] + done.stderr[-3000:]
    assert "--junit" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.airflow
@pytest.mark.rotating(3, of="dag.test()")
def test_the_program_needs_nothing_but_the_checkout(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "PYTHON"))}
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, str(ROOT / "dags" / "chaos_smoke.py"), "--scenario", "smok"]
    command += ["--runs", str(tmp_path / "runs"), "--junit", str(tmp_path / "junit.xml")]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 2, done.stdout[-3000:] + done.stderr[-3000:]
    assert "unknown scenario 'smok' (did you mean smoke?)" in (tmp_path / "junit.xml").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["junit.xml"], "its Airflow home is gone again"
