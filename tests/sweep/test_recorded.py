"""What is kept of a recorded history."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.errors import EvidenceError
from harness.scenario.plan import make_plan
from harness.sweep.recorded import History, histories_in
from harness.sweep.sweep import Candidate
from tests.histories.one_table import one_table
from tests.simulation.scenarios import KILL_LEADER, PAUSE_LEADER, scenario
from tests.sweep.fake_judge import FakeJudge, kinds, pause_breaks_two
from tests.verdicts import FAIL, PASS

LINES = {"journal.jsonl": ["{}", "{}"]}


def kept_history(folder: Path, name: str, *faults: dict[str, object]) -> History:
    """Return a history of a table of two schedules, of which it is the second."""
    declaration = scenario(*faults, name=name)
    judge = FakeJudge(pause_breaks_two)
    verdict = judge.verdict(1, Candidate(scenario=declaration, plan=make_plan(declaration, 7)))
    table = folder / f"{name}.parquet"
    table.mkdir()
    for number in range(2):
        row = {"number": number, "run_id": f"{name}-{number}", "journal": LINES, "tables": None}
        parquet.write_table(pa.Table.from_pylist([row]), table / f"part-{number}.parquet")
    history = History(folder / "kept" / name)
    history.write(declaration, table, verdict, "found by no check")
    return history


def test_it_keeps_scenario_seed_evidence_and_every_answer(tmp_path: Path) -> None:
    history = kept_history(tmp_path, "paused", PAUSE_LEADER)
    recorded = history.recorded()
    assert (recorded.seed, recorded.found, recorded.today) == (7, ["I9"], "found")
    assert {name: answer.verdict for name, answer in recorded.checks.items()} == {
        "I1": PASS,
        "I9": FAIL,
        "I10": PASS,
    }
    candidate = history.candidate()
    assert (kinds(candidate.scenario), candidate.plan.seed) == (["pause"], 7)
    assert history.candidate(8).plan.seed == 8
    kept = parquet.read_table(history.table)
    assert (kept.column_names, kept["run_id"].to_pylist()) == (["number", "run_id", "journal"], ["paused-1"])


def test_what_held_is_expected_to_hold(tmp_path: Path) -> None:
    recorded = kept_history(tmp_path, "killed", KILL_LEADER).recorded()
    assert (recorded.found, recorded.today) == ([], "held")


def test_all_of_a_folder_make_one_table_with_more_after_them(tmp_path: Path) -> None:
    kept_history(tmp_path, "paused", PAUSE_LEADER)
    kept_history(tmp_path, "killed", KILL_LEADER)
    histories = histories_in(tmp_path / "kept")
    assert [each.name for each in histories] == ["killed", "paused"]
    more = pa.Table.from_pylist([{"number": 9, "run_id": "more", "journal": LINES}])
    one_table(histories, [more], tmp_path / "all.parquet")
    rows = parquet.read_table(tmp_path / "all.parquet")
    assert rows["number"].to_pylist() == [0, 1, 2]
    assert rows["run_id"].to_pylist() == ["killed-1", "paused-1", "more"]


def test_a_verdict_that_is_none_is_said_with_its_path(tmp_path: Path) -> None:
    history = kept_history(tmp_path, "killed", KILL_LEADER)
    history.verdict.write_text("{}", encoding="utf-8")
    with pytest.raises(EvidenceError, match=r"killed/verdict\.json: not the verdict of a recorded history"):
        history.recorded()
