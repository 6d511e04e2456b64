"""One site of the Data Docs of many runs: their pages side by side, and an index of suites and runs over them.

The pages are those that each run has already; nothing is judged again, so that a site of thousands of runs takes as
long as copying them.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.errors import ScenarioError
from harness.store.folder import RunFolder
from harness.store.result import SuiteResult
from harness.verdict import SystemVerdict

MARK = "chaos-docs.json"
"""The file by which a folder is known as such a site, and may be written anew."""
RUNS = "runs"
FAILURES_SHOWN = 100
"""Sentences of one suite that the index has; each run's own page has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocs:
    """One run in the site."""

    name: str
    answers: dict[str, SuiteResult]
    """By suite."""
    pages: dict[str, str]
    """By suite, where its result is, from the index on; empty where there is none."""

    @property
    def link(self) -> str:
        """Where its own index is."""
        return f"{RUNS}/{self.name}/index.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteDocs:
    """One suite over all runs."""

    name: str
    counts: Counter[str]
    """Runs by verdict."""
    not_asked: int
    failures: list[tuple[RunDocs, str]]
    """The first expectations that were not met, with their runs."""
    more: int


def write(folders: Sequence[RunFolder], into: Path) -> Path:
    """Write a site of these runs' Data Docs, and return the path of its index.

    Raises:
        ScenarioError: a run has no Data Docs, or the folder is there and is something else.
    """
    _refuse_without_docs(folders)
    _make_room(into)
    runs = [_copied(folder, name, into) for folder, name in zip(folders, _names(folders), strict=True)]
    suites = dict.fromkeys(suite for run in runs for suite in run.answers)
    here = Path(__file__).parent
    shutil.copyfile(here / "offline.css", into / "offline.css")
    templates = Environment(loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined)
    page = templates.get_template("site.html.j2").render(
        runs=runs,
        suites=[_over_all(suite, runs) for suite in suites],
        verdicts=[verdict.name for verdict in SystemVerdict],
    )
    index = into / "index.html"
    index.write_text(page, encoding="utf-8")
    return index


def _refuse_without_docs(folders: Sequence[RunFolder]) -> None:
    without = [
        str(folder.root)
        for folder in folders
        if not (folder.expectations.is_file() and (folder.data_docs / "index.html").is_file())
    ]
    if without:
        raise ScenarioError(f"no Data Docs in {', '.join(without)}: chaos rejudge makes them")


def _make_room(into: Path) -> None:
    """Make the folder, or remove what an earlier site left there."""
    mark = into / MARK
    try:
        if into.exists() and not mark.is_file() and (not into.is_dir() or any(into.iterdir())):
            raise ScenarioError(f"{into} is there already, and no site of Data Docs; name a new folder")
        into.mkdir(parents=True, exist_ok=True)
        mark.write_text("{}\n", encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{into} cannot be written: {error}") from error
    shutil.rmtree(into / RUNS, ignore_errors=True)


def _names(folders: Iterable[RunFolder]) -> list[str]:
    """Return a name for each run: its id, and a number where runs from several places share one."""
    seen: Counter[str] = Counter()
    names = []
    for folder in folders:
        seen[folder.run_id] += 1
        number = seen[folder.run_id]
        names.append(folder.run_id if number == 1 else f"{folder.run_id} ({number})")
    return names


def _copied(folder: RunFolder, name: str, into: Path) -> RunDocs:
    """Copy the pages of a run into the site, and say what is there."""
    target = into / RUNS / name
    shutil.copytree(folder.data_docs, target)
    results = [SuiteResult.model_validate(one) for one in json.loads(folder.expectations.read_text(encoding="utf-8"))]
    pages = {}
    for result in results:
        written = sorted((target / "validations" / result.suite).rglob("*.html"))
        pages[result.suite] = written[-1].relative_to(into).as_posix() if written else ""
    return RunDocs(name=name, answers={result.suite: result for result in results}, pages=pages)


def _over_all(suite: str, runs: Sequence[RunDocs]) -> SuiteDocs:
    answers = [(run, run.answers[suite]) for run in runs if suite in run.answers]
    failures = [(run, sentence) for run, answer in answers for sentence in answer.failures]
    return SuiteDocs(
        name=suite,
        counts=Counter(answer.verdict.name for _, answer in answers),
        not_asked=len(runs) - len(answers),
        failures=failures[:FAILURES_SHOWN],
        more=max(len(failures) - FAILURES_SHOWN, 0),
    )
