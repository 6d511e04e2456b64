from pathlib import Path

import pytest

from harness.errors import ScenarioError
from harness.scenario.suite import is_suite, load_suite, load_suites

GOOD = """\
short:
  description: Two runs
  runs:
    - {scenario: smoke}
    - {scenario: kill-leader, driver: process, seed: 7, set: [duration_s=20], planted_bugs: [], expect: held}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "suites.yaml"
    path.write_text(text)
    return path


def test_a_suite_of_a_file(tmp_path: Path) -> None:
    suite = load_suite(f"{written(tmp_path, GOOD)}:short")
    assert [run.scenario for run in suite.runs] == ["smoke", "kill-leader"]
    assert (suite.runs[0].seed, suite.runs[1].seed, suite.runs[1].set) == (None, 7, ["duration_s=20"])


def test_a_scenario_is_no_suite(tmp_path: Path) -> None:
    assert is_suite(f"{written(tmp_path, GOOD)}:short")
    assert is_suite("nightly")
    assert not any(map(is_suite, ["smoke", str(tmp_path / "suites.yaml"), "gone:short", "nightl"]))


def test_every_built_in_suite_is_valid() -> None:
    assert "nightly" in load_suites()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param("kill-leader", "kil-leader", "suites.yaml:5: short.runs.1: unknown scenario", id="no scenario"),
        pytest.param("driver: process", "driver: dockr", "suites.yaml:5: short.runs.1: --driver", id="no driver"),
        pytest.param(
            "seed: 7", "sed: 7", "suites.yaml:5: short.runs.1.sed: unknown key (did you mean seed?)", id="key"
        ),
        pytest.param("seed: 7", "seed: x", "suites.yaml:5: short.runs.1.seed: must be a valid integer", id="type"),
        pytest.param("duration_s=20", "duration_s=no", "short.runs.1: --set duration_s=no: duration_s", id="override"),
        pytest.param(
            "expect: held", "expect: pass", "short.runs.1.expect: must be 'held', 'violated' or 'missed'", id="no word"
        ),
        pytest.param("description: Two runs", "", "suites.yaml:1: short.description: missing", id="no description"),
    ],
)
def test_every_error_is_shown_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ScenarioError) as refused:
        load_suites(path)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("- a\n", "must be a mapping from names to suites", id="a list"),
        pytest.param("", "must be a mapping from names to suites", id="nothing"),
        pytest.param("a: [\n", "not YAML", id="no YAML"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load_suites(written(tmp_path, text))


def test_a_suite_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"unknown suite 'shot' \(did you mean short\?\)"):
        load_suite(f"{written(tmp_path, GOOD)}:shot")
    with pytest.raises(ScenarioError, match="no such file"):
        load_suite(f"{tmp_path / 'none.yaml'}:short")
