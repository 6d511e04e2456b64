"""A person at a browser: headless Chromium that is logged in to a real Airflow, and what it sees as pictures."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from selenium import webdriver
from selenium.common.exceptions import (
    InvalidSelectorException,
    InvalidSessionIdException,
    JavascriptException,
    NoSuchWindowException,
    TimeoutException,
    WebDriverException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support import expected_conditions as seen
from selenium.webdriver.support.ui import WebDriverWait

from tests.airflow_server import Airflow
from tests.beside import beside

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
ARTIFACTS = Path("artifacts")
WIDTH, NARROW, HEIGHT = 1400, 400, 1000
TIMEOUT_S = 120.0
Seen = TypeVar("Seen")
TEXTS = """return [...document.querySelectorAll(arguments[0])]
    .map(element => element.checkVisibility() ? (element.innerText ?? element.textContent).trim() : "")"""
LASTING = (
    InvalidSelectorException,
    InvalidSessionIdException,
    JavascriptException,
    NoSuchWindowException,
    TimeoutException,
)
"""What does not pass while a person waits."""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@dataclass(frozen=True, slots=True)
class Person:
    """Looks at pages, clicks and types; waits for what should be there, up to `TIMEOUT_S`.

    The driver fails in several ways if a page is drawn or loaded again between a question and its answer: a stale
    element, a node that "does not belong to the document", a loader that has changed. Each of these means "not yet".
    """

    driver: webdriver.Chrome
    base_url: str

    def goto(self, path: str) -> None:
        self.driver.get(self.base_url + path)

    def screen(self, width: int, mode: str) -> None:
        """Look at everything from now on through a screen of this width in this mode, light or dark."""
        screen = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": mode}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def own_screen(self) -> None:
        """Look through the browser's own window again."""
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def wait(self, look: Callable[[webdriver.Chrome], object], what: str, timeout_s: float = TIMEOUT_S) -> None:
        self._until(look, f"{what}: not seen", timeout_s)

    def find(self, selector: str) -> WebElement:
        """Return the first element of a CSS selector when it can be seen."""
        place = (By.CSS_SELECTOR, selector)
        return self._until(seen.visibility_of_element_located(place), selector)

    def named(self, text: str, kind: str = "*") -> WebElement:
        """Return the element that says exactly this when it can be clicked."""
        place = (By.XPATH, f"//{kind}[normalize-space()='{text}']")
        return self._until(seen.element_to_be_clickable(place), text)

    def texts(self, selector: str) -> list[str]:
        """Return what the elements of a CSS selector say now, asked in one call: the page may be drawn again."""
        return self.driver.execute_script(TEXTS, selector)  # type: ignore[no-any-return]

    def _until(
        self, look: Callable[[webdriver.Chrome], Seen | Literal[False]], what: str, timeout_s: float = TIMEOUT_S
    ) -> Seen:
        """Return what `look` gives as soon as it is something."""
        refusals: list[str] = []

        def asked(driver: webdriver.Chrome) -> Seen | Literal[False]:
            try:
                return look(driver)
            except LASTING:
                raise
            except WebDriverException as error:
                refusals.append(str(error.msg))
                return False

        try:
            return WebDriverWait(self.driver, timeout_s).until(asked)
        except TimeoutException as error:
            raise TimeoutException("; the driver said last: ".join([what, *refusals[-1:]])) from error

    @contextmanager
    def inside(self, frame: str) -> Iterator[None]:
        """Look into a frame, and afterwards at the page around it again."""
        place = (By.CSS_SELECTOR, frame)
        self._until(seen.frame_to_be_available_and_switch_to_it(place), frame)
        yield
        self.driver.switch_to.parent_frame()

    def type_into(self, name: str, text: str) -> None:
        """Fill in a field of the form."""
        field = self.find(f"[name='element_{name}']")
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)

    def choose(self, name: str, text: str) -> None:
        """Choose from a drop-down of the form what begins with a text."""
        field = self.find(f"[id='element_{name}'] input")
        field.send_keys(text)
        self.find("[id*='-option-']")
        options = self.driver.find_elements(By.CSS_SELECTOR, "[id*='-option-']")
        next(option for option in options if option.text.lower().startswith(text.lower())).click()

    def shot(self, name: str) -> None:
        """Keep what can be seen now as a picture among the artefacts."""
        ARTIFACTS.mkdir(exist_ok=True)
        self.driver.save_screenshot(str(ARTIFACTS / f"airflow-{name}.png"))


@pytest.fixture(scope="module")  # an open page of Airflow asks for news, and takes a fifth of a core
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip("no Chromium with its chromedriver here: Airflow is not looked at in a browser")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--window-size={WIDTH},{HEIGHT}", f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    driver.set_script_timeout(TIMEOUT_S)  # axe-core takes more than the 30 s of WebDriver on a busy machine
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def axe(pytestconfig: pytest.Config) -> Path:
    """The script that says what of a page is hard to read, by axe-core."""
    return beside(pytestconfig, "axe") / "axe_playwright_python" / "axe.min.js"


@pytest.fixture(scope="module")
def person(airflow_server: Airflow, chromium: webdriver.Chrome) -> Person:
    """A person with a login as admin."""
    someone = Person(chromium, airflow_server.base_url)
    someone.goto("/")
    someone.find("[name=username]").send_keys("admin")
    someone.find("[name=password]").send_keys(airflow_server.server.passwords["admin"])
    someone.find("button[type=submit]").click()
    someone.wait(lambda driver: "/auth/" not in driver.current_url, "Airflow's own page after the login")
    return someone
