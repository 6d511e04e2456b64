"""Has a controller told each live replica of a leader that it has elected?

When the partition's new state is in ZooKeeper, it sends LeaderAndIsr to every live replica; in a controlled shutdown
also to the broker that is about to leave, which must not go on leading. All requests to one broker go out in the order
in which they were made, and those for the brokers' metadata are made last. So before a request for metadata that was
made after an election, the LeaderAndIsr of that election is sent. A broker that registers anew is sent all its
partitions.
"""

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from harness.model.live_sent import handles
from harness.model.step import Event, Illegal, Rule, Subject, of_broker


class Controller(Struct, frozen=True, kw_only=True):
    """The brokers to which a controller still has to send LeaderAndIsr."""

    epochs: Mapping[int, int] = {}
    """Of the registered brokers."""
    owed: Mapping[int, Mapping[str, int]] = {}
    """By broker, the partitions that it is to be told of, each with the line of its election."""


RULE = Rule(
    id="controller.leaders-sent",
    sentence="A controller sends each live replica the leader that it has elected, also to a broker that is leaving.",
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
    """A leader is elected, and the partition's state written."""
    if state is None or event["result"] is None:
        return state
    replicas = set(event["online"])
    if event["strategy"] == "controlled_shutdown":
        replicas.update(set(event["shutting_down"]).intersection(event["previous"]["isr"]))
    name = f"{event['topic']}-{event['partition']}"
    owed = {to: {**state.owed.get(to, {}), name: event["seq"]} for to in replicas.intersection(event["assigned"])}
    return replace(state, owed={**state.owed, **owed})


def sends(state: Controller | None, event: Event) -> Controller | Illegal | None:
    """A control request is handed to the network."""
    if state is None or not state.owed.get(event["to"]):
        return state
    if event["api"] == "LeaderAndIsr":
        return _told(state, event["to"], event["partitions"])
    missed = [name for name, elected in state.owed[event["to"]].items() if elected < event.get("made_seq", 0)]
    return Illegal(RULE, _told(state, event["to"], missed)) if missed else state


def _told(state: Controller, to: int, names: Collection[str]) -> Controller:
    told = set(names)
    left = {name: elected for name, elected in state.owed[to].items() if name not in told}
    return replace(state, owed={**state.owed, to: left})


SUBJECT = Subject(
    name="elected leaders",
    rules=(RULE,),
    legal={
        "controller_elected": takes_office,
        "registrations_read": reads,
        "election": elects,
        "ctl_send": sends,
        "controller_event": handles,
    },
    fresh=None,
    key=of_broker,
)
