"""One site over many runs: copies of their pages, an index, and folders that are not to be touched."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from expectations import site
from harness.cli.app import app
from harness.errors import ScenarioError
from harness.store.folder import RunFolder
from harness.store.result import SuiteResult
from harness.verdict import SystemVerdict
from tests.verdicts import FAIL, NOT_JUDGED, PASS, UNKNOWN


def judged(root: Path, **verdicts: SystemVerdict) -> RunFolder:
    """A run with these verdicts of suites, with a page for each; the sentence of a failure has something to escape."""
    folder = RunFolder(root)
    results = [
        SuiteResult(
            suite=suite,
            verdict=verdict,
            evaluated=1,
            unsuccessful=int(verdict is FAIL),
            failures=["an epoch < the one before"] if verdict is FAIL else [],
        )
        for suite, verdict in verdicts.items()
    ]
    folder.data_docs.mkdir(parents=True)
    (folder.data_docs / "index.html").write_text("of one run", encoding="utf-8")
    for suite, verdict in verdicts.items():
        if verdict in (PASS, FAIL):
            page = folder.data_docs / "validations" / suite / folder.run_id / "1" / "page.html"
            page.parent.mkdir(parents=True)
            page.write_text(suite, encoding="utf-8")
    folder.expectations.write_text(json.dumps([result.model_dump() for result in results]), encoding="utf-8")
    folder.plan.write_text("{}", encoding="utf-8")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> list[RunFolder]:
    return [
        judged(tmp_path / "a" / "run-1", leader_epochs=PASS, records=UNKNOWN, high_watermarks=NOT_JUDGED),
        judged(tmp_path / "b" / "run-1", leader_epochs=FAIL),
    ]


def text_of(page: Path) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page.read_text(encoding="utf-8")).split())


def test_the_index_counts_verdicts_by_suite_and_names_failed_expectations(
    runs: list[RunFolder], tmp_path: Path
) -> None:
    text = text_of(site.write(runs, tmp_path / "site"))
    assert "Data Docs of 2 runs" in text
    assert "Suite PASS UNKNOWN FAIL Not judged leader_epochs 1 0 1 0 records 0 1 0 1 high_watermarks 0 0 0 2" in text
    assert "run-1 PASS UNKNOWN NOT_JUDGED run-1 (2) FAIL" in text
    assert "run-1 (2): an epoch &lt; the one before" in text


def test_every_link_leads_to_a_page_in_the_site(runs: list[RunFolder], tmp_path: Path) -> None:
    index = site.write(runs, tmp_path / "site")
    links = re.findall(r'href="([^"]+)"', index.read_text(encoding="utf-8"))
    assert len(links) == 5, "a style sheet, two runs, and two results of the four"
    assert all((index.parent / link).is_file() for link in links)


def test_a_site_is_written_anew_without_the_runs_of_before(runs: list[RunFolder], tmp_path: Path) -> None:
    site.write(runs, tmp_path / "site")
    index = site.write(runs[:1], tmp_path / "site")
    assert sorted(path.name for path in (tmp_path / "site" / "runs").iterdir()) == ["run-1"]
    assert "run-1 (2)" not in text_of(index)


def test_a_folder_that_is_something_else_is_left_alone(runs: list[RunFolder], tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no site of Data Docs; name a new folder"):
        site.write(runs, tmp_path / "a")
    assert (tmp_path / "a" / "run-1" / "plan.json").is_file()


def test_runs_without_data_docs_are_named_before_anything_is_written(runs: list[RunFolder], tmp_path: Path) -> None:
    for run in runs:
        run.expectations.unlink()
    with pytest.raises(ScenarioError) as refused:
        site.write(runs, tmp_path / "site")
    assert str(refused.value).splitlines() == [f"no Data Docs in {run.root}: chaos rejudge makes them" for run in runs]
    assert not (tmp_path / "site").exists()


def test_a_run_without_data_docs_is_left_out_and_the_command_goes_on(runs: list[RunFolder], tmp_path: Path) -> None:
    runs[1].expectations.unlink()
    result = CliRunner().invoke(app, ["docs", *(str(run.root) for run in runs), "--into", str(tmp_path / "site")])
    assert (result.exit_code, result.stdout.strip()) == (0, str(tmp_path / "site" / "index.html"))
    assert result.stderr.strip() == f"left out: no Data Docs in {runs[1].root}: chaos rejudge makes them"
    assert "1 run" in text_of(tmp_path / "site" / "index.html")


def test_the_command_prints_where_the_index_is(runs: list[RunFolder], tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["docs", str(runs[0].root), "--into", str(tmp_path / "site")])
    assert (result.exit_code, result.output.strip()) == (0, str(tmp_path / "site" / "index.html"))


def test_the_command_refuses_what_is_no_run(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["docs", str(tmp_path), "--into", str(tmp_path / "site")])
    assert isinstance(result.exception, ScenarioError)
    assert "not the folder of a run" in str(result.exception)
