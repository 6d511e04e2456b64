"""Runs side by side: which are summed up together, which are not, and the spread of their figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import app as cli
from harness.report.compare.comparison import Spread, compared, describe_spread
from harness.report.compare.figures import Kind, RunFigures, figures_of
from tests.report.conftest import send, write_fact
from tests.report.trend.test_trend import BROKEN, made

KIND = Kind(scenario="mix", system="kafka:3.9.1", driver="process", machine="a")
LATE = {"objective": "no_write_s", "limit": 1, "unit": "s", "measured": 3.0, "verdict": "MISSED"}


def figures(outcome: str = "held", kind: Kind = KIND, **values: float) -> RunFigures:
    verdicts = {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
    return RunFigures(
        run="r", kind=kind, outcome=outcome, verdicts=verdicts, violations={}, expected={}, objectives={}, values=values
    )


def of(**changes: Any) -> Kind:
    return Kind(**{name: getattr(KIND, name) for name in ("scenario", "system", "driver", "machine")} | changes)


@pytest.mark.parametrize(
    ("sides", "columns", "differs"),
    [
        pytest.param(
            {"a": [figures(), figures()], "b": [figures()]},
            ["a: kafka:3.9.1 · process · a", "b: kafka:3.9.1 · process · a"],
            [],
            id="two nights",
        ),
        pytest.param(
            {"runs": [figures(), figures(kind=of(system="kafka:4.4.0"))]},
            ["kafka:3.9.1 · process · a", "kafka:4.4.0 · process · a"],
            [],
            id="two releases in one folder",
        ),
        pytest.param(
            {"runs": [figures(), figures(kind=of(driver="docker"))]},
            ["kafka:3.9.1 · process · a", "kafka:3.9.1 · docker · a"],
            ["the columns differ in their driver: process, docker"],
            id="another driver is never mixed in",
        ),
        pytest.param(
            {"runs": [figures(), figures(kind=of(machine="b")), figures(kind=of(planted_bugs=("x",)))]},
            ["kafka:3.9.1 · process · a", "kafka:3.9.1 · process · b", "kafka:3.9.1 · process · a · x"],
            ["the columns differ in their machine: a, b", "the columns differ in their planted bugs: none, x"],
            id="nor another machine, nor a planted bug",
        ),
    ],
)
def test_runs_that_are_not_alike_are_columns_of_their_own(
    sides: dict[str, list[RunFigures]], columns: list[str], differs: list[str]
) -> None:
    (comparison,) = compared(sides)
    assert [column.title for column in comparison.columns] == columns
    assert comparison.differs == differs


def test_another_scenario_is_another_table() -> None:
    shown = compared({"runs": [figures(), figures(kind=of(scenario="smoke"))]})
    assert [each.scenario for each in shown] == ["mix", "smoke"]


@pytest.mark.parametrize(
    ("spread", "runs", "text"),
    [
        pytest.param(None, 3, "-", id="no run has it"),
        pytest.param(Spread(least=2, median=2, most=2, runs=1), 1, "2 s", id="a single run has no spread"),
        pytest.param(Spread(least=1, median=2, most=4000, runs=3), 3, "2 (1 to 4,000) s", id="median, least, most"),
        pytest.param(Spread(least=1, median=2, most=3, runs=2), 3, "2 (1 to 3) s, of 2 of 3 runs", id="some lack it"),
    ],
)
def test_a_spread_is_described(spread: Spread | None, runs: int, text: str) -> None:
    assert describe_spread(spread, "s", runs) == text


def test_outcomes_are_counted_and_figures_spread() -> None:
    (comparison,) = compared(
        {"runs": [figures("held", no_write_s=1), figures("missed", no_write_s=5), figures("held")]}
    )
    assert comparison.outcomes()[0] == ("outcome", ["2 held, 1 missed"])
    assert comparison.measured() == [("no_write_s", ["3 (1 to 5) s, of 2 of 3 runs"])]


@pytest.mark.parametrize(
    ("sides", "shared", "titles"),
    [
        pytest.param({"a": [figures()], "b": [figures()]}, KIND.label, ["a", "b"], id="two runs of one kind"),
        pytest.param(
            {"a": [figures(), figures()], "b": [figures()]}, KIND.label, ["a, 2 runs", "b, 1 run"], id="two nights"
        ),
        pytest.param(
            {"a": [figures()], "b": [figures(kind=of(driver="docker"))]},
            "",
            ["a: kafka:3.9.1 · process · a, 1 run", "b: kafka:3.9.1 · docker · a, 1 run"],
            id="two drivers",
        ),
        pytest.param({"a": [figures()]}, "", ["kafka:3.9.1 · process · a, 1 run"], id="a single side"),
    ],
)
def test_what_all_columns_have_is_said_once(sides: dict[str, list[RunFigures]], shared: str, titles: list[str]) -> None:
    (comparison,) = compared(sides)
    assert (comparison.shared, comparison.titles) == (shared, titles)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two nights: in the second one a promise is broken, and an objective is missed."""
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "before", "a-20261120T020000-00000007")
    folder = made(tmp_path / "after", "b-20261121T020000-00000007", checks=BROKEN, objectives=[LATE])
    write_fact(folder, "sends", send(0, 10), send(1, 20))
    return tmp_path


def compare(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["chaos", "compare", *arguments])
    try:
        cli.main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def test_nights_are_compared_in_the_terminal_as_json_and_as_a_page(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(monkeypatch, "before", "after", "--out", "out/page.html") == 0
    page = (place / "out" / "page.html").read_text(encoding="utf-8")
    for text in (
        '<h2>kill-leader <span class="soft">python · process</span></h2>',
        "broken: I10",
        '<td data-of="after">2</td>',
        "objective no_write_s",
        "MISSED",
        "20 ms",
    ):
        assert text in page
    assert "page      out/page.html" in capsys.readouterr().out
    assert compare(monkeypatch, "before", "after", "--json") == 0
    told = capsys.readouterr().out
    (comparison,) = json.loads(told)["comparisons"]
    before, after = comparison["columns"]
    assert (before["spread"], after["spread"]["p99_outside_ms"]["max"]) == ({}, 20.0)
    assert after["runs"][0]["outcome"] == "violated"
    assert compare(monkeypatch, "before", "plotly-0123456789abcdef.min.js", "after", "--json") == 0
    assert capsys.readouterr().out == told, "the library of all reports, which stands beside runs, is no side"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        pytest.param("nowhere", "nowhere: no such folder", id="nothing there"),
        pytest.param("out", "out: neither a run nor a folder with judged runs", id="a folder of something else"),
        pytest.param("note.txt", "note.txt: not the folder of a run", id="a file"),
    ],
)
def test_a_side_without_runs_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argument: str, message: str
) -> None:
    (place / "out").mkdir()
    (place / "note.txt").touch()
    assert compare(monkeypatch, argument) == 2
    assert message in capsys.readouterr().err
    assert compare(monkeypatch, "before", argument) == (2 if argument == "nowhere" else 0), "as behind `runs/*`"
    assert message in capsys.readouterr().err


def test_evidence_with_holes_has_no_figures(place: Path) -> None:
    doubt = [{"text": "2 torn lines", "forbids_pass": True}]
    folder = made(place, "c-20261121T020000-00000007", remarks=doubt)
    write_fact(folder, "sends", send(0, 10))
    assert figures_of(folder).values == {}


def test_two_sides_of_one_name_stay_apart(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for parent in ("x", "y"):
        made(place / parent / "runs", "a-20261120T020000-00000007")
    assert compare(monkeypatch, "x/runs", "y/runs", "--json") == 0
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert [(column["side"], len(column["runs"])) for column in comparison["columns"]] == [("x/runs", 1), ("y/runs", 1)]
