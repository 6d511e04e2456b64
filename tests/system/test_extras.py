"""Without an extra, a command that takes it names it in one sentence, and all others work."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.system import extras
from harness.system.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXAMPLE = "docs/examples/lost-write"


def chaos_without(packages: list[str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `chaos` where these packages cannot be imported."""
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({packages!r}));"
        f"sys.argv[1:] = {[*map(str, arguments)]!r}; from harness.cli.app import main; main()"
    )
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("absent", "arguments", "exit_code", "sentence"),
    [
        pytest.param(
            "great_expectations",
            ["run", "smoke", "--driver", "simulated"],
            4,
            "not installed: great_expectations; in the project's folder: pip install '.[expectations]'",
            id="a run without its suites",
        ),
        pytest.param(
            "great_expectations",
            ["rejudge"],
            4,
            "not installed: great_expectations; in the project's folder: pip install '.[expectations]'",
            id="a run judged again without its suites",
        ),
        pytest.param(
            "confluent_kafka",
            ["run", "smoke", "--driver", "process"],
            2,
            "the driver process cannot do this here: clients: not installed: confluent_kafka; in the project's folder:"
            " pip install '.[clients]'; drivers that can: ",
            id="a run on real brokers without clients",
        ),
        pytest.param(
            "docker",
            ["run", "smoke", "--driver", "docker"],
            2,
            "the driver docker cannot do this here: not installed: docker; in the project's folder:"
            " pip install '.[docker]'; drivers that can: ",
            id="a run in containers without the SDK",
        ),
        pytest.param(
            "docker",
            ["images", "list"],
            4,
            "not installed: docker; in the project's folder: pip install '.[docker]'",
            id="images without the SDK",
        ),
        pytest.param(
            "prometheus_client",
            ["cluster", "up", "--metrics"],
            4,
            "not installed: prometheus_client; in the project's folder: pip install '.[metrics]'",
            id="metrics without the library that serves them",
        ),
        pytest.param(
            "pysail",
            ["rejudge", "--engine", "sail"],
            4,
            "not installed: pysail; in the project's folder: pip install '.[sail]'",
            id="a run judged again without its engine",
        ),
        pytest.param(
            "pysail",
            ["run", "smoke", "--engine", "sail"],
            4,
            "not installed: pysail; in the project's folder: pip install '.[sail]'",
            id="a run without the engine that is to judge it",
        ),
    ],
)
def test_a_command_names_the_extra_that_it_takes(
    tmp_path: Path, absent: str, arguments: list[str], exit_code: int, sentence: str
) -> None:
    (tmp_path / "plan.json").write_text("{}")
    where: dict[str, list[str | Path]] = {
        "run": ["--runs", tmp_path / "runs"],
        "rejudge": [tmp_path],
        "cluster": ["--dir", tmp_path / "cluster"],
    }
    ended = chaos_without([absent], *arguments, *where.get(arguments[0], []))
    assert (ended.returncode, ended.stdout) == (exit_code, "")
    assert ended.stderr.startswith(sentence)
    assert ended.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        pytest.param(["validate", "smoke", "mix"], 0, id="a scenario is validated"),
        pytest.param(["plan", "smoke", "--seed", "7"], 0, id="a plan is made"),
        pytest.param(["list", "drivers"], 0, id="what there is is listed"),
        pytest.param(
            [
                *("judge", "--operations", f"{EXAMPLE}/operations.jsonl"),
                *("--settings", f"{EXAMPLE}/settings.yaml", "--check", "lost-write"),
            ],
            1,
            id="a history is judged",
            marks=(pytest.mark.jvm, pytest.mark.rotating(2, of="sessions")),
        ),
    ],
)
def test_what_takes_no_extra_works_without_any(tmp_path: Path, arguments: list[str], exit_code: int) -> None:
    where: list[str | Path] = ["--into", tmp_path / "judged"] if arguments[0] == "judge" else []
    ended = chaos_without([*EXTRAS], *arguments, *where)
    assert ended.returncode == exit_code, ended.stderr
    assert ended.stdout


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("runpy.run_path('dags/chaos_smoke.py', run_name='__main__')", id="a run for CI"),
        pytest.param("runpy.run_module('chaos_airflow.standalone', run_name='__main__')", id="an Airflow of its own"),
    ],
)
def test_a_program_of_airflow_names_the_extra_too(tmp_path: Path, program: str) -> None:
    code = f"import runpy, sys; sys.modules['airflow'] = None; sys.argv[1:] = ['--runs', sys.argv[1]]; {program}"
    command = [sys.executable, "-c", code, str(tmp_path / "runs")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr == "not installed: airflow; in the project's folder: pip install '.[airflow]'\n"
    assert list(tmp_path.iterdir()) == []


def test_without_a_checkout_the_command_is_that_of_the_installed_distribution(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(extras, "_installed", lambda package: package != "docker")
    sentence = "not installed: docker; pip install 'kafka-chaos-harness[docker]'"
    assert extras.lacking("docker", "pysail") == sentence


def test_the_project_declares_every_extra_and_one_with_all_of_them() -> None:
    declared = PROJECT["optional-dependencies"]
    assert set(declared) == {*EXTRAS.values(), "all"}
    assert declared["all"] == [f"{PROJECT['name']}[{','.join(sorted({*EXTRAS.values()}))}]"]
