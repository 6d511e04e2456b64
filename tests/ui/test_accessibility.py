"""Every page of the plugin: axe-core finds nothing grave on it, on a wide screen and a narrow one, light and dark.

What Great Expectations makes, Data Docs, and Airflow's own pages around these are not looked at.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.airflow_server import Airflow
from tests.chaos_airflow.run_folders import NIGHTLY, begun, made, phase, swept, with_documents
from tests.report.test_live import add, sent
from tests.ui.accessible import flaws
from tests.ui.conftest import Person
from tests.verdicts import FAIL, UNKNOWN

pytestmark = [pytest.mark.airflow, pytest.mark.rotating(1, of="pages", together=True)]
OF_NIGHT = f"?dag_id={NIGHTLY['dag_id']}&run_id={NIGHTLY['run_id'].replace('+', '%2B')}"
SWEPT = "20261118T060000"
HELD, BROKEN, UNPROVEN, CUT_OFF, DAMAGED, GOING_ON = (f"smoke-20261118T0{hour}0000-0000000a" for hour in range(6))


@pytest.fixture(scope="module", autouse=True)
def runs(airflow_server: Airflow) -> Path:
    """A run of each kind; all but three are of one night."""
    folder = airflow_server.server.settings.runs
    folder.mkdir(exist_ok=True)
    with_documents(made(folder, HELD, origin=NIGHTLY))
    made(folder, BROKEN, origin=NIGHTLY | {"map_index": 1}, system=FAIL, planted_bugs=["acks-all-on-append"])
    made(
        folder,
        UNPROVEN,
        origin=NIGHTLY | {"map_index": 2},
        system=UNKNOWN,
        residue=["a process"],
        remarks=[{"text": "a hole"}],
    )
    begun(folder, CUT_OFF, phase("drive", "started", when=datetime(2026, 11, 18, tzinfo=UTC)))
    made(folder, DAMAGED).verdict.write_text("{", encoding="utf-8")
    going_on = begun(folder, GOING_ON, phase("drive", "started"))
    add(going_on.operations_of("p"), *sent(0, 100.0, 0.1), *sent(1, 103.0, 0.1))
    swept(folder, SWEPT, 1, 2)
    return folder


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("", id="the list"),
        pytest.param("?scenario=nothing", id="a list of nothing"),
        pytest.param(OF_NIGHT, id="a night"),
        pytest.param("trend", id="all nights"),
        pytest.param(f"runs/{HELD}", id="a run that held"),
        pytest.param(f"runs/{BROKEN}", id="a run that broke a promise"),
        pytest.param(f"runs/{UNPROVEN}", id="a run that proved nothing"),
        pytest.param(f"runs/{CUT_OFF}", id="a run that was cut off"),
        pytest.param(f"runs/{DAMAGED}", id="a damaged run"),
        pytest.param(f"runs/{GOING_ON}", id="a run that goes on"),
        pytest.param(f"compare?run={HELD}&run={BROKEN}", id="runs side by side"),
        pytest.param(f"runs/{HELD}/view/report", id="what is around a report"),
        pytest.param("sweeps", id="sweeps"),
        pytest.param(f"sweeps/{SWEPT}", id="a sweep"),
        pytest.param(f"sweeps/{SWEPT}/71", id="a schedule"),
        pytest.param("runs/nothing", id="a refusal"),
    ],
)
def test_a_page_keeps_nobody_from_reading_it(person: Person, axe: Path, place: str) -> None:
    person.goto(f"/kafka-chaos/{place}")
    status = person.driver.execute_script("return performance.getEntriesByType('navigation')[0].responseStatus")
    assert status == (404 if place == "runs/nothing" else 200)
    assert flaws(person, axe) == {}
