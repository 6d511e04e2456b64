"""Which tests that failed are run again, and when does a tier pass after all?"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONS = "[tool.pytest.ini_options]\nmarkers = ['slow']\naddopts = '-p no:cov -p no:randomly -p no:xdist'\n"
TOY = """
import os
from pathlib import Path
import pytest
pytestmark = pytest.mark.slow

def first(name):
    place = Path(name)
    before = place.exists()
    place.touch()
    return not before

@pytest.mark.parametrize("number", range(8))
def test_that_fails_at_first(number):
    assert not first(f"one-{number}")

def test_that_fails():
    assert False

@pytest.fixture
def engine():
    if not first("engine"):
        pytest.skip("no engine")
    assert False

def test_that_is_skipped_later(engine):
    pass
"""
Again = Callable[..., tuple[int, str]]


@pytest.fixture
def again(tmp_path: Path) -> Again:
    """Have toy tests run that a text selects, and what failed run again; return the exit code and what is printed."""
    (tmp_path / "test_toy.py").write_text(TOY, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(OPTIONS, encoding="utf-8")
    (tmp_path / "artifacts").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}

    def run(selected: str, prepare: Callable[[Path], None] = lambda _: None) -> tuple[int, str]:
        pytest_command = [sys.executable, "-m", "pytest", "-q", "-k", selected, "--junitxml=artifacts/test-all.xml"]
        first = subprocess.run(pytest_command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert first.returncode == 1, first.stdout.decode()
        prepare(tmp_path)
        command = [sys.executable, "-m", "tools.rerun"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False
        )
        return done.returncode, done.stdout.decode()

    return run


def of_first_run(path: Path, old: str, new: str) -> None:
    report = path / "artifacts" / "test-all.xml"
    text = report.read_text(encoding="utf-8")
    assert old in text
    report.write_text(text.replace(old, new), encoding="utf-8")


def remember(path: Path, *failed: str) -> None:
    """Have pytest remember that these tests failed."""
    path.joinpath(".pytest_cache/v/cache/lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))


def test_what_passes_alone_fails_no_tier(again: Again) -> None:
    code, printed = again("at_first and (1 or 2)")
    assert (code, printed.count("test_toy.py::test_that_fails_at_first[1] PASSED")) == (0, 1)
    assert "Mend it:\n  test_toy.py::test_that_fails_at_first[1]\n  test_toy.py::test_that_fails_at_first[2]" in printed


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("selected", "said"),
    [
        pytest.param("test_that_fails or (at_first and 1)", "1 failed", id="one fails again"),
        pytest.param("skipped or (at_first and 1)", "1 of 2 failed tests ran again.", id="one is skipped now"),
        pytest.param("at_first", "8 tests failed; at most 5 are run again.", id="too many failed"),
    ],
)
def test_all_else_fails_it(again: Again, selected: str, said: str) -> None:
    code, printed = again(selected.replace("test_that_fails or", "(test_that_fails and not at_first) or"))
    assert code == 1
    assert said in printed


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        pytest.param(
            lambda path: of_first_run(path, "assert not True", "worker gw0 crashed while running it"),
            "A worker died.",
            id="a worker died",
        ),
        pytest.param(
            lambda path: remember(path, "test_toy.py::test_that_fails_at_first[1]"),
            "2 failed tests are reported, and pytest remembers 1.",
            id="a failure is of no test that is known",
        ),
        pytest.param(
            lambda path: remember(path, "test_toy.py"),
            "Not every failure is that of a test.",
            id="a module cannot be imported",
        ),
        pytest.param(
            remember,
            "Not every failure is that of a test.",
            id="nothing is known to have failed",
        ),
    ],
)
def test_nothing_runs_again_where_more_is_wrong_than_tests(
    again: Again, prepare: Callable[[Path], None], said: str
) -> None:
    assert again("at_first and (1 or 2)", prepare) == (1, f"No test is run again: {said}\n")
