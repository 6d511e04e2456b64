from dataclasses import replace

from tests.analysis.fact_rows import held, replica, state
from tests.analysis.transaction_rows import ended, one, remembered, wrote
from tests.checks.answers import STRICT, fails, passes, table_of

EXPIRING = replace(STRICT, producers_expire=True)

LOG = [replica(1, 2), replica(1, 100, topic="__transaction_state"), *one(), held(1, "a", 0), wrote(0)]
TWO = [replica(2, 2), held(2, "a", 0), wrote(0, broker=2), state(0, leader=1, epoch=0, isr=[1, 2])]
AGAIN = [replica(1, 3), *LOG[1:], ended(1), held(1, "c", 2), wrote(2)]
CASES = {
    "a snapshot is what the log says": passes(*LOG, ended(1), remembered()),
    "a transaction is open": passes(*LOG, remembered(coordinator_epoch=-1, transaction_first_offset=0)),
    "a transaction with two batches is open": passes(
        *(replica(1, 2), *LOG[1:], held(1, "b", 1), wrote(1)),
        remembered(last_offset=1, coordinator_epoch=-1, transaction_first_offset=0),
    ),
    "two coordinators have ended a transaction each": passes(
        *(replica(1, 4), *LOG[1:], ended(1), held(1, "c", 2), wrote(2), ended(3, coordinator_epoch=1)),
        remembered(last_offset=2, coordinator_epoch=1),
    ),
    "a producer wrote outside of transactions, and then ended one without records": passes(
        *LOG[:5], held(1, "a", 0, producer_id=7), ended(1), remembered()
    ),
    "a marker raised the epoch": passes(
        *LOG, ended(1, producer_epoch=1), remembered(producer_epoch=1, last_offset=-1, last_sequence=-1)
    ),
    "a snapshot has an open transaction that has ended": fails(
        *LOG, ended(1), remembered(transaction_first_offset=0), text="differs from the log before it"
    ),
    "a snapshot has an older epoch": fails(*LOG, ended(1, producer_epoch=1), remembered(last_offset=-1)),
    "a snapshot has another coordinator epoch": fails(*LOG, ended(1), remembered(coordinator_epoch=3)),
    "a snapshot has another last record": fails(*LOG, ended(1), remembered(last_offset=5)),
    "a snapshot is older than the marker": passes(
        *LOG, ended(1), remembered(snapshot_offset=1, coordinator_epoch=-1, transaction_first_offset=0)
    ),
    "a producer was idle, was forgotten with its coordinator, and writes again": passes(
        *AGAIN, remembered(last_offset=2, coordinator_epoch=-1, transaction_first_offset=2), settings=EXPIRING
    ),
    "a producer writes again, and its coordinator was forgotten too early": fails(
        *AGAIN, remembered(last_offset=2, coordinator_epoch=-1, transaction_first_offset=2)
    ),
    "a producer was forgotten, and then ended a transaction without records": passes(
        *(replica(1, 3), *LOG[1:], ended(1), ended(2)), remembered(last_offset=-1), settings=EXPIRING
    ),
    "a producer ended a transaction without records, and its last record was forgotten too early": fails(
        *(replica(1, 3), *LOG[1:], ended(1), ended(2)), remembered(last_offset=-1)
    ),
    "a producer was forgotten although its transaction was open": fails(
        *(replica(1, 2), *LOG[1:], held(1, "b", 1), wrote(1)),
        remembered(last_offset=1, coordinator_epoch=-1, transaction_first_offset=1),
        settings=EXPIRING,
    ),
    "producers expire, and a snapshot has another coordinator epoch": fails(
        *LOG, ended(1), remembered(coordinator_epoch=3), settings=EXPIRING
    ),
    "producers expire, and a snapshot has another last record": fails(
        *LOG, ended(1), remembered(last_offset=5), settings=EXPIRING
    ),
    "producers expire, and a snapshot has an older epoch": fails(
        *LOG, ended(1, producer_epoch=1), remembered(last_offset=-1), settings=EXPIRING
    ),
    "a marker is deleted, and the next transaction is open": passes(
        *(replica(1, 3, log_start_offset=2), *LOG[1:5], held(1, "c", 2), wrote(2)),
        remembered(last_offset=2, transaction_first_offset=2),
    ),
    "producers were read again from where the log begins in a segment": passes(
        *(replica(1, 2, log_start_offset=1), *LOG[1:5], ended(0), held(1, "b", 1), wrote(1)),
        remembered(last_offset=1, coordinator_epoch=-1, transaction_first_offset=1),
    ),
    "a member of the ISR has deleted more": passes(
        *LOG, *TWO[3:], replica(2, 2, log_start_offset=2), ended(1), remembered()
    ),
    "records are gone from the log": passes(*LOG[:3], wrote(0), ended(1), remembered(last_offset=5)),
    "the ISR has the same markers": passes(*LOG, *TWO, ended(1), ended(1, broker=2)),
    "a member of the ISR has not fetched the marker yet": passes(*LOG, *TWO[1:], replica(2, 1), ended(1)),
    "a member of the ISR lacks the marker of a transaction without records": fails(
        *(replica(1, 1), *LOG[1:5], ended(0), replica(2, 1), held(2, "a", 0), TWO[3]),
        text="broker 2 lacks the marker (commit) of producer 7",
        offsets=[0],
    ),
    "a member of the ISR has another marker": fails(
        *LOG, *TWO, ended(1), ended(1, broker=2, commits=False), severities=["violation", "violation"]
    ),
}
CASES |= CASES["a snapshot is what the log says"].without_each("replicas")

test_what_replicas_remember_of_producers = table_of("producer-snapshots", CASES)
