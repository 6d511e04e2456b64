"""A night: what comes of a step, of all steps, and what its page says."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from harness.scenario.suite import SuiteRun, load_suite
from tools.nightly.__main__ import carried_out, shown
from tools.nightly.results import Outcome, Result, result_of, worst, write_page
from tools.nightly.steps import PUBLISHED, SIDE_BY_SIDE, Step, published_bug, side_by_side, steps

NIGHT = {"day": "2026-11-22", "commit": "abc", "seed": "1", "scale": "1"}


def step(code: str = "", **options: object) -> Step:
    return Step(name="one", about="It does <this>.", command=(sys.executable, "-c", code), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        pytest.param("", Outcome.PASSED, id="a step that ends with 0 has passed"),
        pytest.param("exit(3)", Outcome.DOUBTS, id="one that proves nothing leaves doubts"),
        pytest.param("exit(1)", Outcome.FAILED, id="one that found something has failed"),
        pytest.param("exit(4)", Outcome.FAILED, id="one that broke has failed"),
        pytest.param("import os; os.kill(os.getpid(), 9)", Outcome.FAILED, id="one that was killed has failed"),
    ],
)
def test_what_comes_of_a_step(code: str, outcome: Outcome, tmp_path: Path) -> None:
    assert carried_out(step(code, doubtful=frozenset({3})), tmp_path / "log").outcome is outcome


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        pytest.param("exit(1)", Outcome.PASSED, id="a bug that is there is found"),
        pytest.param("", Outcome.FAILED, id="a bug that is there is not found"),
        pytest.param("exit(3)", Outcome.DOUBTS, id="nothing can be said"),
        pytest.param("exit(4)", Outcome.FAILED, id="the run broke"),
    ],
)
def test_what_comes_of_a_release_with_a_published_bug(code: str, outcome: Outcome, tmp_path: Path) -> None:
    assert carried_out(step(code, passing=1, doubtful=frozenset({3})), tmp_path / "log").outcome is outcome


def test_a_release_that_is_not_there_is_not_run_and_the_page_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAOS_KAFKA", str(tmp_path / "no-releases"))
    run = SuiteRun(scenario="kip-101", set=["system=kafka:0.10.2.2"], expect="violated")
    result = shown(Console(quiet=True), published_bug(run, 7, tmp_path), tmp_path / "log", 600)
    assert (result.outcome, result.seconds) == (Outcome.NOT_HERE, 0)
    page = write_page(tmp_path, [result], NIGHT).read_text()
    assert "no jars of Apache Kafka 0.10.2.2" in page
    assert "chaos kafka get 0.10.2.2" in page


@pytest.mark.parametrize(("jars", "lacks"), [((), "make kafka-libs"), (("kafka_2.13-3.9.1.jar",), "")])
def test_real_kafka_is_asked_again_where_its_jars_are(
    jars: Sequence[str], lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for jar in jars:
        (tmp_path / jar).touch()
    monkeypatch.setattr("tools.nightly.steps.KAFKA_LIBS", tmp_path)
    step = side_by_side("failing_transactions")
    assert step.command[1:] == ("-m", "tools.side_by_side.failing_transactions", "--check")
    assert (step.name, lacks in step.lacking, bool(step.lacking)) == (
        "side-by-side-failing-transactions",
        True,
        bool(lacks),
    )


def test_a_published_bug_is_a_step_that_passes_where_the_bug_is_found(tmp_path: Path) -> None:
    runs = (
        SuiteRun(scenario="kip-101", set=["system=kafka:0.10.2.2"], expect="violated"),
        SuiteRun(scenario="kip-101", set=["system=kafka:0.11.0.3"]),
    )
    broken, mended = (published_bug(run, 7, tmp_path) for run in runs)
    assert [(each.name, each.passing) for each in (broken, mended)] == [
        ("kip-101-kafka-0.10.2.2", 1),
        ("kip-101-kafka-0.11.0.3", 0),
    ]
    assert " run kip-101 --driver process --set system=kafka:0.10.2.2 --seed 7 " in " ".join(broken.command)


def test_a_step_leaves_its_last_words_and_has_its_environment(tmp_path: Path) -> None:
    printing = step("import os; print(os.environ['SIZE'])", environment={"SIZE": "7"})
    assert carried_out(printing, tmp_path / "log").last_lines == "7"
    assert (tmp_path / "log").read_text() == "7\n"


def test_a_step_that_takes_too_long_is_ended_and_may_clean_up(tmp_path: Path) -> None:
    code = (
        "import time\ntry: print('begun', flush=True); time.sleep(600)\nexcept KeyboardInterrupt: print('cleaned up')"
    )
    clock_s = 0.0

    def meanwhile(_seconds: float, line: str) -> None:
        nonlocal clock_s
        clock_s = 5.0 if line == "begun" else 0.0

    result = carried_out(step(code), tmp_path / "log", most_s=5, meanwhile=meanwhile, now_s=lambda: clock_s)
    assert (result.outcome, result.why, result.last_lines) == (Outcome.FAILED, "ended after 5 s", "begun\ncleaned up")


def test_whoever_waits_hears_what_a_step_said_last(tmp_path: Path) -> None:
    release, heard = tmp_path / "release", set()
    code = f"import os, time\nprint('at it', flush=True)\nwhile not os.path.exists({str(release)!r}): time.sleep(0.01)"

    def meanwhile(_seconds: float, line: str) -> None:
        heard.add(line)
        if line == "at it":
            release.touch()

    assert carried_out(step(code), tmp_path / "log", meanwhile=meanwhile).outcome is Outcome.PASSED
    assert "at it" in heard


@pytest.mark.parametrize(
    ("night", "same"),
    [
        pytest.param(NIGHT, True, id="what a step came to is read again"),
        pytest.param(NIGHT | {"commit": "def"}, False, id="what it came to in another night does not count"),
    ],
)
def test_a_night_is_put_together_from_what_its_steps_left(night: dict[str, str], same: bool, tmp_path: Path) -> None:
    result = Result(step=step(), outcome=Outcome.DOUBTS, why="exit code 3", seconds=1.5, last_lines="said")
    result.save(tmp_path, NIGHT)
    assert result_of(step(), tmp_path, night) == (result if same else Result(step=step()))


@pytest.mark.parametrize(
    ("outcomes", "of_all"),
    [
        pytest.param([Outcome.PASSED, Outcome.PASSED], Outcome.PASSED, id="all passed"),
        pytest.param([Outcome.PASSED, Outcome.DOUBTS], Outcome.DOUBTS, id="doubts are more than none"),
        pytest.param([Outcome.PASSED, Outcome.NOT_HERE], Outcome.NOT_HERE, id="what this machine lacks is said"),
        pytest.param([Outcome.NOT_HERE, Outcome.DOUBTS], Outcome.DOUBTS, id="doubts are more than what is lacking"),
        pytest.param([Outcome.DOUBTS, Outcome.NOT_RUN], Outcome.NOT_RUN, id="a night that is not over"),
        pytest.param([Outcome.FAILED, Outcome.NOT_RUN], Outcome.FAILED, id="one that has failed already"),
    ],
)
def test_what_comes_of_a_night(outcomes: Sequence[Outcome], of_all: Outcome) -> None:
    assert worst([Result(step=step(), outcome=outcome) for outcome in outcomes]) is of_all


def test_whatever_a_step_says_is_text(tmp_path: Path) -> None:
    result = Result(step=step(), outcome=Outcome.FAILED, why="exit code 1", seconds=1, last_lines="<b>said</b>")
    page = write_page(tmp_path, [result], NIGHT).read_text()
    assert "It does &lt;this&gt;." in page
    assert "&lt;b&gt;said&lt;/b&gt;" in page


def test_a_small_night_has_the_steps_of_a_whole_one(tmp_path: Path) -> None:
    whole, small = steps(1, 7, tmp_path), steps(0.01, 7, tmp_path)
    assert [each.name for each in whole] == [each.name for each in small]
    assert whole[0].environment == {
        "CHAOS_SAMPLE": "all",
        "CHAOS_ENGINE": "spark",
        "CHAOS_HISTORIES": "2000",
        "CHAOS_DAMAGES": "2000",
        "CHAOS_GATE_HISTORIES": "100000",
        "CHAOS_GATE_FIRST": "700000",
    }
    same = [large.name for large, little in zip(whole, small, strict=True) if large.about == little.about]
    published = [each.name for each in whole if "-kafka-" in each.name]
    recorded = [side_by_side(name).name for name in SIDE_BY_SIDE]
    assert same == [*published, *recorded, "determinism"]
    assert len(published) == len(load_suite(PUBLISHED).runs)
