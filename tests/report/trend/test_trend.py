"""Many runs as rows, night by night; the folders are made by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.progress import Silent
from harness.report.trend import summary
from harness.report.trend.matrix import Cell, coverage, lines, matrix
from harness.report.trend.page import render
from harness.report.trend.summary import FaultSummary, RunSummary, summaries
from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
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


def names(runs: Path) -> list[str]:
    return [row.name for row in summaries(runs, Silent())]


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
        pytest.param({"residue": ["a process"]}, {}, "environment", False, id="nor is what was left behind"),
    ],
)
def test_a_run_is_a_row(
    tmp_path: Path, changes: dict[str, Any], origin: dict[str, Any], outcome: str, as_expected: bool
) -> None:
    folder = made(tmp_path, "r", **changes)
    folder.origin.write_text(json.dumps(origin), encoding="utf-8")
    (row,) = summaries(tmp_path, Silent())
    assert (row.outcome, row.as_expected) == (outcome, as_expected)
    assert (row.night, row.scenario, row.duration_s) == ("2026-11-20", "kill-leader", 54.0)
    assert [(fault.kind, fault.role, fault.confirmed) for fault in row.faults] == [("kill", "leader", True)]


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
    (row,) = summaries(tmp_path, Silent())
    assert [fault.unavailable_ms for fault in row.faults] == [3000.0]


class TestTable:
    """The rows that are kept."""

    def test_what_is_known_is_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made(tmp_path, "a")
        made(tmp_path, "b")
        first = summaries(tmp_path, Silent())
        monkeypatch.setattr(summary, "_summary", raising(AssertionError("it is read again")))
        assert summaries(tmp_path, Silent()) == first

    def test_judged_again_moved_in_and_gone_are_seen(self, tmp_path: Path) -> None:
        made(tmp_path, "a")
        made(tmp_path, "b")
        assert names(tmp_path) == ["a", "b"]
        (tmp_path / "b").rename(tmp_path.parent / "elsewhere")
        folder = made(tmp_path, "c")
        RunResult.load(folder.verdict).model_copy(update={"checks": BROKEN, "run_id": "a"}).save(
            RunFolder(tmp_path / "a").verdict
        )
        assert [(row.name, row.outcome) for row in summaries(tmp_path, Silent())] == [("a", "violated"), ("c", "held")]

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
    rows = {row.name: (row.scenario, row.outcome, row.as_expected) for row in summaries(tmp_path, Silent())}
    assert rows == {
        "a": ("kill-leader", "held", True),
        "smoke-20261120T020000-00000007": ("smoke", "damaged", False),
    }


def row(night: int, outcome: str = "held", *, expected: bool = True, **changes: Any) -> RunSummary:
    values: dict[str, Any] = {
        "name": f"r{night}-{outcome}",
        "stamp": 0,
        "started_at": f"2026-{10 + night // 31:02d}-{night % 31 + 1:02d}T02:00:00+00:00",
        "scenario": "smoke",
        "dag": "",
        "outcome": outcome,
        "as_expected": expected,
        "duration_s": 10.0 + night,
        "expected_losses": 0,
        "faults": [],
    }
    return RunSummary(**values | changes)


@pytest.mark.parametrize(
    ("runs", "mood", "text", "first"),
    [
        pytest.param([row(0)], "good", "✓", "r0-held", id="one as expected"),
        pytest.param([row(0), row(1)], "good", "✓2", "r0-held", id="two"),
        pytest.param(
            [row(0), row(1, "violated", expected=False)], "bad", "✗1/2", "r1-violated", id="the worst is what counts"
        ),
        pytest.param(
            [row(0), row(1, "inconclusive", expected=False)], "open", "?1/2", "r1-inconclusive", id="nothing proved"
        ),
        pytest.param([row(0, "violated")], "good", "✓", "r0-violated", id="a planted bug that was found"),
    ],
)
def test_a_cell_shows_its_worst_by_symbol_and_leads_there(
    runs: list[RunSummary], mood: str, text: str, first: str
) -> None:
    cell = Cell(runs=runs)
    assert (cell.mood, cell.text, cell.first.name) == (mood, text, first)


def test_a_night_is_a_column_the_newest_first_and_no_more_than_thirty() -> None:
    shown = matrix([row(night) for night in range(40)], lambda run: [run.scenario])
    assert (len(shown.nights), shown.nights[0], shown.nights[-1]) == (30, "2026-11-09", "2026-10-11")
    assert [cell.runs[0].night for cell in shown.rows["smoke"]] == shown.nights


def test_a_run_is_in_the_row_of_each_of_its_faults_once() -> None:
    kill = FaultSummary(kind="kill", role="leader", confirmed=True, unavailable_ms=2000.0)
    pause = FaultSummary(kind="pause", role="one", confirmed=False, unavailable_ms=None)
    runs = [row(0, faults=[kill, kill, pause]), row(1, faults=[])]
    shown = matrix(runs, lambda run: [fault.kind for fault in run.faults])
    assert {kind: [len(cell.runs) for cell in cells] for kind, cells in shown.rows.items()} == {
        "kill": [0, 1],
        "pause": [0, 1],
    }
    roles, covered = coverage(runs, ["kill", "isolate"])
    assert roles == ["leader", "one"]
    assert {kind: {role: (c.confirmed, c.tried) for role, c in by.items()} for kind, by in covered.items()} == {
        "kill": {"leader": (2, 2)},
        "isolate": {},
        "pause": {"one": (0, 1)},
    }


def test_a_line_has_a_value_a_night_and_a_hole_where_there_is_none() -> None:
    kill = [FaultSummary(kind="kill", role="one", confirmed=True, unavailable_ms=ms) for ms in (1000.0, 3000.0)]
    drawn = {line.name: line for line in lines([row(0, faults=kill), row(1), row(2, faults=kill[:1])])}
    assert drawn["no write after kill, longest"].values == [3.0, None, 1.0]
    assert drawn["no write after kill, median"].values == [2.0, None, 1.0]
    assert drawn["a run takes, median"].values == [10.0, 11.0, 12.0]
    assert (drawn["no write after kill, longest"].last, drawn["no write after kill, longest"].worst) == (1.0, 3.0)
    assert drawn["no write after kill, longest"].points == "0.0,2.0 100.0,14.0"


def test_the_page_leads_to_runs_escapes_what_they_say_and_names_what_was_never_tried() -> None:
    page = render(
        [row(0, "violated", expected=False, scenario="<script>"), row(1, name="b", faults=[])],
        lambda run: f"runs/{run.name}",
    )
    assert 'href="runs/r0-violated"' in page
    assert "<script>" not in page
    assert "2 runs, 1 not as expected" in page
    assert "Never tried: bounce, " in page


def test_no_run_at_all_is_a_page_too(tmp_path: Path) -> None:
    assert "0 runs" in render(summaries(tmp_path, Silent()), lambda run: "")


def test_a_fault_without_its_effect_is_tried_and_not_confirmed(tmp_path: Path) -> None:
    made(
        tmp_path,
        "r",
        faults=[FaultResult(injection=0, fault="kill", targets=["1"], verdict=MISMATCH, detail="still there")],
    )
    (one,) = summaries(tmp_path, Silent())
    assert not one.faults[0].confirmed
