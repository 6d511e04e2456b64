import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness import phases
from harness.cli.options import run_folders
from harness.cli.rejudge import worst as worst_of
from harness.errors import (
    ClusterError,
    EvidenceError,
    HarnessError,
    Interrupted,
    PluginError,
    ScenarioError,
    SparkError,
)
from harness.phases import Outcome
from harness.scenario.file import load_scenario
from harness.scenario.plan import load_plan, make_plan
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, FaultResult, RunResult
from harness.verdict import ExitCode
from tests.raising import raising
from tests.verdicts import CONFIRMED, PASS


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> list[RunFolder]:
    """Runs that were carried out, without a cluster: each holds."""
    folders: list[RunFolder] = []

    def run(folder: RunFolder, **_options: Any) -> Outcome:
        folders.append(folder)
        result = RunResult(
            run_id=folder.run_id,
            scenario="smoke",
            driver="process",
            seed=load_plan(folder.plan).seed,
            started_at="2026-01-01T00:00:00+00:00",
            duration_s=1.0,
            faults=[FaultResult(injection=0, fault="kill", targets=["1"], verdict=CONFIRMED, detail="process gone")],
            checks=[CheckResult(check="I1", promise="p", verdict=PASS, expected=2)],
        )
        result.save(folder.verdict)
        return Outcome(folder=folder, result=result, errors=())

    monkeypatch.setattr(phases, "run", run)
    return folders


def test_help_names_every_command_and_the_exit_codes(chaos: Any) -> None:
    status, out, _ = chaos("--help")
    assert status == 0
    for command in (
        "run",
        "plan",
        "validate",
        "judge",
        "rejudge",
        "why",
        "explain",
        "trend",
        "report",
        "docs",
        "replay",
        "list",
        "cluster",
    ):
        assert f" {command} " in out
    assert "3 inconclusive" in out


def test_the_version_is_that_of_the_distribution(chaos: Any) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chaos("--version")[:2] == (0, f"chaos {project['version']}\n")


def test_what_is_no_run_among_runs_is_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, site, note = tmp_path / "run", tmp_path / "site", tmp_path / "note.txt"
    library = tmp_path / "plotly-0123456789abcdef.min.js"  # which all reports share: no message needed
    run.mkdir()
    site.mkdir()
    note.touch()
    library.touch()
    RunFolder(run).plan.touch()
    assert [folder.root for folder in run_folders([note, library, run, run / ".." / "run", site])] == [run]
    assert capsys.readouterr().err.splitlines() == [
        f"left out: {path}: not the folder of a run: it has no plan.json" for path in (note, site)
    ]


@pytest.mark.parametrize(
    "command",
    ["run", "plan", "validate", "judge", "rejudge", "why", "explain", "trend", "report", "replay", "list", "simulate"],
)
def test_every_command_has_an_example(chaos: Any, command: str) -> None:
    status, out, _ = chaos(command, "--help")
    assert status == 0
    assert f"Example: chaos {command}" in out


def test_a_run_ends_with_the_verdicts_and_how_to_do_it_again(
    chaos: Any, carried_out: list[RunFolder], tmp_path: Path
) -> None:
    status, out, _ = chaos("run", "smoke", "--seed", "7", "--runs", str(tmp_path))
    (folder,) = carried_out
    assert status == 0
    assert "fault CONFIRMED   system PASS   environment CLEAN" in out
    assert "2 allowed by the settings" in out
    assert f"chaos replay {folder.root}" in out
    assert load_plan(folder.plan).seed == 7


def test_json_is_the_verdict_and_nothing_else(chaos: Any, carried_out: list[RunFolder], tmp_path: Path) -> None:
    _, out, _ = chaos("run", "smoke", "--json", "--runs", str(tmp_path))
    assert json.loads(out)["run_id"] == carried_out[0].run_id


def test_options_change_the_scenario_of_the_run(chaos: Any, carried_out: list[RunFolder], tmp_path: Path) -> None:
    options = ["--set", "faults=[]", "--set", "topics.0.partitions=5", "--planted-bug", "acks-all-on-append"]
    chaos("run", "smoke", "--runs", str(tmp_path), *options)
    text = carried_out[0].scenario.read_text()
    assert "faults: []" in text
    assert "partitions: 5" in text
    assert "- acks-all-on-append" in text


def test_a_replay_has_the_same_scenario_and_the_same_plan(
    chaos: Any, carried_out: list[RunFolder], tmp_path: Path
) -> None:
    chaos("run", "smoke", "--runs", str(tmp_path))
    chaos("replay", str(carried_out[0].root), "--runs", str(tmp_path))
    first, second = carried_out
    assert first.root != second.root
    assert first.plan.read_bytes() == second.plan.read_bytes()
    assert first.scenario.read_bytes() == second.scenario.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["run", "smok"], "unknown scenario 'smok' (did you mean smoke?)", id="no such scenario"),
        pytest.param(["run", "smoke", "--set", "x=1"], "--set x=1: x: unknown key", id="no such key"),
        pytest.param(["run", "smoke", "--driver", "vm"], "--driver vm: driver: unknown driver 'vm'", id="no driver"),
        pytest.param(["run", "smoke", "--planted-bug", "b"], "--planted-bug b: planted_bugs", id="no such bug"),
        pytest.param(["run", "smoke", "--seed", "x"], "Invalid value for '--seed'", id="no number"),
        pytest.param(["judge"], "nothing to judge: give --operations or other evidence", id="no evidence"),
        pytest.param(["rejudge", "nowhere"], "nowhere: no such folder", id="no run"),
        pytest.param(["replay", "nowhere"], "nowhere: no such folder", id="no run to replay"),
        pytest.param(
            ["rejudge", "tests", "docs"], "docs: not the folder of a run: it has no plan.json", id="only others"
        ),
        pytest.param(["validate", "/dev/zero"], "/dev/zero: not a file", id="a device"),
        pytest.param(["shrink", "smoke", "--seed", "7", "--finding", "I99"], "unknown finding 'I99'", id="no promise"),
        pytest.param(["trend", "nowhere"], "nowhere: no such folder", id="no folder of runs"),
        pytest.param(["list", "wonders"], "'wonders' is not one of", id="nothing to list"),
    ],
)
def test_bad_input_is_exit_2_and_makes_nothing(
    chaos: Any, carried_out: list[RunFolder], tmp_path: Path, arguments: list[str], message: str
) -> None:
    if arguments[0] == "run":
        arguments = [*arguments, "--runs", str(tmp_path / "runs")]
    status, out, err = chaos(*arguments)
    assert status == 2
    assert message in err
    assert "Traceback" not in out + err
    assert carried_out == []
    assert not (tmp_path / "runs").exists()


def test_validate_says_everything_at_once(chaos: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\nsurprise: 1\n")
    status, out, err = chaos("validate", "smoke", str(bad), "nowhere.yaml")
    assert status == 2
    assert out == "smoke: valid\n"
    assert f"{bad}:2: surprise: unknown key" in err
    assert "nowhere.yaml: no such file" in err


def test_a_plan_is_shown_and_nothing_is_made(chaos: Any) -> None:
    status, out, _ = chaos("plan", "smoke", "--seed", "7")
    assert status == 0
    assert "leader(orders,0)" in out
    assert "known at injection" in out
    assert json.loads(chaos("plan", "smoke", "--seed", "7", "--json")[1])["seed"] == 7


def test_lists_are_for_people_and_for_programs(chaos: Any) -> None:
    assert "kill " in chaos("list", "faults")[1]
    assert {"name", "summary", "provider"} == set(json.loads(chaos("list", "planted-bugs", "--json")[1])[0])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(ScenarioError("x"), ExitCode.USAGE, id="a wrong scenario"),
        pytest.param(PluginError("x"), ExitCode.USAGE, id="a wrong plugin"),
        pytest.param(EvidenceError("x"), ExitCode.USAGE, id="an unreadable run"),
        pytest.param(ClusterError("x"), ExitCode.ENVIRONMENT, id="a broken cluster"),
        pytest.param(Interrupted("x"), ExitCode.INCONCLUSIVE, id="a signal"),
        pytest.param(KeyError("x"), ExitCode.ENVIRONMENT, id="a bug"),
    ],
)
def test_every_error_has_its_exit_code(
    chaos: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: ExitCode
) -> None:
    monkeypatch.setattr(phases, "run", raising(error))
    status, _, err = chaos("run", "smoke", "--runs", str(tmp_path))
    assert status == code
    assert ("Traceback" in err) is not isinstance(error, HarnessError)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(["smoke", "--shrink"], "--guided does not shrink: run `chaos shrink`", id="with --shrink"),
        pytest.param(["kip-101"], "steps have a fixed order", id="a scenario with steps"),
    ],
)
def test_a_guided_search_refuses_what_it_cannot_do_before_anything_is_made(
    chaos: Any, tmp_path: Path, options: list[str], why: str
) -> None:
    status, _, err = chaos("simulate", *options, "--guided", "--out", str(tmp_path / "sweeps"))
    assert (status, why in " ".join(err.split())) == (ExitCode.USAGE, True)
    assert not (tmp_path / "sweeps").exists()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["run", "kill-leader", "--driver", "simulated", "--seed", "7", "--runs"], id="run"),
        pytest.param(["simulate", "smoke", "--schedules", "1", "--out"], id="simulate"),
        pytest.param(["shrink", "smoke", "--seed", "7", "--out"], id="shrink"),
        pytest.param(["keep", "smoke", "--seed", "7", "--about", "x"], id="keep"),
        pytest.param(["judge", "--operations", "ops.jsonl", "--into"], id="judge"),
        pytest.param(["rejudge"], id="rejudge"),
    ],
)
def test_spark_that_does_not_start_is_exit_4_in_every_command_that_judges(
    chaos: Any, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_spark = raising(SparkError("Spark did not start: no Java; the end of its log: nothing"))
    monkeypatch.setattr("harness.analysis.engine.session.spark_session", no_spark)
    monkeypatch.setattr("harness.rejudging.rejudge.spark_session", no_spark)
    folder = tmp_path / "new"
    if command == ["rejudge"]:
        smoke = load_scenario("smoke")
        folder = phases.create(smoke, make_plan(smoke, 7), tmp_path).root
    status, out, err = chaos(*command, str(folder))
    assert status == ExitCode.ENVIRONMENT
    assert "Spark did not start: no Java" in out + err


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        pytest.param([ExitCode.HELD, ExitCode.VIOLATED, ExitCode.ENVIRONMENT], ExitCode.VIOLATED, id="a violation"),
        pytest.param([ExitCode.INCONCLUSIVE, ExitCode.ENVIRONMENT], ExitCode.ENVIRONMENT, id="a broken environment"),
        pytest.param([ExitCode.HELD, ExitCode.INCONCLUSIVE], ExitCode.INCONCLUSIVE, id="one proved nothing"),
        pytest.param([ExitCode.HELD], ExitCode.HELD, id="all held"),
    ],
)
def test_several_runs_have_the_worst_exit_code(codes: list[ExitCode], worst: ExitCode) -> None:
    assert worst_of(codes) is worst


def test_the_program_imports_no_scenario_and_no_library_until_a_command_needs_it() -> None:
    code = "import sys, harness.cli.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    late = ("pydantic", "pyarrow", "ruamel", "jinja2", "harness.scenario", "harness.sweep", "harness.contracts")
    assert not [name for name in loaded if name.startswith(late)]
