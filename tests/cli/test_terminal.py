import io
import os
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli import app as cli
from harness.cli import terminal
from harness.cli.terminal import TerminalProgress, next_steps, show_outcome, show_plan, show_result
from harness.errors import ClusterError
from harness.phases import Outcome
from harness.report.live.watch import Situation, Watch
from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, Remark, RunResult, SuiteResult
from harness.verdict import ExitCode
from tests.verdicts import CONFIRMED, FAIL, MISMATCH, NOT_JUDGED, PASS, UNKNOWN


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=120, force_terminal=False)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


RESULT = RunResult(
    run_id="smoke-1",
    scenario="smoke",
    driver="process",
    seed=7,
    started_at="2026-01-01T00:00:00+00:00",
    duration_s=1.0,
    faults=[FaultResult(injection=0, fault="kill", targets=["1", "2"], verdict=MISMATCH, detail="[still] there")],
    checks=[CheckResult(check="I1", promise="p", verdict=FAIL, violations=2, expected=1, reason="two leaders")],
    suites=[SuiteResult(suite="leader_epochs", verdict=PASS, evaluated=4, unsuccessful=0)],
    remarks=[Remark(text="a torn line"), Remark(text="a hole", phase="collect", forbids_pass=True)],
    residue=["process 12 still runs"],
)


def test_a_result_shows_faults_checks_suites_remarks_and_the_three_verdicts(console: Console) -> None:
    show_result(console, RESULT)
    text = text_of(console)
    for expected in (
        "kill 1, 2",
        "[still] there",
        "2 violations, 1 allowed by the settings; two leaders",
        "remark    a torn line",
        "fault MISMATCH   system FAIL   environment RESIDUE",
    ):
        assert expected in text
    assert re.search(r"residue +│ +│ RESIDUE +│ process 12 still runs", text)
    assert re.search(r"evidence +│ +│ UNKNOWN +│ a hole", text)
    assert "remark    a hole" not in text, "what forbids PASS is no mere remark"


MIXED = RESULT.model_copy(
    update={
        "faults": [
            FaultResult(injection=n, fault="kill", targets=[], verdict=CONFIRMED, detail="gone") for n in (0, 1)
        ],
        "checks": [
            CheckResult(check="I2", promise="p", verdict=PASS),
            CheckResult(check="I3", promise="p", verdict=PASS, notes=1),
            CheckResult(check="duplicate", promise="p", verdict=PASS, expected=4),
            CheckResult(check="I9", promise="p", verdict=UNKNOWN, reason="no replicas"),
            CheckResult(check="I10", promise="p", verdict=FAIL, violations=1, reason="lost"),
            CheckResult(check="I25", promise="p", verdict=NOT_JUDGED, reason="no such lines"),
        ],
        "suites": [SuiteResult(suite="records", verdict=PASS, evaluated=1, unsuccessful=0)],
    }
)


@pytest.mark.parametrize(
    ("verbose", "rows", "folded"),
    [
        pytest.param(
            False,
            ["I10", "I9", "duplicate"],
            "2 faults confirmed, 2 promises held, 1 promise not judged, 1 suite held",
            id="what failed, what has no answer, what was excused; the rest is a line",
        ),
        pytest.param(
            True,
            ["kill", "kill", "I10", "I9", "duplicate", "I2", "I3", "I25", "records"],
            "",
            id="each, if that is asked for",
        ),
    ],
)
def test_what_matters_comes_first(console: Console, verbose: bool, rows: list[str], folded: str) -> None:
    show_result(console, MIXED, verbose=verbose)
    lines = text_of(console).splitlines()
    assert [match[1] for line in lines if (match := re.match(r"(?:fault|check|suite) +│ (\w+)", line))] == rows
    assert not folded or folded in lines


def test_a_title_that_is_longer_than_its_table_stays_on_one_line(console: Console) -> None:
    run_id = "acks-all-on-append-20260101T120000-00000008"
    show_result(console, RESULT.model_copy(update={"run_id": run_id, "checks": [], "faults": []}))
    assert text_of(console).startswith(run_id)


@pytest.mark.parametrize(
    ("violations", "expected", "notes", "words"),
    [
        pytest.param(0, 0, 0, "", id="nothing"),
        pytest.param(1, 0, 1, "1 violation, 1 note", id="one of each"),
        pytest.param(2, 1, 3, "2 violations, 1 allowed by the settings, 3 notes", id="many"),
    ],
)
def test_what_a_check_found_is_counted_in_words(violations: int, expected: int, notes: int, words: str) -> None:
    check = CheckResult(check="I1", promise="", verdict=PASS, violations=violations, expected=expected, notes=notes)
    assert check.counted == words


def test_an_outcome_shows_what_broke_and_how_to_go_on(console: Console) -> None:
    folder = RunFolder(Path("my runs/smoke-1"))
    outcome = Outcome(folder=folder, result=RESULT, errors=(ClusterError("port 9092 is taken"),))
    show_outcome(console, outcome, next_steps(folder, RESULT))
    text = text_of(console)
    assert "port 9092 is taken" in text
    assert "chaos replay 'my runs/smoke-1'" in text
    assert "report.html" not in text, "there is no page to point at"


def test_a_plan_shows_instants_targets_and_what_the_driver_must_be_able_to(console: Console) -> None:
    show_plan(console, make_plan(load_scenario("smoke"), 7))
    text = text_of(console)
    assert "1.457 s" in text
    assert "leader(orders,0)" in text
    assert "producer-1" in text


def test_a_plan_is_whole_on_a_narrow_terminal() -> None:
    narrow = Console(file=io.StringIO(), width=60)
    show_plan(narrow, make_plan(load_scenario("smoke"), 7))
    assert "…" not in text_of(narrow)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_a_line_an_event_wherever_it_is_shown(terminal: bool) -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=terminal, color_system=None)
    progress = TerminalProgress(console)
    progress.phase_started("drive")
    progress.message("kill broker 2 [leader of orders-0]: confirmed " + "x" * 80)
    progress.phase_finished("drive", 1.25, "")
    progress.phase_started("stop")
    progress.phase_finished("stop", 0.5, "it would not end")
    text = text_of(console)
    assert "kill broker 2 [leader of orders-0]: confirmed" in text
    assert "drive done in 1.2 s" in text
    assert "stop failed in 0.5 s: it would not end" in text
    if not terminal:
        assert len(text.splitlines()) == 5


def test_what_was_seen_before_the_end_of_a_phase_is_not_told_after_it(
    console: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Watch):
        """Looks for so long that the phase ends meanwhile."""

        def look(self) -> Situation:
            progress.phase_finished("drive", 1.25, "")
            return Situation(phase="drive", rows=[("in force", "kill 2")])

    monkeypatch.setattr(terminal, "EVERY_S", 0)
    progress = TerminalProgress(console)
    progress._tell(Slow(RunFolder(tmp_path)))
    assert [line.partition(" s  ")[2] for line in text_of(console).splitlines()] == ["drive done in 1.2 s"]


@pytest.mark.parametrize(
    ("stream", "arguments", "code"),
    [
        pytest.param("stdout", ["plan", "smoke"], ExitCode.HELD, id="of a table"),
        pytest.param("stdout", ["list", "checks"], ExitCode.HELD, id="of lines"),
        pytest.param("stderr", ["plan", "smok"], ExitCode.USAGE, id="of an error"),
    ],
)
def test_a_reader_that_goes_away_ends_no_command_and_changes_no_exit_code(
    monkeypatch: pytest.MonkeyPatch, stream: str, arguments: list[str], code: ExitCode
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(sys, "argv", ["chaos", *arguments])
    with os.fdopen(writer, "w") as nobody_reads:
        monkeypatch.setattr(sys, stream, nobody_reads)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert (ended.value.code or 0) == code
