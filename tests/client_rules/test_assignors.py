"""Assignments as Kafka's assignors decide them, and their bytes in requests and answers."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client_rules.assignors import (
    ASSIGNORS,
    Assignments,
    Candidate,
    Subscription,
    by_range,
    cooperative_sticky,
    decoded_assignment,
    decoded_subscription,
    encoded_assignment,
    encoded_subscription,
)
from harness.values import TopicPartition


def candidate(member_id: str, *owned: int, generation: int = 1, instance: str | None = None) -> Candidate:
    """A member that subscribes to `orders`, and owns some of its partitions."""
    subscription = Subscription(
        topics=("orders",), owned=tuple(("orders", number) for number in owned), generation=generation
    )
    return Candidate(member_id=member_id, instance_id=instance or None, subscription=subscription)


def numbers(assignments: Assignments) -> dict[str, list[int]]:
    return {member_id: sorted(number for _, number in partitions) for member_id, partitions in assignments.items()}


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        pytest.param([candidate("b"), candidate("a")], {"a": [0, 1, 2], "b": [3, 4]}, id="the first one gets one more"),
        pytest.param(
            [candidate("a"), candidate("z", instance="i")], {"z": [0, 1, 2], "a": [3, 4]}, id="static members are first"
        ),
        pytest.param(
            [candidate(f"m{number}") for number in range(6)],
            {"m0": [0], "m1": [1], "m2": [2], "m3": [3], "m4": [4], "m5": []},
            id="a surplus member gets nothing",
        ),
    ],
)
def test_ranges(candidates: list[Candidate], expected: dict[str, list[int]]) -> None:
    assert numbers(by_range(candidates, {"orders": 5})) == expected


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        pytest.param([candidate("a"), candidate("b")], {"a": [0, 2, 4], "b": [1, 3]}, id="at first in turn"),
        pytest.param([candidate("a", 1, 3), candidate("b", 0, 2, 4)], {"a": [1, 3], "b": [0, 2, 4]}, id="it stays"),
        pytest.param(
            [candidate("a", 0, 1, 2, 3, 4), candidate("b")],
            {"a": [0, 1, 2], "b": []},
            id="a moving partition has no owner until it is given back",
        ),
        pytest.param(
            [candidate("a", 0, 1, 2), candidate("b")], {"a": [0, 1, 2], "b": [3, 4]}, id="what was given back is given"
        ),
        pytest.param(
            [candidate("a", 0, 1, generation=2), candidate("b", 1, 2, 3, 4, generation=1)],
            {"a": [0, 1], "b": [2, 3, 4]},
            id="of two claims the later generation is right",
        ),
        pytest.param(
            [candidate("a", 0), candidate("b", 0, 1)],
            {"a": [3], "b": [1, 2, 4]},
            id="what two claim in one generation both give back first",
        ),
    ],
)
def test_what_is_sticky(candidates: list[Candidate], expected: dict[str, list[int]]) -> None:
    assert numbers(cooperative_sticky(candidates, {"orders": 5})) == expected


KAFKA: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("assigned_by_kafka.jsonl").read_text().splitlines()
]
"""What the assignors of Kafka 3.9.1's Java client did with members that were drawn at random."""


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_kafka_assigns_the_same(assignor: str) -> None:
    cases = [case for case in KAFKA if case["assignor"] == assignor]
    assert len(cases) >= 40
    for case in cases:
        candidates = [
            candidate(
                member_id,
                *member.get("owned", ()),
                generation=member.get("generation", -1),
                instance=member.get("instance"),
            )
            for member_id, member in case["members"].items()
        ]
        assert numbers(ASSIGNORS[assignor](candidates, {"orders": case["partitions"]})) == case["assigned"], case


@given(
    partitions=st.integers(0, 12),
    lives=st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=6),
)
def test_members_come_and_go_and_shares_are_even_after_two_generations(partitions: int, lives: list[set[str]]) -> None:
    owned: dict[str, list[TopicPartition]] = {}
    for generation, members in enumerate(lives):
        owned = {member: owned.get(member, []) for member in members}
        first = _next(owned, generation, partitions)
        unmoved = {member: [each for each in owned[member] if each in first[member]] for member in members}
        assert all(set(first[a]).isdisjoint(unmoved[b]) for a in members for b in members if a != b)
        owned = _next(first, generation, partitions)
        everything = sorted(each for share in owned.values() for each in share)
        assert everything == [("orders", number) for number in range(partitions)]
        sizes = sorted(map(len, owned.values()))
        assert sizes[-1] - sizes[0] <= 1
        assert _next(owned, generation, partitions) == owned


def _next(owned: Assignments, generation: int, partitions: int) -> Assignments:
    candidates = [
        candidate(member, *(number for _, number in share), generation=generation) for member, share in owned.items()
    ]
    assigned = cooperative_sticky(candidates, {"orders": partitions})
    assert all(before <= after for share in assigned.values() for before, after in pairwise(sorted(share)))
    return {member: sorted(share) for member, share in assigned.items()}


@pytest.mark.parametrize(
    "subscription",
    [
        pytest.param(Subscription(topics=("orders",)), id="new"),
        pytest.param(
            Subscription(topics=("a", "orders"), owned=(("orders", 2), ("orders", 0)), generation=7), id="it owns some"
        ),
    ],
)
def test_what_a_member_says_is_heard(subscription: Subscription) -> None:
    assert decoded_subscription(encoded_subscription(subscription)) == subscription


def test_an_older_client_says_less() -> None:
    version_0 = b"\0\0" + b"\0\0\0\1" + b"\0\6orders" + b"\xff\xff\xff\xff"
    assert decoded_subscription(version_0) == Subscription(topics=("orders",))


@pytest.mark.parametrize("partitions", [(), (("a", 1), ("orders", 0), ("orders", 3))], ids=["nothing", "some"])
def test_what_a_member_is_told_is_heard(partitions: tuple[TopicPartition, ...]) -> None:
    assert decoded_assignment(encoded_assignment(partitions)) == partitions
    assert decoded_assignment(b"") == ()
