"""The launcher's Airflow: it answers, it has read every DAG, and it admits no user without a password."""

import stat

import httpx
import pytest

from chaos_airflow.standalone.server import ANSWER_TIMEOUT_S
from tests.airflow_server import Airflow

pytestmark = pytest.mark.airflow


def test_every_dag_file_is_read_without_an_error(airflow_server: Airflow) -> None:
    answer = airflow_server.api.get("/api/v2/importErrors").raise_for_status().json()
    assert answer["import_errors"] == []


def test_one_run_at_a_time_by_the_pool(airflow_server: Airflow) -> None:
    assert airflow_server.api.get("/api/v2/pools/chaos").raise_for_status().json()["slots"] == 1


def test_nobody_gets_in_without_the_password(airflow_server: Airflow) -> None:
    with httpx.Client(base_url=airflow_server.base_url, trust_env=False, timeout=ANSWER_TIMEOUT_S) as stranger:
        assert stranger.get("/api/v2/dags").status_code == httpx.codes.UNAUTHORIZED
        guess = stranger.post("/auth/token", json={"username": "admin", "password": "admin"})
    assert guess.status_code == httpx.codes.UNAUTHORIZED
    assert stat.S_IMODE(airflow_server.server.settings.passwords_file.stat().st_mode) == 0o600
