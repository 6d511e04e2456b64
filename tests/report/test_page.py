"""The page itself: complete, offline, and safe whatever stands in the evidence."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.errors import EvidenceError
from harness.report.findings import SHOWN_FINDINGS
from harness.report.timeline import library
from harness.store.folder import LIBRARY, RunFolder
from harness.store.result import CheckResult, ObjectiveResult, RunResult
from harness.verdict import ObjectiveVerdict, SystemVerdict
from tests.report.conftest import reign, write_fact, written
from tests.verdicts import FAIL, PASS, UNKNOWN

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def text_of(folder: RunFolder) -> str:
    """Return the page without the chart library and its own scripts."""
    return re.sub(r"<script.*?</script>", "", written(folder).read_text(), flags=re.DOTALL)


def test_verdicts_faults_gaps_and_commands_are_on_the_page(folder: RunFolder) -> None:
    page = text_of(folder)
    for expected in ("CONFIRMED", "PASS", "CLEAN", "pid 41 is gone", "3.00 s", "chaos rejudge", "--seed 7", "1,234"):
        assert expected in page


def test_the_same_seed_is_run_with_the_scenario_as_it_was_run_overrides_included(folder: RunFolder) -> None:
    assert f"chaos run {folder.scenario} --seed 7" in text_of(folder)


def test_the_page_needs_nothing_from_outside(folder: RunFolder) -> None:
    page = text_of(folder)
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "<link" not in page


def test_text_from_the_evidence_is_escaped(folder: RunFolder, add_findings: Callable[..., None]) -> None:
    add_findings(
        {"check": "I10", "severity": "violation", "message": "<script>alert(1)</script>", "evidence": ["<img src=x>"]}
    )
    page = written(folder).read_text()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<img src=x>" not in page


def test_the_timeline_comes_first_then_violations_expected_ones_apart_and_many_are_bounded(
    folder: RunFolder, add_findings: Callable[..., None]
) -> None:
    many = [{"check": "lost-write", "severity": "expected", "message": f"lost {i}"} for i in range(SHOWN_FINDINGS + 5)]
    add_findings(*many, {"check": "I9", "severity": "violation", "message": "replicas differ at 17"})
    page = text_of(folder)
    assert page.index("Timeline") < page.index("replicas differ at 17") < page.index("lost 0")
    assert "5 more in" in page


def test_findings_say_where_they_are_and_all_but_the_first_few_unfold(
    folder: RunFolder, add_findings: Callable[..., None]
) -> None:
    places: list[dict[str, object]] = [
        {"topic": "orders", "partition": 0, "offset": offset} for offset in (12, 7, 30, 9, 8, 10)
    ]
    add_findings(*({"check": "I10", "severity": "violation", "message": f"at {p['offset']}"} | p for p in places))
    page = text_of(folder)
    assert "orders-0 offsets 7 to 30" in page
    assert page.index("at 7") < page.index("at 12") < page.index("1 more") < page.index("at 30")


def test_a_run_without_a_result_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="does not exist: the run was not judged"):
        written(RunFolder(tmp_path))


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        pytest.param(FAIL, "failure", id="a violation is a failure"),
        pytest.param(UNKNOWN, "error", id="no answer is an error"),
        pytest.param(PASS, None, id="a promise kept is neither"),
    ],
)
def test_junit(folder: RunFolder, result: RunResult, verdict: SystemVerdict, tag: str | None) -> None:
    check = CheckResult(check="I9", promise="logs match", verdict=verdict, reason="because")
    result.model_copy(update={"checks": [check]}).save(folder.verdict)
    written(folder)
    case = ElementTree.parse(folder.junit).find(".//testcase[@name='I9 log-matching']")
    assert case is not None
    assert [child.tag for child in case] == ([tag] if tag else [])


def test_objectives_have_a_card_a_table_and_a_suite_of_their_own(folder: RunFolder, result: RunResult) -> None:
    late = ObjectiveResult(
        objective="no_write_s", limit=8, unit="s", measured=9, verdict=ObjectiveVerdict.MISSED, reason="in orders-0"
    )
    result.model_copy(update={"objectives": [late]}).save(folder.verdict)
    page = text_of(folder)
    for text in ("Did the run meet its objectives?", "missed: no_write_s", "at most 8 s", "9 s", "in orders-0"):
        assert text in page
    (failure,) = ElementTree.parse(folder.junit).findall(".//testcase[@name='no_write_s']/failure")
    assert failure.attrib == {"message": "9 s (at most 8 s): in orders-0", "type": "objective missed"}


def test_the_library_of_the_timeline_lies_beside_once_for_all_runs(folder: RunFolder) -> None:
    page = written(folder).read_text()
    (beside,) = (path for path in folder.root.parent.iterdir() if LIBRARY.fullmatch(path.name))
    assert f'src="../{beside.name}"' in page
    assert len(page) < 200_000 < beside.stat().st_size
    beside.write_text("kept")
    written(folder)
    assert beside.read_text() == "kept", "it is called by its content, so it is that"


def test_a_page_that_stands_alone_has_its_library_inside(folder: RunFolder) -> None:
    page = written(folder, alone=True).read_text()
    assert list(folder.root.parent.iterdir()) == [folder.root]
    assert len(page) > 4_000_000
    assert not re.search(r"<script[^>]+src=", page)


def test_the_library_is_inside_where_nothing_can_lie_beside(folder: RunFolder) -> None:
    in_its_way = (folder.root.parent / library.name()).with_suffix(f".{os.getpid()}")
    in_its_way.mkdir()
    assert len(written(folder).read_text()) > 4_000_000


def test_a_finding_leads_to_its_place_in_the_timeline_and_the_timeline_to_it(
    folder: RunFolder, add_findings: Callable[..., None]
) -> None:
    place = {"topic": "orders", "partition": 0}
    add_findings(
        {"check": "I10", "severity": "violation", "message": "lost", "leader_epoch": 2} | place,
        {"check": "I19", "severity": "violation", "message": "at an unknown time"},
    )
    page = written(folder).read_text()
    assert re.search(r'id="finding-I10-violation-0"[^§]{0,80}lost[^§]{0,80}href="#at-9.600"', page)
    assert page.count('href="#finding-I10-violation-0"') == 1
    assert "#finding-I19" not in page
    drawn = json.loads(re.findall(r'id="figure">(.*?)</script>', page)[0])
    (mark,) = (trace for trace in drawn["data"] if trace.get("customdata") == ["finding-I10-violation-0"])
    assert (mark["x"], mark["y"]) == ([9.6], ["I10<br>leader-completeness"])
    assert drawn["layout"]["yaxis"]["categoryarray"] == ["I10<br>leader-completeness"]


def test_text_from_the_evidence_cannot_leave_the_figure(folder: RunFolder) -> None:
    shutil.rmtree(folder.facts / "leader_epochs.parquet")
    write_fact(folder, "leader_epochs", reign(1, 2, 0) | {"topic": "</script><b onload=x>"})
    page = written(folder).read_text()
    assert "</script><b" not in page
    assert "b onload=x" in page


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the page is not looked at in a browser")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_draws_the_timeline(folder: RunFolder, width: int, tmp_path: Path) -> None:
    page = written(folder)
    artifacts = Path("artifacts")
    artifacts.mkdir(exist_ok=True)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    command = [str(CHROMIUM), *options, f"--user-data-dir={tmp_path}/profile", f"--window-size={width},2400"]
    command += ["--virtual-time-budget=5000", f"--screenshot={artifacts / f'report-{width}.png'}", "--dump-dom"]
    dom = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True).stdout
    drawn = re.findall(r'class="(?:bars|scatter) ?layer"|class="trace bars"|class="trace scatter', dom)
    assert len(drawn) >= 10, "operations, records, leaders, ISRs and faults are drawn"
