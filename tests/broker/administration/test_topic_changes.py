from collections.abc import Sequence

import pytest

from harness.broker.administration.topic_changes import MorePartitions, added_partitions
from harness.broker.topics import TopicRefused
from harness.broker.wire.error_codes import ErrorCode

KNOWN = {0: (1, 2), 1: (2, 3)}
ALIVE = (1, 2, 3)


def more(count: int, assignments: Sequence[Sequence[int]] | None = None) -> MorePartitions:
    return MorePartitions(topic="t", count=count, assignments=assignments)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        pytest.param(more(1), ErrorCode.INVALID_PARTITIONS, id="fewer than there are"),
        pytest.param(more(2), ErrorCode.INVALID_PARTITIONS, id="as many as there are"),
        pytest.param(more(3, [[1, 9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="a broker that is not alive"),
        pytest.param(more(4, [[1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="one place for two partitions"),
        pytest.param(more(3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="no place at all"),
        pytest.param(more(3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="no replicas"),
        pytest.param(more(3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="a broker twice"),
        pytest.param(more(3, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, id="fewer replicas than partition 0 has"),
    ],
)
def test_a_wish_that_breaks_a_rule_is_refused(wanted: MorePartitions, error: ErrorCode) -> None:
    with pytest.raises(TopicRefused) as refused:
        added_partitions(KNOWN, wanted, ALIVE)
    assert refused.value.error is error


def test_a_placement_by_hand_is_taken_as_it_is() -> None:
    assert added_partitions(KNOWN, more(4, [[3, 1], [1, 2]]), ALIVE) == {2: [3, 1], 3: [1, 2]}


def test_a_placement_goes_on_where_partition_0_began() -> None:
    """By `AdminUtils.assignReplicasToBrokers` with a fixed start: the index of partition 0's leader."""
    assert added_partitions({0: (2, 3)}, more(4), (1, 2, 3)) == {1: [3, 2], 2: [1, 3], 3: [2, 3]}


def test_a_leader_of_partition_0_that_is_dead_counts_as_the_next_one_alive() -> None:
    assert added_partitions({0: (2,)}, more(2), (1, 3)) == {1: [1]}
