from typing import Any

from tests.analysis.fact_rows import Row, held, led, remark, replica
from tests.checks.answers import DELETING, fails, passes, table_of, unknown

LEADERS = [led(1, 0), led(2, 3), led(1, 5)]


def log(end: int, *entries: list[int], **other: Any) -> Row:
    """The replica of broker 1 with this epoch cache."""
    return replica(1, end, leader_epochs=[*entries], **other)


RECORDS = [held(1, "a", 0), held(1, "b", 1), held(1, "c", 2, 3), held(1, "d", 3, 3)]

CASES = {
    "every epoch begins with its first record": passes(*LEADERS, *RECORDS, log(4, [0, 0], [3, 2])),
    "an epoch with records has no entry": fails(
        *LEADERS,
        *RECORDS,
        log(4, [0, 0]),
        text="broker 1 holds records of epoch 3 of orders-0 from offset 2 to 3, its cache has [[0,0]]",
        offsets=[2],
        epochs=[3],
        facts=["replica_records", "replicas"],
    ),
    "an epoch begins after its first record": fails(*LEADERS, *RECORDS, log(4, [0, 0], [3, 3]), offsets=[2]),
    "an epoch begins at the last record of the one before": fails(
        *LEADERS, *RECORDS, log(4, [0, 0], [3, 1]), offsets=[0]
    ),
    "the first records are under no entry": fails(*LEADERS, *RECORDS, log(4, [3, 2]), offsets=[0]),
    "the first epoch begins after the first record": fails(*LEADERS, *RECORDS, log(4, [0, 1], [3, 2]), offsets=[0]),
    "a client has deleted the first records, and the log's new start is not saved yet": passes(
        *LEADERS, *RECORDS, log(4, [0, 1], [3, 2]), settings=DELETING
    ),
    "an epoch begins after its first record, where the first records may be deleted": fails(
        *LEADERS, *RECORDS, log(4, [0, 0], [3, 3]), settings=DELETING, offsets=[2]
    ),
    "the first record under an entry is of another epoch, where the first records may be deleted": fails(
        *LEADERS, *RECORDS, log(4, [3, 1]), settings=DELETING, offsets=[1]
    ),
    "nothing is in the cache, where the first records may be deleted": fails(
        *LEADERS, *RECORDS, log(4), settings=DELETING, severities=["violation"] * 2, offsets=[0, 2]
    ),
    "nothing is in the cache": fails(*LEADERS, *RECORDS, log(4), severities=["violation"] * 2, offsets=[0, 2]),
    "compaction has taken the first records of an epoch": passes(
        *LEADERS, held(1, "b", 1), held(1, "d", 3, 3), log(4, [0, 0], [3, 2])
    ),
    "records before the log's start are no concern": passes(*LEADERS, *RECORDS, log(4, [3, 2], log_start_offset=2)),
    "a follower keeps a segment that begins before its leader's log": passes(
        *LEADERS, *RECORDS, log(4, [3, 2]), replica(2, 4, leader_epochs=[[3, 2]], log_start_offset=2)
    ),
    "retention has emptied the leader's log, and a follower's": passes(
        *LEADERS, log(4, [3, 4], log_start_offset=2), replica(2, 4, leader_epochs=[[3, 4]], log_start_offset=4)
    ),
    "the record at the log's start is": fails(*LEADERS, *RECORDS, log(4, [3, 2], log_start_offset=1), offsets=[1]),
    "records of a format without epochs": passes(*LEADERS, held(1, "a", 0, -1), log(1)),
    "the checkpoint is not in evidence": passes(*LEADERS, *RECORDS, replica(1, 4, leader_epochs=None)),
    "another replica's cache is right": fails(
        *LEADERS, *RECORDS, log(4, [0, 0]), replica(2, 4, leader_epochs=[[0, 0], [3, 2]]), offsets=[2]
    ),
    "its leadership began at the end": passes(*LEADERS, *RECORDS, log(4, [0, 0], [3, 2], [5, 4])),
    "another broker's leadership began at the end": fails(
        *LEADERS,
        *RECORDS,
        led(2, 6),
        log(4, [0, 0], [3, 2], [6, 4]),
        text="has epoch 6 from offset 4 on, where the log ends at 4",
        offsets=[4],
        epochs=[6],
    ),
    "another partition's leadership began at the end": fails(
        *LEADERS, *RECORDS, led(1, 6, partition=1), log(4, [0, 0], [3, 2], [6, 4]), offsets=[4]
    ),
    "an epoch begins past the end": fails(*LEADERS, *RECORDS, log(4, [0, 0], [3, 2], [6, 9]), offsets=[9]),
    "an epoch begins past the end of a log whose first records are gone": fails(
        *LEADERS, *RECORDS, log(4, [3, 2], [6, 9], log_start_offset=2), offsets=[9]
    ),
    "an empty log has an epoch that it led": passes(*LEADERS, log(0, [5, 0])),
    "an empty log has an epoch that it never led": fails(*LEADERS, log(0, [3, 0]), offsets=[0]),
    "retention has emptied the log": passes(*LEADERS, log(4, [3, 4], log_start_offset=4)),
    "a dump is damaged": unknown(*LEADERS, *RECORDS, log(4, [0, 0], damage="bad batch"), text="bad batch"),
    "a dump has bad lines": unknown(
        *LEADERS, *RECORDS, log(4, [0, 0]), remark("replicas/1/replica-orders-0.jsonl", "unreadable lines", 1)
    ),
}

CASES |= CASES["every epoch begins with its first record"].without_each("replicas", "leader_epochs")

test_what_an_epoch_cache_says = table_of("I27", CASES)
