from dataclasses import replace

from harness.analysis.tables.schemas import TORN
from tests.analysis.fact_rows import elected_uncleanly, led, read, remark, replica, sent
from tests.analysis.protocol_rows import configured, superseded, with_log
from tests.checks.answers import (
    COMPACTED,
    DELETING,
    FROM_ANYWHERE,
    NOT_UNIQUE,
    POWER_LOSS,
    UNCLEAN,
    UNHEARD,
    UNREADABLE,
    excused,
    fails,
    passes,
    table_of,
    unknown,
)

PASSED = [sent("a", 0), sent("b", 1, index=1), read("b", 1)]

ANEW = [sent("a", 0, leader_epoch=2), sent("b", 1, index=1, leader_epoch=2), read("b", 1, leader_epoch=2)]
"""Records of epoch 2 that were written where earlier ones had been."""

CASES = {
    "all is read": passes(*PASSED, read("a", 0)),
    "an acknowledged record was passed unseen": fails(
        *PASSED, offsets=[0], text="a was acknowledged (acks=all) at orders-0 offset 0, readers reached offset 1"
    ),
    "it is of a transaction that was aborted": passes(sent("a", 0, transaction_outcome="aborted"), *PASSED[1:]),
    "it is of a transaction that may be aborted": passes(sent("a", 0, transaction_outcome="unknown"), *PASSED[1:]),
    "it is of a transaction that was committed": fails(
        sent("a", 0, transaction_outcome="committed"), *PASSED[1:], offsets=[0]
    ),
    "a cleaner may have taken it": passes(*PASSED, superseded(0)),
    "the topic is compacted, and the brokers' logs have it": fails(*PASSED, configured(compacted=True), with_log(1)),
    "the topic is not compacted": fails(*PASSED, configured(compacted=False)),
    "an internal topic is compacted": fails(*PASSED, configured(topic="__consumer_offsets", compacted=True)),
    "retention or a client may have deleted it": passes(
        *PASSED, replica(1, 2, log_start_offset=1), replica(2, 2), settings=DELETING
    ),
    "the log begins with it": fails(
        sent("a", 0),
        sent("z", 1, index=2),
        read("a", 0),
        read("b", 2),
        replica(1, 3, log_start_offset=1),
        settings=DELETING,
        offsets=[1],
    ),
    "it may have been deleted, and no replica states where the log begins": passes(*PASSED, settings=DELETING),
    "it may have been compacted, and no broker has a log": passes(*PASSED, settings=COMPACTED),
    "brokers' logs state no cleaning of it": fails(*PASSED, with_log(1), settings=COMPACTED),
    "records of another topic may be deleted": fails(*PASSED, settings=replace(DELETING, deleting_topics="events")),
    "the log begins after it, and nothing may be deleted": fails(*PASSED, replica(1, 2, log_start_offset=1)),
    "a cleaner may have taken another": fails(*PASSED, superseded(1)),
    "the finding shows both sides": fails(*PASSED, facts=["sends", "polls"]),
    "it was read elsewhere only": fails(*PASSED, read("a", 0, partition=1)),
    "it was read at another offset": passes(*PASSED, read("a", 5)),
    "acks=1 promises little": excused(sent("a", 0, acks=1), *PASSED[1:], text="(acks=1)"),
    "it was never acknowledged, though the client names an offset": passes(sent("a", 0, outcome="info"), *PASSED[1:]),
    "it was never acknowledged": passes(sent("a"), *PASSED[1:]),
    "an unclean election followed": excused(*PASSED, elected_uncleanly(2, 1), settings=UNCLEAN),
    "unclean elections before and after": excused(
        *PASSED, elected_uncleanly(2, 0), elected_uncleanly(3, 1), settings=UNCLEAN
    ),
    "an unclean election followed, which the scenario allows": excused(
        *PASSED, led(2, 1, unclean=True), settings=UNCLEAN
    ),
    "an unclean election followed that was not allowed, and a clean one": fails(
        *PASSED, led(2, 1, unclean=True, unclean_allowed=False), led(3, 2), settings=UNCLEAN
    ),
    "readers had got what that election took away": excused(
        *ANEW, read("z", 0, leader_epoch=1), elected_uncleanly(2, 2), settings=UNCLEAN
    ),
    "readers do not say in which epoch they got another record there": excused(
        *ANEW, read("z", 0, leader_epoch=None), elected_uncleanly(2, 2), settings=UNCLEAN
    ),
    "readers got another record there after that election": fails(
        *ANEW, read("z", 0, leader_epoch=2), elected_uncleanly(2, 2), settings=UNCLEAN
    ),
    "readers got another record elsewhere": fails(
        *ANEW, read("z", 5, partition=1, leader_epoch=1), elected_uncleanly(2, 2), settings=UNCLEAN
    ),
    "it was written after that": fails(*PASSED, elected_uncleanly(2, 0), settings=UNCLEAN),
    "the epoch in which it was written is unknown": excused(
        sent("a", 0, leader_epoch=None), *PASSED[1:], elected_uncleanly(2, 0), settings=UNCLEAN
    ),
    "the power was cut": excused(*PASSED, settings=POWER_LOSS),
    "readers began behind it": passes(*PASSED, settings=FROM_ANYWHERE),
    "readers began before it": fails(
        *PASSED,
        sent("c", 2, index=2),
        read("d", 3),
        settings=FROM_ANYWHERE,
        offsets=[2],
        shown='"offset":3,"value":"d"',
    ),
    "one reader ended before it, and another began behind it": passes(
        *PASSED, sent("c", 2, index=2), read("d", 3, process="late"), settings=FROM_ANYWHERE
    ),
    "another record was read in its place, first of all": fails(
        sent("a", 0), read("b", 0), read("c", 1), settings=FROM_ANYWHERE, offsets=[0]
    ),
    "readers came past it, the one further than the other": fails(
        sent("a", 0), read("z", 0, process="c1"), read("b", 1), offsets=[0], shown='"offset":1,"value":"b"'
    ),
    "readers read different records at the last offset": fails(
        sent("a", 0), *(read(value, 1, process=value) for value in "cbd"), shown='"offset":1,"value":"d"'
    ),
    "one reader came past it, and another one began behind it": fails(
        *PASSED, read("z", 0), read("d", 3, process="late"), settings=FROM_ANYWHERE, offsets=[0]
    ),
    "one reader read another record in its place, last of all, and another one began behind it": passes(
        sent("a", 0), read("z", 0), read("d", 3, process="late"), settings=FROM_ANYWHERE
    ),
    "readers did not come so far": passes(sent("a", 3), read("b", 1)),
    "another record was read in its place, last of all: unseen instead": passes(sent("a", 1), read("b", 1)),
    "nothing was read": unknown(sent("a", 0)),
    "value ids are not unique": unknown(*PASSED, NOT_UNIQUE, text="value ids: 1 sent more than once"),
    "the history has holes": unknown(*PASSED, UNREADABLE, text="c0.jsonl: 1"),
    "a broker's log has holes, of which clients say nothing": fails(*PASSED, UNHEARD),
    "a torn last line is no hole": fails(*PASSED, remark("operations/c0.jsonl", TORN, 1)),
}

CASES |= CASES["all is read"].without_each("sends", "polls")
CASES |= CASES["all is read"].with_unknown_cleaners()

test_acknowledged_records_before_the_last_one_read = table_of("lost-write", CASES)
