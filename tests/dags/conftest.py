"""An Airflow without any service up, for tests that parse DAGs and run them by `dag.test()`."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def database(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh metadata database to be copied, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    made = (base.parent if hasattr(pytestconfig, "workerinput") else base) / "airflow.db"
    with made.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if made.exists():
            return made
        home = tmp_path_factory.mktemp("migrated")
        environment = {**os.environ, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
        command = [sys.executable, "-m", "airflow", "db", "migrate"]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
        (home / made.name).replace(made)
    return made


@pytest.fixture(scope="module")
def airflow(request: pytest.FixtureRequest, database: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An Airflow home of its own, as environment variables; its only DAG is the one that the module is named after.

    `dag.test()` reads every DAG of the folder first, and the large forms take seconds.
    """
    home = tmp_path_factory.mktemp("airflow")
    shutil.copyfile(database, home / "airflow.db")
    name = request.path.name.removeprefix("test_").removeprefix("chaos_")
    dags = home / "dags"
    dags.mkdir()
    (dags / f"chaos_{name}").symlink_to(ROOT / "dags" / f"chaos_{name}")
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__KAFKA_CHAOS__RUNS": str(home / "runs"),
        "AIRFLOW__KAFKA_CHAOS__SCENARIOS": str(tmp_path_factory.getbasetemp()),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "dags"), str(ROOT / "plugins"), str(ROOT))),
    }
