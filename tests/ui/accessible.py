"""What axe-core finds in a page: barriers for people that see, hear or point differently."""

from pathlib import Path

from selenium import webdriver

from tests.ui.conftest import NARROW, WIDTH, Person

SCREENS = [(width, mode) for mode in ("light", "dark") for width in (WIDTH, NARROW)]
UNFOLD = "for (const folded of document.querySelectorAll('details')) folded.open = true"
ASK = """
const [grave, done] = arguments;
const told = ({impact, id, help, nodes}) => nodes.map(({target}) => `${impact} ${id}: ${help}: ${target}`);
axe.run(document, {resultTypes: ["violations"]})
  .then(({violations}) => done(violations.filter(({impact}) => grave.includes(impact)).flatMap(told)))
  .catch(error => done([String(error)]))
"""
GRAVE = ["serious", "critical"]


def flaws(person: Person, axe: Path) -> dict[str, list[str]]:
    """Return what is grave on the page that is open, all of it unfolded, by screen and mode; nothing that is well."""
    by_screen = {}
    try:
        for width, mode in SCREENS:
            person.screen(width, mode)
            person.driver.refresh()
            person.find("h1, iframe")
            by_screen[f"{width} px, {mode}"] = _flaws(person.driver, axe.read_text(encoding="utf-8"))
    finally:
        person.own_screen()
    return {screen: flaws_of_screen for screen, flaws_of_screen in by_screen.items() if flaws_of_screen}


def _flaws(driver: webdriver.Chrome, axe: str) -> list[str]:
    driver.execute_script(UNFOLD)
    driver.execute_script(axe)
    descriptions: list[str] = driver.execute_async_script(ASK, GRAVE)
    return descriptions
