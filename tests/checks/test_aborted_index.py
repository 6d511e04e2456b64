from tests.analysis.fact_rows import held, replica, state
from tests.analysis.transaction_rows import ended, indexed, one, wrote
from tests.checks.answers import fails, passes, table_of

LOG = [replica(1, 2), replica(1, 100, topic="__transaction_state"), *one(commits=False), held(1, "a", 0), wrote(0)]
CASES = {
    "an aborted transaction is in the index": passes(*LOG, ended(1, commits=False), indexed(0, 1)),
    "an aborted transaction is not in the index": fails(
        *LOG, ended(1, commits=False), text="to the marker at 1 of orders-0 is not in the index", offsets=[0]
    ),
    "the index has a committed transaction": fails(*LOG, ended(1), indexed(0, 1), text="is in the index alone"),
    "the index has another first offset": fails(
        *LOG, ended(1, commits=False), indexed(1, 1), severities=["violation", "violation"]
    ),
    "a transaction of two batches is aborted": passes(
        *(replica(1, 3), *LOG[1:], held(1, "b", 1), wrote(1), ended(2, commits=False), indexed(0, 2))
    ),
    "a marker without records needs no entry": passes(*LOG[:-1], ended(1, commits=False)),
    "a record is gone from the log": passes(*LOG[:-2], wrote(0), ended(1, commits=False)),
    "the replica is not in the ISR": passes(
        *LOG, ended(1, commits=False), state(0, leader=2, epoch=0, isr=[2]), replica(2, 2)
    ),
    "the replica is in the ISR": fails(*LOG, ended(1, commits=False), state(0, leader=1, epoch=0, isr=[1])),
}
CASES |= CASES["an aborted transaction is in the index"].without_each("replicas")

test_what_the_index_of_aborted_transactions_has = table_of("aborted-index", CASES)
