"""An Airflow without any service up, for tests that parse DAGs and run them by `dag.test()`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
        "AIRFLOW__KAFKA_CHAOS__RUNS": str(home / "runs"),
        "AIRFLOW__KAFKA_CHAOS__SCENARIOS": str(tmp_path_factory.getbasetemp()),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "dags"), str(ROOT / "plugins"), str(ROOT))),
    }
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=300)
    return environment
