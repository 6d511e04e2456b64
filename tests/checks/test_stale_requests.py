from typing import Any

from tests.analysis.fact_rows import Row, claimed
from tests.analysis.protocol_rows import requested
from tests.checks.answers import fails, passes, table_of, unknown


def role(seq: int, epoch: int, **other: Any) -> Row:
    where: dict[str, Any] = {"topic": "orders", "partition": 0}
    return requested(seq=seq, leader_epoch=epoch, **where | other)


def stop(seq: int, epoch: int, **other: Any) -> Row:
    return role(seq, epoch, api="StopReplica", **other)


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
    "a replica is stopped in its own epoch": passes(role(1, 3), stop(2, 3)),
    "a replica is stopped for an older epoch": fails(
        role(1, 3), stop(2, 2), text="stopped its replica of orders-0 for epoch 2 when it was in epoch 3"
    ),
    "it is stopped for an older epoch before it got a newer one": passes(stop(1, 2), role(2, 3)),
    "an older epoch was refused": passes(role(1, 3), stop(2, 2, partition_verdict="ignored_old")),
    "a newer role was refused, so the replica is in the older epoch": passes(
        role(1, 2), role(2, 3, partition_verdict="ignored_old"), stop(3, 2)
    ),
    "a topic that is deleted goes whatever the epoch": passes(role(1, 3), stop(2, -2)),
    "a topic made anew begins at epoch 0": passes(role(1, 3), stop(2, -2), stop(3, 0)),
    "a replica is stopped for epoch 0 when it is in the next": fails(role(1, 1), stop(2, 0)),
    "another broker is in a newer epoch": passes(role(1, 3, broker=3, incarnation="inc-2"), stop(2, 2)),
    "another life of the broker was in a newer epoch": passes(role(1, 3, incarnation="other"), stop(2, 2)),
    "another partition is in a newer epoch": passes(role(1, 3, partition=1), stop(2, 2)),
    "an older role than the replica's is no stop": passes(role(1, 3), role(2, 2)),
    "a role is taken in a newer epoch": passes(requested(), claimed(2, 1, high_watermark=0, end=0)),
    "a role is taken in the same epoch again": fails(
        requested(),
        claimed(2, 1, high_watermark=0, end=0, previous_leader_epoch=1),
        text="in epoch 1 when it was in epoch 1",
    ),
    "there was no control request": unknown(text="control_requests"),
}

test_what_becomes_of_stale_requests = table_of("I14", CASES)
