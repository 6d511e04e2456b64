"""Has a controller told each live replica of a leader that it has elected?

It writes the partition's new state to ZooKeeper and then sends LeaderAndIsr to every live replica: also to a broker
that is about to leave, which must not go on leading. All requests to one broker go out in the order in which they were
made, and those for the brokers' metadata are made last. So a broker that is sent such a request, made after the state
was written, has been sent the leader before. A broker that registers anew is sent all its partitions.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Rule, Subject, of_broker

_ROUNDING_NS = 1_000
_STATE = "/brokers/topics/{topic}/partitions/{partition}/state"


class Controller(Struct, frozen=True, kw_only=True):
    """Whom a controller has to tell of which leaders."""

    epochs: Mapping[int, int] = {}
    """Of the registered brokers."""
    elected: Mapping[str, tuple[str, frozenset[int]]] = {}
    """By the path of its state, a partition whose leader is elected and not written, and its live replicas."""
    owed: Mapping[int, Mapping[str, int]] = {}
    """By broker, the partitions that it is to be told of, each with the instant at which its state was written."""


RULE = Rule(
    id="controller.leaders-sent",
    sentence="A controller sends each live replica, also one that is about to leave, the leader that it has elected.",
    source="PartitionStateMachine.electLeaderForPartitions, ControllerBrokerRequestBatch.sendRequestsToBrokers",
    needs="registrations_read",
)


def takes_office(state: Controller | None, event: Event) -> Controller:
    """The broker is controller from now on."""
    return Controller()


def reads(state: Controller | None, event: Event) -> Controller | None:
    """The controller has read the registered brokers."""
    if state is None:
        return None
    epochs = dict(event["registrations"])
    stayed = {broker: owed for broker, owed in state.owed.items() if state.epochs.get(broker) == epochs.get(broker)}
    return replace(state, epochs=epochs, owed=stayed)


def elects(state: Controller | None, event: Event) -> Controller | None:
    """A leader is elected."""
    if state is None or event["result"] is None:
        return state
    previous = event["previous"]
    leaving = () if previous is None else set(event["shutting_down"]).intersection(previous["isr"])
    name = f"{event['topic']}-{event['partition']}"
    elected = name, frozenset((*event["online"], *leaving))
    return replace(state, elected={**state.elected, _STATE.format_map(event): elected})


def writes(state: Controller | None, event: Event) -> Controller | None:
    """The controller has written a partition's state."""
    if state is None or event["path"] not in state.elected:
        return state
    name, replicas = state.elected[event["path"]]
    elected = {path: each for path, each in state.elected.items() if path != event["path"]}
    if event["result"] != "ok":
        return replace(state, elected=elected)
    owed = {**state.owed, **{to: {**state.owed.get(to, {}), name: event["mono"]} for to in replicas}}
    return replace(state, elected=elected, owed=owed)


def sends(state: Controller | None, event: Event) -> Controller | Illegal | None:
    """A control request is handed to the network."""
    if state is None or not state.owed.get(event["to"]):
        return state
    made_ns = event["mono"] - event["queued_ms"] * 1e6
    if event["api"] == "LeaderAndIsr":
        return _told(state, event["to"], event["partitions"])
    missed = [name for name, written_ns in state.owed[event["to"]].items() if written_ns + _ROUNDING_NS < made_ns]
    return Illegal(RULE, _told(state, event["to"], missed)) if missed else state


def _told(state: Controller, to: int, names: Iterable[str]) -> Controller:
    left = {name: at for name, at in state.owed[to].items() if name not in {*names}}
    return replace(state, owed={**state.owed, to: left})


def handles(state: Controller | None, event: Event) -> Controller | None:
    """The controller has handled an event; after an error nothing is judged until the next election of a controller."""
    return state if event["outcome"] == "ok" else None


SUBJECT = Subject(
    name="elected leaders",
    rules=(RULE,),
    legal={
        "controller_elected": takes_office,
        "registrations_read": reads,
        "election": elects,
        "zk_write": writes,
        "ctl_send": sends,
        "controller_event": handles,
    },
    fresh=None,
    key=of_broker,
)
