from typing import Any

from tests.analysis.fact_rows import Row, committed, fetched, held, replica
from tests.analysis.transaction_rows import committed_in, ended, logged, wrote, wrote_marker
from tests.checks.answers import UNHEARD, fails, passes, table_of, unknown

OFFSETS: dict[str, Any] = {"topic": "__consumer_offsets"}
LOG = [replica(1, 2, **OFFSETS), held(1, "v", 0, producer_id=7, **OFFSETS), wrote(0, **OFFSETS), logged(5, 0)]


def read_at(complete_ns: int) -> Row:
    return fetched(5, at=(1, complete_ns))


ABORTED = [*LOG, ended(1, commits=False, **OFFSETS)]
COMMITTED = [*LOG, ended(1, **OFFSETS)]
CASES = {
    "an offset of a committed transaction is read back": passes(*COMMITTED, read_at(9)),
    "an offset of an aborted transaction is read back": fails(
        *ABORTED, read_at(9), text="c0 read back 5 of orders-0 for group g0"
    ),
    "an offset of two aborted transactions is read back": fails(
        *(replica(1, 4, **OFFSETS), *ABORTED[1:]),
        *(held(1, "w", 2, producer_id=7, **OFFSETS), logged(5, 2), ended(3, commits=False, **OFFSETS), read_at(9)),
        shown='"log_offset":0',
    ),
    "an offset of a transaction that never ends is read back": fails(
        replica(1, 1, **OFFSETS), *LOG[1:], read_at(9), text="was aborted or is open"
    ),
    "an offset is read back before its transaction ends": fails(
        *(*COMMITTED, wrote_marker(1, 20, **OFFSETS), read_at(9)),
        *(wrote_marker(1, 8), wrote_marker(1, 8, producer_id=8, **OFFSETS), wrote_marker(0, 8, **OFFSETS)),
        text="was still open",
    ),
    "an offset is read back when its transaction has ended": passes(
        *COMMITTED, wrote_marker(1, 20, **OFFSETS), read_at(20)
    ),
    "a later transaction of the same producer ends after that": passes(
        *(replica(1, 4, **OFFSETS), *COMMITTED[1:], wrote_marker(1, 8, **OFFSETS), read_at(9)),
        *(held(1, "w", 2, producer_id=7, **OFFSETS), ended(3, **OFFSETS), wrote_marker(3, 20, **OFFSETS)),
    ),
    "a later leader wrote the marker again after that": passes(
        *(*COMMITTED, read_at(9)),
        *(wrote_marker(1, 8, **OFFSETS), wrote_marker(1, 20, leader_epoch=1, **OFFSETS)),
    ),
    "the same offset was committed outside of a transaction too": passes(
        replica(1, 3, **OFFSETS),
        *ABORTED[1:],
        held(1, "w", 2, producer_id=-1, **OFFSETS),
        logged(5, 2),
        read_at(9),
    ),
    "transactions in other partitions have an open or an aborted record at that place": passes(
        *(replica(1, 3, **OFFSETS), *COMMITTED[1:]),
        *(held(1, "w", 2, producer_id=-1, **OFFSETS), logged(4, 2), fetched(4, at=(1, 9))),
        *(replica(1, 4), held(1, "x", 2, producer_id=7), ended(3, commits=False)),
        *(replica(1, 3, partition=1, **OFFSETS), held(1, "y", 2, producer_id=8, partition=1, **OFFSETS)),
    ),
    "another offset is read back": passes(*ABORTED, fetched(4, at=(1, 9))),
    "an offset is not read back, but committed": passes(*ABORTED, committed(5, at=(1, 9))),
    "an offset is requested, and there is no answer": passes(*ABORTED, fetched(5, at=(1, 9), outcome="info")),
    "records are gone from the offsets topic": passes(
        *(replica(1, 9, **OFFSETS), *ABORTED[1:], read_at(9)),
        *(replica(1, 1, partition=1, **OFFSETS), held(1, "v", 0, partition=1, **OFFSETS)),
        *(replica(1, 1), held(1, "v", 0)),
    ),
    "lines of a broker are missing": unknown(*ABORTED, read_at(9), UNHEARD, text="missing lines"),
    "a member of this generation commits": passes(*LOG, committed_in(3, 3)),
    "a member of an older generation commits": fails(*LOG, committed_in(2, 3), text="in generation 2, and the group"),
    "a commit of an older generation is refused": passes(*LOG, committed_in(2, 3, error=22)),
    "a producer names no member": passes(*LOG, committed_in(-1, 3)),
    "the coordinator does not say when it decided": unknown(
        *LOG, committed_in(2, 3, decided_seq=None), text="decided_seq"
    ),
    "the generation of the group is not known": passes(*LOG, committed_in(2, None)),
}
CASES |= CASES["a member of this generation commits"].without_each("replicas")

test_which_offsets_of_transactions_count = table_of("transactional-offsets", CASES)
