"""A measurement is a file of JSON lines, and the page and the plot say what the files hold."""

from dataclasses import replace
from pathlib import Path

import pytest

from tools.broker_mutants.battery import Intact
from tools.broker_mutants.mutants import Mutant
from tools.broker_mutants.results import About, Row, executed_of, line_of, read_measurement
from tools.broker_mutants.trial import Outcome
from tools.pages import broker_mutants

ABOUT = About(
    commit="abc1234",
    day="2026-11-26",
    sample=4,
    seed=7,
    schedules=20,
    battery_seed=1,
    mutants=8_000,
    equivalent=2,
    executed={"log": [3, 4], "replicas": [1, 4]},
    never=["log/log.py Log.never"],
)
ROW = Row(
    key="log/log.py Log.read max-for-min: min(a, b) => max(a, b)",
    room="log",
    operator="max-for-min",
    line=7,
    outcome=Outcome.FOUND,
    by=["i1"],
    says="A record is lost.",
    executed=20,
    simulated=6,
    differ=5,
    schedules=3,
    cpu_s=4.0,
)
ROWS = [
    ROW,
    replace(ROW, room="replicas", outcome=Outcome.UNSEEN, by=[], says="", schedules=0),
    replace(ROW, key="log/log.py Log.f call-out: f() => pass", outcome=Outcome.UNREACHED, by=[], differ=0, schedules=0),
    replace(ROW, key="log/log.py Log.never call-out: g() => pass", outcome=Outcome.UNREACHED, by=[], executed=0),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(broker_mutants, "RESULTS", tmp_path)
    return tmp_path


def write(path: Path, about: About = ABOUT) -> None:
    lines: list[About | Row] = [about, *ROWS]
    path.write_text("".join(map(line_of, lines)), encoding="utf-8")


def test_a_file_says_what_was_written(tmp_path: Path) -> None:
    write(tmp_path / "one.jsonl")
    assert read_measurement(tmp_path / "one.jsonl").rows == ROWS
    assert read_measurement(tmp_path / "one.jsonl").about == ABOUT


def test_the_page_has_outcomes_by_room_and_operator_and_names_what_is_not_found(folder: Path) -> None:
    write(folder / "one.jsonl")
    page = broker_mutants.page()
    assert "| log | 2 | 0 | 0 | 1 | 3 | 33 % | 33 % |" in page
    assert "| max-for-min | 2 | 1 | 0 | 1 | 4 | 50 % | 25 % |" in page
    assert "- `log/log.py Log.f call-out: f() => pass` (executed by 20 schedules)" in page
    assert "- `log/log.py Log.never call-out: g() => pass` (executed by no schedule)" in page
    assert "| i1 | 1 |" in page
    assert "| all | 4 | 8 | 50 % |" in page
    assert "- `log/log.py Log.never`" in page


def test_the_plot_has_a_bar_for_each_measurement_the_oldest_first(folder: Path) -> None:
    write(folder / "a.jsonl", replace(ABOUT, day="2026-11-27", commit="later00"))
    write(folder / "b.jsonl")
    plot = broker_mutants.plot()
    assert plot.index("abc1234") < plot.index("later00")
    assert plot.count("4 mutants") == 2
    assert plot.count("50 %") == 2


def test_without_any_measurement_there_is_a_page_and_an_empty_plot(folder: Path) -> None:
    assert "# What sweeps reach and find" in broker_mutants.page()
    assert broker_mutants.plot().startswith("<svg")


def test_what_the_battery_executes_is_counted_by_room_and_what_it_does_not_is_named() -> None:
    def mutant(function: str, line: int) -> Mutant:
        return Mutant(
            key=f"{function} {line}",
            room="log",
            module="log/log.py",
            function=function,
            operator="call-out",
            before="",
            after="",
            lines=(line, line),
        )

    intact = [
        Intact(digest="", cpu_s=0, executed=frozenset({("log/log.py", 1)}), holds=True),
        Intact(digest="", cpu_s=0, executed=frozenset({("log/log.py", 3)}), holds=False),
    ]
    rooms, never = executed_of([mutant("Log.f", 1), mutant("Log.f", 2), mutant("Log.g", 3)], intact)
    assert rooms == {"log": [1, 3]}
    assert never == ["log/log.py Log.g"], "a schedule that does not hold of the intact broker says nothing"
