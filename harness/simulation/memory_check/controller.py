"""The controller's view, compared with ZooKeeper and with the replicas of brokers."""

from collections.abc import Iterator, Mapping

from harness.broker.controller.context import ControllerContext
from harness.broker.server import Broker
from harness.simulation.memory_check.znodes import Znodes


def of_controller(broker: Broker, znodes: Znodes, brokers: Mapping[int, Broker]) -> Iterator[str]:
    """Yield what differs in the view of a controller that has handled every event, and reassignments that do not end.

    The brokers themselves say which of their replicas are on failed disks.
    """
    context = broker.controller.settled_context
    if broker.config.broker_id != znodes.controller or context is None:
        return
    if context.epoch != znodes.epoch:
        yield "controller: epoch"
    if context.live != znodes.live:
        yield "controller: live brokers"
    if context.shutting_down - {key for key, each in brokers.items() if each.replicas.control.shutting_down}:
        yield "controller: brokers that are shutting down"
    if context.deleting != znodes.deleting:
        yield "controller: topics in deletion"
    stay = {name: each for name, each in context.topics.items() if name not in znodes.deleting}
    if stay.keys() != znodes.topics.keys():
        yield "controller: topics"
    yield from _of_partitions(context, znodes)
    for number, each in sorted(brokers.items()):
        offline = {key for key in znodes.partitions if each.replicas.replicas.is_offline(*key)}
        if {key for key in znodes.partitions if key in context.offline_dirs.get(number, ())} != offline:
            yield f"controller: replicas on failed disks of broker {number}"
    for topic, number in znodes.partitions:
        known, works = znodes.topics[topic], not any(context.offline_dirs.values())
        if works and known.adding.get(number, ()) + known.removing.get(number, ()):
            yield f"controller: the reassignment of {topic}-{number} does not end"


def _of_partitions(context: ControllerContext, znodes: Znodes) -> Iterator[str]:
    for key in znodes.partitions:
        topic, number = key
        known, there = context.topics.get(topic), znodes.topics[topic]
        if known is not None:
            if known.partitions.get(number) != there.partitions[number]:
                yield f"controller: replicas of {topic}-{number}"
            if known.adding.get(number) != there.adding.get(number):
                yield f"controller: replicas that are added to {topic}-{number}"
            if known.removing.get(number) != there.removing.get(number):
                yield f"controller: replicas that are removed from {topic}-{number}"
        if context.leadership.get(key) != znodes.states.get(key):
            yield f"controller: state of {topic}-{number}"
