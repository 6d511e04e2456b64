from typing import Any

from tests.analysis.fact_rows import Row, held
from tests.analysis.protocol_rows import block, topic
from tests.checks.answers import Case, fails, passes, table_of, unknown

TOPIC = topic(present=True)
NUMBERED = held(1, "a", 0, producer_id=7)


def disjoint(*rows: Row) -> Case:
    return passes(TOPIC, NUMBERED, *rows)


def overlap(*rows: Row, **wanted: Any) -> Case:
    return fails(TOPIC, NUMBERED, *rows, **wanted)


CASES = {
    "each block begins after the one before": disjoint(block(1, 0), block(2, 1000, broker=2), block(3, 2000)),
    "ids were left out": disjoint(block(1, 0), block(2, 5000)),
    "a block is claimed twice": overlap(
        block(1, 0),
        block(2, 0, broker=2),
        text="broker 2 claimed 0 to 999 when ids up to 999 had been claimed, those by broker 1",
        shown='"taken":{"last":999,"broker":1,"zk_version":1}',
    ),
    "a block begins with the last id of the one before": overlap(block(1, 0), block(2, 999)),
    "a block is one that was claimed long before": overlap(
        block(1, 0), block(2, 1000), block(3, 0), text="when ids up to 1999 had been claimed"
    ),
    "the claims are listed in another order": disjoint(block(2, 1000), block(1, 0)),
    "a claim is missing in the history": unknown(
        TOPIC, block(1, 0), block(3, 2000), text="version 3 follows version 1"
    ),
    "the history begins with a later claim": disjoint(block(7, 7000), block(8, 8000)),
    "the znode was made anew": disjoint(block(3, 0), block(0, 1000, zxid=90)),
    "no producer has an id": passes(TOPIC, held(1, "a", 0, producer_id=-1)),
    "no claim of the ids in use is seen": unknown(TOPIC, held(1, "a", 0, producer_id=0), text="no claim of any block"),
    "ZooKeeper's history is not there": unknown(NUMBERED, text="topics"),
}

test_who_has_which_producer_ids = table_of("I25", CASES)
