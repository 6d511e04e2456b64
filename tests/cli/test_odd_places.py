"""Commands of the README in folders in which strange things lie, and files that are no scenarios."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import FIELDS
from harness.rejudging.rejudge import Rejudged
from harness.scenario.file import load_scenario, scenario_yaml
from harness.store.folder import RunFolder
from harness.store.result import RunResult
from harness.store.running import State, progressed
from harness.store.version import write_version
from harness.sweep.summary import Summary
from harness.verdict import ExitCode
from tests.cli.test_status import GONE, wrote
from tests.cli.test_trend import swept
from tests.report.trend.test_trend import made

SECRET = "hunter2 " * 20


def fifo(path: Path) -> None:
    os.mkfifo(path)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def circle(path: Path) -> None:
    path.symlink_to(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def says(content: str | bytes) -> Callable[[Path], None]:
    data = content if isinstance(content, bytes) else content.encode()

    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(endless, "not a file", id="a device without an end"),
        pytest.param(fifo, "not a file", id="a pipe without a writer"),
        pytest.param(Path.mkdir, "not a file", id="a folder"),
        pytest.param(circle, "no such file", id="a link to itself"),
        pytest.param(huge, "larger than 262144 bytes", id="a file of three gigabytes"),
        pytest.param(says(b"\xff\xfe"), "not text in UTF-8", id="no text"),
        pytest.param(says(SECRET), "must be a mapping of keys", id="a line of something else"),
        pytest.param(says(f"name: x\npassword: {SECRET}"), "password: unknown key", id="a key that is none"),
        pytest.param(
            says(f"name: x\ntopics: {SECRET}"), "must be a valid list, not a text of 159 characters", id="a long value"
        ),
        pytest.param(
            says(f"name: x\ndescription: [{SECRET}, 2]"), "must be a valid string, not a list of 2 values", id="a list"
        ),
    ],
)
def test_validate_says_what_it_is_and_shows_none_of_it(
    chaos: Any, tmp_path: Path, make: Callable[[Path], None], sentence: str
) -> None:
    path = tmp_path / "s.yaml"
    make(path)
    status, out, err = chaos("validate", str(path))
    assert (status, out) == (2, "")
    assert sentence in err
    assert "hunter2" not in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("trend", ".", "--out"), id="trend"),
        pytest.param(("compare", "a", "b", "--out"), id="compare"),
        pytest.param(("shrink", "smoke", "--seed", "1", "--out"), id="shrink"),
        pytest.param(("docs", "a", "--into"), id="docs"),
    ],
)
def test_where_nothing_can_be_written_is_refused_before_any_work(
    chaos: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    for name in ("a", "b"):
        made(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file"
    file.touch()
    status, out, err = chaos(*command, str(file / "x"))
    assert (status, out) == (2, "")
    assert "is a file, not a folder" in " ".join(err.split())


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs, one of which has no Data Docs, and what may lie beside runs."""
    for name in ("a", "b"):
        made(tmp_path, name)
    documented = RunFolder(tmp_path / "a")
    documented.data_docs.mkdir()
    (documented.data_docs / "index.html").touch()
    documented.expectations.write_text("{}", encoding="utf-8")
    (tmp_path / "note.txt").touch()
    (tmp_path / "site").mkdir()
    circle(tmp_path / "circle")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    fifo(tmp_path / "pipe")
    return tmp_path


LEFT_OUT = ("circle", "note.txt", "nowhere", "pipe", "site")


def test_docs_of_everything_go_on_without_what_has_none(chaos: Any, runs: Path) -> None:
    status, _, err = chaos("docs", *map(str, sorted(runs.iterdir())), "--into", str(runs / "new"))
    assert status == 0
    assert "Data Docs of 1 run<" in (runs / "new" / "index.html").read_text(encoding="utf-8")
    for name in ("note.txt", "pipe", "site"):
        assert f"left out: {runs / name}: not the folder of a run" in err
    for name in ("circle", "nowhere"):
        assert f"left out: {runs / name}: no such folder" in err
    assert f"left out: no Data Docs in {runs / 'b'}: chaos rejudge makes them" in err


@pytest.mark.parametrize("command", ["docs", "rejudge", "why", "report", "explain", "replay"])
@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_no_run_is_refused_by_its_name(chaos: Any, runs: Path, command: str, name: str) -> None:
    status, _, err = chaos(command, str(runs / name))
    assert status == 2
    assert f"{runs / name}: not the folder of a run" in err or f"{runs / name}: no such folder" in err


@pytest.mark.parametrize("command", ["why", "report", "explain", "replay", "status", "abort"])
def test_several_runs_are_refused_by_a_command_that_takes_one(chaos: Any, runs: Path, command: str) -> None:
    status, _, err = chaos(command, str(runs / "a"), str(runs / "b"))
    assert status == 2
    assert err == f"`chaos {command}` takes one run, and 2 are named; `chaos compare` shows several side by side\n"


def test_the_only_run_of_a_folder_is_found_beside_the_library_of_reports(chaos: Any, runs: Path) -> None:
    status, out, err = chaos("why", str(runs / "a"), str(runs / "plotly-0123456789abcdef.min.js"))
    assert (status, "every promise held" in out, err) == (0, True, "")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(json.dumps({"faults": 3}), "run_id: missing, and 6 more", id="a verdict without its parts"),
        pytest.param(None, "does not exist: the run was not judged", id="no verdict"),
    ],
)
def test_a_damaged_run_is_told_in_our_words(chaos: Any, runs: Path, content: str | None, sentence: str) -> None:
    path = runs / "a" / "verdict.json"
    path.unlink()
    if content is not None:
        path.write_text(content, encoding="utf-8")
    wrote(RunFolder(runs / "a"), [("drive", False)], GONE)
    status, _, err = chaos("report", str(runs / "a"))
    assert (status, sentence in err) == (2, True), err
    assert not any(word in err for word in ("Errno", "Field required", "Input should", "pydantic"))
    assert progressed(RunFolder(runs / "a")).state is State.ABANDONED, "it is still to be closed by `chaos reap`"


@pytest.mark.parametrize(
    ("damaged", "sentence"),
    [
        pytest.param("plan.json", "plan.json: not a plan of version 1", id="a plan"),
        pytest.param("scenario.yaml", "scenario.yaml: cannot be read", id="a scenario"),
    ],
)
def test_a_run_that_cannot_be_judged_costs_no_other_its_answer(
    chaos: Any, runs: Path, monkeypatch: pytest.MonkeyPatch, damaged: str, sentence: str
) -> None:
    for name in ("a", "b"):
        (runs / name / "scenario.yaml").write_text(scenario_yaml(load_scenario("kill-leader")), encoding="utf-8")
        write_version(RunFolder(runs / name), FIELDS)
    (runs / "b" / damaged).write_bytes(b"\xff")

    def compare(folders: list[RunFolder], _progress: object) -> Iterator[Rejudged]:
        for folder in folders:
            yield Rejudged(folder=folder, result=RunResult.load(folder.verdict), differences=[])

    monkeypatch.setattr("harness.rejudging.rejudge.compare", compare)
    assert chaos("rejudge", "--dry-run", str(runs / "a"))[0] == ExitCode.HELD
    status, out, err = chaos("rejudge", "--dry-run", "--json", str(runs / "a"), str(runs / "b"))
    assert [Path(each["folder"]).name for each in json.loads(out)] == ["a"]
    assert f"left out: {runs / 'b'}/{sentence}" in err
    assert status == ExitCode.INCONCLUSIVE, "the answer of the other is unknown"


def test_a_run_that_cannot_be_judged_costs_no_sweep_its_answer(
    chaos: Any, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = swept(runs / "sweeps")
    summary = Summary.model_validate_json((sweep / "summary.json").read_bytes())
    monkeypatch.setattr("harness.cli.simulate.rejudge", lambda _root: summary)
    status, out, err = chaos("rejudge", "--json", str(sweep), str(runs / "b"))
    assert [each["scenario"] for each in json.loads(out)] == ["smoke"]
    assert f"left out: {runs / 'b'}/scenario.yaml" in err
    assert status == ExitCode.INCONCLUSIVE


def test_a_finding_that_there_is_none_of_is_refused_at_once(chaos: Any) -> None:
    status, _, err = chaos("shrink", "smoke", "--seed", "1", "--finding", "I99")
    assert status == 2
    assert "unknown finding 'I99'" in err


@pytest.mark.parametrize("command", ["compare", "rejudge", "docs", "trend"])
def test_the_library_of_reports_alone_is_no_run(chaos: Any, runs: Path, command: str) -> None:
    library = runs / "plotly-0123456789abcdef.min.js"
    library.touch()
    status, out, err = chaos(command, str(library))
    assert (status, out, err) == (2, "", "no run is among the named paths\n")


@pytest.mark.parametrize("path", ["note.txt", "note.txt/new"])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["new", "fault", "nap", "--into"], id="new"),
        pytest.param(["run", "smoke", "--runs"], id="run"),
        pytest.param(["replay", "a", "--runs"], id="replay"),
        pytest.param(["status", "--runs"], id="status"),
        pytest.param(["simulate", "smoke", "--schedules", "1", "--out"], id="simulate"),
        pytest.param(["cluster", "up", "--dir"], id="cluster up"),
        pytest.param(["cluster", "down", "--dir"], id="cluster down"),
    ],
)
def test_a_file_in_place_of_a_folder_is_refused(
    chaos: Any, runs: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], path: str
) -> None:
    monkeypatch.chdir(runs)
    status, _, err = chaos(*command, path)
    assert status == 2
    assert f"Invalid value for '{command[-1]}': note.txt is a file, not a folder" in err
