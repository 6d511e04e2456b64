from tests.analysis.fact_rows import replica
from tests.analysis.transaction_rows import WHOLE, became, ended, one, stable, wrote
from tests.checks.answers import fails, passes, table_of

LOGS = [*WHOLE, *one()]
OPEN = became("Ongoing", 1, "orders-0", started_ms=1, timestamp_ms=1)
CASES = {
    "it stops at the first open transaction, and goes on": passes(*LOGS, stable(0, 3, 5, 3), stable(3, 6, 6, seq=1)),
    "it goes back": fails(*LOGS, stable(0, 5, 5), stable(5, 3, 5, 3, seq=1), text="and it goes back", offsets=[3]),
    "it goes back in another leader epoch": passes(*LOGS, stable(0, 5, 5), stable(5, 3, 5, 3, seq=1, leader_epoch=1)),
    "a follower's goes back": passes(*LOGS, stable(0, 5, 5), stable(5, 3, 5, 3, seq=1, role="follower")),
    "it passes the first open transaction": fails(*LOGS, stable(0, 5, 5, 3), text="neither the first open transaction"),
    "it passes the high watermark": fails(*LOGS, stable(0, 6, 5), text="nor the high watermark"),
    "it is held back by a transaction that has ended": fails(
        *LOGS, wrote(3), ended(4), stable(0, 3, 6, 3), text="it stays there, although that transaction has ended"
    ),
    "the marker of that transaction is not committed": passes(
        replica(1, 100, high_watermark=4), WHOLE[2], *one(), wrote(3), ended(4), stable(0, 3, 4, 3)
    ),
    "it passes a transaction whose marker is not committed": fails(
        *LOGS, wrote(3), ended(9), stable(0, 5, 5), text="that passes a transaction whose marker was not", offsets=[5]
    ),
    "it passes such transactions twice": fails(*LOGS, wrote(3), ended(9), stable(0, 5, 5), stable(5, 6, 6, seq=1)),
    "it passes a transaction whose marker is committed": passes(*LOGS, wrote(3), ended(4), stable(0, 5, 5)),
    "it stops at a transaction whose marker is not committed": passes(
        *LOGS, wrote(3), ended(9), stable(0, 3, 5, 3), stable(3, 10, 10, seq=1)
    ),
    "the transaction that holds it back is open": passes(*LOGS, wrote(3), stable(0, 3, 6, 3)),
    "a transaction is open past its time-out": fails(
        *WHOLE, OPEN, became("Empty", 2, transactional_id="u", timestamp_ms=61_002), text="was open for 61001 ms"
    ),
    "a transaction is open, and its time-out was just over": passes(
        *WHOLE, OPEN, became("Empty", 2, transactional_id="u", timestamp_ms=61_001)
    ),
    "a transaction was ended after its time-out": passes(
        *WHOLE, OPEN, became("PrepareAbort", 2, "orders-0", timestamp_ms=90_000)
    ),
}
CASES |= CASES["it passes the high watermark"].without_each("replicas")

test_where_the_last_stable_offset_is = table_of("last-stable-offset", CASES)
