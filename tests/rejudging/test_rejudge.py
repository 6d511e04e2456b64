"""Runs judged again: all at once, each into its own folder, with what has changed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness import phases
from harness.analysis.engine import session
from harness.analysis.judge import Judgement
from harness.analysis.judge_many import Case, Judged, batches
from harness.cli import simulate as sweep_command
from harness.errors import EvidenceError
from harness.progress import Progress, Silent
from harness.rejudging import rejudge as rejudging
from harness.report import page
from harness.run import run as recorded
from harness.run.run import Run
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, SuiteResult
from harness.store.version import VERSION
from harness.sweep.sweep import request_file
from harness.verdict import ExitCode, SystemVerdict
from tests.simulation.scenarios import KILL_LEADER, scenario
from tests.verdicts import FAIL, PASS

HELD = SuiteResult(suite="records", verdict=PASS, evaluated=1, unsuccessful=0)


def answer(run_id: str, verdict: SystemVerdict) -> Judgement:
    check = CheckResult(check="I9", promise="p", verdict=verdict, violations=int(verdict is FAIL))
    return Judgement(run_id=run_id, checks=[check], remarks=[], counts={"sends": 3})


class Bench:
    """Two recorded runs, and judges that say what they are told to."""

    def __init__(self, root: Path) -> None:
        declaration = scenario(KILL_LEADER)
        self.folders = [phases.create(declaration, make_plan(declaration, seed), root) for seed in (1, 2)]
        self.says: dict[str, Judgement | EvidenceError] = {
            folder.run_id: answer(folder.run_id, PASS) for folder in self.folders
        }
        self.jobs: list[tuple[list[str], bool]] = []

    def judge_many(
        self, _spark: Any, cases: Sequence[Case], scratch: Path, *, keep: bool, progress: Any
    ) -> Iterator[Judged]:
        assert scratch.is_dir()
        self.jobs.append(([each.folder.run_id for each in cases], keep))
        yield from [(each.folder, self.says[each.folder.run_id]) for each in cases]

    def write(self, run: Run, *, alone: bool) -> Path:
        run.folder.report.write_text("page", encoding="utf-8")
        return run.folder.report

    @property
    def paths(self) -> list[str]:
        return [str(folder.root) for folder in self.folders]

    def again(self) -> list[rejudging.Rejudged]:
        return list(rejudging.rejudge(self.folders, Silent()))


@contextmanager
def no_session(*, size_bytes: int, progress: Progress, anywhere: bool) -> Iterator[None]:
    """Stands for a session; it is told how much there is to judge."""
    assert size_bytes >= 0
    yield


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path / "runs")
    monkeypatch.setattr(page, "write", made.write)
    monkeypatch.setattr(session, "spark_session", no_session)
    monkeypatch.setattr(rejudging, "spark_session", no_session)
    monkeypatch.setattr(rejudging, "judge_many", made.judge_many)
    monkeypatch.setattr(rejudging, "suites_imported_meanwhile", nullcontext)
    monkeypatch.setattr(phases, "run_suites", lambda *_: [HELD])
    monkeypatch.setattr(recorded, "holes_in", lambda *_: [])
    return made


def test_all_runs_are_one_job_and_each_gets_its_own_result_and_report(bench: Bench) -> None:
    again = bench.again()
    assert bench.jobs == [([folder.run_id for folder in bench.folders], True)]
    assert [each.result.checks[0].verdict for each in again] == [PASS, PASS]
    assert [each.differences for each in again] == [[], []]
    assert all(folder.report.exists() and folder.verdict.exists() for folder in bench.folders)


def test_another_answer_than_before_is_a_difference(bench: Bench) -> None:
    bench.again()
    other = bench.folders[1].run_id
    bench.says[other] = answer(other, FAIL)
    first, second = bench.again()
    assert first.differences == []
    assert [str(difference) for difference in second.differences] == [
        "verdict system: PASS → FAIL",
        "check I9 log-matching: PASS → FAIL (1 violations)",
    ]
    assert second.result.verdicts.exit_code is ExitCode.VIOLATED


def test_a_run_that_cannot_be_judged_proves_nothing_and_costs_no_other_its_answer(bench: Bench) -> None:
    bench.again()
    bench.says[bench.folders[0].run_id] = EvidenceError("it could not be judged: no disk")
    first, second = bench.again()
    assert [str(difference) for difference in first.differences] == [
        "verdict system: PASS → UNKNOWN",
        "check I9 log-matching: PASS → no answer",
    ]
    assert "the checks could not judge: it could not be judged: no disk" in map(str, first.result.remarks)
    assert second.result.checks[0].verdict is PASS


def test_a_dry_run_writes_nothing_and_keeps_what_the_suites_said(bench: Bench) -> None:
    bench.again()
    before = {path: path.read_bytes() for folder in bench.folders for path in folder.root.rglob("*") if path.is_file()}
    bench.says = {run_id: answer(run_id, FAIL) for run_id in bench.says}
    again = list(rejudging.compare(bench.folders, Silent()))
    assert bench.jobs[1:] == [([folder.run_id for folder in bench.folders], False)]
    assert [str(difference) for each in again for difference in each.differences] == 2 * [
        "verdict system: PASS → FAIL",
        "check I9 log-matching: PASS → FAIL (1 violations)",
    ]
    assert again[0].result.suites == [HELD]
    after = {path: path.read_bytes() for folder in bench.folders for path in folder.root.rglob("*") if path.is_file()}
    assert after == before


def test_a_run_of_a_later_version_is_refused_before_anything_is_judged(bench: Bench) -> None:
    bench.folders[1].format.write_text(f'{{"evidence": {VERSION + 1}}}', encoding="utf-8")
    with pytest.raises(EvidenceError, match="its evidence has version"):
        bench.again()
    assert bench.jobs == []


def test_an_answer_before_that_cannot_be_read_is_replaced(bench: Bench) -> None:
    bench.folders[0].verdict.write_text("{", encoding="utf-8")
    assert [each.differences for each in rejudging.compare(bench.folders, Silent())] == [[], []]
    first, _ = bench.again()
    assert (first.result.checks[0].verdict, first.differences) == (PASS, [])
    assert json.loads(bench.folders[0].verdict.read_bytes())["run_id"] == bench.folders[0].run_id


@pytest.mark.parametrize("content", [None, b"\xff"], ids=["it is lost", "it is no text"])
def test_a_run_whose_scenario_cannot_be_read_is_refused_by_name(bench: Bench, content: bytes | None) -> None:
    bench.folders[1].scenario.unlink()
    if content is not None:
        bench.folders[1].scenario.write_bytes(content)
    with pytest.raises(EvidenceError, match=f"{bench.folders[1].scenario}: cannot be read"):
        bench.again()


def test_the_command_shows_what_has_changed(bench: Bench, chaos: Any) -> None:
    chaos("rejudge", *bench.paths)
    bench.says = {run_id: answer(run_id, FAIL) for run_id in bench.says}
    status, out, _ = chaos("rejudge", "--dry-run", *bench.paths, bench.paths[0])
    assert status == ExitCode.VIOLATED
    assert "changed answers" in out
    assert "FAIL (1 violations)" in out
    assert "2 runs judged again, 2 with changed answers" in out
    status, out, _ = chaos("rejudge", "--json", bench.paths[0])
    (printed,) = json.loads(out)
    assert (status, printed["exit_code"], printed["verdicts"]["system"]) == (ExitCode.VIOLATED, 1, "FAIL")
    assert printed["differences"] == [
        {"kind": "verdict", "name": "system", "before": "PASS", "after": "FAIL"},
        {"kind": "check", "name": "I9", "before": "PASS", "after": "FAIL (1 violations)"},
    ]


def test_a_sweep_that_is_named_twice_is_judged_once(
    tmp_path: Path, chaos: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_file(tmp_path).write_text("{}", encoding="utf-8")
    summary = SimpleNamespace(exit_code=0, model_dump=lambda mode: {})
    monkeypatch.setattr(sweep_command, "rejudge", lambda root: summary)
    status, out, _ = chaos("rejudge", "--json", str(tmp_path), f"{tmp_path}/")
    assert (status, json.loads(out)) == (0, [{"folder": str(tmp_path)}])


def test_batches_are_so_large_and_never_have_two_runs_of_one_name(tmp_path: Path) -> None:
    folders = [RunFolder(tmp_path / parent / name) for parent in ("a", "b") for name in ("x", "y")]
    for folder in folders:
        folder.root.mkdir(parents=True)
        folder.zookeeper.write_bytes(b"{}\n" * 10)
    cases = [Case(folder=folder, settings=None, checks=()) for folder in folders]  # type: ignore[arg-type]
    assert [[each.folder for each in batch] for batch in batches(cases)] == [folders[:2], folders[2:]]
    assert [len(batch) for batch in batches(cases, batch_bytes=59)] == [1, 1, 1, 1]
    assert [len(batch) for batch in batches(cases, batch_bytes=60)] == [2, 2]
    assert batches([]) == []
