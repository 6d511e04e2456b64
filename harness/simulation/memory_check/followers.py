"""Followers in the ISR, compared with their leaders."""

from collections.abc import Iterator, Mapping

from harness.broker.replicas.partition import Partition
from harness.broker.server import Broker
from harness.simulation.memory_check.znodes import Znodes


def of_followers(broker: Broker, znodes: Znodes, others: Mapping[int, Broker]) -> Iterator[str]:
    """Yield what differs between the leads of a broker and the followers in their ISR."""
    for partition in broker.replicas.replicas.all():
        known = znodes.states.get(partition.key)
        if not partition.is_leader or known is None or known.state.leader != partition.broker_id:
            continue
        topic, number = partition.key
        for follower in sorted(({*partition.isr} - {broker.config.broker_id}) & others.keys()):
            replica = others[follower].replicas.replicas.get(topic, number)
            for what in _of_follower(partition, replica) if replica is not None else ():
                yield f"replica {topic}-{number} on broker {follower}: {what}"


def _of_follower(leader: Partition, follower: Partition) -> Iterator[str]:
    if follower.leader_epoch != leader.leader_epoch:
        return
    if follower.log.log_end_offset != leader.log.log_end_offset:
        yield "end"
    if follower.high_watermark != leader.high_watermark:
        yield "high watermark"
    if follower.log.log_start_offset < leader.log.log_start_offset:
        yield "start"
    log = follower.log
    if any(each.start_offset >= log.log_end_offset > log.log_start_offset for each in log.epochs.entries):
        yield "leader epoch without records"
