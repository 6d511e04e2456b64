from dataclasses import replace
from typing import Any

from harness.analysis.tables.schemas import TORN
from tests.analysis.fact_rows import Row, held, remark, replica, state
from tests.analysis.protocol_rows import S, superseded, topic
from tests.checks.answers import POWER_LOSS, STRICT, UNCLEAN, UNHEARD, fails, passes, table_of, unknown

FORGETFUL = replace(STRICT, tombstones_seen_ms=20_000)
BOTH = state(0, leader=1, epoch=1, isr=[1, 2])
HOLE = (BOTH, replica(1, 1), replica(2, 1), held(1, "a", 0))
ONE = state(0, leader=1, epoch=1, isr=[1])

OFFSETS: dict[str, Any] = {"topic": "__consumer_offsets"}
AWAY_NS = 20 * S


def a_hole_after(away_ns: int, topic: dict[str, Any], content: str = "") -> list[Row]:
    """Replica 2 was out of the ISR for a while, and has a record that replica 1 lacks, or another one."""
    return [
        state(0, leader=1, epoch=1, isr=[1, 2], time_ns=0, **topic),
        state(1, leader=1, epoch=1, isr=[1], time_ns=10 * S, **topic),
        state(2, leader=1, epoch=1, isr=[1, 2], time_ns=10 * S + away_ns, **topic),
        replica(1, 1, **topic),
        replica(2, 1, **topic),
        held(2, "a", 0, **topic),
        *([held(1, content, 0, **topic)] if content else []),
    ]


OF_OFFSETS = state(0, leader=1, epoch=1, isr=[1, 2], **OFFSETS)
CASES = {
    "the leader of an internal topic wrote in the end": passes(
        OF_OFFSETS,
        replica(1, 2, high_watermark=1, **OFFSETS),
        replica(2, 1, **OFFSETS),
        held(1, "a", 0, **OFFSETS),
        held(2, "a", 0, **OFFSETS),
        held(1, "b", 1, **OFFSETS),
    ),
    "it has the higher id": passes(
        state(0, leader=2, epoch=1, isr=[1, 2], **OFFSETS),
        replica(2, 2, high_watermark=1, **OFFSETS),
        replica(1, 1, **OFFSETS),
        held(1, "a", 0, **OFFSETS),
        held(2, "a", 0, **OFFSETS),
        held(2, "b", 1, **OFFSETS),
    ),
    "one of its two followers has fetched it": passes(
        state(0, leader=3, epoch=1, isr=[1, 2, 3], **OFFSETS),
        *(replica(1, 2, high_watermark=0, **OFFSETS), replica(2, 1, **OFFSETS)),
        *(replica(3, 2, high_watermark=1, **OFFSETS), held(3, "a", 0, **OFFSETS), held(3, "b", 1, **OFFSETS)),
        *(held(1, "a", 0, **OFFSETS), held(2, "a", 0, **OFFSETS), held(1, "b", 1, **OFFSETS)),
    ),
    "what it wrote is committed": fails(
        OF_OFFSETS,
        replica(1, 2, **OFFSETS),
        replica(2, 1, **OFFSETS),
        held(1, "a", 0, **OFFSETS),
        held(2, "a", 0, **OFFSETS),
        held(1, "b", 1, **OFFSETS),
        text="ends at offset 1 on broker 2",
    ),
    "a follower of an internal topic has more than its leader": fails(
        OF_OFFSETS,
        replica(1, 1, **OFFSETS),
        replica(2, 2, high_watermark=1, **OFFSETS),
        held(1, "a", 0, **OFFSETS),
        held(2, "a", 0, **OFFSETS),
        held(2, "b", 1, **OFFSETS),
        text="ends at offset 2 on broker 2",
    ),
    "the leader of another topic ends with what no follower has": fails(
        BOTH,
        replica(1, 2, high_watermark=1),
        replica(2, 1),
        held(1, "a", 0),
        held(2, "a", 0),
        held(1, "b", 1),
        text="ends at offset 1 on broker 2",
    ),
    "a replica that was away for longer than tombstones are kept": passes(
        *a_hole_after(AWAY_NS, OFFSETS), settings=FORGETFUL
    ),
    "a replica that was away for less time": fails(*a_hole_after(AWAY_NS - 1, OFFSETS), settings=FORGETFUL),
    "a replica of another topic that was away for long": fails(*a_hole_after(AWAY_NS, {}), settings=FORGETFUL),
    "the replica with which it is compared was away for longer than tombstones are kept": passes(
        state(0, leader=1, epoch=1, isr=[1, 2], time_ns=0, **OFFSETS),
        state(1, leader=2, epoch=2, isr=[2], time_ns=10 * S, **OFFSETS),
        state(2, leader=2, epoch=2, isr=[1, 2], time_ns=30 * S, **OFFSETS),
        *(replica(1, 1, **OFFSETS), replica(2, 1, **OFFSETS), held(1, "a", 0, **OFFSETS)),
        settings=FORGETFUL,
    ),
    "a replica that was away when the history of ZooKeeper ended": passes(
        state(0, leader=1, epoch=1, isr=[1, 2], time_ns=0, **OFFSETS),
        state(1, leader=1, epoch=1, isr=[1], time_ns=10 * S, **OFFSETS),
        *(replica(1, 2, **OFFSETS), replica(2, 2, **OFFSETS)),
        *(held(1, "b", 1, **OFFSETS), held(2, "a", 0, **OFFSETS), held(2, "b", 1, **OFFSETS)),
        settings=FORGETFUL,
    ),
    "a replica that was away then and lacks a record": fails(
        state(0, leader=1, epoch=1, isr=[1, 2], time_ns=0, **OFFSETS),
        state(1, leader=1, epoch=1, isr=[1], time_ns=10 * S, **OFFSETS),
        *(replica(1, 2, **OFFSETS), replica(2, 2, **OFFSETS)),
        *(held(1, "a", 0, **OFFSETS), held(1, "b", 1, **OFFSETS), held(2, "b", 1, **OFFSETS)),
        settings=FORGETFUL,
    ),
    "a replica that was never seen in the ISR and lacks a record": fails(
        state(0, leader=1, epoch=1, isr=[1], time_ns=0, **OFFSETS),
        *(replica(1, 2, **OFFSETS), replica(2, 2, **OFFSETS)),
        *(held(1, "a", 0, **OFFSETS), held(1, "b", 1, **OFFSETS), held(2, "b", 1, **OFFSETS)),
        settings=FORGETFUL,
    ),
    "a replica that has come back, in a history without times": fails(
        state(0, leader=1, epoch=1, isr=[1, 2], time_ns=None, **OFFSETS),
        state(1, leader=1, epoch=1, isr=[1], time_ns=None, **OFFSETS),
        state(2, leader=1, epoch=1, isr=[1, 2], time_ns=None, **OFFSETS),
        *(replica(1, 2, **OFFSETS), replica(2, 2, **OFFSETS)),
        *(held(1, "b", 1, **OFFSETS), held(2, "a", 0, **OFFSETS), held(2, "b", 1, **OFFSETS)),
        settings=FORGETFUL,
    ),
    "a member of the ISR, where tombstones are kept for less time than it may lag behind": passes(
        state(0, leader=1, epoch=1, isr=[1, 2], **OFFSETS),
        *(replica(1, 1, **OFFSETS), replica(2, 1, **OFFSETS), held(1, "a", 0, **OFFSETS)),
        settings=replace(STRICT, tombstones_seen_ms=0),
    ),
    "a member of the ISR, where tombstones are kept for longer": fails(
        state(0, leader=1, epoch=1, isr=[1, 2], **OFFSETS),
        *(replica(1, 1, **OFFSETS), replica(2, 1, **OFFSETS), held(1, "a", 0, **OFFSETS)),
        settings=FORGETFUL,
    ),
    "another record in a replica that was away for long": fails(
        *a_hole_after(AWAY_NS, OFFSETS, "b"), settings=FORGETFUL
    ),
    "equal logs": passes(BOTH, replica(1, 1), replica(2, 1), held(1, "a", 0), held(2, "a", 0)),
    "another record": fails(
        BOTH,
        replica(1, 1),
        replica(2, 1),
        held(1, "a", 0),
        held(2, "b", 0),
        offsets=[0],
        text="broker 2 holds b of epoch 0 where broker 1 holds a of epoch 0",
    ),
    "another epoch": fails(BOTH, replica(1, 1), replica(2, 1), held(1, "a", 0), held(2, "a", 0, 1), offsets=[0]),
    "a hole where a cleaner may have been": passes(BOTH, replica(1, 1), replica(2, 1), held(1, "a", 0), superseded(0)),
    "a hole in the first member where a cleaner may have been": passes(
        BOTH, replica(1, 1), replica(2, 1), held(2, "a", 0), superseded(0)
    ),
    "a hole where a cleaner was, of a record that it must keep": fails(
        BOTH, replica(1, 2), replica(2, 2), held(1, "a", 0), held(1, "b", 1), superseded(0), offsets=[1]
    ),
    "another record where a cleaner may have been": fails(
        BOTH, replica(1, 1), replica(2, 1), held(1, "a", 0), held(2, "b", 0), superseded(0), offsets=[0]
    ),
    "a hole for which only a record stands that was lost with its leader": fails(
        *HOLE, superseded(0, committed=False), offsets=[0]
    ),
    "a hole where an unclean election may have lost the record that replaces it": passes(
        *HOLE, superseded(0, committed=False), settings=UNCLEAN
    ),
    "a hole where a power loss may have taken the record that replaces it": passes(
        *HOLE, superseded(0, committed=False), settings=POWER_LOSS
    ),
    "a hole in an ISR member": fails(BOTH, replica(1, 1), replica(2, 1), held(1, "a", 0), offsets=[0]),
    "an ISR member ends earlier": fails(BOTH, replica(1, 1), replica(2, 0), held(1, "a", 0), offsets=[0]),
    "an ISR member ends later": fails(BOTH, replica(1, 0), replica(2, 1), held(2, "a", 0), offsets=[0]),
    "a replica outside the ISR may have a tail of its own": passes(
        state(0, leader=2, epoch=1, isr=[2]),
        replica(1, 2),
        replica(2, 2),
        *(held(1, value, offset, 0) for offset, value in enumerate("ab")),
        *(held(2, value, offset, 1) for offset, value in enumerate("cd")),
    ),
    "the same epoch holds two records": fails(
        ONE, replica(1, 1), replica(2, 1), held(1, "a", 0), held(2, "b", 0), offsets=[0]
    ),
    "two logs agree after they differed": fails(
        ONE,
        replica(1, 3),
        replica(2, 3),
        *(held(1, value, offset) for offset, value in enumerate("abd")),
        *(held(2, value, offset, epoch) for offset, (value, epoch) in enumerate([("a", 0), ("c", 1), ("d", 0)])),
        offsets=[1],
    ),
    "one of three differs, and the other two are not accused": fails(
        state(0, leader=1, epoch=1, isr=[1, 2, 3]),
        *(replica(broker, 1) for broker in (1, 2, 3)),
        *(held(broker, value, 0) for broker, value in ((1, "a"), (2, "a"), (3, "b"))),
        offsets=[0],
        text="broker 3 holds b of epoch 0 where broker 1 holds a of epoch 0",
    ),
    "a replica that lags behind": passes(ONE, replica(1, 1), replica(2, 0), held(1, "a", 0)),
    "what one replica deleted by retention is not compared": passes(
        BOTH, replica(1, 1), replica(2, 1, log_start_offset=1), held(1, "a", 0)
    ),
    "of a deleted topic no dump is missing": passes(BOTH, replica(1, 1), topic(present=False)),
    "nor of one that is being deleted": passes(BOTH, replica(1, 1), topic(present=True, deletion_pending=True)),
    "a broker's log has holes, of which dumps say nothing": fails(
        BOTH, replica(1, 1), replica(2, 0), held(1, "a", 0), UNHEARD, offsets=[0]
    ),
    "no dumps": unknown(),
}

CASES |= CASES["equal logs"].without_each("replicas", "partition_states")
CASES |= CASES["equal logs"].with_unknown_cleaners()

test_replicas_offset_by_offset = table_of("I9", CASES)

INCOMPLETE = {
    "damaged": unknown(BOTH, replica(1, 1), replica(2, 1, damage="bad CRC at 0"), text="broker 2: bad CRC at 0"),
    "a dump that ends in half a line": unknown(
        BOTH,
        replica(1, 1),
        replica(2, 1),
        held(1, "a", 0),
        remark("replicas/2/replica-orders-0.jsonl", TORN, 1),
        text="torn last line",
    ),
    "missing, of a topic that is there, when another was deleted": unknown(
        BOTH, replica(1, 1), topic(present=True), topic("other", present=False), text="broker 2: its dump is missing"
    ),
    "missing": unknown(BOTH, replica(1, 1), text="broker 2: its dump is missing"),
}

test_an_incomplete_dump_judges_nothing = table_of("I9", INCOMPLETE)
