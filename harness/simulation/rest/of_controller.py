"""What the controller knows, beside what is in ZooKeeper; and reassignments that do not end."""

from collections.abc import Iterator, Mapping

from harness.broker.controller.context import ControllerContext
from harness.broker.server import Broker
from harness.simulation.rest.truth import Truth


def of_controller(broker: Broker, truth: Truth, brokers: Mapping[int, Broker]) -> Iterator[str]:
    """Yield what differs in the view of the controller, once it has handled every event.

    The brokers themselves know which of their replicas are on failed disks.
    """
    context = broker.controller.settled_context
    if broker.config.broker_id != truth.controller or context is None:
        return
    if context.epoch != truth.epoch:
        yield "controller: epoch"
    if context.live != truth.live:
        yield "controller: live brokers"
    if context.shutting_down - {key for key, each in brokers.items() if each.replicas.control.shutting_down}:
        yield "controller: brokers that are shutting down"
    if context.deleting != truth.deleting:
        yield "controller: topics in deletion"
    stay = {name: each for name, each in context.topics.items() if name not in truth.deleting}
    if stay.keys() != truth.topics.keys():
        yield "controller: topics"
    yield from _of_partitions(context, truth)
    for number, each in sorted(brokers.items()):
        offline = {key for key in truth.partitions if each.replicas.replicas.is_offline(*key)}
        if {key for key in truth.partitions if key in context.offline_dirs.get(number, ())} != offline:
            yield f"controller: replicas on failed disks of broker {number}"
    for topic, number in truth.partitions:
        known, works = truth.topics[topic], not any(context.offline_dirs.values())
        if works and known.adding.get(number, ()) + known.removing.get(number, ()):
            yield f"controller: the reassignment of {topic}-{number} does not end"


def _of_partitions(context: ControllerContext, truth: Truth) -> Iterator[str]:
    for key in truth.partitions:
        topic, number = key
        known, there = context.topics.get(topic), truth.topics[topic]
        if known is not None:
            if known.partitions.get(number) != there.partitions[number]:
                yield f"controller: replicas of {topic}-{number}"
            if known.adding.get(number) != there.adding.get(number):
                yield f"controller: replicas that are added to {topic}-{number}"
            if known.removing.get(number) != there.removing.get(number):
                yield f"controller: replicas that are removed from {topic}-{number}"
        if context.leadership.get(key) != truth.states.get(key):
            yield f"controller: state of {topic}-{number}"
