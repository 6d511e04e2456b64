"""What of a member's metadata and assignment is understood: Kafka's consumer protocol, and nothing else."""

import struct

import pytest

from harness.broker.coordinator.subscription import assigned_partitions
from harness.values import TopicPartition


def assignment(*topics: tuple[bytes, list[int]], version: int = 0, user_data: bytes = b"") -> bytes:
    listed = [
        struct.pack(">h", len(name)) + name + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for name, numbers in topics
    ]
    head = struct.pack(">hi", version, len(topics))
    return head + b"".join(listed) + struct.pack(">i", len(user_data)) + user_data


WHOLE = assignment((b"orders", [0, 2]), (b"loose", [1]))


@pytest.mark.parametrize(
    ("data", "partitions"),
    [
        pytest.param(WHOLE, [("orders", 0), ("orders", 2), ("loose", 1)], id="all partitions of all topics"),
        pytest.param(assignment((b"t", [3]), version=3, user_data=b"xyz"), [("t", 3)], id="of a later version"),
        pytest.param(assignment(), [], id="nothing"),
        pytest.param(b"", [], id="no bytes are nothing, too"),
        pytest.param(WHOLE[:-9], None, id="the end is missing"),
        pytest.param(b"\x00", None, id="half a version"),
        pytest.param(struct.pack(">hi", 0, -1), None, id="a negative number of topics"),
        pytest.param(struct.pack(">hi", 0, 7), None, id="more topics than bytes"),
        pytest.param(struct.pack(">hih", 0, 1, -1) + b"topic", None, id="a name of negative length"),
        pytest.param(struct.pack(">hih", 0, 1, 9) + b"topic", None, id="a name longer than what is left"),
        pytest.param(assignment((b"\xff", [1])), None, id="a name that is no text"),
    ],
)
def test_the_partitions_of_an_assignment(data: bytes, partitions: list[TopicPartition] | None) -> None:
    assert assigned_partitions(data) == partitions
