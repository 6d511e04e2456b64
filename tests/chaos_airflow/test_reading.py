"""What became of a run, as far as its folder tells: on a disk and in an object storage."""

import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import ObjectStoragePath

from chaos_airflow.runs import RunName
from chaos_airflow.views.listing import PAGE, Filters, made_by, page_of
from chaos_airflow.views.reading import NotThere, Runs, State
from harness.progress import Silent
from harness.report.conclusion import concluded
from harness.report.trend.summary import summaries
from harness.store.result import Remark, RunResult
from harness.system.pids import identify
from harness.verdict import SystemVerdict
from tests.chaos_airflow.run_folders import FINISHED, NIGHTLY, begun, made, phase
from tests.verdicts import FAIL, MISMATCH, PASS, UNKNOWN

RUN = "smoke-20261120T020000-00000007"
NOT_STARTED = Remark(text="the phase start failed: no port", phase="start", forbids_pass=True, environment=True)
UNJUDGED = {name: seconds for name, seconds in FINISHED.items() if name not in ("judge", "report")}


def ago(hours: int) -> datetime:
    """Return an instant; within a test, as hours may pass between its collection and its turn."""
    return datetime.now(UTC) - timedelta(hours=hours)


def here(pid: int, started: str) -> dict[str, Any]:
    """Return the process that carries out a phase on this machine."""
    return {"host": socket.gethostname(), "pid": pid, "pid_started": started}


def me() -> dict[str, Any]:
    """Return this process as the one that carries out a phase."""
    identity = identify(os.getpid())
    assert identity is not None
    return here(identity.pid, identity.started)


def runs_at(folder: Path) -> Runs:
    """Return the runs of a folder."""
    return Runs(ObjectStoragePath(str(folder), protocol="file"))


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        pytest.param({}, State.HELD, id="all held"),
        pytest.param({"system": FAIL}, State.VIOLATED, id="a promise was broken"),
        pytest.param({"system": UNKNOWN}, State.INCONCLUSIVE, id="a check had no answer"),
        pytest.param({"fault": MISMATCH}, State.INCONCLUSIVE, id="the fault was another one"),
        pytest.param({"residue": ["a process"]}, State.BROKEN, id="something is left"),
        pytest.param({"phase_durations_s": UNJUDGED, "checks": []}, State.CUT_OFF, id="stopped, and never judged"),
        pytest.param(
            {"phase_durations_s": UNJUDGED, "checks": [], "remarks": [NOT_STARTED]}, State.BROKEN, id="never started"
        ),
    ],
)
def test_a_run_with_a_result(tmp_path: Path, changes: dict[str, Any], state: State) -> None:
    made(tmp_path, RUN, **changes)
    shown = runs_at(tmp_path).overview(RUN)
    assert shown.state is state
    assert shown.result is not None


def test_a_start_that_failed_is_concluded_as_the_command_ends(tmp_path: Path) -> None:
    folder = made(tmp_path, RUN, phase_durations_s=UNJUDGED, checks=[], remarks=[NOT_STARTED])
    conclusion = concluded(folder)
    assert conclusion["outcome"] == RunResult.load(folder.verdict).exit_code.outcome == "broken"
    assert "no port" in conclusion["reason"]


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        pytest.param(lambda: [phase("drive", "started")], State.RUNNING, id="a process on another machine drives it"),
        pytest.param(lambda: [phase("drive", "started", when=ago(1))], State.RUNNING, id="and has for an hour"),
        pytest.param(
            lambda: [phase("drive", "started", when=ago(4))], State.CUT_OFF, id="longer than any task may take"
        ),
        pytest.param(lambda: [phase("stop", "ended")], State.RUNNING, id="the next task is in the queue"),
        pytest.param(lambda: [phase("stop", "ended", when=ago(1))], State.CUT_OFF, id="no task came for an hour"),
        pytest.param(lambda: [phase("drive", "started", **me())], State.RUNNING, id="a process drives it here"),
        pytest.param(
            lambda: [phase("drive", "started", **here(os.getpid(), "0"))], State.CUT_OFF, id="its process is gone"
        ),
        pytest.param(
            lambda: [phase("drive", "ended", **here(os.getpid(), "0"))], State.RUNNING, id="gone after the phase"
        ),
        pytest.param(list, State.CUT_OFF, id="it was made long ago and never started"),
        pytest.param(lambda: [{"phase": "drive"}], State.DAMAGED, id="a line without an instant"),
        pytest.param(
            lambda: [phase("drive", "started") | {"utc": "soon"}], State.DAMAGED, id="an instant that is none"
        ),
        pytest.param(
            lambda: [phase("drive", "started") | {"utc": "2026-11-20"}], State.DAMAGED, id="one without a zone"
        ),
    ],
)
def test_a_run_without_a_result(tmp_path: Path, lines: Callable[[], list[dict[str, Any]]], state: State) -> None:
    begun(tmp_path, RUN, *lines())
    assert runs_at(tmp_path).overview(RUN).state is state


@pytest.mark.parametrize(
    ("scenario", "under_test"),
    [
        pytest.param("system: kafka:3.9.1\ndriver: docker\n", ("kafka:3.9.1", "docker"), id="its scenario states both"),
        pytest.param("system: [\n", ("", ""), id="its scenario is half written"),
        pytest.param("- a list\n", ("", ""), id="its scenario is something else"),
        pytest.param("", ("", ""), id="it has none yet"),
    ],
)
def test_a_run_without_a_result_has_what_its_scenario_tests(
    tmp_path: Path, scenario: str, under_test: tuple[str, str]
) -> None:
    folder = tmp_path / RUN
    folder.mkdir()
    if scenario:
        (folder / "scenario.yaml").write_text(scenario, encoding="utf-8")
    shown = runs_at(tmp_path).overview(RUN)
    assert (shown.system, shown.driver) == under_test


def test_a_run_that_was_just_made_is_running(tmp_path: Path) -> None:
    name = f"smoke-{datetime.now(UTC):%Y%m%dT%H%M%S}-00000001"
    begun(tmp_path, name)
    assert runs_at(tmp_path).overview(name).state is State.RUNNING


def test_a_line_deeper_than_python_reads_is_left_out(tmp_path: Path) -> None:
    with begun(tmp_path, RUN, phase("drive", "started", **me())).phases.open("a", encoding="utf-8") as log:
        log.write("[" * 200_000)
    assert runs_at(tmp_path).overview(RUN).state is State.RUNNING


def test_a_torn_last_line_is_no_damage(tmp_path: Path) -> None:
    folder = begun(tmp_path, RUN, phase("drive", "started"))
    with folder.phases.open("a", encoding="utf-8") as log:
        log.write('{"phase": "dri')
    assert runs_at(tmp_path).overview(RUN).state is State.RUNNING


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("{torn", id="torn"),
        pytest.param("[]", id="no object"),
        pytest.param('{"run_id": "x"}', id="another object"),
        pytest.param("\udcff", id="no text"),
        pytest.param("[" * 200_000, id="deeper than Python reads"),
        pytest.param('{"run_id": ' + "9" * 5000 + "}", id="more digits than Python takes"),
    ],
)
def test_a_damaged_result_is_said(tmp_path: Path, content: str) -> None:
    folder = made(tmp_path, RUN)
    folder.verdict.write_bytes(content.encode("utf-8", "surrogateescape"))
    shown = runs_at(tmp_path).overview(RUN)
    assert (shown.state, shown.result) == (State.DAMAGED, None)
    assert "verdict.json" in shown.detail


def test_a_verdict_that_nobody_knows_is_damage(tmp_path: Path) -> None:
    verdict = made(tmp_path, RUN).verdict
    verdict.write_text(verdict.read_text(encoding="utf-8").replace('"PASS"', '"MAYBE"'), encoding="utf-8")
    assert runs_at(tmp_path).overview(RUN).state is State.DAMAGED


def test_what_stands_in_a_file_that_is_no_result_is_not_repeated(tmp_path: Path) -> None:
    begun(tmp_path, RUN).verdict.write_text('{"run_id": 1, "admin": "secret"}', encoding="utf-8")
    assert "secret" not in runs_at(tmp_path).overview(RUN).detail


@pytest.mark.parametrize("duration", ["NaN", "Infinity"])
def test_a_duration_that_is_no_number_is_damage(tmp_path: Path, duration: str) -> None:
    verdict = made(tmp_path, RUN).verdict
    text = verdict.read_text(encoding="utf-8").replace('"duration_s": 54.0', f'"duration_s": {duration}')
    verdict.write_text(text, encoding="utf-8")
    assert runs_at(tmp_path).overview(RUN).state is State.DAMAGED


def test_nobody_waits_for_what_comes_out_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(begun(tmp_path, RUN).verdict)
    assert runs_at(tmp_path).overview(RUN).state is State.DAMAGED


def test_a_result_that_is_a_folder_is_said(tmp_path: Path) -> None:
    begun(tmp_path, RUN).verdict.mkdir()
    assert runs_at(tmp_path).overview(RUN).state is State.DAMAGED


def test_a_result_that_a_link_brings_from_elsewhere_is_not_read(tmp_path: Path) -> None:
    elsewhere = made(tmp_path / "elsewhere", RUN).verdict
    begun(tmp_path / "runs", RUN).verdict.symlink_to(elsewhere)
    shown = runs_at(tmp_path / "runs").overview(RUN)
    assert (shown.state, shown.result) == (State.DAMAGED, None)


@pytest.mark.parametrize("content", ["", "{", '{"dag_id": "x"}', '{"dag_id": 1, "run_id": 2, "task_id": 3}'])
def test_a_damaged_note_of_origin_is_none(tmp_path: Path, content: str) -> None:
    made(tmp_path, RUN).origin.write_text(content, encoding="utf-8")
    shown = runs_at(tmp_path).overview(RUN)
    assert (shown.state, shown.origin) == (State.HELD, None)


def test_a_folder_of_runs_that_is_not_there_yet_has_none(tmp_path: Path) -> None:
    assert runs_at(tmp_path / "none").names() == []


@pytest.mark.parametrize("name", ["", "..", "notes", "smoke-20261120T020000-00000008"])
def test_what_is_no_run_is_not_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes").mkdir()
    with pytest.raises(NotThere):
        runs_at(tmp_path).overview(name)


def test_of_thousands_of_runs_only_a_page_is_read(tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for index in range(2000):
        name = f"smoke-{start + timedelta(minutes=index):%Y%m%dT%H%M%S}-{index:08x}"
        made(tmp_path, name, origin={**NIGHTLY, "run_id": f"night-{index // 4}", "map_index": index % 4})
    runs = runs_at(tmp_path)
    read: list[Any] = []
    cat = runs._fs.cat_ranges

    def watched(paths: list[Any], *rest: Any, **more: Any) -> Any:
        read.extend(paths)
        return cat(paths, *rest, **more)

    runs._fs.cat_ranges = watched
    try:
        page = page_of(runs, Filters(), lambda origin: origin is not None)
    finally:
        del runs._fs.cat_ranges
    assert len(page.rows) == PAGE
    assert len(read) <= 3 * PAGE
    tasks = made_by(runs, runs.names(), NIGHTLY["dag_id"], "night-3")
    assert [origin.map_index for _, origin in tasks] == [3, 2, 1, 0]


def test_names_of_the_same_second_have_an_order(tmp_path: Path) -> None:
    names = [f"{scenario}-20261120T020000-0000000{seed}" for scenario in ("a", "b") for seed in (1, 2)]
    for name in names:
        begun(tmp_path, name)
    assert [name.text for name in runs_at(tmp_path).names()] == sorted(names, reverse=True)
    assert all(isinstance(name, RunName) for name in runs_at(tmp_path).names())


@pytest.mark.parametrize(
    ("origin", "planted", "system", "expected"),
    [
        pytest.param(NIGHTLY, ["no-fence"], FAIL, True, id="a planted bug was found by a task"),
        pytest.param(None, ["no-fence"], FAIL, True, id="a planted bug was found by the command line"),
        pytest.param(NIGHTLY, ["no-fence"], PASS, False, id="a planted bug was not found"),
        pytest.param(NIGHTLY | {"expect": "held"}, ["no-fence"], FAIL, False, id="a suite states another outcome"),
        pytest.param(None, [], FAIL, False, id="a promise was broken"),
    ],
)
def test_a_planted_bug_that_is_found_is_as_expected_everywhere(
    tmp_path: Path, origin: dict[str, Any] | None, planted: list[str], system: SystemVerdict, *, expected: bool
) -> None:
    made(tmp_path, RUN, origin=origin, planted_bugs=planted, system=system)
    assert runs_at(tmp_path).overview(RUN).as_expected is expected
    assert [run.as_expected for run in summaries(tmp_path, Silent()).rows()] == [expected]
