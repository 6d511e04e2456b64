"""Which steps may a broker take as controller: from its election, over the end of its failover, to its resignation?"""

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Rule, Subject, of_broker

CONTROLLER = "controller"


class Office(Struct, frozen=True, kw_only=True):
    """What a broker is as controller; None is unknown."""

    epoch: int | None = None
    """Of the term that it is in; -1 while it is none."""
    last: int | None = None
    """Controller epoch of its last term."""
    session: str | None = None
    """In which it was elected."""
    ready: bool | None = None
    moved: bool = False
    """Whether a fenced write has shown it another controller."""
    informed: frozenset[tuple[int, int]] | None = None
    """Lives of brokers, by id and epoch, that have got the live brokers in this term."""


OUT = -1
FRESH = Office(epoch=OUT, last=OUT)
UNKNOWN = Office()

ELECTED_ONCE = Rule(
    id="controller.elected-once",
    sentence="A broker that is controller is not elected before it has resigned.",
    source="KafkaController.elect",
    needs="controller_ready",
)
EPOCH_RISES = Rule(
    id="controller.epoch-rises",
    sentence="Each term of a broker has a newer controller epoch than its last.",
    source="KafkaZkClient.registerControllerAndIncrementControllerEpoch",
)
READY_ONCE = Rule(
    id="controller.ready-once",
    sentence="A controller is ready once, after its election and in its epoch.",
    source="KafkaController.onControllerFailover",
)
RESIGNS_OWN = Rule(
    id="controller.resigns-own",
    sentence="A broker resigns from the term that it is in.",
    source="KafkaController.onControllerResignation",
)
ACTS_IN_TERM = Rule(
    id="controller.acts-in-term",
    sentence="A broker elects, moves states and writes as controller only within its term and in its epoch.",
    source="KafkaController.process, KAFKA-6082",
)
ACTS_IN_SESSION = Rule(
    id="controller.acts-in-session",
    sentence="A controller acts in the session in which it was elected, and resigns before the next begins.",
    source="KafkaController.processExpire, KafkaZkClient.reconnect",
    needs="controller_ready",
)
STOPS_WHEN_MOVED = Rule(
    id="controller.stops-when-moved",
    sentence="A controller whose write was fenced writes nothing more until it resigns.",
    source="KAFKA-6082, ControllerMovedException",
)
OBEYS_NEWER = Rule(
    id="controller.obeys-newer",
    sentence="A controller makes no decision on a partition whose state a newer controller has written.",
    source="ZkPartitionStateMachine.doElectLeaderForPartitions",
)
METADATA_FIRST = Rule(
    id="controller.metadata-first",
    sentence="The first request of a term to a broker is UpdateMetadata: a broker follows no leader that it does not "
    "know.",
    source="KafkaController.onControllerFailover, KafkaController.onBrokerStartup",
)


def is_elected(state: Office | None, event: Event) -> Office | Illegal:
    """It won the election."""
    state = state or UNKNOWN
    epoch = event["controller_epoch"]
    after = Office(epoch=epoch, last=epoch, session=event["session"], ready=False, informed=frozenset())
    if state.epoch is not None and state.epoch != OUT:
        return Illegal(ELECTED_ONCE, after)
    return after if state.last is None or epoch > state.last else Illegal(EPOCH_RISES, after)


def is_ready(state: Office | None, event: Event) -> Office | Illegal:
    """Its failover is complete."""
    state = state or UNKNOWN
    after = replace(state, epoch=event["controller_epoch"], ready=True)
    wrong = state.epoch is not None and (state.epoch != event["controller_epoch"] or state.ready is True)
    return Illegal(READY_ONCE, after) if wrong else after


def resigns(state: Office | None, event: Event) -> Office | Illegal:
    """It is controller no more."""
    state = state or UNKNOWN
    after = Office(epoch=OUT, last=event["controller_epoch"])
    wrong = state.epoch is not None and state.epoch != event["controller_epoch"]
    return Illegal(RESIGNS_OWN, after) if wrong else after


def is_moved(state: Office | None, event: Event) -> Office | Illegal:
    """A fenced write shows it another controller."""
    state = state or UNKNOWN
    return replace(state, moved=True)


def acts(state: Office | None, event: Event) -> Office | Illegal:
    """It elects a leader, moves a state or writes to ZooKeeper."""
    state = state or UNKNOWN
    if event["ev"] == "zk_write":
        if event["by"] != CONTROLLER:
            return state
        if state.moved:
            return Illegal(STOPS_WHEN_MOVED, state)
    if state.epoch is not None and state.epoch != event["controller_epoch"]:
        return Illegal(ACTS_IN_TERM, state)
    if state.session is not None and event["session"] not in ("", state.session):
        return Illegal(ACTS_IN_SESSION, state)
    previous = event.get("previous")
    decides = event["ev"] != "election" or event["result"] is not None
    if decides and previous is not None and previous["controller_epoch"] > event["controller_epoch"]:
        return Illegal(OBEYS_NEWER, state)
    return state


def sends(state: Office | None, event: Event) -> Office | Illegal:
    """A control request is handed to the network."""
    state = state or UNKNOWN
    to = event["to"], event["target_broker_epoch"]
    if state.informed is None or to in state.informed:
        return state
    after = replace(state, informed=state.informed | {to})
    return after if event["api"] == "UpdateMetadata" else Illegal(METADATA_FIRST, after)


def changes_session(state: Office | None, event: Event) -> Office | Illegal:
    """Its session is connected, suspended, lost or new."""
    state = state or UNKNOWN
    another = event["state"] in ("connected", "reinit") and event["session"] != state.session
    if state.epoch is not None and state.epoch != OUT and state.session is not None and another:
        return Illegal(ACTS_IN_SESSION, replace(state, session=None))
    return state


SUBJECT = Subject(
    name="controller",
    rules=(
        ELECTED_ONCE,
        EPOCH_RISES,
        READY_ONCE,
        RESIGNS_OWN,
        ACTS_IN_TERM,
        ACTS_IN_SESSION,
        STOPS_WHEN_MOVED,
        OBEYS_NEWER,
        METADATA_FIRST,
    ),
    legal={
        "controller_elected": is_elected,
        "controller_ready": is_ready,
        "controller_resigned": resigns,
        "controller_moved": is_moved,
        "zk_session": changes_session,
        "zk_write": acts,
        "ctl_send": sends,
        "election": acts,
        "isr_remove": acts,
        "epoch_bump": acts,
        "partition_state": acts,
        "replica_state": acts,
    },
    fresh=FRESH,
    key=of_broker,
)
