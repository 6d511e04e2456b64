"""What the Python API and the fixture do where something is wrong; clusters and engines are not started."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import ClusterError, ScenarioError
from kafka_chaos.api import AsyncCluster, Cluster, Direction, Side, judge
from kafka_chaos.api.asked import Wanted, assignment_of, checked, member, sides_of, target_of
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"needs": "clock"}, "needs: 'str' instances", id="a name without a list"),
        pytest.param({"properties": {"num.partitions": [2]}}, "must be a valid string, not", id="a list as a property"),
    ],
)
def test_a_cluster_refuses_an_argument_of_another_type(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Cluster(**arguments)


def test_a_property_may_be_a_number() -> None:
    assert checked(Wanted, {"properties": {"a": 2, "b": True}, "planted_bugs": (), "needs": ()}, "").properties == {
        "a": "2",
        "b": "true",
    }


async def test_a_cluster_outside_of_its_block_says_so() -> None:
    with pytest.raises(ClusterError, match="use it within its `with` block"):
        await AsyncCluster().kill(0)
    with pytest.raises(ClusterError, match="use it within its `with` block"):
        Cluster().kill(0)


def test_leaders_of_a_new_topic_take_turns() -> None:
    assert assignment_of("orders", 4, 2, (0, 1, 2)) == {0: [0, 1], 1: [1, 2], 2: [2, 0], 3: [0, 1]}


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        pytest.param(("a b", 1, 1), ScenarioError, "name: must match", id="a name that Kafka refuses"),
        pytest.param(("orders", 0, 1), ScenarioError, "partitions: must be greater", id="no partition"),
        pytest.param(("orders", 1, 4), ClusterError, "4 replicas do not fit on 3 brokers", id="too many replicas"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(values: tuple[str, int, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        assignment_of(*values, (0, 1, 2))


def test_sides_and_directions_may_be_given_by_their_values() -> None:
    assert sides_of(Side.PEERS) == (Side.PEERS,)
    assert sides_of(["peers", Side.CLIENTS]) == (Side.PEERS, Side.CLIENTS)  # type: ignore[list-item]
    assert member(Direction, "outbound", "direction") is Direction.OUTBOUND
    with pytest.raises(ScenarioError, match="unknown side 'moon'; known: peers"):
        sides_of(["moon"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        pytest.param("9", ClusterError, "no broker 9; there are: 0, 1, 2", id="no such broker"),
        pytest.param("leader(gone,0)", ClusterError, "no broker is `leader", id="no such partition"),
        pytest.param("zookeeper", ScenarioError, "pause takes ", id="what this fault does not hit"),
        pytest.param("one", ScenarioError, "is drawn when the plan is made", id="what only a seed chooses"),
        pytest.param("lead", ScenarioError, "pause: ", id="no target"),
    ],
)
async def test_a_target_that_cannot_be_hit_is_refused(target: str, error: type[Exception], message: str) -> None:
    class Empty:
        async def partitions(self) -> list[Any]:
            return []

    view: Any = Empty()
    with pytest.raises(error, match=message):
        await target_of("pause", target, view, (0, 1, 2))


def test_a_cluster_that_is_gone_does_not_hide_the_failure_of_a_test() -> None:
    class Gone:
        def describe_changes(self, limit: int) -> str:
            raise ClusterError(f"no supervisor answers, {limit}")

    gone: Any = Gone()
    assert _changes_of(gone) == f"not to be had: no supervisor answers, {SHOWN}"
