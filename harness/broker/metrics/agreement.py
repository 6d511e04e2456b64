"""Which facts that a broker keeps in two places differ?

A broker keeps much twice, for speed: the members of a group also by their instances, the first offsets of open
transactions also by their producers, the settings of a topic also in each of its logs. Both places change in one step
of the broker's loop, so between two steps they agree. Each function returns what does not, as text.
"""

from collections.abc import Iterator
from itertools import pairwise

from harness.broker.controller.context import ControllerContext
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.coordinator.group import Group, GroupState
from harness.broker.coordinator.store import GroupStore
from harness.broker.log.log import Log
from harness.broker.replicas.fetchers import Fetchers
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas
from harness.events import NO_LEADER

_WITH_MEMBERS = (GroupState.COMPLETING, GroupState.STABLE)


def of_groups(groups: GroupStore) -> Iterator[str]:
    """Yield what differs between the members of groups and what is kept of them beside."""
    held: set[tuple[int, str]] = set()
    for name, known in groups.groups():
        for what in _of_group(known.membership.group):
            yield f"group {name}: {what}"
        held.update((producer, name) for producer in known.held)
    kept = {(producer, name) for producer, names in groups.holders.items() for name in names}
    for name in sorted({name for _, name in held ^ kept}):
        yield f"group {name}: transactions"


def _of_group(group: Group) -> Iterator[str]:
    members = group.members
    instances = {each.instance_id: each.member_id for each in members.values() if each.instance_id is not None}
    if instances != group.static_members:
        yield "instances"
    if any(member_id != each.member_id for member_id, each in members.items()):
        yield "member ids"
    if (group.leader in members) != bool(members):
        yield "leader"
    if not group.pending_syncs <= members.keys():
        yield "members without an assignment"
    if (group.state in _WITH_MEMBERS and not members) or (group.state is GroupState.EMPTY and members):
        yield "state"


def of_replicas(replicas: Replicas) -> Iterator[str]:
    """Yield what differs between a replica, its role, its log and the settings of its topic."""
    for partition in replicas.all():
        topic, number = partition.key
        for what in (*_of_partition(partition), *_of_log(partition.log)):
            yield f"replica {topic}-{number}: {what}"
        if partition.log.settings != replicas.log_settings(topic):
            yield f"replica {topic}-{number}: settings"


def _of_partition(partition: Partition) -> Iterator[str]:
    if not partition.is_leader and partition.followers:
        yield "followers"
    if partition.is_leader:
        known = partition.followers.keys() | {partition.broker_id}
        if not set(partition.replicas) <= known:
            yield "followers"
        if not {partition.broker_id} <= set(partition.isr) <= known:  # it may have replicas that are being removed
            yield "ISR"
    if partition.high_watermark > partition.log.log_end_offset:
        yield "high watermark"


def _of_log(log: Log) -> Iterator[str]:
    if any(later.base_offset < earlier.next_offset for earlier, later in pairwise(log.segments)):
        yield "segments"
    if not log.segments[0].base_offset <= log.log_start_offset <= log.log_end_offset:
        yield "log start"
    if log.recovery_point > log.log_end_offset:
        yield "recovery point"
    epochs = [(each.epoch, each.start_offset) for each in log.epochs.entries]
    if any(later[0] <= earlier[0] or later[1] <= earlier[1] for earlier, later in pairwise(epochs)):
        yield "leader epochs"
    if epochs and epochs[-1][1] > log.log_end_offset:
        yield "last leader epoch"
    if not all(segment.has_file for segment in log.segments):
        yield "files"
    opened = {each.transaction_start: key for key, each in log.producers.items() if each.transaction_start is not None}
    if log.producers.open_transactions != opened:
        yield "open transactions"


def of_fetchers(replicas: Replicas, fetchers: Fetchers) -> Iterator[str]:
    """Yield the partitions that a fetcher has which should not."""
    for leader_id, key in fetchers.followed:
        partition = replicas.get(*key)
        if partition is None or partition.leader != leader_id or leader_id == NO_LEADER:
            yield f"fetcher of broker {leader_id}: {key[0]}-{key[1]}"


def of_controller(context: ControllerContext) -> Iterator[str]:
    """Yield what differs within the view of a controller that has handled every event; not of topics in deletion."""
    partitions = {each for each in context.partitions() if each[0] not in context.deleting}
    replicas = set(context.replicas_of(partitions))
    if {each for each in context.partition_status if each[0] not in context.deleting} != partitions:
        yield "partitions with a state"
    stated = {each for each in context.replica_status if each[0] not in context.deleting}
    if stated - replicas or replicas - stated - context.unstarted:
        yield "replicas with a state"
    if not context.shutting_down <= context.live.keys():
        yield "brokers that are shutting down"
    for topic, number in context.partitions_in(PartitionStatus.ONLINE):
        if topic not in context.deleting and context.leader((topic, number)) not in context.live:
            yield f"leader of {topic}-{number}"
    for topic, number, broker_id in sorted(replicas):
        status, partition = context.replica_status.get((topic, number, broker_id)), (topic, number)
        if (status is ReplicaStatus.ONLINE and broker_id not in context.live) or (
            status is ReplicaStatus.OFFLINE and context.is_online(broker_id, partition)
        ):
            yield f"replica of {topic}-{number} on broker {broker_id}"
    moving = {each for each in partitions if context.assignment(each).adding or context.assignment(each).removing}
    if {each for each in context.reassigning if each[0] not in context.deleting} != moving:
        yield "reassignments"
