from typing import Any

from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import requested
from tests.checks.answers import fails, passes, table_of, unknown

AT: dict[str, Any] = {"topic": "orders", "partition": 0}
STOP: dict[str, Any] = {**AT, "api": "StopReplica"}

CASES = {
    "controllers follow each other": passes(requested(1, seq=1), requested(2, seq=2)),
    "a stale request is refused": passes(requested(2, seq=1), requested(1, seq=2, verdict="stale_controller_epoch")),
    "one of an older controller is applied": fails(
        requested(1, seq=1), requested(3, seq=2), requested(2, seq=3), text="of controller epoch 2 after one of epoch 3"
    ),
    "another broker has heard of a newer controller": passes(
        requested(2, seq=1, broker=3, incarnation="inc-2"), requested(1, seq=2)
    ),
    "another life of the broker knows nothing of it": passes(
        requested(2, seq=1), requested(1, seq=2, incarnation="other")
    ),
    "one for an earlier registration is applied": fails(
        requested(request_broker_epoch=10), text="for registration 10 in registration 20"
    ),
    "one for the first registration of all, and one for the one before": fails(
        requested(seq=1, request_broker_epoch=0),
        requested(seq=2, request_broker_epoch=19),
        severities=["violation", "violation"],
    ),
    "one for any registration is applied": passes(requested(request_broker_epoch=-1)),
    "one for a later registration is applied": passes(requested(request_broker_epoch=21)),
    "a replica is stopped in its own epoch": passes(
        requested(seq=1, **AT, leader_epoch=3), requested(seq=2, **STOP, leader_epoch=3)
    ),
    "a replica is stopped for an older epoch": fails(
        requested(seq=1, **AT, leader_epoch=3),
        requested(seq=2, **STOP, leader_epoch=2),
        text="stopped its replica of orders-0 for epoch 2 when it was in epoch 3",
    ),
    "it is stopped for an older epoch before it got a newer one": passes(
        requested(seq=1, **STOP, leader_epoch=2), requested(seq=2, **AT, leader_epoch=3)
    ),
    "an older epoch was refused": passes(
        requested(seq=1, **AT, leader_epoch=3),
        requested(seq=2, **STOP, leader_epoch=2, partition_verdict="ignored_old"),
    ),
    "a newer role was refused, so the replica is in the older epoch": passes(
        requested(seq=1, **AT, leader_epoch=2),
        requested(seq=2, **AT, leader_epoch=3, partition_verdict="ignored_old"),
        requested(seq=3, **STOP, leader_epoch=2),
    ),
    "a topic that is deleted goes whatever the epoch": passes(
        requested(seq=1, **AT, leader_epoch=3), requested(seq=2, **STOP, leader_epoch=-2)
    ),
    "a topic made anew begins at epoch 0": passes(
        requested(seq=1, **AT, leader_epoch=3),
        requested(seq=2, **STOP, leader_epoch=-2),
        requested(seq=3, **STOP, leader_epoch=0),
    ),
    "a replica is stopped for epoch 0 when it is in the next": fails(
        requested(seq=1, **AT, leader_epoch=1), requested(seq=2, **STOP, leader_epoch=0)
    ),
    "another broker is in a newer epoch": passes(
        requested(seq=1, **AT, leader_epoch=3, broker=3, incarnation="inc-2"), requested(seq=2, **STOP, leader_epoch=2)
    ),
    "another life of the broker was in a newer epoch": passes(
        requested(seq=1, **AT, leader_epoch=3, incarnation="other"), requested(seq=2, **STOP, leader_epoch=2)
    ),
    "another partition is in a newer epoch": passes(
        requested(seq=1, **AT | {"partition": 1}, leader_epoch=3), requested(seq=2, **STOP, leader_epoch=2)
    ),
    "an older role than the replica's is no stop": passes(
        requested(seq=1, **AT, leader_epoch=3), requested(seq=2, **AT, leader_epoch=2)
    ),
    "a role is taken in a newer epoch": passes(requested(), claimed(2, 1, high_watermark=0, end=0)),
    "a role is taken in the same epoch again": fails(
        requested(),
        claimed(2, 1, high_watermark=0, end=0, previous_leader_epoch=1),
        text="in epoch 1 when it was in epoch 1",
    ),
    "there was no control request": unknown(text="control_requests"),
}

test_what_becomes_of_stale_requests = table_of("I14", CASES)
