"""A connection of Airflow's allows runs on an existing cluster, and brings the credentials for it."""

import json
import os
from pathlib import Path

import pytest

from chaos_airflow.tasks.connections import connection_id, owned
from chaos_airflow.tasks.reaping import credentials
from harness.scenario.file import read_scenario, scenario_yaml
from harness.scenario.model import Scenario
from harness.store.folder import RunFolder

pytestmark = pytest.mark.airflow

CLUSTER_ID = "its-id"
OF_A_CLUSTER = {
    "id": CLUSTER_ID,
    "bootstrap_servers": "one:9092",
    "brokers": [{"id": 1, "host": "one"}],
    "client": {"security.protocol": "SASL_SSL", "sasl.username": "me", "sasl.password": "${env:KAFKA_PASSWORD}"},
}


def scenario(**cluster: object) -> Scenario:
    external = {"system": "external", "driver": "external"} if cluster else {}
    least = {
        "name": "mine",
        "description": "Load alone",
        "topics": [{"name": "orders", "partitions": 1, "replication_factor": 1}],
        "workloads": [{"kind": "produce-consume"}],
        "cluster": {"brokers": 1} | ({"external": cluster} if cluster else {}),
    }
    return read_scenario(json.dumps(least | external), "mine.yaml")


def test_a_scenario_that_starts_its_own_cluster_takes_no_connection() -> None:
    assert owned(scenario())


def test_without_a_connection_of_its_id_a_cluster_is_not_disturbed() -> None:
    assert not owned(scenario(**OF_A_CLUSTER))


def test_its_extras_are_the_variables_that_the_cluster_file_names_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extra = json.dumps({"KAFKA_PASSWORD": "secret", "PATH": "/nowhere"})
    connection = json.dumps({"conn_type": "generic", "extra": extra})
    monkeypatch.setenv(f"AIRFLOW_CONN_{connection_id(CLUSTER_ID).upper()}", connection)
    monkeypatch.setenv("KAFKA_PASSWORD", "")
    path = os.environ["PATH"]
    assert owned(scenario(**OF_A_CLUSTER))
    assert (os.environ["KAFKA_PASSWORD"], os.environ["PATH"]) == ("secret", path)


def test_the_reaper_has_the_credentials_of_a_run_while_it_closes_it_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connection = json.dumps({"conn_type": "generic", "extra": json.dumps({"KAFKA_PASSWORD": "secret"})})
    monkeypatch.setenv(f"AIRFLOW_CONN_{connection_id(CLUSTER_ID).upper()}", connection)
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    run, unreadable = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "unreadable")
    run.root.mkdir()
    run.scenario.write_text(scenario_yaml(scenario(**OF_A_CLUSTER)), encoding="utf-8")
    with credentials(run):
        assert os.environ["KAFKA_PASSWORD"] == "secret"
    with credentials(unreadable):
        assert "KAFKA_PASSWORD" not in os.environ
