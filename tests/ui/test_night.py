"""The morning after a night, as a person goes through it: from what is red to its cause and how to replay it."""

import json
from pathlib import Path

import pytest

from harness.store.folder import RunFolder
from tests.airflow_server import Airflow
from tests.chaos_airflow.run_folders import NIGHTLY, made
from tests.ui.conftest import Person
from tests.verdicts import FAIL, PASS

pytestmark = pytest.mark.airflow
DAG = NIGHTLY["dag_id"]
RUN, OTHER = "kill-leader-20261117T020000-0000000b", "smoke-20261117T020100-0000000c"
CAUSE, REPLAY = "What was acknowledged is there.", f"chaos replay {RUN}"


@pytest.fixture
def night(airflow_server: Airflow) -> str:
    """A night that failed, for one of its two runs broke a promise: its id in Airflow."""
    path = f"/api/v2/dags/{DAG}/dagRuns"
    answer = airflow_server.api.post(path, json={"logical_date": None, "conf": {}}).raise_for_status()
    run_id: str = answer.json()["dag_run_id"]
    airflow_server.api.patch(f"{path}/{run_id}", json={"state": "failed"}).raise_for_status()
    runs: Path = airflow_server.server.settings.runs
    origin = NIGHTLY | {"run_id": run_id}
    for name, index, system in ((RUN, 0, FAIL), (OTHER, 1, PASS)):
        folder = runs / name
        if not folder.exists():
            made(runs, name, system=system)
        RunFolder(folder).origin.write_text(json.dumps(origin | {"map_index": index}), encoding="utf-8")
    return run_id


def test_from_a_red_square_of_airflow_to_cause_and_replay_are_two_clicks(person: Person, night: str) -> None:
    person.goto(f"/dags/{DAG}")
    person.find(f"a[href$='/dags/{DAG}/runs/{night}/']").click()
    person.named("Chaos run", "a").click()
    with person.inside("iframe[title='Chaos run']"):
        shown = person.find(".story").text
        assert CAUSE in shown
        assert REPLAY in shown


@pytest.mark.usefixtures("night")
def test_from_a_red_cell_of_all_nights_to_cause_and_replay_is_one_click(person: Person) -> None:
    person.goto("/kafka-chaos/trend")
    person.find(f".cell a.bad[href$='/runs/{RUN}']").click()
    assert CAUSE in person.find("table").text
    assert person.find(".again code").text == REPLAY


@pytest.mark.usefixtures("night")
def test_all_nights_and_the_list_of_runs_lead_to_one_another(person: Person) -> None:
    person.goto("/kafka-chaos/")
    person.named("All nights", "a").click()
    person.find("table.rows svg")
    assert all(line.get_attribute("points") for line in person.driver.find_elements("tag name", "polyline"))
    person.named("Chaos runs", "a").click()
    person.find("table.runs")
