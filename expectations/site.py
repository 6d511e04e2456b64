"""How do the Data Docs of many runs become one site? Their pages side by side, below an index of suites and runs.

Each run's pages are copied as they are; nothing is judged again.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.errors import ScenarioError
from harness.progress import number_of
from harness.store.folder import RunFolder
from harness.store.result import SuiteResult
from harness.verdict import SystemVerdict

NOT_JUDGED = SystemVerdict.NOT_JUDGED
MARK = "chaos-docs.json"
"""The file that marks a folder as such a site, which may be overwritten."""
RUNS = "runs"
FAILURES_SHOWN = 100
"""Sentences of one suite that the index has; each run's own page has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocs:
    """One run in the site."""

    name: str
    results: dict[str, SuiteResult]
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
    not_judged: int
    """Runs in which it was not asked, or of which there was nothing to ask it."""
    failures: list[tuple[RunDocs, str]]
    """The first expectations that were not met, with their runs."""
    more: int
    """How many failures the index leaves out."""


def write(folders: Sequence[RunFolder], into: Path, say: Callable[[str], object] = lambda _: None) -> Path:
    """Write a site of these runs' Data Docs, and return the index; `say` gets a message for each run without any.

    Raises:
        ScenarioError: no run has Data Docs, or the folder is there and is something else.
    """
    folders = _with_docs(folders, say)
    _prepare_folder(into)
    runs = [_copy(folder, name, into) for folder, name in zip(folders, _unique_names(folders), strict=True)]
    suites = dict.fromkeys(suite for run in runs for suite in run.results)
    here = Path(__file__).parent
    shutil.copyfile(here / "offline.css", into / "offline.css")
    templates = Environment(loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined)
    page = templates.get_template("site.html.j2").render(
        heading=number_of(len(runs), "run"),
        runs=runs,
        suites=[_suite_docs(suite, runs) for suite in suites],
        verdicts=[verdict.name for verdict in SystemVerdict if verdict is not NOT_JUDGED],
    )
    index = into / "index.html"
    index.write_text(page, encoding="utf-8")
    return index


def _with_docs(folders: Sequence[RunFolder], say: Callable[[str], object]) -> list[RunFolder]:
    having = [
        folder for folder in folders if folder.expectations.is_file() and (folder.data_docs / "index.html").is_file()
    ]
    missing = [f"no Data Docs in {folder.root}: chaos rejudge makes them" for folder in folders if folder not in having]
    if not having:
        raise ScenarioError("\n".join(missing))
    for sentence in missing:
        say(f"left out: {sentence}")
    return having


def _prepare_folder(into: Path) -> None:
    """Make the folder, or remove the runs of an earlier site there."""
    mark = into / MARK
    try:
        if into.exists() and not mark.is_file() and (not into.is_dir() or any(into.iterdir())):
            raise ScenarioError(f"{into} exists and is no site of Data Docs; name a new folder")
        into.mkdir(parents=True, exist_ok=True)
        mark.write_text("{}\n", encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{into} cannot be written: {error}") from error
    shutil.rmtree(into / RUNS, ignore_errors=True)


def _unique_names(folders: Iterable[RunFolder]) -> list[str]:
    """Return a name for each run: its id, and a number where runs from several places share one."""
    seen: Counter[str] = Counter()
    names = []
    for folder in folders:
        seen[folder.run_id] += 1
        number = seen[folder.run_id]
        names.append(folder.run_id if number == 1 else f"{folder.run_id} ({number})")
    return names


def _copy(folder: RunFolder, name: str, into: Path) -> RunDocs:
    """Copy the pages of a run into the site, and return what the index shows of it."""
    target = into / RUNS / name
    shutil.copytree(folder.data_docs, target)
    results = [SuiteResult.model_validate(one) for one in json.loads(folder.expectations.read_text(encoding="utf-8"))]
    pages = {}
    for result in results:
        files = sorted((target / "validations" / result.suite).rglob("*.html"))
        pages[result.suite] = files[-1].relative_to(into).as_posix() if files else ""
    return RunDocs(name=name, results={result.suite: result for result in results}, pages=pages)


def _suite_docs(suite: str, runs: Sequence[RunDocs]) -> SuiteDocs:
    results = [(run, run.results[suite]) for run in runs if suite in run.results]
    failures = [(run, sentence) for run, result in results for sentence in result.failures]
    counts = Counter(result.verdict.name for _, result in results)
    return SuiteDocs(
        name=suite,
        counts=counts,
        not_judged=len(runs) - len(results) + counts[NOT_JUDGED.name],
        failures=failures[:FAILURES_SHOWN],
        more=max(len(failures) - FAILURES_SHOWN, 0),
    )
