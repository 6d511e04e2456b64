"""What Airflow gets from the plugin file, and what loading it costs the scheduler."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos_airflow import links
from chaos_airflow.runs import Origin

ROOT = Path(__file__).resolve().parents[2]
LOAD = """
import json, sys
import airflow.plugins_manager, airflow.sdk.definitions.param
from airflow.sdk import BaseOperatorLink
before = set(sys.modules)
import kafka_chaos_plugin
print(json.dumps(sorted(set(sys.modules) - before)))
"""
HEAVY = {"fastapi", "pyspark", "great_expectations", "docker", "confluent_kafka", "plotly", "pyarrow", "jinja2"}


def test_loading_the_plugin_makes_no_pages(tmp_path: Path) -> None:
    path = os.pathsep.join((str(ROOT / "plugins"), str(ROOT)))
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", "-c", LOAD]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    modules = json.loads(done.stdout.splitlines()[-1])
    assert HEAVY.isdisjoint(name.partition(".")[0] for name in modules)
    assert "harness.phases" not in modules


def test_every_destination_has_a_route_of_its_own() -> None:
    views = links.external_views()
    assert {view["destination"] for view in views} == {"nav", "dag_run", "task_instance"}
    assert len({view["url_route"] for view in views}) == len(views)
    assert all(view["href"].startswith("/kafka-chaos/") for view in views)


def test_what_airflow_fills_in_reaches_it_as_it_is() -> None:
    hrefs = {view["destination"]: view["href"] for view in links.external_views()}
    assert hrefs["dag_run"] == "/kafka-chaos/of?dag_id={DAG_ID}&run_id={RUN_ID}"
    assert (
        hrefs["task_instance"]
        == "/kafka-chaos/of?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"
    )


@pytest.mark.parametrize(
    ("base_url", "root"),
    [("", ""), ("http://localhost:8080", ""), ("https://h/airflow/", "/airflow"), ("https://h/a/b", "/a/b")],
)
def test_addresses_begin_where_airflow_does(monkeypatch: pytest.MonkeyPatch, base_url: str, root: str) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    origin = Origin(dag_id="d", run_id="a/b+c", task_id="run.start", map_index=3)
    assert links.task_instance(origin) == f"{root}/dags/d/runs/a%2Fb%2Bc/tasks/run.start/mapped/3"
    assert links.run_page("r") == f"{root}/kafka-chaos/runs/r"
    assert links.list_page(scenario="", run_id="a+b") == f"{root}/kafka-chaos/?run_id=a%2Bb"


def test_the_button_of_a_task_leads_to_its_run() -> None:
    from airflow.sdk.types import TaskInstanceKey

    key = TaskInstanceKey(dag_id="chaos_nightly", task_id="run.drive", run_id="a+b", try_number=1, map_index=2)
    link = links.ChaosRunLink().get_link(None, ti_key=key)  # type: ignore[arg-type]
    assert link == "/kafka-chaos/of?dag_id=chaos_nightly&run_id=a%2Bb&task_id=run.drive&map_index=2"
