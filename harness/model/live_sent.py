"""Has a controller sent each broker which brokers are live, whenever it has read that?

A controller reads the registered brokers at each change, elects leaders, and sends UpdateMetadata to all of them, in
the order of its events. So no broker misses a change, and after the last event each has been sent the present brokers.
A broker that registers anew misses the requests that its old channel had not sent.
An event that ends with an error may send nothing: after it nothing is judged until the next election of a controller.
"""

from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Rule, Subject, of_broker

Brokers = frozenset[int]
State = TypeVar("State")
_ROUNDING_NS = 1_000


class Read(Struct, frozen=True):
    """Registered brokers as a controller has read them."""

    brokers: Brokers
    time_ns: int


class Controller(Struct, frozen=True, kw_only=True):
    """What a controller has read in its term, and sent."""

    reads: tuple[Read, ...] = ()
    """Without those that found the same brokers, registered anew or not."""
    czxids: dict[int, int] = {}
    """By broker, the transaction that created its registration, as read last."""
    sent: dict[int, int] = {}
    """By broker, the place among the reads of the one from which it was sent an UpdateMetadata last, in its present
    registration."""


RULE = Rule(
    id="controller.live-sent",
    sentence="A controller sends each broker the live brokers after each change of them.",
    source="KafkaController.onBrokerStartup, KafkaController.onReplicasBecomeOffline",
    needs="registrations_read",
)


def takes_office(state: Controller | None, event: Event) -> Controller:
    """The broker is controller from now on."""
    return Controller()


def reads(state: Controller | None, event: Event) -> Controller | None:
    """The controller has read the registered brokers."""
    if state is None:
        return None
    czxids = dict(event["registrations"])
    anew = {broker for broker, czxid in czxids.items() if state.czxids.get(broker, czxid) != czxid}
    sent = {broker: place for broker, place in state.sent.items() if broker not in anew}
    state = replace(state, czxids={**state.czxids, **czxids}, sent=sent)
    brokers = frozenset(czxids)
    if state.reads and state.reads[-1].brokers == brokers:
        return state
    return replace(state, reads=(*state.reads, Read(brokers, event["mono"])))


def sends(state: Controller | None, event: Event) -> Controller | Illegal | None:
    """A control request is handed to the network."""
    if state is None or event["api"] != "UpdateMetadata" or event["live_brokers"] is None or not state.reads:
        return state
    made_ns = event["mono"] - event["queued_ms"] * 1e6
    live, to = frozenset(event["live_brokers"]), event["to"]
    if state.czxids.get(to, event["target_broker_epoch"]) != event["target_broker_epoch"]:
        return state  # made for an earlier registration
    known = [place for place, read in enumerate(state.reads) if read.time_ns <= made_ns + _ROUNDING_NS]
    place = next((place for place in reversed(known[-2:]) if state.reads[place].brokers == live), None)
    if place is None:  # while a change is handled, brokers that came count before those that went
        return state
    after = replace(state, sent={**state.sent, to: place})
    before = state.sent.get(to)
    missed = () if before is None else state.reads[before + 1 : place]
    stays = before is not None and all(to in read.brokers for read in state.reads[before : place + 1])
    return Illegal(RULE, after) if missed and stays else after


def holds(state: Controller | None, event: Event) -> Controller | Illegal | None:
    """The broker says what it holds; a controller without an open event has sent everything."""
    if state is None or not state.reads or not event.get("controller_idle"):
        return state
    settled = frozenset(event["channels"]).intersection(event["live"]).difference(event["unanswered"])
    last = state.reads[-1].brokers
    is_behind = any(
        state.reads[state.sent[broker]].brokers != last if broker in state.sent else True for broker in settled
    )
    return Illegal(RULE, state) if is_behind else state


def handles(state: State | None, event: Event) -> State | None:
    """The controller has handled an event; after an error nothing is judged until the next election of a controller."""
    return state if event["outcome"] == "ok" else None


SUBJECT = Subject(
    name="live brokers",
    rules=(RULE,),
    legal={
        "controller_elected": takes_office,
        "registrations_read": reads,
        "ctl_send": sends,
        "holdings": holds,
        "controller_event": handles,
    },
    fresh=None,
    key=of_broker,
)
