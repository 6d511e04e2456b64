"""How soon does a reader see a report, and its timeline? In a real Chromium, from a cold cache each time.

    python -m benchmarks.first_paint runs/RUN/report.html [--times 5]

Milliseconds from the request: the first text, and the whole timeline drawn. The page is read from the disk.
"""

import argparse
import shutil
from pathlib import Path

from rich.console import Console
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from benchmarks.measuring import table_of_columns

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
TIMEOUT_S = 60.0
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
DRAWN = """
const callback = arguments[0], chart = document.getElementById("chart");
const wait = () => chart.querySelector(".main-svg") ? callback(performance.now()) : requestAnimationFrame(wait);
wait();
"""


def first_paint_ms(page: str) -> tuple[float, float]:
    """Return when the first text and when the timeline could be seen, in a browser of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(TIMEOUT_S)
        driver.get(page)
        drawn: float = driver.execute_async_script(DRAWN)
        painted: float = WebDriverWait(driver, TIMEOUT_S).until(lambda browser: browser.execute_script(PAINT))
        return painted, drawn
    finally:
        driver.quit()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    seen = [first_paint_ms(arguments.report.resolve().as_uri()) for _ in range(arguments.times)]
    columns = [{"first text, ms": f"{text:.0f}", "timeline, ms": f"{timeline:.0f}"} for text, timeline in seen]
    Console().print(table_of_columns(arguments.report.parent.name, columns))


if __name__ == "__main__":
    main()
