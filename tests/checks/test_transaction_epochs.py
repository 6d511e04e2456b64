from typing import Any

from tests.analysis.fact_rows import Row
from tests.analysis.transaction_rows import WHOLE, answered_end, became, one
from tests.checks.answers import Case, fails, passes, table_of

NEXT: dict[str, Any] = {"producer_epoch": 1}


def right(*rows: Row) -> Case:
    return passes(*WHOLE, *rows)


def wrong(*rows: Row, text: str) -> Case:
    return fails(*WHOLE, *rows, text=text)


def open_then(*rows: Row, **other: Any) -> list[Row]:
    return [became("Ongoing", 1, "orders-0", **other), *rows]


ABORTED = [became("PrepareAbort", 2, "orders-0"), became("CompleteAbort", 3)]
CASES = {
    "the epoch stays within a session": right(became("Empty", 0), *one(1), *one(4)),
    "a session raises the epoch": right(*one(), became("Empty", 4, **NEXT), *one(5, **NEXT)),
    "a fence raises the epoch": right(*open_then(became("PrepareAbort", 2, "orders-0", **NEXT))),
    "a time-out raises the epoch": right(
        *open_then(became("PrepareAbort", 2, "orders-0", **NEXT), became("CompleteAbort", 3, **NEXT)), answered_end(9)
    ),
    "a fence is stored before its abort": right(
        *open_then(became("PrepareEpochFence", 2, "orders-0", **NEXT), became("PrepareAbort", 3, "orders-0", **NEXT)),
        *(became("CompleteAbort", 4, **NEXT), answered_end(9)),
    ),
    "a new producer begins at 0": right(became("Empty", 0, producer_epoch=32766), became("Empty", 1, producer_id=8)),
    "a new producer begins later": wrong(
        became("Empty", 0), became("Empty", 1, producer_id=8, producer_epoch=3), text="producer 8 of epoch 3"
    ),
    "the epoch goes back": wrong(became("Empty", 0, **NEXT), became("Empty", 1), text="of epoch 0, after Empty"),
    "the epoch leaps": wrong(became("Empty", 0), became("Empty", 1, producer_epoch=2), text="of epoch 2"),
    "a commit raises the epoch": wrong(
        *open_then(became("PrepareCommit", 2, "orders-0", **NEXT)), text="PrepareCommit"
    ),
    "a commit of version 2 raises the epoch": right(
        *open_then(became("PrepareCommit", 2, "orders-0", transaction_version=2, **NEXT), transaction_version=2)
    ),
    "a fence and an abort of version 2 raise it twice": right(
        *open_then(became("PrepareAbort", 2, "orders-0", transaction_version=2, producer_epoch=2))
    ),
    "a commit of version 2 raises it twice": wrong(
        *open_then(became("PrepareCommit", 2, "orders-0", transaction_version=2, producer_epoch=2)), text="of epoch 2"
    ),
    "a fence and an abort of an older version raise it twice": wrong(
        *open_then(became("PrepareAbort", 2, "orders-0", producer_epoch=2)), text="of epoch 2"
    ),
    "a fence and an abort of version 2 raise it three times": wrong(
        *open_then(became("PrepareAbort", 2, "orders-0", transaction_version=2, producer_epoch=3)), text="of epoch 3"
    ),
    "a transaction begins in another epoch": wrong(became("Empty", 0), *one(1, **NEXT), text="became Ongoing"),
    "the record before was not stored": right(
        became("Empty", 0), became("Empty", 1, counts=False, **NEXT), became("Ongoing", 2, "orders-0")
    ),
    "no coordinator logs which record was stored": right(
        became("Empty", 0, counts=None), became("Empty", 1, counts=None, **NEXT), became("Ongoing", 2, counts=None)
    ),
    "no coordinator logs which record was stored, and the epoch leaps": wrong(
        became("Empty", 0, counts=None), became("Empty", 1, counts=None, producer_epoch=2), text="of epoch 2"
    ),
    "a transactional id is forgotten": right(became("Empty", 0, **NEXT), became("Dead", 1, producer_epoch=-1), *one(2)),
    "a producer asked for its abort": right(*open_then(*ABORTED), answered_end(2)),
    "a producer asked twice for its abort, and only then has an answer": right(
        *open_then(ABORTED[0], became("PrepareAbort", 3, "orders-0"), became("CompleteAbort", 4)), answered_end(4)
    ),
    "a producer has no answer to its commit": right(*one(), answered_end(9)),
    "nothing asked for an abort": wrong(
        *open_then(*ABORTED), answered_end(9), text="did not ask for raises the epoch: t became PrepareAbort"
    ),
    "a refused request asked for an abort": wrong(*open_then(*ABORTED), answered_end(2, error=48), text="did not ask"),
    "a request for something else is answered": wrong(
        *open_then(*ABORTED), answered_end(2, api="AddPartitionsToTxn"), text="did not ask"
    ),
    "the coordinator ended before it could answer": right(
        *open_then(ABORTED[0], became("CompleteAbort", 3, stored_by="inc-2")), answered_end(9)
    ),
    "no coordinator logs its answers": right(*open_then(*ABORTED)),
    "the log has a gap": right(became("Empty", 0), became("Empty", 2, producer_epoch=2, whole=False)),
}
CASES |= CASES["the epoch stays within a session"].without_each("replicas")

test_how_epochs_grow = table_of("transaction-epochs", CASES)
