"""What may a broker hold at an instant, given the partitions that it leads and follows, its office and its state?

A leftover that the next line still has breaks a rule: one of a single line may be about to end. What changes with its
cause in one step of the broker (timers, waiting requests, transitions) is judged in each line.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Rule, Subject, of_broker

NO_CONTROLLER = -1
MAX_ALONE = 15
"""Such lines come every two seconds of a running broker."""
_CONNECTED = ("connected", "reinit")
_FEW_SESSIONS = 100
"""With so few slots, the sessions of consumers and other brokers may take all of them."""

IDLE_FETCHER = Rule(
    id="holdings.idle-fetcher",
    sentence="A fetcher ends when no replica follows its leader any more.",
    source="AbstractFetcherManager.shutdownIdleFetcherThreads",
)
CHANNELS_LIVE = Rule(
    id="holdings.channels-live",
    sentence="A controller has one channel to each registered broker, and none to another.",
    source="ControllerChannelManager.addBroker, ControllerChannelManager.removeBroker",
)
GROUPS_LED = Rule(
    id="holdings.groups-led",
    sentence="A group coordinator has the groups of the partitions that its broker leads, and of no other.",
    source="GroupCoordinator.onElection, GroupCoordinator.onResignation",
)
TRANSACTIONS_LED = Rule(
    id="holdings.transactions-led",
    sentence="A transaction coordinator has the transactions of the partitions that its broker leads, and of no other.",
    source="TransactionCoordinator.onElection, TransactionCoordinator.onResignation",
)
FETCH_SESSION = Rule(
    id="holdings.fetch-session",
    sentence="A leader with room gives a follower a fetch session.",
    source="KIP-227, FetchSessionCache.maybeCreateSession",
)
TIMERS_RUN = Rule(
    id="holdings.timers-run",
    sentence="Each member that does not wait has a session timer, and each rebalance a timer that ends it.",
    source="GroupCoordinator.completeAndScheduleNextHeartbeatExpiration, DelayedJoin, DelayedSync",
)
TIMERS_END = Rule(
    id="holdings.timers-end",
    sentence="A timer of a group ends with its member or with its rebalance.",
    source="GroupCoordinator.removeHeartbeatForLeavingMember, DelayedJoin, DelayedSync",
)
REQUESTS_CLAIMED = Rule(
    id="holdings.requests-claimed",
    sentence="A JoinGroup or SyncGroup that waits is the last one of a member.",
    source="GroupMetadata.invokeJoinCallback, GroupMetadata.invokeSyncCallback",
)
ANSWERED_WHEN_DUE = Rule(
    id="holdings.answered-when-due",
    sentence="A request that waits is answered when what it waits for has happened.",
    source="DelayedOperationPurgatory.checkAndComplete, DelayedProduce, DelayedFetch, DelayedDeleteRecords, "
    "ControllerEventManager.clearAndPut",
)
TRANSACTIONS_GO_ON = Rule(
    id="holdings.transactions-go-on",
    sentence="The next state of a transaction is being stored, or waits for its markers.",
    source="TransactionMetadata.pendingState, TransactionStateManager.appendTransactionToLog",
)
IN_TIME = Rule(
    id="holdings.in-time",
    sentence="A waiting request, an open transaction and a lagging follower's place in the ISR end in time.",
    source="DelayedOperationPurgatory.ExpiredOperationReaper, TransactionCoordinator.abortTimedOutTransactions, "
    "Partition.maybeShrinkIsr",
)
AGREES = Rule(
    id="holdings.agrees",
    sentence="What a broker keeps in two places is the same in both; at rest, its memory is what a restart would load.",
    source="GroupMetadata, ProducerStateManager, UnifiedLog.updateConfig, AbstractFetcherManager, ControllerContext",
)
VIEW_AGREES = Rule(
    id="holdings.view-agrees",
    sentence="A controller has a state of each partition and replica, and takes replicas of dead brokers for offline.",
    source="ControllerContext, KafkaController.onReplicasBecomeOffline",
)
BROKERS_KNOWN = Rule(
    id="holdings.brokers-known",
    sentence="A broker takes those brokers for alive that the last UpdateMetadata names.",
    source="MetadataCache.updateMetadata",
)
CONTROLLER_KNOWN = Rule(
    id="holdings.controller-known",
    sentence="A broker with a session knows a controller, or is elected, within half a minute.",
    source="KafkaController.elect, ControllerChangeHandler",
)

_Items = frozenset[Any]
_NOTHING: _Items = frozenset()


class Held(Struct, frozen=True, kw_only=True):
    """What was wrong in the last line."""

    idle: _Items = _NOTHING
    channels: _Items = _NOTHING
    groups: _Items = _NOTHING
    transactions: _Items = _NOTHING
    without_session: _Items = _NOTHING
    view: _Items = _NOTHING
    named: frozenset[int] | None = None
    """Brokers that the last UpdateMetadata names; None before the first."""
    failed: bool = False
    """Whether an event of the controller has failed since its election: it may have changed a part only."""
    connected: bool = False
    """Whether the broker has a ZooKeeper session."""
    alone: int = 0
    """Lines in which it has known no controller since then."""


FRESH = Held()
_LASTING: tuple[tuple[Rule, Callable[[Held], _Items]], ...] = (
    (IDLE_FETCHER, lambda held: held.idle),
    (CHANNELS_LIVE, lambda held: held.channels),
    (GROUPS_LED, lambda held: held.groups),
    (TRANSACTIONS_LED, lambda held: held.transactions),
    (FETCH_SESSION, lambda held: held.without_session),
    (VIEW_AGREES, lambda held: held.view),
)
_AT_ONCE: tuple[tuple[Rule, str], ...] = (
    (TIMERS_RUN, "timers_missing"),
    (TIMERS_END, "timers_left"),
    (REQUESTS_CLAIMED, "unclaimed"),
    (ANSWERED_WHEN_DUE, "due"),
    (TRANSACTIONS_GO_ON, "stuck_transactions"),
    (IN_TIME, "overdue"),
    (AGREES, "differences"),
)


def holds(state: Held | None, event: Event) -> Held | Illegal:
    """The broker says what it holds."""
    before = state or FRESH
    now = Held(
        idle=frozenset(event["fetchers"]).difference(event["followed"]),
        channels=_wrong_channels(event["channels"], event["live"]) if _is_settled(event) else _NOTHING,
        groups=frozenset(event["group_partitions"]).symmetric_difference(event["group_leads"]),
        transactions=frozenset(event["transaction_partitions"]).symmetric_difference(event["transaction_leads"]),
        without_session=frozenset(event["without_session"] if event["session_slots"] > _FEW_SESSIONS else ()),
        view=_NOTHING if before.failed else frozenset(event.get("controller_differences", ())),
        named=before.named,
        failed=before.failed,
        connected=before.connected,
        alone=before.alone + 1 if before.connected and event.get("controller") == NO_CONTROLLER else 0,
    )
    known = frozenset(event["known_brokers"]) if "known_brokers" in event else before.named
    broken = [
        *(rule for rule, left in _LASTING if left(before) & left(now)),
        *(rule for rule, field in _AT_ONCE if event.get(field)),
        *([CONTROLLER_KNOWN] if now.alone > MAX_ALONE else ()),
        *([BROKERS_KNOWN] if before.named is not None and before.named != known else ()),
    ]
    return Illegal(broken[0], now) if broken else now


def _wrong_channels(channels: Sequence[int], live: Sequence[int]) -> _Items:
    """Return the brokers that have no channel, several, or one that they should not have."""
    counted = Counter(channels)
    return frozenset(broker for broker in {*channels, *live} if counted[broker] != (broker in live))


def changes_session(state: Held | None, event: Event) -> Held:
    """The ZooKeeper session has another state."""
    return replace(state or FRESH, connected=event["state"] in _CONNECTED, alone=0)


def hears(state: Held | None, event: Event) -> Held:
    """The broker has handled a control request."""
    known = state or FRESH
    applied = event["api"] == "UpdateMetadata" and event["verdict"] == "applied" and event["live_brokers"] is not None
    return replace(known, named=frozenset(event["live_brokers"])) if applied else known


def takes_office(state: Held | None, event: Event) -> Held:
    """The broker is controller from now on, with a view that it reads anew."""
    return replace(state or FRESH, failed=False)


def handles(state: Held | None, event: Event) -> Held:
    """The controller has handled an event."""
    known = state or FRESH
    return known if event["outcome"] == "ok" or known.failed else replace(known, failed=True)


def _is_settled(event: Event) -> bool:
    """Whether no event of the controller is open: a failover on a slow ZooKeeper may take seconds."""
    return bool(event.get("controller_idle", True))


SUBJECT = Subject(
    name="holdings",
    rules=(*(rule for rule, _ in _LASTING), *(rule for rule, _ in _AT_ONCE), CONTROLLER_KNOWN, BROKERS_KNOWN),
    legal={
        "holdings": holds,
        "zk_session": changes_session,
        "controller_elected": takes_office,
        "controller_event": handles,
        "ctl_recv": hears,
    },
    fresh=FRESH,
    key=of_broker,
)
