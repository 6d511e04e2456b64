"""The reaper's DAG on a real Airflow without any service up: parsing, and one round by `dag.test()`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.store.folder import RunFolder
from harness.system.pids import ProcessIdentity, identify

HEAVY = {"pyspark", "great_expectations", "docker", "confluent_kafka", "kazoo", "harness"}
HALF_MADE = "smoke-20260101T000000-00000007"

PARSE = """
import json, sys
import airflow.sdk
import chaos_reaper
dag = chaos_reaper.reaper
print(json.dumps({
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    "catchup": dag.catchup,
    "max_active_runs": dag.max_active_runs,
    "timeouts_s": [task.execution_timeout.total_seconds() for task in dag.tasks],
}))
"""

RUN = """
import chaos_reaper
run = chaos_reaper.reaper.test()
print("STATE", run.state)
"""

STUCK = """
from airflow.sdk.exceptions import AirflowFailException
from harness.reaper.result import Fate, Item, ItemKind, ReapResult
from chaos_airflow.tasks import reaping

stuck = Item(kind=ItemKind.VOLUME, name="data", run="short", fate=Fate.FAILED, detail="it is in use")
reaping.reap = lambda runs, credentials: ReapResult(items=[stuck])
try:
    reaping.reap_runs()
except AirflowFailException as error:
    print("SAID", error)
"""


@pytest.fixture(scope="module")
def airflow(airflow: dict[str, str]) -> dict[str, str]:
    """The same, where scratch folders of other users are out of sight."""
    scratch = Path(airflow["AIRFLOW_HOME"], "tmp")
    scratch.mkdir()
    return airflow | {"TMPDIR": str(scratch)}


def python(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=400, check=False
    )


@pytest.fixture
def left(airflow: dict[str, str]) -> Any:
    """A process marked as of a run in the configured folder that is no more, and a half-made folder."""
    runs = Path(airflow["AIRFLOW__KAFKA_CHAOS__RUNS"])
    half_made = runs / HALF_MADE
    half_made.mkdir(parents=True)
    os.utime(half_made, (0, 0))
    mark = str(RunFolder(runs / "gone").cluster)
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, "CHAOS_CLUSTER": mark})
    yield identify(process.pid)
    process.kill()
    process.wait()


def test_parsing_imports_nothing_heavy(airflow: dict[str, str]) -> None:
    done = python(PARSE, airflow)
    assert done.returncode == 0, done.stderr[-3000:]
    parsed = json.loads(done.stdout.splitlines()[-1])
    assert HEAVY & set(parsed["modules"]) == set()
    assert (parsed["catchup"], parsed["max_active_runs"], parsed["timeouts_s"]) == (False, 1, [1800.0])


@pytest.mark.rotating(3, of="dag.test()")
def test_a_round_removes_what_is_left_and_names_it_in_its_log(airflow: dict[str, str], left: ProcessIdentity) -> None:
    done = python(RUN, airflow)
    output = done.stdout + done.stderr
    assert "STATE success" in output, output[-3000:]
    assert not left.alive()
    assert not (Path(airflow["AIRFLOW__KAFKA_CHAOS__RUNS"]) / HALF_MADE).exists()
    assert f"removed: process {left.pid} (sleep) of gone" in output
    assert f"removed: folder {airflow['AIRFLOW__KAFKA_CHAOS__RUNS']}/{HALF_MADE}" in output


def test_a_round_fails_when_something_could_not_be_removed(airflow: dict[str, str]) -> None:
    assert "SAID failed: volume data of short: it is in use" in python(STUCK, airflow).stdout
