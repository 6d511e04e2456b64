"""Which steps may a coordinator take with one partition of `__consumer_offsets` or `__transaction_state`?"""

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Key, Rule, Subject
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC


class Coordinated(Struct, frozen=True, kw_only=True):
    """One partition of the offsets topic as its broker's log shows it."""

    leader_epoch: int | None = None
    """In which it is led here; None where it is not, or it is unknown."""
    loaded: bool = False
    was_lost: bool = False
    """Whether the lead was ever lost in this life of the broker."""
    lost: bool = False
    """Whether the lead was lost since it was loaded, and no line says that it was unloaded."""
    refused: bool = False
    """Whether it has said, without having lost the partition, that another coordinates it."""
    waits: int = 0
    """Lines of what the broker holds since it leads, while nothing is loaded."""


FRESH = Coordinated()
NOT_COORDINATOR = 16
"""Kafka's number of NOT_COORDINATOR."""
MAX_WAITS = 15
"""Such lines come every two seconds of a running broker; a load takes one or two seconds on a slow disk."""

UNLOADED = Rule(
    id="coordinator.unloaded",
    sentence="A coordinator that has lost a partition unloads its content before it loads it again.",
    source=(
        "GroupMetadataManager.removeGroupsForPartition, TransactionStateManager.removeTransactionsForTxnTopicPartition"
    ),
)
LOADED = Rule(
    id="coordinator.loaded",
    sentence="A coordinator has loaded a partition within half a minute of leading it.",
    source=(
        "GroupMetadataManager.doLoadGroupsAndOffsets, TransactionStateManager.loadTransactionsForTxnTopicPartition"
    ),
)

MARKS_OWN = Rule(
    id="coordinator.marks-own",
    sentence="A coordinator sends markers only for transactions of a partition that it has loaded.",
    source="TransactionMarkerChannelManager.removeMarkersForTxnTopicPartition",
    needs="holdings",
)

ANSWERS_OWN = Rule(
    id="coordinator.answers-own",
    sentence=(
        "A coordinator that has loaded a partition, never lost it, and keeps it, does not say that another "
        "coordinates it."
    ),
    source="TransactionStateManager.getTransactionState",
    needs="holdings",
)


def leads(state: Coordinated | None, event: Event) -> Coordinated:
    """The broker leads the partition."""
    return replace(state or FRESH, leader_epoch=event["leader_epoch"], waits=0)


def follows(state: Coordinated | None, event: Event) -> Coordinated | Illegal:
    """Another broker leads it."""
    known = state or FRESH
    after = replace(known, leader_epoch=None, lost=known.loaded, was_lost=True, refused=False)
    return Illegal(ANSWERS_OWN, after) if known.refused else after


def loads(state: Coordinated | None, event: Event) -> Coordinated | Illegal:
    """All groups or transactions of the partition are there."""
    known = state or FRESH
    after = Coordinated(leader_epoch=known.leader_epoch, was_lost=known.was_lost, loaded=True)
    return Illegal(UNLOADED, after) if known.lost else after


def unloads(state: Coordinated | None, event: Event) -> Coordinated:
    """Nothing of the partition is there any more."""
    return Coordinated(leader_epoch=(state or FRESH).leader_epoch, was_lost=True)


def waits(state: Coordinated | None, event: Event) -> Coordinated | Illegal:
    """The broker leads the partition, as it says among what it holds."""
    known = state or FRESH
    if known.refused:
        return Illegal(ANSWERS_OWN, replace(known, refused=False))
    if known.loaded or known.leader_epoch is None:
        return known
    after = replace(known, waits=known.waits + 1)
    return Illegal(LOADED, replace(after, loaded=True)) if after.waits > MAX_WAITS else after


def marks(state: Coordinated | None, event: Event) -> Coordinated | Illegal | None:
    """A marker goes to a broker."""
    return state if state is None or state.loaded else Illegal(MARKS_OWN, state)


def answers(state: Coordinated | None, event: Event) -> Coordinated | None:
    """A producer's request was decided; a coordinator whose disk has just failed refuses, and unloads the partition."""
    if state is None or not state.loaded or state.was_lost or event["error"] != NOT_COORDINATOR:
        return state
    return replace(state, refused=True)


def _of_topic(event: Event) -> Key:
    if event["ev"] in ("txn_marker_send", "txn_response"):
        return TRANSACTIONS_TOPIC, event["state_partition"]
    topic = TRANSACTIONS_TOPIC if event["ev"] in ("txn_load", "txn_unload") else OFFSETS_TOPIC
    return event.get("topic", topic), event["partition"]


def _led(event: Event) -> list[tuple[Key, Event]]:
    led = ((OFFSETS_TOPIC, event["group_leads"]), (TRANSACTIONS_TOPIC, event["transaction_leads"]))
    return [((topic, partition), event) for topic, partitions in led for partition in partitions]


SUBJECT = Subject(
    name="coordinator",
    rules=(UNLOADED, LOADED, MARKS_OWN, ANSWERS_OWN),
    legal={
        "become_leader": leads,
        "become_follower": follows,
        "gc_load": loads,
        "gc_unload": unloads,
        "txn_load": loads,
        "txn_unload": unloads,
        "txn_marker_send": marks,
        "txn_response": answers,
        "holdings": waits,
    },
    fresh=FRESH,
    key=_of_topic,
    parts={"holdings": _led},
)
