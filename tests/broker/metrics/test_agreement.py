"""What a broker keeps in two places: nothing differs in a sound one, and each difference is named."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from harness.broker.controller.context import ControllerContext
from harness.broker.controller.transitions import PartitionStatus, ReplicaStatus
from harness.broker.coordinator.group import Group, GroupState
from harness.broker.log.epoch_cache import EpochEntry
from harness.broker.log.log import Log
from harness.broker.metrics.agreement import of_controller, of_fetchers, of_groups, of_replicas
from harness.broker.replicas.replicas import Replicas
from harness.broker.zookeeper.znodes import TopicAssignment
from tests.broker.controller.test_replica_elections import context
from tests.broker.coordinator.coordinators import FakeTopic, leading
from tests.broker.coordinator.test_members import stable
from tests.broker.log.logs import write_in_transaction
from tests.broker.replicas.test_partition import hosting, state


def with_instance(group: Group) -> None:
    group.static_members["i"] = "another"


def renamed(group: Group) -> None:
    next(iter(group.members.values())).member_id = "another"


def led_by_another(group: Group) -> None:
    group.leader = "another"


def waiting_for_another(group: Group) -> None:
    group.pending_syncs.add("another")


def empty(group: Group) -> None:
    group.state = GroupState.EMPTY


@pytest.mark.parametrize(
    ("broken", "differs"),
    [
        pytest.param(None, [], id="a stable group"),
        pytest.param(with_instance, ["group g: instances"], id="an instance that no member is"),
        pytest.param(renamed, ["group g: member ids"], id="a member under another id"),
        pytest.param(led_by_another, ["group g: leader"], id="a leader that is no member"),
        pytest.param(waiting_for_another, ["group g: members without an assignment"], id="an assignment of no member"),
        pytest.param(empty, ["group g: state"], id="an empty group with a member"),
    ],
)
async def test_groups(broken: Callable[[Group], None] | None, differs: list[str]) -> None:
    coordinating = await leading(FakeTopic())
    await stable(coordinating)
    if broken is not None:
        broken(coordinating.store.create_group("g").membership.group)
    assert list(of_groups(coordinating.store)) == differs
    await coordinating.stop()


async def test_groups_that_hold_offsets_of_a_transaction_are_known_by_its_producer() -> None:
    coordinating = await leading(FakeTopic())
    await stable(coordinating)
    known = coordinating.store.create_group("g")
    known.held[7] = {}
    assert list(of_groups(coordinating.store)) == ["group g: transactions"]
    coordinating.store.holders[7] = {"g", "removed"}
    assert list(of_groups(coordinating.store)) == ["group removed: transactions"]
    coordinating.store.holders[7].remove("removed")
    assert list(of_groups(coordinating.store)) == []
    await coordinating.stop()


def without_follower(replicas: Replicas) -> None:
    replicas.all()[0].followers.clear()


def leads_while_moving(replicas: Replicas) -> None:
    replicas.all()[0].make_leader(replace(state(leader_epoch=1, isr=(1, 2, 3)), replicas=(1, 2)), 0.0)


def followed(replicas: Replicas) -> None:
    replicas.all()[0].leader = 2


def outside_isr(replicas: Replicas) -> None:
    replicas.all()[0].isr = (2,)


def past_the_end(replicas: Replicas) -> None:
    replicas.all()[0].high_watermark = 99


def of_log(change: Callable[[Log], None]) -> Callable[[Replicas], None]:
    return lambda replicas: change(replicas.all()[0].log)


def swapped(log: Log) -> None:
    log.segments = [*log.segments[1:], *log.segments[:1]]


def starts_late(log: Log) -> None:
    log.log_start_offset = log.log_end_offset + 1


def synced_late(log: Log) -> None:
    log.recovery_point = log.log_end_offset + 1


def assigned_late(log: Log) -> None:
    log.epochs.assign(9, 99)


def with_twins(log: Log) -> None:
    log.epochs._entries[:] = [EpochEntry(1, 0), EpochEntry(2, 0)]


def without_file(log: Log) -> None:
    log.storage.remove(log.segments[0].path)


def without_open_transaction(log: Log) -> None:
    log.producers._open.clear()


def configured(log: Log) -> None:
    log.settings = replace(log.settings, retention_ms=1)


@pytest.mark.parametrize(
    ("broken", "differs"),
    [
        pytest.param(None, [], id="a leader"),
        pytest.param(without_follower, ["followers", "ISR"], id="a replica that is not followed up"),
        pytest.param(leads_while_moving, [], id="a replica that is being removed is still in the ISR"),
        pytest.param(followed, ["followers"], id="a follower that is followed"),
        pytest.param(outside_isr, ["ISR"], id="a leader outside of its ISR"),
        pytest.param(past_the_end, ["high watermark"], id="a high watermark past the log end"),
        pytest.param(of_log(swapped), ["segments", "log start"], id="segments out of order"),
        pytest.param(of_log(starts_late), ["log start"], id="a log start past the log end"),
        pytest.param(of_log(synced_late), ["recovery point"], id="a recovery point past the log end"),
        pytest.param(of_log(assigned_late), ["last leader epoch"], id="an epoch that starts past the log end"),
        pytest.param(of_log(with_twins), ["leader epochs"], id="two epochs that start at one offset"),
        pytest.param(of_log(without_file), ["files"], id="a segment without its file"),
        pytest.param(of_log(without_open_transaction), ["open transactions"], id="an open transaction that is unknown"),
        pytest.param(of_log(configured), ["settings"], id="a log with other settings than its topic"),
    ],
)
def test_replicas(broken: Callable[[Replicas], None] | None, differs: list[str]) -> None:
    replicas, _ = hosting()
    partition = replicas.host("t", 0)
    partition.make_leader(state(), 0.0)
    for sequence in range(6):
        write_in_transaction(partition.log, sequence)
    assert len(partition.log.segments) > 1
    if broken is not None:
        broken(replicas)
    assert list(of_replicas(replicas)) == [f"replica t-0: {each}" for each in differs]


def test_fetchers() -> None:
    replicas, _ = hosting()
    replicas.host("t", 0).make_follower(state(leader=2))
    fetchers: Any = SimpleNamespace(followed=[(2, ("t", 0)), (3, ("t", 0)), (2, ("gone", 0))])
    assert list(of_fetchers(replicas, fetchers)) == ["fetcher of broker 3: t-0", "fetcher of broker 2: gone-0"]


def view() -> ControllerContext:
    """One partition on brokers 1 and 2, both alive."""
    known = context((1, (1, 2), (1, 2)))
    known.partition_status = {("t", 0): PartitionStatus.ONLINE}
    known.replica_status = {("t", 0, broker): ReplicaStatus.ONLINE for broker in (1, 2)}
    return known


def with_topic(known: ControllerContext) -> None:
    known.topics["u"] = TopicAssignment(partitions={0: (1,)})


def dead(broker: int) -> Callable[[ControllerContext], None]:
    return lambda known: known.remove_broker(broker)


def leaves(known: ControllerContext) -> None:
    known.shutting_down.add(9)


def offline(known: ControllerContext) -> None:
    known.replica_status["t", 0, 2] = ReplicaStatus.OFFLINE


def moves(known: ControllerContext) -> None:
    known.reassigning.add(("t", 0))


@pytest.mark.parametrize(
    ("broken", "differs"),
    [
        pytest.param(lambda _: None, [], id="all is well"),
        pytest.param(with_topic, ["partitions with a state", "replicas with a state"], id="a topic without any state"),
        pytest.param(dead(2), ["replica of t-0 on broker 2"], id="a replica of a dead broker counts as online"),
        pytest.param(
            dead(1), ["leader of t-0", "replica of t-0 on broker 1"], id="a partition is online without a live leader"
        ),
        pytest.param(leaves, ["brokers that are shutting down"], id="a broker that is gone counts as leaving"),
        pytest.param(offline, ["replica of t-0 on broker 2"], id="a replica of a live broker counts as offline"),
        pytest.param(moves, ["reassignments"], id="a partition counts as moving"),
    ],
)
def test_the_view_of_a_controller(broken: Callable[[ControllerContext], None], differs: list[str]) -> None:
    known = view()
    broken(known)
    assert list(of_controller(known)) == differs
    known.deleting = {"t", "u"}
    assert [each for each in of_controller(known) if "shutting" not in each] == [], "topics in deletion are left out"
