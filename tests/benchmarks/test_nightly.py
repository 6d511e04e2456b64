"""A night: what comes of a step, of all steps, and what its page says."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.nightly.__main__ import Outcome, Result, carried_out, worst, write_page
from benchmarks.nightly.steps import HISTORIES, Step, steps


def step(code: str = "", **options: object) -> Step:
    return Step(name="one", about="It does <this>.", command=(sys.executable, "-c", code), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        pytest.param("", Outcome.PASSED, id="a step that ends with 0 has passed"),
        pytest.param("exit(3)", Outcome.DOUBTS, id="one that proves nothing leaves doubts"),
        pytest.param("exit(1)", Outcome.FAILED, id="one that found something has failed"),
        pytest.param("import os; os.kill(os.getpid(), 9)", Outcome.FAILED, id="one that was killed has failed"),
    ],
)
def test_what_comes_of_a_step(code: str, outcome: Outcome, tmp_path: Path) -> None:
    assert carried_out(step(code, doubtful=frozenset({3})), tmp_path / "log").outcome is outcome


def test_a_step_leaves_its_last_words_and_has_its_environment(tmp_path: Path) -> None:
    asked = step("import os; print(os.environ['SIZE'])", environment={"SIZE": "7"})
    assert carried_out(asked, tmp_path / "log").last_lines == "7"
    assert (tmp_path / "log").read_text() == "7\n"


@pytest.mark.parametrize(
    ("outcomes", "of_all"),
    [
        pytest.param([Outcome.PASSED, Outcome.PASSED], Outcome.PASSED, id="all passed"),
        pytest.param([Outcome.PASSED, Outcome.DOUBTS], Outcome.DOUBTS, id="doubts are more than none"),
        pytest.param([Outcome.DOUBTS, Outcome.NOT_RUN], Outcome.NOT_RUN, id="a night that is not over"),
        pytest.param([Outcome.FAILED, Outcome.NOT_RUN], Outcome.FAILED, id="one that has failed already"),
    ],
)
def test_what_comes_of_a_night(outcomes: Sequence[Outcome], of_all: Outcome) -> None:
    assert worst([Result(step=step(), outcome=outcome) for outcome in outcomes]) is of_all


def test_whatever_a_step_says_is_text(tmp_path: Path) -> None:
    result = Result(step=step(), outcome=Outcome.FAILED, why="exit code 1", seconds=1, last_lines="<b>said</b>")
    page = write_page(tmp_path, [result], day="2026-11-22", commit="abc", seed="1", scale="1").read_text()
    assert "It does &lt;this&gt;." in page
    assert "&lt;b&gt;said&lt;/b&gt;" in page


def test_a_small_night_has_the_steps_of_a_whole_one(tmp_path: Path) -> None:
    whole, small = steps(1, 7, tmp_path), steps(0.01, 7, tmp_path)
    assert [each.name for each in whole] == [each.name for each in small]
    assert whole[0].environment == {"CHAOS_SAMPLE": "all", "CHAOS_HISTORIES": str(HISTORIES)}
    assert all(large.about != little.about for large, little in zip(whole[:-1], small[:-1], strict=True))
