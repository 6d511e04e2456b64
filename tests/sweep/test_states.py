"""Which features a schedule has: states without the names of brokers, pairs under faults, and watermarks."""

from collections.abc import Sequence

import pytest

from harness.events import Append, BecomeFollower, ControllerElected, Event, Fenced, HighWatermark, Truncate
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
    assert reached(1, 2) >= {"Lai>0 fai>0", "Lai=0 fai=0"}


def test_a_pair_of_states_is_noted_under_the_faults_in_force() -> None:
    injected = JournalEntry(time_ns=NOW_NS + 500_000, injection=0, fault="kill", step=InjectionStep.INJECTED)
    events: list[Logged] = [(1, 1, append("leader", 0)), (2, 2, append("follower", 0))]
    features = features_of(history(events, led_by(1, 2), [injected]))
    assert any(" > " in feature and feature.endswith("| kill") for feature in features)
    assert not any("|" in feature for feature in features_of(history(events, led_by(1, 2))))


@pytest.mark.parametrize(
    ("events", "feature"),
    [
        pytest.param(
            [
                (1, 1, ControllerElected(controller_epoch=1, epoch_zk_version=0)),
                (2, 2, ControllerElected(controller_epoch=2, epoch_zk_version=1)),
            ],
            "controllers 2",
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
            "fenced leader_epoch Fetch 74",
            id="a request is fenced",
        ),
        pytest.param(
            [
                (
                    1,
                    1,
                    BecomeFollower(
                        topic="orders",
                        partition=0,
                        leader=2,
                        leader_epoch=5,
                        previous_leader_epoch=2,
                        log_start_offset=0,
                        high_watermark=1,
                        log_end_offset=6,
                    ),
                )
            ],
            "epochs missed 2^1",
            id="a follower has missed two leader epochs",
        ),
        pytest.param(
            [
                (
                    1,
                    1,
                    BecomeFollower(
                        topic="orders",
                        partition=0,
                        leader=2,
                        leader_epoch=5,
                        previous_leader_epoch=4,
                        log_start_offset=0,
                        high_watermark=1,
                        log_end_offset=6,
                    ),
                )
            ],
            "uncommitted tail of a follower 2^2",
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
            "cut by epoch 2^2",
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
    assert features_of(history(events), begins_s=1.0)["controllers 1"] == 0.5
