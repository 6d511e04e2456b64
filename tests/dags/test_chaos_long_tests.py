"""The long tests on a real Airflow without any service up: shape, and nights of a few seconds by `dag.test()`."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos_airflow.tasks import long_tests
from tests.dags.small_checkout import small_checkout

HEAVY = {"pyspark", "great_expectations", "docker", "confluent_kafka", "kazoo", "kafka", "tools"}

PARSE = """
import json, sys
import airflow.sdk
import chaos_long_tests
dag = chaos_long_tests.long_tests
print("RESULT", json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "tasks": {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks},
    "pools": {task.task_id: task.pool for task in dag.tasks},
    "without_timeout": [task.task_id for task in dag.tasks if task.execution_timeout is None],
    "retried": [task.task_id for task in dag.tasks if task.retries],
    "dag": [dag.catchup, dag.max_active_runs, dag.dagrun_timeout],
}))
"""

RUN = """
import json, sys
from pathlib import Path
from chaos_airflow.tasks import long_tests
long_tests.ROOT = Path(sys.argv[1])
import chaos_long_tests
run = chaos_long_tests.long_tests.test(run_conf={"scale": 0.5, "seed": 7})
tasks = {f"{ti.task_id}[{ti.map_index}]": [ti.state, ti.rendered_map_index] for ti in run.get_task_instances()}
print("RESULT", json.dumps({"state": run.state, "tasks": tasks}))
"""


def python(code: str, *arguments: str, environment: dict[str, str]) -> tuple[dict[str, Any], str]:
    """Run a snippet in a fresh interpreter with this Airflow; return what it made, and all that it said."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("RESULT ")), done.stdout + done.stderr


def test_the_steps_are_mapped_over_one_task_and_the_page_follows(airflow: dict[str, str]) -> None:
    parsed, _ = python(PARSE, environment=airflow)
    assert HEAVY & set(parsed["modules"]) == set()
    assert parsed["tasks"] == {"steps": [], "step": ["steps"], "page": ["step"]}
    assert parsed["pools"]["step"] == "chaos"
    assert (parsed["without_timeout"], parsed["retried"]) == ([], [])
    assert parsed["dag"] == [False, 1, None]


@pytest.mark.rotating(3, of="dag.test()")
def test_a_night_in_which_one_step_fails_has_its_page(airflow: dict[str, str], tmp_path: Path) -> None:
    result, output = python(RUN, str(small_checkout(tmp_path)), environment=airflow)
    assert result["state"] == "failed"
    assert result["tasks"] == {
        "steps[-1]": ["success", None],
        "step[0]": ["success", "passing"],
        "step[1]": ["failed", "failing"],
        "page[-1]": ["failed", None],
    }
    (page,) = tmp_path.glob("artifacts/long-tests/*/index.html")
    assert [word in page.read_text() for word in ("7 0.5", "found it", "not run")] == [True, True, False]
    assert "found it" in output, "the task's log has the last lines of its step"
    assert f"page  {page}" in output


@pytest.mark.rotating(3, of="dag.test()")
def test_without_a_checkout_the_first_task_says_what_is_missing(airflow: dict[str, str], tmp_path: Path) -> None:
    result, output = python(RUN, str(tmp_path), environment=airflow)
    assert (result["state"], result["tasks"]["steps[-1]"][0]) == ("failed", "failed")
    assert f"the long tests need a checkout with its tests: {tmp_path}/tools/nightly is missing" in output


@pytest.mark.timeout(120)
def test_a_task_that_is_ended_lets_its_step_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_tests, "ROOT", small_checkout(tmp_path))
    context: Any = {
        "params": {"scale": 1, "seed": None},
        "dag_run": SimpleNamespace(run_after=datetime(2026, 11, 22, 2, tzinfo=UTC)),
    }
    folder = tmp_path / "artifacts" / "long-tests" / "20261122T020000"
    begun = folder / "begun"
    folder.mkdir(parents=True)
    os.mkfifo(begun)

    def time_limit(line: str) -> None:
        begun.read_bytes()  # as soon as the step has it open for writing
        raise TimeoutError

    with pytest.raises(TimeoutError):
        long_tests.run_night(context, time_limit, "--step", "waiting")
    assert (folder / "cleaned up").exists()
    assert not (folder / "waiting.json").exists()
