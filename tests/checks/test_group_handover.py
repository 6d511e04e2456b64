from typing import Any

from tests.analysis.fact_rows import Row, committed, elected_uncleanly, held, led, read, replica
from tests.analysis.group_rows import in_state, owned, retired, took
from tests.analysis.protocol_rows import S, compacted, superseded, topic
from tests.checks.answers import (
    DELETING,
    POWER_LOSS,
    UNCLEAN,
    UNHEARD,
    UNREADABLE,
    Case,
    excused,
    fails,
    passes,
    table_of,
    unknown,
)

LED = led(1, 0)
THERE = (LED, topic(present=True), in_state("Stable", 1, "m1"))
ASKED_NS = 10 * S
BEGUN = owned(offset=5)
BEFORE = {"time_ns": 9 * S}


def sound(*rows: Row, **wanted: Any) -> Case:
    return passes(*THERE, *rows, **wanted)


def broken(*rows: Row, **wanted: Any) -> Case:
    return fails(*THERE, *rows, **wanted)


def commit(offset: int, **other: Any) -> Row:
    return took("m0", 1, offset=offset, **(BEFORE | other))


def unknown_commit(offset: int, *, at: tuple[int, int | None]) -> Row:
    return committed(offset, at=at, outcome="info", group="g")


def got(offset: int, poll: int = 11, **other: Any) -> Row:
    return read("v", offset, process="m1", index=poll, mode="subscribe", **other)


HELD = (held(1, "v", 5), held(1, "v", 6), held(1, "v", 7))
LOW = (BEGUN, commit(7))

CASES = {
    "a member begins at the last commit": sound(BEGUN, commit(3, log_offset=39), commit(5)),
    "it begins below it": broken(
        BEGUN,
        commit(5, log_offset=39),
        commit(7),
        text="m1 began to read orders-0 for group g in generation 1 at 5, and 7 had been committed in generation 1",
        shown='"last":{"coordinator_epoch":3,"log_offset":40,"to":7',
    ),
    "it begins at the start although something was committed": broken(owned(offset=-1), commit(1)),
    "nothing was committed": sound(owned(offset=-1)),
    "nothing was committed, and what was there is before the start of the log": sound(
        owned(offset=-1), got(7), *HELD, replica(1, 8, log_start_offset=7), settings=DELETING
    ),
    "nothing was committed, and a record after the start of the log is skipped": broken(
        owned(offset=-1),
        got(7),
        *HELD,
        replica(1, 8, log_start_offset=6),
        settings=DELETING,
        text="without 6 to 6",
    ),
    "nothing was committed, and no record of the topic may be deleted": broken(
        owned(offset=-1), got(7), *HELD, replica(1, 8, log_start_offset=7), text="without 5 to 6"
    ),
    "of two topics one was deleted": broken(
        *LOW, topic("gone", present=False), owned(offset=5, topic="gone"), commit(7, topic="gone")
    ),
    "the last commit is lower, as the group went back": sound(BEGUN, commit(9, log_offset=39), commit(5)),
    "the last commit is that of the latest coordinator": broken(
        BEGUN, commit(5, log_offset=90), commit(9, coordinator_epoch=4, log_offset=2)
    ),
    "it begins beyond what was committed, which an unknown commit explains": sound(BEGUN, commit(3)),
    "the commit was answered after it had asked": sound(BEGUN, commit(7, time_ns=ASKED_NS)),
    "the commit was refused": sound(BEGUN, commit(7, error=22)),
    "another group committed more": sound(BEGUN, commit(7, group="h")),
    "more was committed of another partition": sound(BEGUN, commit(7, partition=1)),
    "a lower commit came in between": sound(*LOW, commit(5, time_ns=ASKED_NS, log_offset=41)),
    "a lower commit came too late": broken(*LOW, commit(5, time_ns=ASKED_NS + 1, log_offset=41)),
    "a lower commit had been answered before": broken(*LOW, commit(5, time_ns=8 * S, log_offset=39)),
    "a lower commit may have been written later": sound(*LOW, unknown_commit(5, at=(8 * S, None))),
    "it may have been, until a client knew": broken(*LOW, unknown_commit(5, at=(7 * S, 9 * S))),
    "another one may have been": broken(*LOW, unknown_commit(6, at=(8 * S, None))),
    "it was begun too late": broken(*LOW, unknown_commit(5, at=(ASKED_NS + 1, None))),
    "a lower commit certainly failed": broken(*LOW, committed(5, at=(8 * S, None), outcome="fail", group="g")),
    "that offset was read back": broken(
        *LOW, ("committed_offsets", unknown_commit(5, at=(8 * S, None))[1] | {"kind": "fetch"})
    ),
    "what was committed has expired, or was deleted": sound(owned(offset=-1), commit(7), retired(41)),
    "it was taken back, and that is not stored yet": sound(owned(offset=-1), commit(7), retired(-1, at_ns=ASKED_NS)),
    "it was taken back, and committed anew": broken(owned(offset=-1), retired(39, at_ns=8 * S), commit(7)),
    "it was taken back too late": broken(owned(offset=-1), commit(7), retired(41, at_ns=ASKED_NS + 1)),
    "it was taken back, and something lower is read": broken(*LOW, retired(-1)),
    "its start is unknown": sound(owned(offset=None), commit(7)),
    "the topic was deleted": passes(LED, topic(present=False), in_state("Stable", 1, "m1"), *LOW),
    "an unclean election took the commit": excused(
        *THERE, elected_uncleanly(2, 1, topic="__consumer_offsets"), *LOW, settings=UNCLEAN
    ),
    "a power loss took the commit": excused(*THERE, *LOW, settings=POWER_LOSS),
    "a member reads on from where it begins": sound(BEGUN, *HELD, got(5), got(6, 12)),
    "it passes two records by": broken(
        BEGUN,
        *HELD,
        got(7),
        text="for group g in generation 1 at 5, and read 7 first, without 5 to 6",
        offsets=[5],
    ),
    "it passes the log's first record by": broken(owned(offset=-1), held(1, "v", 0), got(1)),
    "there is no record in between": sound(BEGUN, held(1, "v", 7), held(1, "v", 4), got(7)),
    "records of another partition": sound(BEGUN, *HELD, got(7, partition=1)),
    "records of another process": sound(BEGUN, *HELD, read("v", 7, process="m2", index=11)),
    "a poll before it owned the partition": sound(BEGUN, *HELD, got(7, 9)),
    "a poll after it gave the partition back": sound(BEGUN, *HELD, got(7, 21)),
    "the first record is where it begins, and others are there": sound(BEGUN, *HELD, got(5, 12), got(7, 13)),
    "a poll of one that never gave it back": broken(
        owned(until_index=None, until_ns=None, ended_by=None), *HELD, got(7, 21)
    ),
    "only its first record counts": sound(BEGUN, *HELD, got(5), got(7, 12)),
    "a poll has its records in an order": sound(BEGUN, *HELD, got(7, position=1), got(5, position=0)),
    "it begins lower than where it could": sound(owned(offset=9), *HELD, got(5)),
    "a cleaner took what lay in between": sound(BEGUN, *HELD, compacted(9), superseded(5), superseded(6), got(7)),
    "an unclean election took what lay in between": excused(
        *THERE, elected_uncleanly(2, 1), BEGUN, *HELD, got(7), settings=UNCLEAN
    ),
    "a line of a client cannot be read": unknown(*THERE, UNREADABLE, *LOW, text="unreadable"),
    "lines of a broker are missing": unknown(*THERE, UNHEARD, *LOW, text="missing lines"),
    "no coordinator tells": unknown(LED, BEGUN, text="no coordinator's log"),
    "there are no groups": passes(LED),
    "nothing is there": unknown(in_state("Stable", 1, "m1"), text="leader_epochs"),
}
CASES |= CASES["a member begins at the last commit"].with_unknown_cleaners()

test_where_members_begin = table_of("I36", CASES)
