from tests.analysis.fact_rows import held, replica, state
from tests.analysis.protocol_rows import topic
from tests.analysis.transaction_rows import became, ended, one, wrote
from tests.checks.answers import fails, passes, table_of

LOG = [replica(1, 4), replica(1, 100, topic="__transaction_state"), *one(1, at="orders-0")]
RECORDS = [held(1, f"v{offset}", offset) for offset in range(4)]
CASES = {
    "a complete transaction has its marker": passes(*LOG, *RECORDS[:3], wrote(0), ended(3)),
    "a marker is missing": fails(
        *LOG, *RECORDS[:3], wrote(0), ended(3, producer_id=8), text="markers are missing of t", shown='"number":0'
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
    "the topic is deleted": passes(*LOG, *RECORDS[:3], wrote(0), ended(3, producer_id=8), topic(present=False)),
    "the topic was made anew": passes(
        *LOG, *RECORDS[:3], wrote(0), ended(3, producer_id=8), state(0, leader=1, epoch=0, isr=[1], life=2)
    ),
    "records are gone from the log": passes(*LOG, *RECORDS[:1], wrote(0), ended(3, producer_id=8)),
    "a marker without records is there twice": passes(*LOG, *RECORDS[:2], wrote(0), ended(2), ended(3)),
    "a second marker closes later records": fails(
        *LOG, *RECORDS[:2], wrote(0), ended(1), wrote(2), ended(3), text="too many markers close records"
    ),
    "two transactions have a marker each": passes(*LOG, *one(4), *RECORDS[:2], wrote(0), ended(1), wrote(2), ended(3)),
}
CASES |= CASES["a complete transaction has its marker"].without_each("replicas")

test_whether_every_partition_has_its_marker = table_of("markers-complete", CASES)
