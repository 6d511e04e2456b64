from tests.analysis.transaction_rows import WHOLE, became, ended, one, wrote
from tests.checks.answers import fails, passes, table_of

CASES = {
    "records lie in their transaction": passes(*WHOLE, *one(), wrote(0), wrote(1), ended(2)),
    "a transaction is open": passes(*WHOLE, became("Ongoing", 1, "orders-0"), wrote(0)),
    "a batch comes after the marker": fails(
        *WHOLE, *one(), wrote(0), ended(1), wrote(2), text="no marker ends the last one, from offset 2 on", offsets=[2]
    ),
    "the transaction does not name the partition": fails(
        *WHOLE, *one(at="orders-1"), wrote(0), ended(1), text="and 0 name that partition; all have markers"
    ),
    "a batch comes after the marker of a transaction that named its partitions one by one, after another one": fails(
        *(*WHOLE, *one(1), became("Ongoing", 4, "orders-1"), became("Ongoing", 5, "orders-1", "orders-0")),
        *(became("PrepareCommit", 6, "orders-0", "orders-1"), became("CompleteCommit", 7)),
        *(wrote(0), ended(1), wrote(2), ended(3)),
        *(wrote(0, partition=1), ended(1, partition=1), wrote(2, partition=1)),
        text="in orders-1 producer 7 of epoch 0 wrote in 2 transactions, and 1 name",
    ),
    "only a decision names the partition": fails(
        *(*WHOLE, became("Empty", 0), became("PrepareCommit", 1, "orders-0"), became("CompleteCommit", 2)),
        *(wrote(0), ended(1)),
        text="and 0 name that partition",
    ),
    "the epochs of a producer id are used up, and Complete has the next one": passes(
        *(*WHOLE, became("Ongoing", 1, "orders-0", producer_epoch=32766)),
        *(became("PrepareCommit", 2, "orders-0", producer_epoch=32767), became("CompleteCommit", 3, producer_id=8)),
        *(wrote(0, producer_epoch=32766), ended(1, producer_epoch=32767)),
    ),
    "a new session writes to a partition that only the old one named, and that has no marker of it": fails(
        *(*WHOLE, became("Ongoing", 1, "orders-0"), became("PrepareAbort", 2, "orders-0", producer_epoch=1)),
        *(became("CompleteAbort", 3, producer_epoch=1), *one(4, at="orders-1", producer_epoch=2)),
        *(wrote(0), wrote(1, producer_epoch=2), ended(2, producer_epoch=2)),
        text="producer 7 of epoch 2 wrote in 1 transactions, and 0 name",
    ),
    "the transaction is of another epoch": fails(*WHOLE, *one(producer_epoch=1), wrote(0), ended(1), text="of epoch 0"),
    "two transactions have records": passes(*WHOLE, *one(1), *one(4), wrote(0), ended(1), wrote(2), ended(3)),
    "a transaction has no records": passes(*WHOLE, *one(1), *one(4), wrote(0), ended(1)),
    "the log of the coordinator has a gap": passes(*WHOLE, became("Empty", 9, whole=False), wrote(0)),
}
CASES |= CASES["records lie in their transaction"].without_each("replicas")

test_where_transactional_records_lie = table_of("transactional-data", CASES)
