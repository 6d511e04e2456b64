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
    "the transaction is of another epoch": fails(*WHOLE, *one(producer_epoch=1), wrote(0), ended(1), text="of epoch 0"),
    "two transactions have records": passes(*WHOLE, *one(1), *one(4), wrote(0), ended(1), wrote(2), ended(3)),
    "a transaction has no records": passes(*WHOLE, *one(1), *one(4), wrote(0), ended(1)),
    "the log of the coordinator has a gap": passes(*WHOLE, became("Empty", 9, whole=False), wrote(0)),
}
CASES |= CASES["records lie in their transaction"].without_each("replicas")

test_where_transactional_records_lie = table_of("transactional-data", CASES)
