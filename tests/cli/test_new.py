import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("kind", ["check", "fault", "workload"])
def test_it_writes_a_plugin_and_its_test(chaos: Any, kind: str, tmp_path: Path) -> None:
    status, out, err = chaos("new", kind, "my-own", "--into", str(tmp_path))
    assert (status, err) == (0, "")
    written = [tmp_path / f"{kind}s" / "my_own.py", tmp_path / "tests" / "test_my_own.py"]
    for path in written:
        assert str(path) in out
        assert "$" not in path.read_text(encoding="utf-8")
        ast.parse(path.read_text(encoding="utf-8"))
    status, _, err = chaos("new", kind, "my-own", "--into", str(tmp_path))
    assert (status, "exists already" in err) == (2, True)


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
@pytest.mark.by_turns(1)
@pytest.mark.parametrize("kind", ["check", "fault", "workload"])
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
