"""Results are data: what a row must have, how rows are added, and what pages make of them."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from harness.errors import EvidenceError
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, RunResult
from harness.verdict import FaultVerdict, SystemVerdict
from tools.pages.plot import Series, svg
from tools.results.__main__ import bug, campaign, seconds_of
from tools.results.rows import AREAS, BUGS, CAMPAIGNS, FIGURES, MEASUREMENTS, load, record, save

FAIL, PASS = SystemVerdict.FAIL, SystemVerdict.PASS


def run(root: Path, name: str, *, i10: SystemVerdict, scenario: str = "kip-101") -> Path:
    """Write the verdict of a run with one confirmed fault and one check that judged it, and return its folder."""
    folder = RunFolder(root / name)
    folder.root.mkdir()
    fault = FaultResult(injection=0, fault="kill", targets=["1"], verdict=FaultVerdict.CONFIRMED, detail="gone")
    check = CheckResult(check="I10", promise="…", verdict=i10, violations=int(i10 is FAIL))
    other = CheckResult(check="I24", promise="…", verdict=SystemVerdict.NOT_JUDGED, reason="no such lines")
    common: dict[str, Any] = {"run_id": name, "driver": "process", "started_at": "2026-11-26T12:00:00+00:00"}
    result = RunResult(scenario=scenario, seed=1, duration_s=1.0, faults=[fault], checks=[check, other], **common)
    result.save(folder.verdict)
    return folder.root


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder of results with one known bug."""
    folder = tmp_path / "results"
    folder.mkdir()
    for name in (CAMPAIGNS, MEASUREMENTS):
        save(name, [], folder)
    row = {
        "id": "kip-101",
        "found_by": ["I10 leader-completeness"],
        "found": 5,
        "of": 5,
        "last_confirmed": "2026-01-01",
    }
    save(BUGS, [row], folder)
    return folder


def test_runs_of_one_scenario_become_one_row(tmp_path: Path, results: Path) -> None:
    folders = [run(tmp_path, "a", i10=PASS), run(tmp_path, "b", i10=FAIL)]
    row = campaign(folders, "on a new machine", results)
    assert load(CAMPAIGNS, results) == [row]
    keys = ("kind", "scenario", "count", "held", "violated", "faults", "confirmed", "checks")
    assert {key: row[key] for key in keys} == {
        "kind": "runs",
        "scenario": "kip-101",
        "count": 2,
        "held": 1,
        "violated": 1,
        "faults": 2,
        "confirmed": 2,
        "checks": 1,
    }
    assert {"date", "commit", "machine", "load", "note"} <= row.keys()


def test_runs_of_two_scenarios_are_no_campaign(tmp_path: Path, results: Path) -> None:
    folders = [run(tmp_path, "a", i10=PASS), run(tmp_path, "b", i10=PASS, scenario="smoke")]
    with pytest.raises(EvidenceError, match="one campaign is one scenario"):
        campaign(folders, "", results)


@pytest.mark.parametrize(
    ("i10", "found", "dated"),
    [
        pytest.param(FAIL, 6, True, id="a run that shows it counts and dates it"),
        pytest.param(PASS, 5, False, id="a run that does not show it counts only as tried"),
    ],
)
def test_a_known_bug_counts_its_runs(
    tmp_path: Path, results: Path, i10: SystemVerdict, found: int, dated: bool
) -> None:
    row = bug("kip-101", [run(tmp_path, "a", i10=i10)], results)
    assert (row["found"], row["of"], row["last_confirmed"] > "2026-01-01") == (found, 6, dated)
    assert load(BUGS, results) == [row]


def test_an_unknown_bug_is_refused_by_name(results: Path) -> None:
    with pytest.raises(EvidenceError, match=r"kip-999: .* no such bug"):
        bug("kip-999", [], results)


def test_the_seconds_of_tests_are_those_of_their_file(tmp_path: Path, results: Path) -> None:
    file = tmp_path / "test.xml"
    file.write_text('<testsuites><testsuite name="pytest" time="291.5"/></testsuites>', encoding="utf-8")
    seconds_of(file, results)
    assert [row["figures"] for row in load(MEASUREMENTS, results)] == [{"tests.quick_s": 291.5}]


def test_a_figure_that_nothing_defines_is_refused(results: Path) -> None:
    with pytest.raises(KeyError, match="has no speed: add a row"):
        record("a command", {"speed": 1.0}, folder=results)
    assert load(MEASUREMENTS, results) == []


def test_every_figure_has_an_area_and_every_measurement_a_figure() -> None:
    areas, figures = {row["id"] for row in load(AREAS)}, {row["id"]: row for row in load(FIGURES)}
    assert {row["area"] for row in figures.values()} == areas
    for row in load(MEASUREMENTS):
        assert row["figures"].keys() | row.get("peers", {}).keys() <= figures.keys()
        assert date.fromisoformat(row["date"])
        assert all("peer" in figures[name] for name in row.get("peers", {}))


def test_a_plot_has_a_point_for_each_measurement_and_a_line_for_the_aim() -> None:
    points = [(date(2026, 11, 21), 4.0), (date(2026, 11, 23), 2.0)]
    drawn = svg([Series(title="a < b", unit="s", points=points, peer=points[:1], aim=1.0)])
    assert drawn.count('r="2.5"') == 2
    assert drawn.count('r="4"') == 1
    assert 'class="a"' in drawn
    assert "a &lt; b" in drawn
