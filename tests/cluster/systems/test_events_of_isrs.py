"""Events of proposed ISRs from lines of real Kafka 3.9.1, each as a broker wrote it."""

from dataclasses import replace

import pytest

from harness.cluster.systems.kafka.log_reader import LogReader, line_of, wording
from harness.events import Event, IsrPropose
from tests.cluster.systems.test_log_reader import APPENDED, FOLLOWER, IN_SYNC, LEADER, MARKED

HERE = "2026-11-23 00:44:26,300 DEBUG kafka.cluster.Partition: [Partition my.orders-2-1 broker=0] "
WANTED = (
    f"{HERE}Submitting ISR state change PendingExpandIsr(newInSyncReplicaId=1, sentLeaderAndIsr=LeaderAndIsr("
    "leader=0, leaderEpoch=1, isrWithBrokerEpoch=List(BrokerState(brokerId=0, brokerEpoch=-1), BrokerState("
    "brokerId=2, brokerEpoch=-1), BrokerState(brokerId=1, brokerEpoch=-1)), leaderRecoveryState=RECOVERED,"
    " partitionEpoch=3), leaderRecoveryState=RECOVERED, lastCommittedState=CommittedPartitionState(isr=Set(0, 2),"
    " leaderRecoveryState=RECOVERED))"
)
UNWANTED = (
    f"{HERE}Submitting ISR state change PendingShrinkIsr(outOfSyncReplicaIds=Set(2), sentLeaderAndIsr=LeaderAndIsr("
    "leader=0, leaderEpoch=1, isrWithBrokerEpoch=List(BrokerState(brokerId=0, brokerEpoch=-1)), leaderRecoveryState="
    "RECOVERED, partitionEpoch=3), leaderRecoveryState=RECOVERED, lastCommittedState=CommittedPartitionState(isr="
    "Set(0, 2), leaderRecoveryState=RECOVERED))"
)
FETCHED = f"{HERE}Recorded replica {{}} log end offset (LEO) position {{}} and log start offset 0."


def wanted(*ends: int, high_watermark: int = 79, end: int = 83) -> IsrPropose:
    return IsrPropose(topic="my.orders-2", partition=1, kind="expand", leader_epoch=1, old=[0, 2], new=[0, 2, 1],
                      zk_version=3, log_end_offset=end, high_watermark=high_watermark, epoch_start_offset=83,
                      ends=list(ends))  # fmt: skip


def events_of(lines: list[str]) -> list[Event]:
    reader = LogReader(wording("3.9.1"))
    events = [event for _, _, event in reader.events(iter(lines)) if event.ev == "isr_propose"]
    assert reader.unknown.total() == 0
    return events


@pytest.mark.parametrize(
    ("lines", "events"),
    [
        pytest.param(
            [LEADER, WANTED, FETCHED.format(1, 83)],
            [wanted(83, -1, 83)],
            id="a follower that joins ends where the fetch began in which it does",
        ),
        pytest.param(
            [
                LEADER,
                FETCHED.format(1, 40),
                FETCHED.format(2, 81),
                WANTED,
                FETCHED.format(2, 82),
                FETCHED.format(1, 83),
            ],
            [wanted(83, 82, 83)],
            id="what another one fetches, or itself fetched before, is no proof",
        ),
        pytest.param(
            [LEADER, APPENDED, MARKED, WANTED, FETCHED.format(1, 40)],
            [wanted(87, -1, 40, high_watermark=83, end=87)],
            id="it joins too early",
        ),
        pytest.param(
            [LEADER, WANTED, MARKED, FETCHED.format(1, 83)],
            [wanted(83, -1, 83)],
            id="the high watermark is that from before the proposal",
        ),
        pytest.param(
            [LEADER, WANTED, FETCHED.format(1, 83), WANTED, FETCHED.format(1, 84)],
            [wanted(83, -1, 83)],
            id="what the controller did not take is tried again",
        ),
        pytest.param(
            [LEADER, WANTED, LEADER.replace("epoch 1 from", "epoch 2 from"), FETCHED.format(1, 83)],
            [],
            id="the next leader epoch begins meanwhile",
        ),
        pytest.param([LEADER, WANTED], [], id="it ends before the fetch does"),
        pytest.param(
            [LEADER, UNWANTED], [replace(wanted(83), kind="shrink", new=[0])], id="a follower that lags is left out"
        ),
        pytest.param([FOLLOWER.format(2), WANTED, FETCHED.format(1, 83)], [], id="only a leader proposes"),
        pytest.param([LEADER, IN_SYNC, FETCHED.format(1, 83)], [], id="no follower is proposed"),
    ],
)
def test_what_leaders_propose(lines: list[str], events: list[Event]) -> None:
    assert events_of(lines) == events


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(WANTED.replace("isrWithBrokerEpoch", "isr"), id="a proposal"),
        pytest.param(FETCHED.format(1, 83).replace("position", "at"), id="the end of a fetch"),
    ],
)
def test_other_words_are_counted(text: str) -> None:
    reader, line = LogReader(wording("3.9.1")), line_of(text)
    assert line is not None
    assert reader.event(line) is None
    assert reader.unknown == {"kafka.cluster.Partition": 1}
