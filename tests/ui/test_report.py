"""The report as a person reads it: the timeline and the findings lead to each other, in the dark and on a telephone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains

from expectations import site
from expectations.data_docs import make_offline
from harness.progress import Silent
from harness.report.trend.page import render
from harness.report.trend.summary import summaries
from harness.store.folder import LIBRARY, RunFolder
from harness.store.result import SuiteResult
from tests.expectations.test_site import judged
from tests.report.conftest import add_findings, folder, result, written
from tests.ui.accessible import flaws
from tests.ui.conftest import NARROW, WIDTH, Person
from tests.verdicts import FAIL, PASS

__all__ = ["add_findings", "folder", "result"]
pytestmark = [pytest.mark.browser, pytest.mark.rotating(1, of="pages", together=True)]
PLACE = {"check": "I10", "severity": "violation", "topic": "orders", "partition": 0, "leader_epoch": 2}


@pytest.fixture
def reader(chromium: webdriver.Chrome, folder: RunFolder, add_findings: Callable[..., None]) -> Iterator[Person]:
    """A person with an open report of a run with findings, more than are unfolded."""
    add_findings(*({**PLACE, "message": f"record {offset} is lost", "offset": offset} for offset in range(8)))
    person = Person(chromium, written(folder).as_uri())
    look(person, WIDTH, "light")
    yield person
    person.own_screen()


def look(person: Person, width: int, mode: str) -> None:
    """Open the page on a screen of this width in this mode."""
    person.screen(width, mode)
    person.driver.get("about:blank")
    person.goto("")
    person.find("#chart .scatterlayer .trace")


def seen(person: Person, expression: str) -> Any:
    """Return what an expression of JavaScript says of the page."""
    return person.driver.execute_script(f"return {expression}")


def shown_s(person: Person) -> tuple[float, float]:
    """Return from when to when the timeline shows the run."""
    first, last = seen(person, "document.getElementById('chart').layout.xaxis.range")
    return first, last


def test_a_finding_leads_to_its_instant_and_the_mark_there_back_to_it(reader: Person) -> None:
    reader.find("#finding-I10-violation-0 a").click()
    reader.wait(lambda _: shown_s(reader)[1] - shown_s(reader)[0] < 3, "the timeline around the finding")
    first, last = shown_s(reader)
    assert first < 9.6 < last
    ActionChains(reader.driver).move_to_element(reader.find("#chart .subplot.xy .points path")).click().perform()
    reader.wait(lambda driver: "#finding-I10-violation-" in driver.current_url, "the address of a finding")
    assert reader.find(":target").is_displayed(), "whatever it is folded in has unfolded"
    reader.named("the whole run", "button").click()
    reader.wait(lambda _: shown_s(reader)[0] == 0 and shown_s(reader)[1] > 14, "the whole run")


def test_what_the_legend_names_can_be_hidden(reader: Person) -> None:
    visible = "document.getElementById('chart').data.find(trace => trace.name === 'acknowledged').visible"
    button = reader.find("button[data-name='acknowledged']")
    button.click()
    reader.wait(lambda _: seen(reader, visible) is False, "no acknowledged operations")
    assert button.get_attribute("aria-pressed") == "false"


def test_the_page_and_its_timeline_are_dark_where_the_reader_wants_it(reader: Person) -> None:
    colours = (
        "[getComputedStyle(document.body).backgroundColor, "
        "getComputedStyle(document.querySelector('#chart .xtick text')).fill]"
    )
    light = seen(reader, colours)
    look(reader, WIDTH, "dark")
    dark = seen(reader, colours)
    assert all(lightness(one) > 200 for one in (light[0], dark[1]))
    assert all(lightness(one) < 60 for one in (light[1], dark[0]))


def lightness(colour: str) -> float:
    """Return how light a colour is, from 0 to 255."""
    numbers = [float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    return sum(numbers) / 3


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_on_a_telephone_nothing_is_cut_and_rows_of_tables_are_cards(reader: Person, mode: str) -> None:
    look(reader, NARROW, mode)
    assert seen(reader, "document.documentElement.scrollWidth") <= NARROW
    cut = "[...document.querySelectorAll('.rows td')].filter(cell => cell.scrollWidth > cell.clientWidth + 1).length"
    assert seen(reader, cut) == 0
    assert seen(reader, "getComputedStyle(document.querySelector('.rows tr:has(td)')).display") == "block"
    titles = "[...document.querySelectorAll('#chart .annotation-text')].map(text => text.getBoundingClientRect().right)"
    assert max(seen(reader, titles)) <= NARROW
    reader.shot(f"report-{NARROW}-{mode}")


def test_a_page_without_its_library_says_what_to_do(reader: Person, folder: RunFolder) -> None:
    beside: list[Path] = [path for path in folder.root.parent.iterdir() if LIBRARY.fullmatch(path.name)]
    beside[0].unlink()
    reader.driver.get("about:blank")
    reader.goto("")
    assert "chaos report --single-file" in reader.find("#no-library").text


@pytest.mark.parametrize(
    "broken", [pytest.param(True, id="a broken promise"), pytest.param(False, id="nothing broken")]
)
def test_the_report_keeps_nobody_from_reading_it(
    chromium: webdriver.Chrome, folder: RunFolder, add_findings: Callable[..., None], axe: Path, broken: bool
) -> None:
    if broken:
        add_findings({**PLACE, "message": "record 1 is lost", "offset": 1, "evidence": ["appended at 1", "read at 2"]})
    person = Person(chromium, written(folder).as_uri())
    person.goto("")
    assert flaws(person, axe) == {}


def test_the_page_of_all_nights_keeps_nobody_from_reading_it(
    chromium: webdriver.Chrome, folder: RunFolder, axe: Path
) -> None:
    page = folder.root.parent / "trend.html"
    rows = summaries(folder.root.parent, Silent())
    page.write_text(render(rows, lambda run: f"{run.name}/report.html"), encoding="utf-8")
    person = Person(chromium, page.as_uri())
    person.goto("")
    assert flaws(person, axe) == {}


def test_the_index_of_data_docs_and_that_of_many_runs_keep_nobody_from_reading_them(
    chromium: webdriver.Chrome, folder: RunFolder, axe: Path
) -> None:
    run = judged(folder.root, leader_epochs=PASS, records=FAIL)
    results = [SuiteResult.model_validate(one) for one in json.loads(run.expectations.read_text(encoding="utf-8"))]
    make_offline(run.data_docs, run.run_id, results)
    for page in (run.data_docs / "index.html", site.write([run], folder.root.parent / "site")):
        person = Person(chromium, page.as_uri())
        person.goto("")
        assert flaws(person, axe) == {}
