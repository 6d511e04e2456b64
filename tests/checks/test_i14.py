from typing import Any

import pytest

from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import requested
from tests.checks.answers import FAIL, PASS, UNKNOWN, Answer, Case, answers_of, confirm

pytestmark = pytest.mark.spark

AT: dict[str, Any] = {"topic": "orders", "partition": 0}
STOP: dict[str, Any] = {**AT, "api": "StopReplica"}

CASES = {
    "controllers follow each other": Case(rows=[requested(1, seq=1), requested(2, seq=2)], verdict=PASS),
    "a stale request is refused": Case(
        rows=[requested(2, seq=1), requested(1, seq=2, verdict="stale_controller_epoch")], verdict=PASS
    ),
    "one of an older controller is applied": Case(
        rows=[requested(1, seq=1), requested(3, seq=2), requested(2, seq=3)],
        verdict=FAIL,
        text="of controller epoch 2 after one of epoch 3",
    ),
    "another broker has heard of a newer controller": Case(
        rows=[requested(2, seq=1, broker=3, incarnation="inc-2"), requested(1, seq=2)], verdict=PASS
    ),
    "another life of the broker knows nothing of it": Case(
        rows=[requested(2, seq=1), requested(1, seq=2, incarnation="other")], verdict=PASS
    ),
    "one for an earlier registration is applied": Case(
        rows=[requested(request_broker_epoch=10)], verdict=FAIL, text="for registration 10 in registration 20"
    ),
    "one for the first registration of all, and one for the one before": Case(
        rows=[requested(seq=1, request_broker_epoch=0), requested(seq=2, request_broker_epoch=19)],
        verdict=FAIL,
        severities=["violation", "violation"],
    ),
    "one for any registration is applied": Case(rows=[requested(request_broker_epoch=-1)], verdict=PASS),
    "one for a later registration is applied": Case(rows=[requested(request_broker_epoch=21)], verdict=PASS),
    "a replica is stopped in its own epoch": Case(
        rows=[requested(seq=1, **AT, leader_epoch=3), requested(seq=2, **STOP, leader_epoch=3)], verdict=PASS
    ),
    "a replica is stopped for an older epoch": Case(
        rows=[requested(seq=1, **AT, leader_epoch=3), requested(seq=2, **STOP, leader_epoch=2)],
        verdict=FAIL,
        text="stopped its replica of orders-0 for epoch 2 when it was in epoch 3",
    ),
    "it is stopped for an older epoch before it got a newer one": Case(
        rows=[requested(seq=1, **STOP, leader_epoch=2), requested(seq=2, **AT, leader_epoch=3)], verdict=PASS
    ),
    "an older epoch was refused": Case(
        rows=[
            requested(seq=1, **AT, leader_epoch=3),
            requested(seq=2, **STOP, leader_epoch=2, partition_verdict="ignored_old"),
        ],
        verdict=PASS,
    ),
    "a newer role was refused, so the replica is in the older epoch": Case(
        rows=[
            requested(seq=1, **AT, leader_epoch=2),
            requested(seq=2, **AT, leader_epoch=3, partition_verdict="ignored_old"),
            requested(seq=3, **STOP, leader_epoch=2),
        ],
        verdict=PASS,
    ),
    "a topic that is deleted goes whatever the epoch": Case(
        rows=[requested(seq=1, **AT, leader_epoch=3), requested(seq=2, **STOP, leader_epoch=-2)], verdict=PASS
    ),
    "a topic made anew begins at epoch 0": Case(
        rows=[
            requested(seq=1, **AT, leader_epoch=3),
            requested(seq=2, **STOP, leader_epoch=-2),
            requested(seq=3, **STOP, leader_epoch=0),
        ],
        verdict=PASS,
    ),
    "a replica is stopped for epoch 0 when it is in the next": Case(
        rows=[requested(seq=1, **AT, leader_epoch=1), requested(seq=2, **STOP, leader_epoch=0)], verdict=FAIL
    ),
    "another broker is in a newer epoch": Case(
        rows=[
            requested(seq=1, **AT, leader_epoch=3, broker=3, incarnation="inc-2"),
            requested(seq=2, **STOP, leader_epoch=2),
        ],
        verdict=PASS,
    ),
    "another life of the broker was in a newer epoch": Case(
        rows=[requested(seq=1, **AT, leader_epoch=3, incarnation="other"), requested(seq=2, **STOP, leader_epoch=2)],
        verdict=PASS,
    ),
    "another partition is in a newer epoch": Case(
        rows=[requested(seq=1, **AT | {"partition": 1}, leader_epoch=3), requested(seq=2, **STOP, leader_epoch=2)],
        verdict=PASS,
    ),
    "an older role than the replica's is no stop": Case(
        rows=[requested(seq=1, **AT, leader_epoch=3), requested(seq=2, **AT, leader_epoch=2)], verdict=PASS
    ),
    "a role is taken in a newer epoch": Case(rows=[requested(), claimed(2, 1, high_watermark=0, end=0)], verdict=PASS),
    "a role is taken in the same epoch again": Case(
        rows=[requested(), claimed(2, 1, high_watermark=0, end=0, previous_leader_epoch=1)],
        verdict=FAIL,
        text="in epoch 1 when it was in epoch 1",
    ),
    "there was no control request": Case(rows=[], verdict=UNKNOWN, text="control_requests"),
}

answers = answers_of("I14", CASES)


@pytest.mark.parametrize("case", CASES)
def test_what_becomes_of_stale_requests(case: str, answers: dict[str, Answer]) -> None:
    confirm(CASES[case], answers[case])
