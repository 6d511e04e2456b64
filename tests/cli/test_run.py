"""`chaos run` of a suite, or several times: which runs, what each came to, and the exit code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml
from ruamel.yaml import YAML

from harness.cli import run_several, run_suite
from harness.errors import Interrupted
from harness.judging.assessment import assemble
from harness.report.conclusion import REFUSED, Conclusion, SuiteEntry
from harness.report.junit import write_suite
from harness.run.run import Run
from harness.scenario.plan import load_plan
from harness.scenario.suite import load_suite
from harness.store.folder import RunFolder
from harness.verdict import BROKEN, HELD, INCONCLUSIVE, VIOLATED, WRONG, ExitCode

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "ci"
SUITES = """\
gate:
  description: Two runs
  runs:
    - {scenario: smoke, driver: simulated}
    - {scenario: acks-all-on-append, driver: simulated, seed: 3, expect: violated}
"""


def conclusion(outcome: str, run: str = "runs/r", seed: int = 1) -> Conclusion:
    return Conclusion(
        run=run, scenario="smoke", driver="simulated", seed=seed, outcome=outcome, fault="", system="",
        environment="", objectives="", reason="" if outcome == HELD else "why",
    )  # fmt: skip


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The outcomes that runs will have, in this order; what is left was not carried out."""
    outcomes: list[str] = []

    def carry_out(folder: RunFolder, *_: Any, **__: Any) -> Conclusion:
        outcome = outcomes.pop(0)
        if outcome == "interrupted":
            raise Interrupted("SIGINT")
        return conclusion(outcome, str(folder.root), load_plan(folder.plan).seed)

    monkeypatch.setattr(run_suite, "carry_out", carry_out)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ci.yaml").write_text(SUITES)
    return outcomes


def entries(out: str) -> Iterator[tuple[str, int, int]]:
    for each in json.loads(out)["entries"]:
        yield each["outcome"], each["seed"], each["tries"]


@pytest.mark.parametrize(
    ("outcomes", "status", "expected"),
    [
        pytest.param([HELD, VIOLATED], 0, [(HELD, 7, 1), (VIOLATED, 3, 1)], id="as expected"),
        pytest.param([HELD, HELD], 1, [(HELD, 7, 1), (HELD, 3, 1)], id="a planted bug is not found"),
        pytest.param(
            [INCONCLUSIVE, HELD, VIOLATED], 0, [(HELD, 7, 2), (VIOLATED, 3, 1)], id="the second try is the same run"
        ),
        pytest.param(
            [INCONCLUSIVE, INCONCLUSIVE, VIOLATED], 3, [(INCONCLUSIVE, 7, 2), (VIOLATED, 3, 1)], id="no third try"
        ),
    ],
)
def test_a_suite_ends_with_what_each_run_came_to(
    chaos: Any, carried_out: list[str], outcomes: list[str], status: int, expected: list[tuple[str, int, int]]
) -> None:
    carried_out += outcomes
    code, out, _ = chaos("run", "ci.yaml:gate", "--seed", "7", "--json", "--junit", "junit.xml")
    assert (code, list(entries(out)), carried_out) == (status, expected, [])
    cases = [case for suite in JUnitXml.fromfile("junit.xml") for case in suite]
    assert [case.name for case in cases] == ["1 smoke simulated", "2 smoke simulated"]
    assert any(case.result for case in cases) == (status != 0)


def test_a_suite_of_one_run_is_said_to_be_one(chaos: Any, carried_out: list[str]) -> None:
    Path("ci.yaml").write_text("\n".join(SUITES.splitlines()[:-1]))
    carried_out += [HELD]
    assert chaos("run", "ci.yaml:gate")[1].splitlines()[-1] == "1 run, 0 not as expected"


def test_an_interruption_ends_the_suite_and_keeps_what_was_seen(chaos: Any, carried_out: list[str]) -> None:
    carried_out += [HELD, "interrupted"]
    code, out, _ = chaos("run", "ci.yaml:gate", "--json", "--junit", "junit.xml")
    assert (code, [outcome for outcome, _, _ in entries(out)]) == (3, [HELD])
    assert len(list(next(iter(JUnitXml.fromfile("junit.xml"))))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("ci.yaml:gate", "--set", "a=1"), "--set: a suite says this of each of its runs", id="an option"),
        pytest.param(("ci.yaml:gate", "--times", "2"), "--times: a suite says this of each", id="several times"),
        pytest.param(("ci.yaml:gat",), "did you mean gate?", id="no such suite"),
        pytest.param(
            ("ci.yaml",),
            "ci.yaml: not a scenario but a file of suites (gate); a suite is run with: chaos run ci.yaml:gate\n",
            id="no suite of a file",
        ),
        pytest.param(("gone.yaml:gate",), "gone.yaml: no such file", id="no such file of suites"),
        pytest.param(("smoke", "--junit", "gone/x.xml"), "gone/x.xml cannot be written", id="no folder for JUnit XML"),
        pytest.param(("smoke", "--junit", "ci.yaml/x.xml"), "ci.yaml is a file, not a folder", id="a file above it"),
    ],
)
def test_what_cannot_be_run_is_refused(
    chaos: Any, carried_out: list[str], arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = chaos("run", *arguments)
    assert code == 2
    assert message in err


def test_a_scenario_that_is_refused_is_in_the_junit_xml(chaos: Any, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    assert chaos("run", "smok", "--junit", str(junit))[0] == 2
    assert "did you mean smoke?" in junit.read_text()


def entry(outcome: str, expect: str = HELD) -> SuiteEntry:
    return SuiteEntry(**conclusion(outcome), expect=expect, tries=1)


def test_the_files_to_copy_run_a_suite_that_is_valid_with_the_same_commands() -> None:
    github, gitlab = (
        YAML(typ="safe", pure=True).load(EXAMPLES / name) for name in ("github-actions.yml", "gitlab-ci.yml")
    )
    job = gitlab["chaos"]
    theirs = [*job["before_script"][1:], *job["script"], *job["after_script"]]
    ours = [step["run"] for step in github["jobs"]["chaos"]["steps"] if "run" in step]
    assert ours == [text.replace("$CI_PIPELINE_IID", "$GITHUB_RUN_NUMBER") for text in theirs]
    assert "chaos/suite.yaml:gate" in job["script"][0]
    assert len(load_suite(f"{EXAMPLES / 'suite.yaml'}:gate").runs) == 3


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        pytest.param([HELD, BROKEN, VIOLATED], ExitCode.VIOLATED, id="a violation outranks a broken environment"),
        pytest.param([INCONCLUSIVE, REFUSED, BROKEN], ExitCode.ENVIRONMENT, id="which outranks a refused run"),
        pytest.param([INCONCLUSIVE, WRONG], ExitCode.USAGE, id="a wrong run outranks one without proof"),
        pytest.param([], ExitCode.HELD, id="nothing"),
    ],
)
def test_the_exit_code_is_the_gravest(outcomes: list[str], code: ExitCode) -> None:
    assert run_suite.exit_code(map(entry, outcomes)) is code


@pytest.mark.parametrize(
    ("outcome", "expect", "kind"),
    [(VIOLATED, HELD, Failure), (HELD, VIOLATED, Failure), (BROKEN, HELD, Error), (INCONCLUSIVE, VIOLATED, Error)],
)
def test_a_run_that_was_not_as_expected_is_no_green_case(
    tmp_path: Path, outcome: str, expect: str, kind: type[Error | Failure]
) -> None:
    write_suite(tmp_path / "junit.xml", "gate", [entry(outcome, expect)])
    ((case,),) = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert [type(each) for each in case.result] == [kind]


def test_runs_of_several_systems_take_turns_with_the_same_seeds_and_are_compared(
    chaos: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seeds = []

    def carry_out(folder: RunFolder, *_: Any, **__: Any) -> Conclusion:
        seeds.append(load_plan(folder.plan).seed)
        assemble(Run.load(folder)).save(folder.verdict)
        return conclusion(HELD if len(seeds) < 3 else VIOLATED, str(folder.root), seeds[-1])

    monkeypatch.setattr(run_several, "carry_out", carry_out)
    monkeypatch.chdir(tmp_path)
    options = ("--driver", "simulated", "--system", "python,python", "--times", "2", "--seed", "7")
    code, out, _ = chaos("run", "smoke", *options, "--json", "--junit", "junit.xml")
    assert (code, seeds) == (1, [7, 7, 8, 8])
    (comparison,) = json.loads(out)["comparisons"]
    (column,) = comparison["columns"]
    assert (column["system"], column["driver"], len(column["runs"])) == ("python", "simulated", 4)
    assert len(list(next(iter(JUnitXml.fromfile("junit.xml"))))) == 4
