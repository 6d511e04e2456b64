"""Which steps may a transaction take under one coordinator?

A coordinator's time with a transaction is one leader epoch of the partition of `__transaction_state` that holds it.
"""

from msgspec import Struct

from harness.model.step import Event, Illegal, Key, Rule, Subject

EMPTY, ONGOING, DEAD = "Empty", "Ongoing", "Dead"
PREPARE = {"PrepareCommit": True, "PrepareAbort": False}
"""Decisions, and whether they commit."""
COMPLETE = {"CompleteCommit": "PrepareCommit", "CompleteAbort": "PrepareAbort"}
STEPS = {
    EMPTY: frozenset({EMPTY, *COMPLETE}),
    ONGOING: frozenset({ONGOING, EMPTY, *COMPLETE}),
    "PrepareCommit": frozenset({ONGOING}),
    "PrepareAbort": frozenset({ONGOING, "PrepareEpochFence", EMPTY, *COMPLETE}),
    "CompleteCommit": frozenset({"PrepareCommit"}),
    "CompleteAbort": frozenset({"PrepareAbort"}),
    "PrepareEpochFence": frozenset({ONGOING}),
    DEAD: frozenset({EMPTY, *COMPLETE}),
}
"""From which states each is reached: `TransactionState.validPreviousStates`, and aborts of nothing since KIP-890."""
LOADED = ""
LAST_EPOCH = 32_766
"""The largest epoch of a producer id in use; 32,767 is reserved for fencing."""


class Transaction(Struct, frozen=True, kw_only=True):
    """A transactional id as its coordinator has it; None is unknown."""

    state: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None


FRESH = Transaction()

STATE_VALID = Rule(
    id="transaction.state-valid",
    sentence="A transaction enters a state only from one of its valid previous states.",
    source="TransactionState.validPreviousStates",
)
STATE_CONTINUES = Rule(
    id="transaction.state-continues",
    sentence="A transaction changes from the state in which it is.",
    source="TransactionMetadata.completeTransitionTo",
)
EPOCH_RISES = Rule(
    id="transaction.epoch-rises",
    sentence="The epoch of a producer id never goes back.",
    source="TransactionMetadata.completeTransitionTo",
)
MARKERS_DECIDED = Rule(
    id="transaction.markers-decided",
    sentence="Markers are sent after a decision has been stored, and carry that decision.",
    source="TransactionMarkerChannelManager.addTxnMarkersToSend",
)
PRODUCER_KEPT = Rule(
    id="transaction.producer-kept",
    sentence="A transactional id keeps its producer id until the epochs of that are used up.",
    source="TransactionMetadata.isProducerEpochExhausted, KIP-360",
)
COMPLETE_EMPTY = Rule(
    id="transaction.complete-empty",
    sentence="A transaction is complete when every partition has its marker.",
    source="TransactionMetadata.prepareComplete",
)


def changes_state(state: Transaction | None, event: Event) -> Transaction | Illegal:
    """The next state is stored, or it was read from the log."""
    known = state or FRESH
    before, now = event["from_state"], event["to_state"]
    after = Transaction(state=now, producer_id=event["producer_id"], producer_epoch=event["producer_epoch"])
    if before == LOADED:
        return after
    if before not in STEPS.get(now, ()):
        return Illegal(STATE_VALID, after)
    if known.state is not None and known.state != before:
        return Illegal(STATE_CONTINUES, after)
    same = known.producer_id == event["producer_id"] and known.producer_epoch is not None
    if same and event["producer_epoch"] < (known.producer_epoch or 0):
        return Illegal(EPOCH_RISES, after)
    if _replaces_producer(known, event):
        return Illegal(PRODUCER_KEPT, after)
    if now in COMPLETE and event["partitions"]:
        return Illegal(COMPLETE_EMPTY, after)
    return FRESH if now == DEAD else after  # the next transaction of an expired id is another one


def _replaces_producer(known: Transaction, event: Event) -> bool:
    """Return whether the id gets another producer id before the epochs of the present one are used up."""
    epoch = known.producer_epoch
    return epoch is not None and epoch < LAST_EPOCH and known.producer_id != event["producer_id"]


def sends_markers(state: Transaction | None, event: Event) -> Transaction | Illegal:
    """Markers of the decision go to a broker."""
    known = state or FRESH
    if known.state is None:
        return known
    return known if PREPARE.get(known.state) is event["commits"] else Illegal(MARKERS_DECIDED, known)


def _of_transaction(event: Event) -> Key:
    return event["transactional_id"], event["coordinator_epoch"]


SUBJECT = Subject(
    name="transaction",
    rules=(STATE_VALID, STATE_CONTINUES, EPOCH_RISES, PRODUCER_KEPT, MARKERS_DECIDED, COMPLETE_EMPTY),
    legal={"txn_state": changes_state, "txn_marker_send": sends_markers},
    fresh=FRESH,
    key=_of_transaction,
)
