from collections.abc import Callable

import pytest

from harness.broker import background
from harness.broker.controller.assignment import Assignment
from harness.broker.controller.context import ControllerContext
from harness.broker.controller.election import ControllerEpoch
from harness.broker.controller.request_batch import PendingRequestsError, RequestBatch
from harness.broker.zookeeper.partition_state import VersionedState
from harness.broker.zookeeper.registration import LiveBroker
from harness.broker.zookeeper.znodes import PartitionStateZnode, TopicAssignment
from tests.broker.controller.world import LISTENER, registration_of

T0, T1 = ("t", 0), ("t", 1)


def state(leader: int, *isr: int) -> VersionedState:
    znode = PartitionStateZnode(leader=leader, leader_epoch=3, isr=isr, controller_epoch=5)
    return VersionedState(state=znode, zk_version=8)


@pytest.fixture
def batch() -> RequestBatch:
    context = ControllerContext(epoch=ControllerEpoch(value=6, zk_version=6))
    context.live = {b: LiveBroker(registration=registration_of(b), epoch=100 + b) for b in (1, 2, 3)}
    context.topics = {"t": TopicAssignment(partitions={0: (1, 2), 1: (2, 4)})}
    context.leadership = {T0: state(1, 1, 2), T1: state(2, 2)}
    return RequestBatch(9, LISTENER, context)


def test_requests_go_out_as_leader_and_isr_then_metadata_then_stop_replica(batch: RequestBatch) -> None:
    batch.add_stop_replica([2], T0, delete=False)
    batch.add_update_metadata([1], [])
    batch.add_leader_and_isr([2, 1], T0, state(1, 1, 2), is_new=True)
    assert [(request.api, request.broker_id) for request in batch.take()] == [
        ("LeaderAndIsr", 1),
        ("LeaderAndIsr", 2),
        ("UpdateMetadata", 1),
        ("UpdateMetadata", 2),
        ("UpdateMetadata", 3),
        ("StopReplica", 2),
    ]
    assert batch.take() == []


def test_every_request_carries_the_controller_and_the_epoch_of_its_receiver(batch: RequestBatch) -> None:
    batch.add_stop_replica([2], T0, delete=False)
    batch.add_leader_and_isr([2], T0, state(1, 1, 2), is_new=False)
    for request in batch.take():
        message = request.message
        assert (message.controller_id, message.controller_epoch) == (9, 6)
        assert message.broker_epoch == request.broker_epoch == 100 + request.broker_id
        assert request.controller_epoch == 6
        assert request.partitions == ("t-0",)


def test_leader_and_isr_says_all_there_is_about_a_partition(batch: RequestBatch) -> None:
    batch.add_leader_and_isr([1], T1, state(2, 2), is_new=True)
    batch.add_leader_and_isr([1], T0, state(1, 1, 2), is_new=False)
    message = batch.take()[0].message
    assert message.to_dict()["topic_states"] == [
        {
            "topic_name": "t",
            "partition_states": [
                {
                    "partition_index": number,
                    "controller_epoch": 5,
                    "leader": leader,
                    "leader_epoch": 3,
                    "isr": isr,
                    "zk_version": 8,
                    "replicas": replicas,
                    "adding_replicas": [],
                    "removing_replicas": [],
                    "is_new": is_new,
                }
                for number, leader, isr, replicas, is_new in ((0, 1, [1, 2], [1, 2], False), (1, 2, [2], [2, 4], True))
            ],
        }
    ]
    assert [(leader.broker_id, leader.host_name, leader.port) for leader in message.live_leaders] == [
        (1, "h", 1),
        (2, "h", 2),
    ]


def test_what_a_broker_obeys_in_one_step_names_few_partitions(
    batch: RequestBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "PARTITIONS_A_REQUEST", 1)
    for partition in (T1, T0):
        batch.add_leader_and_isr([2, 1], partition, state(1, 1), is_new=True)
    assert [(request.api, request.broker_id, request.partitions) for request in batch.take()] == [
        ("LeaderAndIsr", 1, ("t-0",)),
        ("LeaderAndIsr", 1, ("t-1",)),
        ("LeaderAndIsr", 2, ("t-0",)),
        ("LeaderAndIsr", 2, ("t-1",)),
        *(("UpdateMetadata", broker_id, ("t-0", "t-1")) for broker_id in (1, 2, 3)),
    ]


def test_a_leader_that_is_not_live_is_not_among_the_live_leaders(batch: RequestBatch) -> None:
    batch.add_leader_and_isr([1], T0, state(-1, 2), is_new=False)
    assert batch.take()[0].message.live_leaders == []


@pytest.mark.parametrize("order", [(True, False), (False, True), (False, False)])
def test_a_later_word_on_a_partition_replaces_the_earlier_but_new_stays_new(
    batch: RequestBatch, order: tuple[bool, bool]
) -> None:
    batch.add_leader_and_isr([1], T0, state(2, 1, 2), is_new=order[0])
    batch.add_leader_and_isr([1], T0, state(1, 1), is_new=order[1])
    (partition,) = batch.take()[0].message.topic_states[0].partition_states
    assert (partition.leader, partition.isr, partition.is_new) == (1, [1], any(order))


def test_metadata_lists_all_live_brokers_every_time_and_offline_ones(batch: RequestBatch) -> None:
    batch.context.shutting_down = {2}
    batch.add_update_metadata([3], [T1, ("unknown", 0)])
    (request,) = batch.take()
    message = request.message
    assert [broker.id for broker in message.live_brokers] == [1, 2, 3]
    assert [(e.listener, e.host, e.port, e.security_protocol) for e in message.live_brokers[0].endpoints] == [
        ("REPL", "h", 1, 0),
        ("PLAINTEXT", "h", 1, 0),
    ]
    (partition,) = message.topic_states[0].partition_states
    assert (partition.partition_index, partition.leader, partition.zk_version) == (1, 2, 8)
    assert (partition.replicas, partition.offline_replicas) == ([2, 4], [2, 4])
    assert request.partitions == ("t-1",)


@pytest.mark.parametrize(
    ("deleting", "epochs"),
    [
        pytest.param(set(), [3, 3, -1], id="the known leader epoch, none without a leader"),
        pytest.param({"t"}, [-2, -2, -1], id="a deletion whatever the epoch"),
    ],
)
def test_stop_replica_is_one_request_a_broker_with_an_epoch_a_partition(
    batch: RequestBatch, deleting: set[str], epochs: list[int]
) -> None:
    batch.context.deleting = deleting
    batch.add_stop_replica([1], T0, delete=True)
    batch.add_stop_replica([1], T0, delete=False)
    batch.add_stop_replica([1], T1, delete=False)
    batch.add_stop_replica([1], ("u", 0), delete=False)
    (request,) = batch.take()
    states = [state for topic in request.message.topic_states for state in topic.partition_states]
    assert [(s.partition_index, s.delete_partition) for s in states] == [(0, True), (1, False), (0, False)]
    assert [state.leader_epoch for state in states] == epochs
    assert request.deletes


def test_leader_and_isr_names_what_a_reassignment_adds_and_removes(batch: RequestBatch) -> None:
    batch.context.assign(T0, Assignment(replicas=(1, 2), adding=(1,), removing=(2,)))
    batch.add_leader_and_isr([1], T0, state(1, 1, 2), is_new=False)
    (partition,) = batch.take()[0].message.topic_states[0].partition_states
    assert (partition.replicas, partition.adding_replicas, partition.removing_replicas) == ([1, 2], [1], [2])


@pytest.mark.parametrize(
    "add",
    [
        pytest.param(lambda b: b.add_leader_and_isr([4], T1, state(2, 2), is_new=False), id="LeaderAndIsr"),
        pytest.param(lambda b: b.add_stop_replica([4], T1, delete=False), id="StopReplica"),
        pytest.param(lambda b: b.add_update_metadata([4], [T1]), id="UpdateMetadata"),
    ],
)
def test_nothing_is_made_for_a_dead_broker(batch: RequestBatch, add: Callable[[RequestBatch], None]) -> None:
    add(batch)
    assert 4 not in {request.broker_id for request in batch.take()}


def test_requests_left_over_from_a_broken_change_are_noticed(batch: RequestBatch) -> None:
    batch.begin()
    batch.add_update_metadata([1], [])
    with pytest.raises(PendingRequestsError):
        batch.begin()
    batch.clear()
    batch.begin()
