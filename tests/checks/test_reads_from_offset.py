from typing import Any

from tests.analysis.fact_rows import RUN, TOPIC, Row, elected_uncleanly, read
from tests.analysis.protocol_rows import superseded
from tests.checks.answers import NOT_UNIQUE, POWER_LOSS, UNCLEAN, excused, fails, passes, table_of, unknown

LOG = [read("a", 10), read("b", 11), read("c", 12)]


def answer(*records: tuple[int, str], begins_at: int = 10, **other: Any) -> list[Row]:
    """A read from an offset on, and its records in order."""
    row = {"run_id": RUN, "topic": TOPIC, "partition": 0, "process": "l0", "index": 7, "mode": "replica"}
    row |= {"begins_at": begins_at, "invoke_ns": 5, "complete_ns": 6, **other}
    places = enumerate(records)
    return [
        ("offset_reads", row | {"position": at, "offset": offset, "given": given}) for at, (offset, given) in places
    ]


ANOTHER = [*LOG, *answer((10, "a"), (11, "x"), (12, "c"))]

CASES = {
    "all agree": passes(*LOG, *answer((10, "a"), (11, "b"), (12, "c"))),
    "the answer ends early": passes(*LOG, *answer((10, "a"))),
    "it says more than readers": passes(*LOG[:2], *answer((11, "b"), (12, "c"), begins_at=11)),
    "nothing was read so": passes(*LOG),
    "it begins in a later place of the log": passes(*LOG, *answer((12, "c"), begins_at=12)),
    "it begins too early": fails(
        *LOG,
        *answer((10, "a"), (11, "b"), begins_at=11),
        offsets=[10],
        text="read orders-0 from offset 11 on (mode replica), and got offset 10, not 11 or a later one",
        facts=["offset_reads"],
    ),
    "it gives a record twice": fails(*LOG, *answer((10, "a"), (10, "a"), (11, "b")), offsets=[10]),
    "it goes back": fails(*LOG, *answer((10, "a"), (12, "c"), (11, "b")), offsets=[11]),
    "it leaves out the first record": fails(
        *LOG, *answer((11, "b"), (12, "c")), offsets=[10], text="the answer leaves out a at offset 10, which c0 read"
    ),
    "it leaves out a record between": fails(*LOG, *answer((10, "a"), (12, "c")), offsets=[11]),
    "a cleaner may have removed the record": passes(*LOG, *answer((10, "a"), (12, "c")), superseded(11)),
    "it has another record": fails(
        *ANOTHER, offsets=[11], text="got x at offset 11, where c0 read b", facts=["offset_reads", "polls"]
    ),
    "an unclean election after it was read": excused(*ANOTHER, elected_uncleanly(2, 1), settings=UNCLEAN),
    "records that were read before a power loss": excused(*ANOTHER, settings=POWER_LOSS),
    "two readers differ, which another check reports": passes(*ANOTHER, read("y", 11, process="c1")),
    "another partition has other records": passes(read("a", 10), *answer((10, "x"), partition=1)),
    "two answers of two processes": passes(
        *LOG, *answer((10, "a"), (11, "b")), *answer((11, "b"), begins_at=11, process="l1")
    ),
    "a value was sent twice": unknown(*ANOTHER, NOT_UNIQUE),
}

test_what_a_read_gives_and_what_others_got = table_of("reads-from-offset", CASES)
