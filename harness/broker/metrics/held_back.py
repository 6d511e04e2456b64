"""What waits, runs or is pending in a broker although nothing in its state is the reason?

Each function compares what a part of the broker keeps (timers, waiting requests, transitions) with what its state asks
for. All of a part's changes are single steps on the broker's loop, so between two steps the two always agree.
"""

from collections.abc import Iterator

from harness.broker.coordinator.effects import JOIN_TIMER, SYNC_TIMER, Timer, TimerKind
from harness.broker.coordinator.group import Group, GroupState
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.store import GroupStore
from harness.broker.replicas.appending import DelayedProduce, PendingAppend
from harness.broker.replicas.deleting import DelayedDelete
from harness.broker.replicas.fetching import DelayedFetch, PartitionFetch
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas
from harness.broker.transactions.coordinator import TransactionCoordinator
from harness.broker.transactions.transaction import Transaction
from harness.values import TopicPartition

_WITH_ASSIGNMENT = (GroupState.COMPLETING, GroupState.STABLE)


def timers_missing(groups: GroupStore, members: GroupMembers) -> list[str]:
    """Return the timers that groups lack."""
    return [
        _named(group, timer)
        for group, running in _timers(groups, members)
        for timer in sorted(_needed(group) - running, key=str)
    ]


def timers_left(groups: GroupStore, members: GroupMembers) -> list[str]:
    """Return the timers that groups have without a reason."""
    return [
        _named(group, timer)
        for group, running in _timers(groups, members)
        for timer in sorted(running - _allowed(group), key=str)
    ]


def unclaimed(groups: GroupStore, members: GroupMembers) -> list[str]:
    """Return the groups of the members' requests that wait for an answer which no member is to get."""
    tickets = {
        ticket
        for _, known in groups.groups()
        for member in known.membership.group.members.values()
        for ticket in (member.joining, member.syncing)
    }
    return sorted(members.open_tickets[ticket] for ticket in members.open_tickets.keys() - tickets)


def _timers(groups: GroupStore, members: GroupMembers) -> Iterator[tuple[Group, set[Timer]]]:
    for _, known in groups.groups():
        yield known.membership.group, members.running_timers(known.membership)


def _needed(group: Group) -> set[Timer]:
    """Return the timers without which a group would wait for ever.

    Not that of an instance: Kafka too has none if it fires while the new id of the instance is being stored.
    """
    timers = {
        Timer(TimerKind.SESSION, member.member_id)
        for member in group.members.values()
        if member.must_be_heard_of and member.instance_id is None
    }
    if group.state is GroupState.PREPARING:
        timers.add(JOIN_TIMER)
    if group.state in _WITH_ASSIGNMENT and group.pending_syncs:
        timers.add(SYNC_TIMER)
    return timers


def _allowed(group: Group) -> set[Timer]:
    timers = {Timer(TimerKind.SESSION, member_id) for member_id in (*group.members, *group.pending_members)}
    if group.state is GroupState.PREPARING:
        timers.add(JOIN_TIMER)
    if group.state in _WITH_ASSIGNMENT:
        timers.add(SYNC_TIMER)
    return timers


def _named(group: Group, timer: Timer) -> str:
    return " ".join(filter(None, (group.name, timer.kind.name.lower(), timer.member_id)))


def due(replicas: Replicas) -> list[str]:
    """Return the waiting requests whose condition holds."""
    return [
        *(_text("produce", each.waiting[0].partition.key) for each in _produces(replicas) if _is_written(each)),
        *(_text("delete", each.waiting[0].key) for each in _deletes(replicas) if _is_deleted(replicas, each)),
        *(_text("fetch", fetch.key) for each in _fetches(replicas) for fetch in _readable(replicas, each)[:1]),
    ]


def _produces(replicas: Replicas) -> list[DelayedProduce]:
    return [each for each in replicas.appends.parked if isinstance(each, DelayedProduce)]


def _deletes(replicas: Replicas) -> list[DelayedDelete]:
    return [each for each in replicas.deletions.parked if isinstance(each, DelayedDelete)]


def _fetches(replicas: Replicas) -> list[DelayedFetch]:
    return [each for each in replicas.fetches.parked if isinstance(each, DelayedFetch)]


def _is_written(request: DelayedProduce) -> bool:
    return not any(_waits(each) for each in request.waiting)


def _waits(append: PendingAppend) -> bool:
    partition = append.partition
    return not partition.offline and partition.is_leader and partition.high_watermark < append.required_offset


def _is_deleted(replicas: Replicas, request: DelayedDelete) -> bool:
    return not any(
        each.partition is not None
        and each.partition.is_leader
        and each.partition.low_watermark(replicas.metadata.is_alive) < each.required_offset
        for each in request.waiting
    )


def _readable(replicas: Replicas, request: DelayedFetch) -> list[PartitionFetch]:
    """Return the partitions for which a fetch waits although there are records, or the lead is lost."""
    if request.limits.min_bytes > 1:
        return []
    return [fetch for fetch in request.partitions if _has_records(replicas.get(*fetch.key), request, fetch)]


def _has_records(partition: Partition | None, request: DelayedFetch, fetch: PartitionFetch) -> bool:
    if partition is None:
        return True
    if not partition.is_leader and (request.is_follower or request.limits.only_from_leader):
        return True
    if request.is_follower:
        return fetch.fetch_offset < partition.log.log_end_offset
    stable = request.limits.read_committed
    return fetch.fetch_offset < (partition.last_stable_offset if stable else partition.high_watermark)


def _text(kind: str, key: TopicPartition) -> str:
    return f"{kind} {key[0]}-{key[1]}"


def stuck_transactions(coordinator: TransactionCoordinator) -> list[str]:
    """Return the transactional ids whose next state nothing brings about."""
    busy = coordinator.markers.underway | coordinator.storing.keys()
    return [
        each.transactional_id
        for each in coordinator.transactions()
        if each.transactional_id not in busy and _is_between(each)
    ]


def _is_between(transaction: Transaction) -> bool:
    return transaction.pending is not None or transaction.metadata.state.is_prepared
