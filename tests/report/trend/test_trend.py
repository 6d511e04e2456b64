"""Many runs as rows, night by night; the folders are made by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.progress import Silent
from harness.report.trend import summary
from harness.report.trend.covered import Square, covered
from harness.report.trend.matrix import Cell, lines, matrix, turned
from harness.report.trend.page import SweepSummary, render
from harness.report.trend.summary import FaultSummary, RunSummary, joined, summaries
from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from harness.store.coverage import Coverage, Injected, Played, When, total
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, RunResult
from tests.raising import raising
from tests.report.conftest import SECOND, START, write_fact
from tests.verdicts import CONFIRMED, FAIL, MISMATCH, PASS

PLAN = make_plan(load_scenario("kill-leader"), 7)


def made(runs: Path, name: str, **changes: Any) -> RunFolder:
    """Make the folder of a judged run of kill-leader."""
    folder = RunFolder(runs / name)
    folder.root.mkdir(parents=True)
    folder.plan.write_text(PLAN.to_json(), encoding="utf-8")
    values: dict[str, Any] = {
        "run_id": name,
        "scenario": "kill-leader",
        "driver": "process",
        "seed": 7,
        "started_at": "2026-11-20T02:00:01+00:00",
        "duration_s": 54.0,
        "faults": [FaultResult(injection=0, fault="kill", targets=["1"], verdict=CONFIRMED, detail="gone")],
        "checks": [CheckResult(check="I10", promise="p", verdict=PASS, expected=3)],
    }
    RunResult.model_validate(values | changes).save(folder.verdict)
    return folder


def read(runs: Path) -> list[RunSummary]:
    return summaries(runs, Silent()).rows()


def names(runs: Path) -> list[str]:
    return [row.name for row in read(runs)]


BROKEN = [CheckResult(check="I10", promise="p", verdict=FAIL, violations=2)]


@pytest.mark.parametrize(
    ("changes", "origin", "outcome", "as_expected"),
    [
        pytest.param({}, {}, "held", True, id="what held is as expected"),
        pytest.param({"checks": BROKEN}, {}, "violated", False, id="a broken promise is not"),
        pytest.param({"checks": BROKEN, "planted_bugs": ["x"]}, {}, "violated", True, id="a bug that was planted is"),
        pytest.param({"planted_bugs": ["x"]}, {}, "held", False, id="one that was not found is not"),
        pytest.param({"checks": BROKEN}, {"expect": "violated"}, "violated", True, id="a scheduler may say so"),
        pytest.param({"planted_bugs": ["x"]}, {"expect": "held"}, "held", True, id="and the opposite"),
        pytest.param({"checks": []}, {"expect": 3}, "inconclusive", False, id="nothing proved is not as expected"),
        pytest.param({"residue": ["a process"]}, {}, "broken", False, id="nor is what was left behind"),
    ],
)
def test_a_run_is_a_row(
    tmp_path: Path, changes: dict[str, Any], origin: dict[str, Any], outcome: str, as_expected: bool
) -> None:
    folder = made(tmp_path, "r", **changes)
    folder.origin.write_text(json.dumps(origin), encoding="utf-8")
    (row,) = read(tmp_path)
    assert (row.outcome, row.as_expected) == (outcome, as_expected)
    assert (row.night, row.scenario, row.duration_s) == ("2026-11-20", "kill-leader", 54.0)
    assert [(fault.kind, fault.confirmed) for fault in row.faults] == [("kill", True)]


def test_losses_are_lost_records_and_no_lawful_duplicates_or_other_signs_of_them(tmp_path: Path) -> None:
    expected = {"lost-write": 2, "unseen": 3, "duplicate": 40, "I10": 5, "int-nonmonotonic-send": 7}
    checks = [CheckResult(check=name, promise="p", verdict=PASS, expected=number) for name, number in expected.items()]
    made(tmp_path, "r", checks=checks)
    assert [row.expected_losses for row in read(tmp_path)] == [5]


def test_the_longest_time_without_a_write_under_a_fault_is_its_own(tmp_path: Path) -> None:
    folder = made(tmp_path, "r")
    write_fact(
        folder, "fault_windows", {"injection": 0, "injected_ns": START + 5 * SECOND, "healed_ns": START + 9 * SECOND}
    )
    gaps = [(1, 2), (6, 8), (7, 10), (9.5, 20)]
    write_fact(
        folder,
        "availability",
        *(
            {"from_ns": START + int(a * SECOND), "to_ns": START + int(b * SECOND), "gap_ms": (b - a) * 1e3}
            for a, b in gaps
        ),
    )
    (row,) = read(tmp_path)
    assert [fault.unavailable_ms for fault in row.faults] == [3000.0]


class TestTable:
    """The rows that are kept."""

    def test_what_is_known_is_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made(tmp_path, "a")
        made(tmp_path, "b")
        first = read(tmp_path)
        monkeypatch.setattr(summary, "_row", raising(AssertionError("it is read again")))
        assert read(tmp_path) == first

    def test_judged_again_moved_in_and_gone_are_seen(self, tmp_path: Path) -> None:
        made(tmp_path, "a")
        made(tmp_path, "b")
        assert names(tmp_path) == ["a", "b"]
        (tmp_path / "b").rename(tmp_path.parent / "elsewhere")
        folder = made(tmp_path, "c")
        RunResult.load(folder.verdict).model_copy(update={"checks": BROKEN, "run_id": "a"}).save(
            RunFolder(tmp_path / "a").verdict
        )
        assert [(row.name, row.outcome) for row in read(tmp_path)] == [("a", "violated"), ("c", "held")]

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"PAR1 torn", id="torn"),
        ],
    )
    def test_a_damaged_table_is_made_again(self, tmp_path: Path, content: bytes) -> None:
        made(tmp_path, "a")
        (tmp_path / summary.TABLE).write_bytes(content)
        assert names(tmp_path) == names(tmp_path) == ["a"]

    def test_a_folder_that_cannot_be_written_is_read_all_the_same(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made(tmp_path, "a")
        monkeypatch.setattr("pyarrow.parquet.write_table", raising(OSError("read-only")))
        assert names(tmp_path) == ["a"]
        assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_is_no_run_is_left_out_and_a_damaged_one_is_not_lost(tmp_path: Path) -> None:
    made(tmp_path, "a")
    (tmp_path / "site").mkdir()
    (tmp_path / "note.txt").touch()
    (tmp_path / "linked").symlink_to(made(tmp_path.parent / "others", "c").root)
    made(tmp_path, "smoke-20261120T020000-00000007").verdict.write_text("{torn", encoding="utf-8")
    rows = {row.name: (row.scenario, row.outcome, row.as_expected) for row in read(tmp_path)}
    assert rows == {
        "a": ("kill-leader", "held", True),
        "smoke-20261120T020000-00000007": ("smoke", "damaged", False),
    }


def test_objectives_are_lines_of_their_scenario(tmp_path: Path) -> None:
    for name, measured in (("a", 3.0), ("b", None), ("c", 9.0)):
        late = {"objective": "no_write_s", "limit": 8, "unit": "s", "measured": measured, "verdict": "MISSED"}
        made(tmp_path, name, objectives=[late])
    read(tmp_path)
    rows = read(tmp_path)
    assert [run.outcome for run in rows] == ["missed"] * 3
    (line,) = [each for each in lines(rows) if "no_write_s" in each.name]
    assert (line.name, line.unit, line.values) == ("kill-leader: no_write_s, median · python, process", "s", [6.0])


def row(night: int, outcome: str = "held", *, expected: bool = True, **changes: Any) -> RunSummary:
    values: dict[str, Any] = {
        "name": f"r{night}-{outcome}",
        "stamp": 0,
        "started_at": f"2026-{10 + night // 31:02d}-{night % 31 + 1:02d}T02:00:00+00:00",
        "scenario": "smoke",
        "system": "python",
        "driver": "process",
        "dag": "",
        "outcome": outcome,
        "as_expected": expected,
        "duration_s": 10.0 + night,
        "expected_losses": 0,
        "faults": [],
    }
    return RunSummary(**values | changes)


@pytest.mark.parametrize(
    ("runs", "parts"),
    [
        pytest.param([row(0)], [("good", "✓", "1 held", "r0-held")], id="one as expected"),
        pytest.param([row(0), row(1)], [("good", "✓2", "2 held", "r0-held")], id="two"),
        pytest.param(
            [row(0), row(1, "violated", expected=False), row(2)],
            [("bad", "✗1", "1 violated, not as expected", "r1-violated"), ("good", "✓2", "2 held", "r0-held")],
            id="different ones, the worst first",
        ),
        pytest.param([row(0, "violated")], [("good", "✓", "1 violated", "r0-violated")], id="a planted bug was found"),
        pytest.param([], [], id="no run"),
    ],
)
def test_a_cell_names_each_outcome_by_symbol_and_leads_there(
    runs: list[RunSummary], parts: list[tuple[str, str, str, str]]
) -> None:
    shown = Cell(runs=runs).parts
    assert [(part.mood, part.text, part.description, part.first.name) for part in shown] == parts


def test_a_night_is_a_column_the_newest_first_and_no_more_than_thirty() -> None:
    shown = matrix([row(night) for night in range(40)], lambda run: [run.scenario])
    assert (len(shown.nights), shown.nights[0], shown.nights[-1]) == (30, "2026-11-09", "2026-10-11")
    assert [cell.runs[0].night for cell in shown.rows["smoke"]] == shown.nights


def test_a_run_is_in_the_row_of_each_of_its_faults_once() -> None:
    kill = FaultSummary(kind="kill", confirmed=True, unavailable_ms=2000.0)
    pause = FaultSummary(kind="pause", confirmed=False, unavailable_ms=None)
    runs = [row(0, faults=[kill, kill, pause]), row(1, faults=[])]
    shown = matrix(runs, lambda run: [fault.kind for fault in run.faults])
    assert {kind: [len(cell.runs) for cell in cells] for kind, cells in shown.rows.items()} == {
        "kill": [0, 1],
        "pause": [0, 1],
    }


def test_a_line_has_a_value_a_night_and_a_hole_where_there_is_none() -> None:
    kill = [FaultSummary(kind="kill", confirmed=True, unavailable_ms=ms) for ms in (1000.0, 3000.0)]
    drawn = {line.name: line for line in lines([row(0, faults=kill), row(1), row(2, faults=kill[:1])])}
    assert drawn["no write after kill, longest · python, process"].values == [3.0, None, 1.0]
    assert drawn["no write after kill, median · python, process"].values == [2.0, None, 1.0]
    assert drawn["a run takes, median · python, process"].values == [10.0, 11.0, 12.0]
    assert (
        drawn["no write after kill, longest · python, process"].last,
        drawn["no write after kill, longest · python, process"].worst,
    ) == (1.0, 3.0)
    assert drawn["no write after kill, longest · python, process"].points == "0.0,2.0 100.0,14.0"


def test_figures_of_different_systems_or_drivers_are_never_mixed() -> None:
    runs = [row(0), row(0, system="kafka:4.4.0", duration_s=90.0), row(0, driver="docker", duration_s=50.0)]
    took = {line.name: line.values for line in lines(runs) if line.name.startswith("a run takes, median")}
    assert took == {
        "a run takes, median · kafka:4.4.0, process": [90.0],
        "a run takes, median · python, docker": [50.0],
        "a run takes, median · python, process": [10.0],
    }


def test_a_value_alone_is_seen_too() -> None:
    kill = [FaultSummary(kind="kill", confirmed=True, unavailable_ms=1000.0)]
    drawn = {line.name: line.points for line in lines([row(0), row(1, faults=kill)])}
    assert drawn["no write after kill, longest · python, process"] == "98.0,2.0 100.0,2.0"
    assert lines([row(0)])[0].points == "0.0,2.0 2.0,2.0"


def test_the_page_leads_to_runs_and_escapes_what_they_say(tmp_path: Path) -> None:
    made(tmp_path, "a", scenario="<script>", checks=BROKEN)
    made(tmp_path, "b")
    page = render(summaries(tmp_path, Silent()), lambda run: f"runs/{run.name}")
    assert 'href="runs/a"' in page
    assert "<script>" not in page
    assert "2 runs, 1 not as expected" in page


def counted(folder: RunFolder, **changes: Any) -> None:
    Coverage(**changes).save(folder.coverage)


KILLED = Injected(fault="kill", role=Played.LEADER, when=When.QUIET, tried=1, confirmed=1)
MISSED = KILLED.model_copy(update={"confirmed": 0})


class TestCoverage:
    """What runs tried and saw, added up."""

    def test_counts_of_runs_are_added_up_and_those_without_are_not_recorded(self, tmp_path: Path) -> None:
        seen = {"transitions": {"broker": {"Started → Registered": 3}}, "errors": {"Produce": {"REQUEST_TIMED_OUT": 2}}}
        counted(made(tmp_path, "a"), injected=[KILLED, KILLED.model_copy(update={"role": Played.FOLLOWER})], **seen)
        counted(made(tmp_path, "b"), injected=[MISSED], **seen)
        made(tmp_path, "old")
        runs = summaries(tmp_path, Silent())
        whole = runs.coverage()
        assert (len(runs), whole.runs) == (3, 2)
        assert {(each.role, each.tried, each.confirmed) for each in whole.injected} == {
            (Played.LEADER, 2, 1),
            (Played.FOLLOWER, 1, 1),
        }
        assert whole.transitions == {"broker": {"Started → Registered": 6}}
        assert whole.errors == {"Produce": {"REQUEST_TIMED_OUT": 4}}
        assert runs.named({"old"}).coverage() == total([])

    def test_damaged_counts_are_not_recorded(self, tmp_path: Path) -> None:
        made(tmp_path, "a").coverage.write_text("{torn", encoding="utf-8")
        assert summaries(tmp_path, Silent()).coverage().runs == 0

    def test_only_runs_of_dags_that_may_be_read_count(self, tmp_path: Path) -> None:
        for name, dag in (("a", "chaos_nightly"), ("b", ""), ("c", "secret")):
            folder = made(tmp_path, name)
            folder.origin.write_text(json.dumps({"dag_id": dag}), encoding="utf-8")
            counted(folder, injected=[KILLED])
        readable = summaries(tmp_path, Silent()).of_dags(lambda dag: dag != "secret")
        assert [row.name for row in readable.rows()] == ["a", "b"]
        assert readable.coverage().runs == 2

    def test_folders_are_joined(self, tmp_path: Path) -> None:
        for name in ("b", "a"):
            counted(made(tmp_path / name, name), injected=[KILLED])
        both = joined([summaries(tmp_path / "b", Silent()), summaries(tmp_path / "a", Silent())])
        assert ([row.name for row in both.rows()], both.coverage().runs) == (["a", "b"], 2)

    def test_sweeps_count_on_the_page_and_what_is_not_recorded_is_no_never(self, tmp_path: Path) -> None:
        made(tmp_path, "old")
        page = render(
            summaries(tmp_path, Silent()),
            lambda run: "",
            [
                SweepSummary(schedules=8, coverage=Coverage(runs=8, injected=[KILLED])),
                SweepSummary(schedules=5, coverage=None),
            ],
        )
        assert "From 8 runs, schedules of sweeps included; 6 runs not recorded" in page
        assert "✓ 1 " in page


@pytest.mark.parametrize(
    ("tried", "confirmed", "mood", "text"),
    [
        pytest.param(12, 12, "good", "✓ 12", id="confirmed every time"),
        pytest.param(12, 5, "open", "◐ 5 of 12", id="not every time"),
        pytest.param(2, 0, "bad", "✗ 0 of 2", id="tried in vain"),
        pytest.param(0, 0, "never", "·", id="never tried"),
    ],
)
def test_a_square_says_by_symbol_and_number_how_often_it_was_confirmed(
    tried: int, confirmed: int, mood: str, text: str
) -> None:
    square = Square(when="alone", tried=tried, confirmed=confirmed)
    assert (square.mood, square.text) == (mood, text)


def test_what_could_be_and_never_was_is_named() -> None:
    coverage = Coverage(
        injected=[KILLED],
        transitions={"broker": {"Started → Registered": 3, "Dead → Registered": 1}},
        errors={"Produce": {"REQUEST_TIMED_OUT": 2}},
    )
    shown = covered(coverage, not_recorded=4)
    assert (shown.counted, shown.not_recorded, shown.confirmed) == (1, 4, 1)
    assert "kill" not in shown.never
    assert {"isolate", "pause-zookeeper"} <= set(shown.never)
    assert list(shown.kinds["pause-zookeeper"]) == [Played.ZOOKEEPER]
    assert Played.CLIENT in shown.kinds["kill"]
    assert shown.machines["broker"].seen == {"Started → Registered": 3}
    assert shown.machines["broker"].unknown == {"Dead → Registered": 1}
    assert "Registered → Dead" in shown.machines["broker"].never
    assert "NOT_LEADER_FOR_PARTITION" in shown.errors_never
    assert "REQUEST_TIMED_OUT" not in shown.errors_never


def test_no_run_at_all_is_a_page_too(tmp_path: Path) -> None:
    assert "0 runs" in render(summaries(tmp_path, Silent()), lambda run: "")


def test_a_fault_without_its_effect_is_tried_and_not_confirmed(tmp_path: Path) -> None:
    made(
        tmp_path,
        "r",
        faults=[FaultResult(injection=0, fault="kill", targets=["1"], verdict=MISMATCH, detail="still there")],
    )
    (one,) = read(tmp_path)
    assert not one.faults[0].confirmed


def ended(day: int, seed: int, outcome: str) -> RunSummary:
    """Return a run that should hold."""
    return RunSummary(
        name=f"smoke-202611{day:02}T020000-{seed:08x}",
        stamp=0,
        started_at=f"2026-11-{day:02}T02:00:00",
        scenario="smoke",
        system="python",
        driver="process",
        dag="",
        outcome=outcome,
        as_expected=outcome == "held",
        duration_s=1.0,
        expected_losses=0,
        faults=[],
    )


@pytest.mark.parametrize(
    ("runs", "days"),
    [
        pytest.param([ended(1, 7, "held"), ended(2, 7, "violated")], (1, 2), id="one seed"),
        pytest.param([ended(1, 7, "held"), ended(2, 8, "violated")], (1, 2), id="two seeds, as there is no other pair"),
        pytest.param(
            [ended(1, 7, "held"), ended(2, 8, "held"), ended(3, 7, "violated")], (1, 3), id="rather of one seed"
        ),
        pytest.param(
            [ended(1, 7, "held"), ended(2, 7, "inconclusive"), ended(3, 7, "violated"), ended(4, 7, "violated")],
            (1, 3),
            id="the first bad one, and inconclusive runs are neither",
        ),
        pytest.param([ended(1, 7, "violated"), ended(2, 7, "held")], None, id="good again"),
    ],
)
def test_the_last_good_run_and_the_first_bad_one_after_it(runs: list[RunSummary], days: tuple[int, int] | None) -> None:
    pair = turned([Cell(runs=runs[::-1])])
    assert (pair and tuple(int(run.started_at[8:10]) for run in pair)) == days
