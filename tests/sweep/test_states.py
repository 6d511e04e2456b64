"""Which features a schedule has: states without the names of brokers, steps under faults, and watermarks."""

from collections.abc import Sequence
from dataclasses import asdict

import pytest

from harness.events import (
    Append,
    BecomeFollower,
    BecomeLeader,
    ControllerElected,
    Event,
    Fenced,
    HighWatermark,
    IsrPropose,
    IsrResult,
    ProduceResponse,
    ReplicaStateChange,
    TransactionLoad,
    TransactionStateChange,
    Truncate,
)
from harness.simulation.evidence import BrokerLog, LoggedEvent
from harness.simulation.loop import START_S
from harness.simulation.schedule import SimulatedHistory
from harness.store.history import InjectionStep, JournalEntry, ZnodeChange
from harness.sweep.states import features_of

NOW_NS = round(START_S * 1e9)
Logged = tuple[int, int, Event]
"""Milliseconds, the broker and what it logs."""


def history(
    events: Sequence[Logged], znodes: Sequence[ZnodeChange] = (), journal: Sequence[JournalEntry] = ()
) -> SimulatedHistory:
    logs = {broker_id: BrokerLog(broker_id) for broker_id in {broker_id for _, broker_id, _ in events}}
    for at_ms, broker_id, event in events:
        logs[broker_id].events.append(LoggedEvent(NOW_NS + at_ms * 1_000_000, 0, 0, "", "", -1, event))
    return SimulatedHistory(
        operations={}, logs=logs, znodes=[*znodes], journal=[*journal], disks={}, virtual_s=1, events=1
    )


def append(broker_role: str, last: int, epoch: int = 0) -> Append:
    return Append(
        topic="orders",
        partition=0,
        role=broker_role,
        leader_epoch=epoch,
        base_offset=last,
        last_offset=last,
        batch_epoch=epoch,
        crc=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        isr_size=2,
        acks=-1,
    )


def high_watermark(new: int) -> HighWatermark:
    return HighWatermark(
        topic="orders",
        partition=0,
        role="leader",
        leader_epoch=0,
        old=0,
        new=new,
        log_end_offset=new,
        isr=[1, 2],
        zk_version=0,
        cause="fetch",
    )


def follows(*, epoch: int, previous: int) -> BecomeFollower:
    return BecomeFollower(
        topic="orders",
        partition=0,
        leader=2,
        leader_epoch=epoch,
        previous_leader_epoch=previous,
        log_start_offset=0,
        high_watermark=1,
        log_end_offset=6,
    )


def proposed() -> IsrPropose:
    return IsrPropose(
        topic="orders",
        partition=0,
        kind="shrink",
        leader_epoch=0,
        old=[1, 2],
        new=[1],
        zk_version=0,
        log_end_offset=0,
        high_watermark=0,
        epoch_start_offset=0,
        ends=[0],
    )


def answered(result: str) -> IsrResult:
    return IsrResult(
        topic="orders",
        partition=0,
        kind="shrink",
        leader_epoch=0,
        old=[1, 2],
        new=[1],
        zk_version=0,
        result=result,
        new_zk_version=1,
    )


def znode(path: str, data: str = "", kind: str = "create") -> ZnodeChange:
    return ZnodeChange(
        zxid=1,
        time_ms=1_700_000_000_000,
        type=kind,
        path=path,
        data=data,
        version=0,
        session="",
        ephemeral_owner="",
        source="transaction_log",
    )


def led_by(leader: int, follower: int) -> list[ZnodeChange]:
    state = f'{{"leader": {leader}, "leader_epoch": 0, "isr": [{leader}, {follower}]}}'
    brokers = [znode(f"/brokers/ids/{broker_id}") for broker_id in (leader, follower)]
    return [*brokers, znode("/brokers/topics/orders/partitions/0/state", state)]


def test_states_are_the_same_whichever_brokers_they_are_of() -> None:
    def reached(leader: int, follower: int) -> set[str]:
        events: list[Logged] = [
            (1, leader, append("leader", 0)),
            (2, follower, append("follower", 0)),
            (3, leader, high_watermark(1)),
        ]
        return set(features_of(history(events, led_by(leader, follower))))

    assert reached(1, 2) == reached(2, 1)
    assert reached(1, 2) >= {"partition: Laio> faio>", "partition: Laio= faio="}


def test_a_step_is_noted_under_each_of_the_faults_in_force() -> None:
    injected = [
        JournalEntry(time_ns=NOW_NS + 500_000, injection=number, fault=fault, step=InjectionStep.INJECTED)
        for number, fault in enumerate(("kill", "pause"))
    ]
    events: list[Logged] = [(1, 1, append("leader", 0)), (2, 2, append("follower", 0))]
    features = features_of(history(events, led_by(1, 2), injected))
    step = "partition step under a fault: Laio=- faio=- > Laio> faio=-"
    assert {f"{step} | {fault}" for fault in ("kill", "pause")} <= {*features}
    assert not any("|" in feature for feature in features_of(history(events, led_by(1, 2))))


def test_the_leaders_own_isr_and_a_proposal_without_an_answer_are_a_part_of_the_state() -> None:
    leads = BecomeLeader(
        topic="orders",
        partition=0,
        leader_epoch=0,
        previous_leader_epoch=-1,
        log_start_offset=0,
        high_watermark=0,
        log_end_offset=0,
        isr=[1, 2],
        zk_version=0,
    )
    features = features_of(history([(1, 1, leads), (2, 1, proposed()), (3, 1, answered("ok"))], led_by(1, 2)))
    states = [feature for feature in features if feature.startswith("partition:")]
    assert states[-3:] == [
        "partition: Laii= faii=-",
        "partition: Laii= faii=- shrink",
        "partition: Laii= faio=-",
    ]
    refused = features_of(history([(1, 1, leads), (2, 1, proposed()), (3, 1, answered("badversion"))], led_by(1, 2)))
    assert "isr: shrink badversion" in refused
    assert "partition: Laii= faio=-" not in refused


def test_a_reassignment_is_a_state_of_the_replicas_that_it_adds_and_removes() -> None:
    assignment = '{"partitions": {"0": [1, 3, 2]}, "adding_replicas": {"0": [3]}, "removing_replicas": {"0": [2]}}'
    done = '{"partitions": {"0": [1, 3]}, "adding_replicas": {}, "removing_replicas": {}}'
    topic = "/brokers/topics/orders"
    features = features_of(history([], [*led_by(1, 2), znode(topic, assignment), znode(topic, done, "set")]))
    assert "reassignment: +do -ai" in features
    assert "reassignment step: +do -ai > " in features


def test_a_deletion_is_a_state_of_replicas_and_their_brokers_and_waits_for_the_next_controller() -> None:
    pending = [*led_by(1, 2), znode("/admin/delete_topics/orders"), znode("/brokers/ids/2", kind="delete")]
    started, ineligible = (
        ReplicaStateChange(
            topic="orders",
            partition=0,
            replica=replica,
            from_state="OfflineReplica",
            to_state=f"ReplicaDeletion{state}",
            controller_epoch=1,
        )
        for replica, state in ((1, "Started"), (2, "Ineligible"))
    )
    elected = ControllerElected(controller_epoch=2, epoch_zk_version=1)
    features = features_of(history([(1, 1, started), (2, 1, ineligible), (3, 1, elected)], pending))
    state = "Ineligible dead, Started alive"
    assert f"deletion: {state}" in features
    assert f"waits at an election: deletion {state}" in features
    returns = ZnodeChange(**{**asdict(znode("/brokers/ids/2")), "time_ms": 1_700_000_000_003})
    back = features_of(history([(1, 1, started), (2, 1, ineligible)], [*pending, returns]))
    assert f"deletion step: {state} > Ineligible alive, Started alive" in back
    assert not any("deletion" in each for each in features_of(history([(1, 1, started)], led_by(1, 2))))


def test_what_a_coordinator_has_not_finished_waits_when_its_partition_moves() -> None:
    transaction = TransactionStateChange(
        transactional_id="t",
        state_partition=1,
        coordinator_epoch=0,
        producer_id=7,
        producer_epoch=0,
        from_state="Ongoing",
        to_state="PrepareCommit",
        timeout_ms=1000,
        partitions=["orders-0"],
        log_offset=3,
    )
    loads = [
        TransactionLoad(partition=n, leader_epoch=1, transactions=1, log_end_offset=4, disk_error="") for n in (0, 1)
    ]
    other, own = (features_of(history([(1, 1, transaction), (2, 2, load)])) for load in loads)
    assert {"transaction: Ongoing > PrepareCommit", "transaction: PrepareCommit 1"} <= {*own}
    waits = "waits at an election: transaction PrepareCommit txn_load"
    assert waits in own
    assert waits not in other


def test_produce_requests_wait_at_an_election_until_they_are_answered() -> None:
    answer = ProduceResponse(
        correlation_id=1,
        client="c",
        topic="orders",
        partition=0,
        acks=-1,
        base_offset=1,
        last_offset=1,
        error=0,
        isr_size=2,
        high_watermark=2,
        leader_epoch=0,
        duration_ms=1.0,
    )
    appended: list[Logged] = [(1, 1, append("leader", 0)), (1, 1, append("leader", 1))]
    name = "watermark: produce requests that wait at an election"
    waiting = features_of(history([*appended, (3, 1, follows(epoch=1, previous=0))]))
    assert {f"{name} 2^0", f"{name} 2^1"} <= {*waiting}
    some = features_of(history([*appended, (2, 1, answer), (3, 1, follows(epoch=1, previous=0))]))
    assert f"{name} 2^0" in some
    assert f"{name} 2^1" not in some


@pytest.mark.parametrize(
    ("events", "feature"),
    [
        pytest.param(
            [
                (1, 1, ControllerElected(controller_epoch=1, epoch_zk_version=0)),
                (2, 2, ControllerElected(controller_epoch=2, epoch_zk_version=1)),
            ],
            "controllers: 2",
            id="two brokers take themselves for the controller",
        ),
        pytest.param(
            [
                (
                    1,
                    1,
                    Fenced(
                        what="leader_epoch", api="Fetch", topic="orders", partition=0, got=1, have=2, sender=2, error=74
                    ),
                )
            ],
            "refused: Fetch leader_epoch 74",
            id="a request is fenced",
        ),
        pytest.param(
            [(1, 1, follows(epoch=5, previous=2))],
            "watermark: epochs missed 2^1",
            id="a follower has missed two leader epochs",
        ),
        pytest.param(
            [(1, 1, follows(epoch=5, previous=4))],
            "watermark: uncommitted tail of a follower 2^2",
            id="a deposed leader has an uncommitted tail",
        ),
        pytest.param(
            [
                (1, 1, append("leader", 7)),
                (
                    2,
                    1,
                    Truncate(
                        topic="orders",
                        partition=0,
                        log_end_offset=8,
                        to=4,
                        high_watermark=4,
                        leader_epoch=1,
                        reason="epoch",
                        asked_epoch=0,
                        answer_epoch=0,
                        answer_end_offset=4,
                        latest_epoch=0,
                        local_epoch=0,
                        local_end_offset=8,
                    ),
                ),
            ],
            "watermark: cut by epoch 2^2",
            id="a log loses four records",
        ),
    ],
)
def test_a_feature_is_reached(events: list[Logged], feature: str) -> None:
    assert feature in features_of(history(events))


def test_a_feature_has_the_instant_at_which_it_was_reached_first() -> None:
    events: list[Logged] = [
        (at_ms, 1, ControllerElected(controller_epoch=1, epoch_zk_version=0)) for at_ms in (1_500, 2_500)
    ]
    assert features_of(history(events), begins_s=1.0)["controllers: 1"] == 0.5
