"""What may a broker hold at an instant, given the partitions that it leads and follows and its office?

Each line is compared with the one before it, seconds earlier. Only what is left over in both breaks a rule: a leftover
of a single line may be about to end.
"""

from collections.abc import Callable

from msgspec import Struct

from harness.model.step import Event, Illegal, Rule, Subject, of_broker

IDLE_FETCHER = Rule(
    id="holdings.idle-fetcher",
    sentence="A fetcher ends when no replica follows its leader any more.",
    source="AbstractFetcherManager.shutdownIdleFetcherThreads",
)
CHANNELS_LIVE = Rule(
    id="holdings.channels-live",
    sentence="A controller has a channel to each registered broker, and to no other.",
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


class Held(Struct, frozen=True, kw_only=True):
    """What was wrong in the last line."""

    idle: frozenset[int] = frozenset()
    channels: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()
    transactions: frozenset[int] = frozenset()
    without_session: frozenset[int] = frozenset()


FRESH = Held()
_RULES: tuple[tuple[Rule, Callable[[Held], frozenset[int]]], ...] = (
    (IDLE_FETCHER, lambda held: held.idle),
    (CHANNELS_LIVE, lambda held: held.channels),
    (GROUPS_LED, lambda held: held.groups),
    (TRANSACTIONS_LED, lambda held: held.transactions),
    (FETCH_SESSION, lambda held: held.without_session),
)


def holds(state: Held | None, event: Event) -> Held | Illegal:
    """The broker says what it holds."""
    now = Held(
        idle=frozenset(event["fetchers"]).difference(event["followed"]),
        channels=frozenset(event["channels"]).symmetric_difference(event["live"]),
        groups=frozenset(event["group_partitions"]).symmetric_difference(event["group_leads"]),
        transactions=frozenset(event["transaction_partitions"]).symmetric_difference(event["transaction_leads"]),
        without_session=frozenset(event["without_session"] if event["session_slots"] > _FEW_SESSIONS else ()),
    )
    before = state or FRESH
    broken = (rule for rule, left in _RULES if left(before) & left(now))
    rule = next(broken, None)
    return now if rule is None else Illegal(rule, now)


_FEW_SESSIONS = 100
"""With so few slots, the sessions of consumers and other brokers may take all of them."""

SUBJECT = Subject(
    name="holdings",
    rules=tuple(rule for rule, _ in _RULES),
    legal={"holdings": holds},
    fresh=FRESH,
    key=of_broker,
)
