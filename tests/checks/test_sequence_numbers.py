from tests.analysis.fact_rows import Row, held, replica, state
from tests.analysis.protocol_rows import compacted
from tests.checks.answers import fails, passes, table_of, unknown

LOG = [replica(1, 9), state(0, leader=1, epoch=0, isr=[1])]


def numbered(sequence: int, offset: int, *, broker: int = 1, producer: int = 7, epoch: int = 0) -> Row:
    return held(broker, f"v{offset}", offset, producer_id=producer, producer_epoch=epoch, sequence=sequence)


CASES = {
    "numbers follow each other": passes(*LOG, numbered(4, 0), numbered(5, 1), numbered(6, 5)),
    "two producers between each other": passes(
        *LOG, numbered(0, 0), numbered(0, 1, producer=8), numbered(1, 2), numbered(1, 3, producer=8)
    ),
    "a new producer epoch begins again": passes(*LOG, numbered(4, 0), numbered(0, 1, epoch=1)),
    "numbers begin again after the largest": passes(*LOG, numbered(2**31 - 1, 0), numbered(0, 1)),
    "two replicas hold the same": passes(*LOG, numbered(4, 0), numbered(4, 0, broker=2)),
    "a number is missing": fails(
        *LOG, numbered(4, 0), numbered(6, 1), offsets=[1], text="number 6 at offset 1 after number 4"
    ),
    "numbers are missing where a cleaner was": passes(*LOG, numbered(4, 0), numbered(9, 1), compacted(1)),
    "one number is missing where a cleaner was": passes(*LOG, numbered(4, 0), numbered(6, 1), compacted(1)),
    "a cleaner was there, and before that a shorter way": passes(
        *LOG, numbered(4, 0), numbered(6, 1), compacted(0), compacted(1)
    ),
    "almost half of all numbers are missing where a cleaner was": passes(
        *LOG, numbered(4, 0), numbered(2**30, 1), compacted(1)
    ),
    "numbers are missing where none was": fails(*LOG, numbered(4, 1), numbered(6, 2), compacted(1), offsets=[2]),
    "a number comes twice where a cleaner was": fails(*LOG, numbered(4, 0), numbered(4, 1), compacted(9), offsets=[1]),
    "numbers go back where a cleaner was": fails(*LOG, numbered(4, 0), numbered(3, 1), compacted(9), offsets=[1]),
    "numbers begin again where a cleaner was": passes(*LOG, numbered(2**31 - 2, 0), numbered(3, 1), compacted(9)),
    "a number comes twice": fails(*LOG, numbered(0, 0), numbered(0, 1), offsets=[1]),
    "a marker of a transaction has no number": passes(*LOG, numbered(4, 0), numbered(-1, 1), numbered(5, 2)),
    "producers without numbers are not judged": passes(
        *LOG, numbered(-1, 0, producer=-1), numbered(-1, 1, producer=-1)
    ),
    "a dump is damaged": unknown(replica(1, 9, damage="torn"), numbered(4, 0), numbered(6, 1), text="torn"),
    "there is no record": unknown(*LOG, text="replica_records"),
}

CASES |= CASES["numbers follow each other"].without_each("replicas", "replica_records")
CASES |= CASES["numbers follow each other"].with_unknown_cleaners()

test_sequence_numbers_in_a_log = table_of("I21", CASES)
