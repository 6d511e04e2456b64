from typing import Any

from tests.analysis.fact_rows import Row, committed, elected_uncleanly, fetched, read, state
from tests.analysis.group_rows import retired
from tests.analysis.protocol_rows import compacted, waited_for
from tests.checks.answers import UNCLEAN, UNREADABLE, excused, fails, passes, table_of, unknown

READ = [read("a", 4), waited_for([1, 2], 5)]
LATER_LINE = '"high_watermark":5,"leader_epoch":1,"broker":1,"seq":0'
"""Of two lines with the highest high watermark, always the same one, and all that it takes to look it up."""


def logged(offset: int, **other: Any) -> Row:
    of_log: dict[str, Any] = {"source": "log", "process": None, "index": None, "log_partition": 0, "log_offset": 1}
    row = committed(offset, at=(0, None), **of_log | other)
    return row[0], row[1] | {"invoke_ns": None}


CASES = {
    "up to the high watermark": passes(*READ, committed(5, at=(1, 2))),
    "past the high watermark": fails(
        *READ, committed(6, at=(1, 2)), offsets=[6], text="whose high watermark never passed 5"
    ),
    "past it, and two leaders told of it": fails(
        *READ, waited_for([1, 2], 5, leader_epoch=1), committed(6, at=(1, 2)), shown=LATER_LINE
    ),
    "two leaders told of it, in another order": fails(
        waited_for([1, 2], 5, leader_epoch=1), *READ, committed(6, at=(1, 2)), shown=LATER_LINE
    ),
    "past it, by a process that never read": passes(*READ, committed(6, at=(1, 2), process="committer-1")),
    "past it, by a commit that was not acknowledged": passes(
        *READ, committed(6, at=(1, None), outcome="info"), committed(4, at=(0, 1))
    ),
    "the last one is in the log": passes(*READ, committed(3, at=(1, 2)), committed(5, at=(3, 4)), logged(5)),
    "the last one is not in the log": fails(
        *READ, committed(3, at=(1, 2)), committed(5, at=(3, 4)), logged(3), offsets=[5], text="no replica has it"
    ),
    "of two of one instant the same one is missing": fails(
        *READ, committed(3, at=(3, 4)), committed(5, at=(3, 4), process="c1"), logged(2), offsets=[5]
    ),
    "of two of one instant, in another order": fails(
        *READ, committed(5, at=(3, 4), process="c1"), committed(3, at=(3, 4)), logged(2), offsets=[5]
    ),
    "a cleaner took it for a later one that was not acknowledged": passes(
        *READ,
        committed(4, at=(1, 2)),
        committed(5, at=(3, None), outcome="info"),
        logged(5),
        compacted(9, topic="__consumer_offsets"),
    ),
    "it had expired, or was deleted": passes(*READ, committed(5, at=(3, 4)), logged(3), retired(at_ns=4, group="g0")),
    "it was committed after the one before had expired": fails(
        *READ, committed(5, at=(3, 4)), logged(3), retired(at_ns=3, group="g0"), offsets=[5]
    ),
    "what another group committed had expired": fails(
        *READ, committed(5, at=(3, 4)), logged(3), retired(at_ns=4, group="g1"), offsets=[5]
    ),
    "a cleaner was at another partition of the offsets topic": fails(
        *READ,
        committed(4, at=(1, 2)),
        committed(5, at=(3, None), outcome="info"),
        logged(5),
        compacted(9, topic="__consumer_offsets", partition=1),
        offsets=[4],
    ),
    "a cleaner was at another topic": fails(
        *READ, committed(4, at=(1, 2)), committed(5, at=(3, None), outcome="info"), logged(5), compacted(9), offsets=[4]
    ),
    "a later one that was not acknowledged is not in the log either": fails(
        *READ,
        committed(4, at=(1, 2)),
        committed(5, at=(3, None), outcome="info"),
        logged(3),
        compacted(9, topic="__consumer_offsets"),
        offsets=[4],
    ),
    "what was read back without an answer is no commit": fails(
        *READ,
        committed(4, at=(1, 2)),
        fetched(5, at=(3, None), outcome="info"),
        logged(5),
        compacted(9, topic="__consumer_offsets"),
        offsets=[4],
    ),
    "a cleaner left one that was acknowledged before": fails(
        *READ,
        committed(3, at=(1, 2)),
        committed(5, at=(3, 4)),
        logged(3),
        compacted(9, topic="__consumer_offsets"),
        offsets=[5],
    ),
    "an unclean election gave it up": excused(
        *READ, committed(6, at=(1, 2)), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
    "the high watermark went on with another ISR": passes(*READ, waited_for([1], 8), committed(7, at=(1, 2))),
    "past it, and only read back": passes(*READ, committed(5, at=(1, 2)), fetched(6, at=(3, 4))),
    "a group of which only the log tells": passes(*READ, committed(5, at=(1, 2)), logged(5), logged(7, group="g1")),
    "the dump of an ISR member is missing": unknown(
        *READ, committed(6, at=(1, 2)), state(0, leader=1, epoch=0, isr=[1]), text="its dump is missing"
    ),
    "the offsets topic was not decoded": passes(*READ, committed(5, at=(3, 4))),
    "the clients' history has holes": unknown(*READ, committed(6, at=(1, 2)), UNREADABLE),
    "nothing was committed": unknown(*READ, text="committed_offsets"),
}

test_how_far_commits_go_and_whether_they_last = table_of("I16", CASES)
