from tests.analysis.fact_rows import held, replica
from tests.analysis.protocol_rows import topic
from tests.analysis.transaction_rows import became, ended, one, wrote
from tests.checks.answers import fails, passes, table_of

CLEANED = [replica(1, 9), replica(1, 100, topic="__transaction_state"), held(1, "a", 0), ended(8, producer_id=8)]
CASES = {
    "a marker stays": passes(*CLEANED, *one(), wrote(0), ended(1)),
    "a marker is gone and its records are there": fails(
        *CLEANED, *one(), wrote(0), text="from offset 0 to 0 have no marker after compaction", offsets=[0]
    ),
    "the marker of two batches is gone": fails(*CLEANED, *one(), wrote(0), wrote(1), text="from offset 0 to 1"),
    "the only marker is gone": fails(*CLEANED[:3], *one(), wrote(0), offsets=[0]),
    "the transaction is open": passes(*CLEANED, became("Ongoing", 1, "orders-0"), wrote(0)),
    "the transaction of another producer is open": fails(
        *CLEANED,
        *one(),
        became("Ongoing", 4, "orders-0", transactional_id="u", producer_id=8),
        wrote(0),
        text="records of producer 7",
    ),
    "the topic is being deleted, and the coordinator skipped it": passes(
        *CLEANED, *one(), wrote(0), topic(present=True, deletion_pending=True)
    ),
    "the log is whole": passes(replica(1, 2), *CLEANED[1:3], *one(), wrote(0), ended(1, producer_id=8)),
    "the log of the coordinator has a gap": passes(*CLEANED, became("Empty", 9, whole=False), wrote(0)),
}
CASES |= CASES["a marker stays"].without_each("replicas")

test_whether_compaction_keeps_markers = table_of("markers-kept", CASES)
