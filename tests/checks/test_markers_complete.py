from typing import Any

from tests.analysis.fact_rows import Row, held, replica, state
from tests.analysis.protocol_rows import S, topic
from tests.analysis.transaction_rows import became, ended, one, wrote
from tests.checks.answers import fails, passes, table_of, unknown

LOG = [replica(1, 4), replica(1, 100, topic="__transaction_state"), *one(1, at="orders-0")]
RECORDS = [held(1, f"v{offset}", offset) for offset in range(4)]
LACKING = [*LOG, *RECORDS[:3], wrote(0), ended(3, producer_id=8)]


def led_by_1(**other: Any) -> Row:
    """A version of the state of a partition that is on broker 1 alone."""
    return state(0, leader=1, epoch=0, isr=[1], **other)


AT_GROUPS: dict[str, Any] = {"topic": "__consumer_offsets"}
GROUPS = [replica(1, 4, **AT_GROUPS), LOG[1], *one(1, commits=False, at="__consumer_offsets-0")]
COMMITTED = [held(1, f"v{offset}", offset, **AT_GROUPS) for offset in range(3)]
OF_ANOTHER = ended(3, producer_id=8, **AT_GROUPS)
"""What a partition of groups holds; the transaction that names it was aborted."""
CASES = {
    "a complete transaction has its marker": passes(*LOG, *RECORDS[:3], wrote(0), ended(3)),
    "replicas that lag behind have no marker yet": passes(
        *(replica(0, 3), *LOG, replica(2, 3), *RECORDS[:3], wrote(0), ended(3)),
        *(held(broker, f"v{offset}", offset) for broker in (0, 2) for offset in range(3)),
    ),
    "a longer replica of an older epoch has no marker": passes(
        *(replica(1, 4, leader_epochs=[[0, 0], [3, 2]]), replica(2, 5, leader_epochs=[[0, 0], [2, 3]]), *LOG[1:]),
        *(*RECORDS[:3], wrote(0), ended(3), *(held(2, f"v{offset}", offset) for offset in range(5))),
    ),
    "a marker is missing": fails(*LACKING, text="markers are missing of t", shown='"number":0'),
    "a marker is missing of a transaction that has nothing there": fails(
        *LOG, *RECORDS[:3], ended(3, producer_id=8), text="markers are missing of t"
    ),
    "a marker is missing, and other topics were deleted or made anew": fails(
        *LACKING,
        *(topic(present=True), topic("old", present=False), topic("going", present=True, deletion_pending=True)),
        *(led_by_1(), led_by_1(topic="new", life=2), replica(1, 0, topic="new")),
        text="markers are missing of t",
    ),
    "the transaction is not complete yet": passes(
        *LOG[:2], became("Ongoing", 1, "orders-0"), became("PrepareCommit", 2, "orders-0"), *RECORDS, wrote(0)
    ),
    "a partition whose Ongoing record was not stored has no marker": passes(
        *LOG,
        replica(1, 0, partition=1),
        *(became("Ongoing", 5, "orders-0"), became("Ongoing", 6, "orders-0", "orders-1", counts=False, told_ns=None)),
        *(became("PrepareAbort", 7, "orders-0"), became("CompleteAbort", 8)),
        *RECORDS[:2],
        *(wrote(0), ended(1), wrote(2), ended(3, commits=False)),
    ),
    "the partition was not dumped": passes(*LOG[1:], wrote(0)),
    "the topic is deleted": passes(*LACKING, topic(present=False)),
    "the topic is being deleted, and the coordinator skipped it": passes(
        *LACKING, topic(present=True, deletion_pending=True)
    ),
    "the topic was made anew": passes(*LACKING, topic(present=True), led_by_1(life=2)),
    "the topic was made anew with fewer partitions, and a broker still has another one": passes(
        *(replica(1, 0), replica(1, 1, partition=1), LOG[1], *one(1, at="orders-1")),
        *(held(1, "a", 0, partition=1), wrote(0, partition=1)),
        *(topic(present=True), led_by_1(), led_by_1(life=2), led_by_1(partition=1)),
    ),
    "records are gone from the log": passes(*LOG, *RECORDS[:1], wrote(0), ended(3, producer_id=8)),
    "records are deleted, and all markers with them": passes(replica(1, 4, log_start_offset=4), *LOG[1:]),
    "compaction has removed the transaction and its marker": passes(
        *LOG, held(1, "a", 3, producer_id=-1), wrote(2, topic="others"), replica(1, 3, topic="others")
    ),
    "compaction has removed all transactions and their markers": passes(*LOG, held(1, "a", 3, producer_id=-1)),
    "compaction has removed the marker of a transaction without records": passes(replica(1, 1), *LOG[1:]),
    "the dump of a member of the ISR is missing": unknown(
        *LACKING, state(0, leader=1, epoch=0, isr=[1, 2]), text="its dump is missing"
    ),
    "no partition has a marker": fails(replica(1, 1), *LOG[1:], RECORDS[0], wrote(0), text="markers are missing of t"),
    "a marker without records is there twice": passes(*LOG, *RECORDS[:2], wrote(0), ended(2), ended(3)),
    "a second marker closes later records": fails(
        *LOG, *RECORDS[:2], wrote(0), ended(1), wrote(2), ended(3), text="too many markers close records"
    ),
    "two transactions have a marker each": passes(*LOG, *one(4), *RECORDS[:2], wrote(0), ended(1), wrote(2), ended(3)),
}
CASES |= {
    "a group's partition was not there yet, and has nothing of the transaction": passes(
        *GROUPS, *COMMITTED, OF_ANOTHER
    ),
    "a group's partition was not there yet, and a later transaction wrote there": passes(
        *(*GROUPS, *one(5, at="__consumer_offsets-0"), *COMMITTED),
        *(wrote(1, **AT_GROUPS), ended(3, **AT_GROUPS)),
    ),
    "a group's partition was not there yet, and a later transaction is open": passes(
        *(*GROUPS, became("Ongoing", 5, "__consumer_offsets-0"), *COMMITTED, wrote(1, **AT_GROUPS), OF_ANOTHER),
    ),
    "a group's partition had hardly been made, and a later transaction wrote there": passes(
        *(*GROUPS, *one(5, at="__consumer_offsets-0"), *COMMITTED),
        *(
            wrote(1, **AT_GROUPS),
            ended(3, **AT_GROUPS),
            state(0, leader=1, epoch=0, isr=[1], time_ns=-9 * S, **AT_GROUPS),
        ),
    ),
    "a group's partition was there for long, and the next marker closes what another one left open": fails(
        *(*GROUPS, *one(5, at="__consumer_offsets-0"), *COMMITTED),
        *(
            wrote(1, **AT_GROUPS),
            ended(3, **AT_GROUPS),
            state(0, leader=1, epoch=0, isr=[1], time_ns=-10 * S, **AT_GROUPS),
        ),
        text="markers are missing of t",
        shown='"number":0',
    ),
    "offsets of a group stay open": fails(
        *GROUPS, *COMMITTED, wrote(1, **AT_GROUPS), OF_ANOTHER, text="markers are missing of t"
    ),
    "offsets of a group stay open, and a producer epoch follows": fails(
        *(*GROUPS[:2], became("Ongoing", 1, "__consumer_offsets-0")),
        *(
            became("PrepareAbort", 2, "__consumer_offsets-0", producer_epoch=1),
            became("CompleteAbort", 3, producer_epoch=1),
        ),
        *(*COMMITTED, wrote(1, **AT_GROUPS), OF_ANOTHER),
        text="markers are missing of t",
    ),
}
CASES |= CASES["a complete transaction has its marker"].without_each("replicas")

test_whether_every_partition_has_its_marker = table_of("markers-complete", CASES)
