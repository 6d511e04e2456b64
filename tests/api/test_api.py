"""What the Python API and the fixture do where something is wrong; clusters and engines are not started."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import ClusterError, ScenarioError
from kafka_chaos.api import judge
from kafka_chaos.pytest_plugin import SHOWN, _changes_of

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "lost-write"


def test_results_never_replace_those_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ScenarioError, match="is the folder of a run"):
        judge(EXAMPLE / "operations.jsonl", into=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_results_never_become_evidence(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="which holds evidence"):
        judge(tmp_path, into=tmp_path / "judged")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({}, "nothing to judge", id="no evidence"),
        pytest.param({"operations": EXAMPLE, "checks": ["lost-writ"]}, "did you mean lost-write", id="no such check"),
        pytest.param({"operation": EXAMPLE}, "did you mean operations", id="no such evidence"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        judge(**arguments)


def test_a_cluster_that_is_gone_does_not_hide_the_failure_of_a_test() -> None:
    class Gone:
        def changes_in_words(self, limit: int) -> str:
            raise ClusterError(f"no supervisor answers, {limit}")

    gone: Any = Gone()
    assert _changes_of(gone) == f"not to be had: no supervisor answers, {SHOWN}"
