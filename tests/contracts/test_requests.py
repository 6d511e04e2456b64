"""Requests that steps send and the built-in broker does not serve are laid out as Kafka reads and writes them."""

import pytest

from harness.broker.handlers.apis import APIS
from harness.broker.wire.codec import decode_response, encode_request
from harness.contracts.requests import REQUESTS, as_values, filled

JOIN = {"group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 5000, "topic_partitions": []}
BEGINS = b"\x00\x44\x00\x01\x00\x00\x00\x03\x00\x01c\x00\x02g\x02m\x00\x00\x00\x00"
"""API 68, version 1, request 3 of client c; then group, member and epoch."""


@pytest.mark.parametrize(
    ("fields", "rest"),
    [
        pytest.param({}, b"\x00\x00\x00\x00\x13\x88\x00\x00\x00\x01\x00", id="a dynamic member"),
        pytest.param(
            {"instance_id": "desk", "subscribed_topic_names": ["orders"]},
            b"\x05desk\x00\x00\x00\x13\x88\x02\x07orders\x00\x00\x01\x00",
            id="a static member of a topic",
        ),
    ],
)
def test_a_member_of_a_consumer_group_joins(fields: dict[str, object], rest: bytes) -> None:
    request = filled("ConsumerGroupHeartbeat", JOIN | fields, 1)
    assert bytes(encode_request(request, 1, correlation_id=3, client_id="c")[4:]) == BEGINS + rest


TOPIC = "3e6af4be-e335-42d7-bb8d-d0c01bff42bb"


@pytest.mark.parametrize(
    ("assignment", "partitions"),
    [
        pytest.param(b"\xff", None, id="the assignment has not changed"),
        pytest.param(
            b"\x01\x02" + bytes.fromhex(TOPIC.replace("-", "")) + b"\x02\x00\x00\x00\x07\x00\x00",
            [(TOPIC, [7])],
            id="a new assignment",
        ),
    ],
)
def test_the_answer_has_the_assignment(assignment: bytes, partitions: list[tuple[str, list[int]]] | None) -> None:
    frame = b"\x00\x00\x00\x03\x00" + b"\x00\x00\x00\x00\x00\x6f\x00\x02m\x00\x00\x00\x02\x00\x00\x00\x05" + assignment
    answer = as_values(decode_response(68, 1, frame + b"\x00", correlation_id=3), 1)
    assert (answer["error_code"], answer["member_id"], answer["member_epoch"]) == (111, "m", 2)
    given = answer["assignment"] and answer["assignment"]["topic_partitions"]
    assert partitions == (given and [(str(each["topic_id"]), each["partitions"]) for each in given])


def test_only_later_requests_and_those_of_a_quorum_are_not_served() -> None:
    served = {api.request for api in APIS.values()}
    assert [name for name, request in REQUESTS.items() if request not in served] == [
        "ConsumerGroupHeartbeat",
        "DescribeQuorum",
    ]
