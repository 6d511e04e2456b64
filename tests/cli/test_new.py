import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.contracts.registry import Kind
from kafka_chaos.conformance.chosen import chosen

KINDS = ("check", "fault", "workload")


def test_it_writes_plugins_and_their_tests_as_ruff_has_them(chaos: Any, tmp_path: Path) -> None:
    for kind in KINDS:
        status, out, err = chaos("new", kind, "my-own", "--into", str(tmp_path))
        assert (status, err) == (0, "")
        for path in (tmp_path / f"{kind}s" / "my_own.py", tmp_path / "tests" / f"test_my_own_{kind}.py"):
            assert str(path) in out
            assert "$" not in path.read_text(encoding="utf-8")
    ruff = str(Path(sys.executable).with_name("ruff"))
    for arguments in (["check", "--isolated", "--select", "E4,E7,E9,F,I,UP,B"], ["format", "--isolated", "--check"]):
        ran = subprocess.run([ruff, *arguments, "--no-cache", "."], cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout


def test_a_folder_without_a_slash_is_no_distribution_and_the_message_says_how_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = SimpleNamespace(getoption=lambda _: ["plugins"], getini=lambda _: [])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plugins").mkdir()
    with pytest.raises(pytest.UsageError, match=r"plugins brings no plugins; .*; the folder is written \./plugins"):
        chosen(config, Kind.FAULT)


@pytest.mark.parametrize("there", ["faults/my_own.py", "tests/test_my_own_fault.py"])
def test_it_replaces_no_file_and_writes_none_then(chaos: Any, there: str, tmp_path: Path) -> None:
    (tmp_path / there).parent.mkdir()
    (tmp_path / there).touch()
    status, _, err = chaos("new", "fault", "my-own", "--into", str(tmp_path))
    assert (status, f"{tmp_path / there} exists already" in err) == (2, True)
    assert [path for path in tmp_path.rglob("*.py") if path.stat().st_size] == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(("fault", "Slow Disk"), "is not a name of a plugin", id="no name"),
        pytest.param(("fault", "kill"), "there is a fault kill already", id="a name that is taken"),
    ],
)
def test_what_is_refused_writes_nothing(chaos: Any, arguments: tuple[str, str], text: str, tmp_path: Path) -> None:
    status, _, err = chaos("new", *arguments, "--into", str(tmp_path / "plugins"))
    assert status == 2
    assert text in err
    assert not (tmp_path / "plugins").exists()


@pytest.mark.cluster
def test_what_is_written_is_typed(chaos: Any, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for kind in KINDS:
        assert chaos("new", kind, f"my-{kind}", "--into", str(tmp_path))[0] == 0
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), "--follow-imports=silent"]
    ran = subprocess.run([*mypy, str(tmp_path)], check=False, cwd=root, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.cluster
@pytest.mark.rotating(1)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_passes_its_test_and_the_conformance_suite(chaos: Any, kind: str, tmp_path: Path) -> None:
    assert chaos("new", kind, "my-own", "--into", str(tmp_path / "plugins"))[0] == 0
    env = os.environ | {"CHAOS_ENGINE": "sail"}
    pytest_of = [sys.executable, "-m", "pytest", "-q", "-p", "kafka_chaos.pytest_plugin", "-p", "no:cacheprovider"]
    for arguments in (
        [str(tmp_path / "plugins/tests")],
        ["--pyargs", "kafka_chaos.conformance", "--chaos-plugins", str(tmp_path / "plugins")],
    ):
        ran = subprocess.run(
            [*pytest_of, *arguments], check=False, capture_output=True, text=True, cwd=tmp_path, env=env
        )
        assert ran.returncode == 0, ran.stdout[-3000:]
        assert " passed" in ran.stdout
