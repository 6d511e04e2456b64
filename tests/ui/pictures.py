"""Makes the pictures of the documents: a report's timeline, or all from its top to there, as Chromium draws it.

python -m tests.ui.pictures runs/RUN/report.html docs/tour.png
    python -m tests.ui.pictures runs/RUN/report.html docs/report.png --from-the-top
"""

import argparse
import base64
import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from tests.ui.conftest import FLAGS, TIMEOUT_S, WIDTH

MARGIN = 24
"""Pixels beside what stands above the timeline; the page moves a little when its scroll bar goes."""
PLACE = "return document.getElementById('chart').getBoundingClientRect().toJSON()"


def picture(report: Path, file: Path, *, from_the_top: bool) -> None:
    """Write the timeline of a report as a picture, or also what stands above it."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in (*FLAGS, f"--window-size={WIDTH},4000"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.get(report.resolve().as_uri())
        WebDriverWait(driver, TIMEOUT_S).until(
            lambda browser: browser.find_elements("css selector", "#chart .scatterlayer .trace"), "the timeline"
        )
        box = driver.execute_script(PLACE)
        if from_the_top:
            box |= {"top": 0, "left": box["left"] - MARGIN, "width": box["width"] + 2 * MARGIN}
        clip = {
            "x": box["left"],
            "y": box["top"],
            "width": box["width"],
            "height": box["bottom"] - box["top"],
            "scale": 1,
        }
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        file.write_bytes(base64.b64decode(shot["data"]))
    finally:
        driver.quit()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--from-the-top", action="store_true")
    arguments = parser.parse_args()
    picture(arguments.report, arguments.file, from_the_top=arguments.from_the_top)
