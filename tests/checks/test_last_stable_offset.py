from tests.analysis.fact_rows import claimed, replica
from tests.analysis.transaction_rows import WHOLE, became, ended, one, stable, wrote
from tests.checks.answers import fails, passes, table_of

LOGS = [*WHOLE, *one()]
LED = claimed(1, 0, high_watermark=0, end=0, seq=-1)
TRANSACTION = [wrote(3), ended(4)]
HELD_BACK = [LED, stable(0, 3, 6, 3)]
STUCK = [*LOGS, *TRANSACTION, *HELD_BACK]
OPEN = became("Ongoing", 1, "orders-0", started_ms=1, timestamp_ms=1)
DOUBTFUL = [
    *(*WHOLE, became("Ongoing", 1, "orders-0", started_ms=1, timestamp_ms=1, counts=None)),
    became("Empty", 2, transactional_id="u", timestamp_ms=90_000, counts=None),
]
CASES = {
    "it stops at the first open transaction, and goes on": passes(*STUCK, stable(3, 6, 6, seq=1)),
    "it goes back": fails(*LOGS, stable(0, 5, 5), stable(5, 3, 5, 3, seq=1), text="and it goes back", offsets=[3]),
    "it goes back in another leader epoch": passes(*LOGS, stable(0, 5, 5), stable(5, 3, 5, 3, seq=1, leader_epoch=1)),
    "it begins lower when the leader has started again": passes(
        *LOGS, stable(0, 5, 5), stable(0, 3, 5, 3, seq=1, incarnation="inc-1 again")
    ),
    "it is logged again when the high watermark rises": passes(*LOGS, stable(0, 3, 6, 3), stable(3, 3, 7, 3, seq=1)),
    "a follower's goes back": passes(*LOGS, stable(0, 5, 5), stable(5, 3, 5, 3, seq=1, role="follower")),
    "it passes the first open transaction": fails(*LOGS, stable(0, 5, 5, 3), text="neither the first open transaction"),
    "it passes an open transaction at the log's start": fails(*LOGS, stable(1, 5, 5, 0), text="neither the first open"),
    "it passes the high watermark": fails(*LOGS, stable(0, 6, 5), text="nor the high watermark"),
    "it is held back by a transaction that has ended": fails(
        *STUCK, text="it stays there, although that transaction has ended"
    ),
    "the same, and the log of a follower has come further": fails(
        *(*LOGS, replica(2, 101), wrote(3, broker=2), ended(4, broker=2), *HELD_BACK), text="it stays there"
    ),
    "the same, and its leader leads on in another epoch": fails(
        *STUCK, claimed(1, 1, high_watermark=6, end=6, seq=9), text="it stays there"
    ),
    "the same, and a follower starts": fails(
        *STUCK, claimed(2, 0, high_watermark=6, end=6, seq=9, role="follower"), text="it stays there"
    ),
    "another leader takes over, and holds nothing back": passes(*STUCK, claimed(2, 1, high_watermark=6, end=6, seq=9)),
    "the leader starts again, and holds nothing back": passes(
        *STUCK, claimed(1, 0, high_watermark=6, end=6, seq=9, incarnation="inc-1 again")
    ),
    "a leader was a follower in between, and it moved then": passes(
        *STUCK, stable(3, 6, 6, seq=1, role="follower"), claimed(1, 2, high_watermark=6, end=6, seq=9)
    ),
    "a leader had lost the partition in between, and copied it anew": passes(
        *STUCK, claimed(1, 2, high_watermark=6, end=6, seq=9, previous_leader_epoch=-1)
    ),
    "a transaction begins at the high watermark, and its end is committed with it": passes(
        *LOGS, *TRANSACTION, LED, stable(1, 3, 3, 3)
    ),
    "the marker of that transaction is not committed": passes(
        *(replica(1, 100, high_watermark=4), replica(2, 5), WHOLE[2], *one(), *TRANSACTION, LED, stable(0, 3, 4, 3))
    ),
    "it passes a transaction whose marker is not committed": fails(
        *(*LOGS, wrote(1), ended(2), wrote(4), ended(5), stable(0, 5, 5)),
        text="that passes a transaction whose marker was not",
        offsets=[5],
    ),
    "it passes such transactions twice": fails(
        *LOGS, wrote(3), ended(9), stable(0, 5, 5), stable(5, 6, 6, seq=1), offsets=[5]
    ),
    "three leaders pass such a transaction": fails(
        *(*LOGS, wrote(3), ended(9), stable(0, 5, 5), stable(5, 6, 6, seq=1, leader_epoch=1)),
        stable(0, 7, 7, seq=2, leader_epoch=1, incarnation="inc-1 again"),
        severities=["violation"] * 3,
        offsets=[5, 6, 7],
    ),
    "it passes a transaction whose marker is committed": passes(*LOGS, *TRANSACTION, stable(0, 5, 5)),
    "it stops at a transaction whose marker is not committed": passes(
        *LOGS, wrote(3), ended(9), stable(0, 3, 5, 3), stable(3, 10, 10, seq=1)
    ),
    "the transaction that holds it back is open": passes(
        *LOGS, wrote(1, producer_id=8), ended(2, producer_id=8), wrote(3), *HELD_BACK
    ),
    "a transaction is open past its time-out": fails(
        *WHOLE, OPEN, became("Empty", 2, transactional_id="u", timestamp_ms=61_002), text="was open for 61001 ms"
    ),
    "the same, and no coordinator logs what it stored, but it has written": fails(
        *DOUBTFUL, wrote(3), text="was open for 89999 ms"
    ),
    "the same, and only others have records that no marker closes": passes(
        *DOUBTFUL, wrote(3), ended(4), wrote(5, producer_id=8), replica(2, 9), wrote(3, broker=2)
    ),
    "a transaction is open, and its time-out was just over": passes(
        *WHOLE, OPEN, became("Empty", 2, transactional_id="u", timestamp_ms=61_001)
    ),
    "a transaction is open, and only the log of another coordinator goes on": passes(
        *WHOLE, OPEN, became("Empty", 2, transactional_id="u", timestamp_ms=61_002, partition=1)
    ),
    "a transaction is open, and its beginning is not known": passes(
        *WHOLE, became("Ongoing", 1, "orders-0", started_ms=-1, timestamp_ms=90_000)
    ),
    "a transaction was ended after its time-out": passes(
        *WHOLE, OPEN, became("PrepareAbort", 2, "orders-0", timestamp_ms=90_000)
    ),
    "a transaction has ended, and the log goes on": passes(
        *WHOLE, *one(started_ms=1), became("Empty", 4, transactional_id="u", timestamp_ms=90_000)
    ),
}
CASES |= CASES["it passes the high watermark"].without_each("replicas")

test_where_the_last_stable_offset_is = table_of("last-stable-offset", CASES)
