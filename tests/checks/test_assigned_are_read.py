from typing import Any

from harness.store.history import Sign
from tests.analysis.fact_rows import Row, read, sent
from tests.analysis.group_rows import in_state, owned, stored
from tests.analysis.protocol_rows import S, injected, sign
from tests.checks.answers import UNHEARD, UNREADABLE, Case, fails, passes, table_of, unknown

BOUND_S = 2 * 20 + 5 + 10
SENT = sent("a", 7, invoke_ns=5 * S, complete_ns=6 * S)
END_NS = (6 + BOUND_S) * S
HAD = (*stored("m1", 0), in_state("Stable", 1, "m1"), owned())
LAST = 99
"""An offset of partition 1, which is read on and on."""


def reads(offset: int, partition: int = 0, *, at_ns: int = END_NS + 1, **other: Any) -> Row:
    return read("v", offset, process="m1", partition=partition, time_ns=at_ns, mode="subscribe", **other)


def sound(*rows: Row, **wanted: Any) -> Case:
    return passes(SENT, *HAD, *rows, **wanted)


def broken(*rows: Row, **wanted: Any) -> Case:
    return fails(SENT, *HAD, *rows, **wanted)


CASES = {
    "a member reads what was sent": sound(reads(7)),
    "it reads further": sound(reads(8)),
    "it has read what came before": sound(reads(3), reads(8)),
    "it reads something else alone": broken(
        reads(LAST, 1),
        text=(
            "offset 7 of orders-0 was acknowledged after the last heal, and in group g, where m1 has it in generation "
            "1, no member ever read that partition"
        ),
        offsets=[7],
    ),
    "it reads something else twice": broken(reads(LAST, 1, at_ns=1), reads(LAST + 1, 1)),
    "it has read that partition before": broken(reads(6, at_ns=1), reads(LAST, 1), text="further than offset 6"),
    "it does not come that far": broken(reads(6), text="no member read further than offset 6", shown='"read_to":6'),
    "the first such record is named": broken(sent("b", 8, invoke_ns=5 * S, complete_ns=6 * S), reads(6), offsets=[7]),
    "the group soon reads nothing any more": sound(reads(LAST, 1, at_ns=END_NS)),
    "the record was sent before the last heal": sound(reads(LAST, 1), injected(healed_s=5)),
    "it was sent before the last of two heals": sound(reads(LAST, 1), injected(healed_s=4), injected(healed_s=5)),
    "it was sent after it": broken(reads(LAST, 1), injected(healed_s=4)),
    "its outcome is unknown": passes(sent("a", None, invoke_ns=5 * S), *HAD, reads(LAST, 1)),
    "its offset is unknown": passes(
        sent("a", None, invoke_ns=5 * S, complete_ns=6 * S, outcome="ok"), *HAD, reads(LAST, 1)
    ),
    "it certainly was not": passes(
        sent("a", 7, invoke_ns=5 * S, complete_ns=6 * S, outcome="fail"), *HAD, reads(LAST, 1)
    ),
    "no member had the partition": passes(SENT, *stored("m1", 1), in_state("Stable", 1, "m1"), owned(), reads(LAST, 1)),
    "no member has it in the last generation": sound(*stored("m1", 1, generation=2, seq=5), reads(LAST, 1)),
    "a member has it at the last coordinator": broken(
        *stored("m1", 1, generation=1, seq=99), *stored("m1", 0, 1, generation=1, epoch=4), reads(LAST, 1)
    ),
    "a member has nothing": sound(*stored("m2"), reads(7)),
    "another member reads it": sound(owned(process="m2"), read("v", 7, process="m2"), reads(LAST, 1)),
    "a client outside the group reads it": broken(read("v", 7, process="c0"), reads(LAST, 1)),
    "no member read anything": sound(),
    "a fault was never healed": unknown(SENT, *HAD, reads(LAST, 1), injected(healed_s=None), text="never healed"),
    "the machine was starved": unknown(
        SENT, *HAD, reads(LAST, 1), sign(Sign.READ, "it was not read", late_ms=5000), text="starved"
    ),
    "a line of a client cannot be read": unknown(SENT, *HAD, UNREADABLE, text="unreadable"),
    "lines of a broker are missing": unknown(SENT, *HAD, UNHEARD, reads(LAST, 1), text="missing lines"),
    "no coordinator tells": unknown(SENT, owned(), text="no coordinator's log"),
    "there are no groups": passes(SENT),
    "nothing is there": unknown(*HAD, text="sends"),
}

test_what_is_assigned_is_read = table_of("I38", CASES)
