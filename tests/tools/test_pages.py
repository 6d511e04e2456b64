"""Generated pages are what their generators return, and the site is built from all pages, for use without a network."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.pages import counts, faults
from tools.pages.catalogue import PAGES
from tools.pages.page import ROOT, Page, table

FROM_ELSEWHERE = re.compile(r"<(?:script|link|img)[^>]*(?:src|href)=\"(https?://[^\"]+)\"")


@pytest.mark.parametrize("page", PAGES, ids=[page.path for page in PAGES])
def test_a_generated_page_is_what_its_generator_returns(page: Page) -> None:
    assert (ROOT / page.path).read_text(encoding="utf-8") == page.text(), "run: make pages"


def test_a_fault_that_does_not_say_how_it_is_confirmed_has_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "_docstring", lambda _: "Pauses a broker.")
    with pytest.raises(ValueError, match="add-partitions: the docstring of its module has no line 'Confirmed by:'"):
        faults.text()


@pytest.mark.parametrize(
    ("system", "as_many"),
    [
        pytest.param("python", None, id="the built-in broker, by all"),
        pytest.param("kafka:3.3.2", counts.OLDER, id="a release that words roles differently"),
    ],
)
def test_a_system_without_a_number_of_its_own_is_judged_by_as_many_checks(system: str, as_many: str | None) -> None:
    assert counts.unjudged(system) == (counts.unjudged(as_many) if as_many else 0)


def test_a_number_replaces_the_one_before_it_and_a_page_without_the_sentence_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, sentence = "docs/how-to/judge-a-history.md", "Start with them: {} checks\nneed only `--operations`.\n"
    monkeypatch.setattr(counts, "ROOT", tmp_path)
    page = tmp_path / name
    page.parent.mkdir(parents=True)
    page.write_text(sentence.format(0), encoding="utf-8")
    assert counts.text(name) == sentence.format(counts.counts()["operations"])
    page.write_text("Nothing.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"{name}: a sentence must read: Start with them"):
        counts.text(name)


def test_a_cell_with_a_pipe_and_a_line_break_stays_one_cell() -> None:
    assert list(table(("a", "b"), [("x|y", "two\nlines")])) == ["| a | b |", "|---|---|", "| x\\|y | two lines |"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a broken link, a missing anchor or a page outside the navigation fails the build."""
    pytest.importorskip("mkdocs", reason="requirements-dev.txt is not installed as it is now: run ./bootstrap.sh")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def test_no_page_of_the_site_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    loaded = {url for page in pages for url in FROM_ELSEWHERE.findall(page.read_text(encoding="utf-8"))}
    assert loaded == set()


def test_search_knows_every_kind_of_page(site: Path) -> None:
    text = (site / "search/search_index.js").read_text(encoding="utf-8").removeprefix("var __index = ")
    locations = {entry["location"].partition("#")[0] for entry in json.loads(text)["docs"]}
    assert {"index.html", "tour.html", "reference/checks.html", "how-to/extend.html", "architecture.html"} <= locations


def test_the_first_use_of_a_term_leads_to_the_glossary(site: Path) -> None:
    tutorial = (site / "tour.html").read_text(encoding="utf-8")
    assert tutorial.count('href="glossary.html#planted-bug"') == 1
