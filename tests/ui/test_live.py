"""The page of a run that goes on, as a person sees it: it follows the run by itself, on a telephone too."""

from pathlib import Path

import pytest

from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from tests.airflow_server import Airflow
from tests.chaos_airflow.run_folders import begun, made, phase, result_of
from tests.report.test_live import add, sent, step
from tests.ui.conftest import NARROW, Person

pytestmark = pytest.mark.airflow
DRAWN = "return [...document.querySelectorAll('.live polyline')].every(line => line.getAttribute('points'))"
"""Asked at one blow: the page draws them anew every other second."""
RUN, OVER = "smoke-20261120T020000-00000007", "smoke-20261120T010000-00000008"


@pytest.fixture
def runs(airflow_server: Airflow) -> Path:
    folder = airflow_server.server.settings.runs
    folder.mkdir(exist_ok=True)
    return folder


def test_it_shows_what_goes_on_and_becomes_the_page_of_a_run_that_is_over(person: Person, runs: Path) -> None:
    folder = begun(runs, RUN, phase("drive", "started"))
    folder.plan.write_text(make_plan(load_scenario("smoke"), 7).to_json(), encoding="utf-8")
    folder.zookeeper.write_text('{"type": "set", "path": "/brokers/ids/1"}\n', encoding="utf-8")
    add(folder.operations_of("p"), *sent(0, 100.0, 0.1), *sent(1, 103.0, 0.1))
    add(folder.journal, step(0, "intended", at_s=101.0))
    person.goto(f"/kafka-chaos/runs/{RUN}")
    person.wait(lambda _: "1 of 1 registered" in "".join(person.texts("[data-now]")), "the broker")
    person.wait(lambda driver: len(driver.find_elements("css selector", ".live .window")) == 4, "the fault, four times")
    person.wait(lambda _: any("kill 1 (1.0 s to now)" in text for text in person.texts(".live p")), "since when")
    assert person.driver.execute_script(DRAWN), "every line has points"
    with folder.zookeeper.open("a", encoding="utf-8") as history:
        history.write('{"type": "delete", "path": "/brokers/ids/1"}\n')
    person.wait(lambda _: "0 of 1 registered" in "".join(person.texts("[data-now]")), "no broker any more")
    person.shot("going-on")
    result_of(RUN).save(folder.verdict)
    person.wait(lambda _: person.texts(".card b") == ["CONFIRMED", "PASS", "CLEAN"], "its verdicts")
    assert person.texts("[data-now]") == []


@pytest.mark.parametrize("place", [pytest.param("", id="the list"), pytest.param(f"runs/{OVER}", id="a run")])
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_on_a_telephone_nothing_is_cut(person: Person, runs: Path, place: str, mode: str) -> None:
    if not (runs / OVER).exists():
        made(runs, OVER)
    person.screen(NARROW, mode)
    try:
        person.goto(f"/kafka-chaos/{place}")
        person.find("h1")
        assert person.driver.execute_script("return document.documentElement.scrollWidth") <= NARROW
        person.shot(f"{'run' if place else 'list'}-{NARROW}-{mode}")
    finally:
        person.own_screen()
