"""Events from lines of real Kafka 4.4.0 that differ from those of 3.9.1, each as a broker wrote it."""

import pytest

from harness.cluster.systems.kafka.log_reader import LogReader, line_of, wording
from harness.events import (
    BrokerRegistered,
    BrokerStop,
    Compaction,
    ControllerElected,
    ControllerResigned,
    ControlReceive,
    Event,
)
from tests.cluster.systems.test_events_of_isrs import FETCHED, wanted
from tests.cluster.systems.test_log_reader import (
    APPENDED,
    ASKED,
    AT,
    CONNECTED,
    DELETED,
    DONE,
    LEADER,
    MARKED,
    OPENED,
    START,
    STARTED,
    TRUNCATED,
    appended,
    leads,
    marked,
    opened,
    truncated,
)

JAVA = "org.apache.kafka.storage.internals."
LIFECYCLE = f"{AT}org.apache.kafka.server.BrokerLifecycleManager: [BrokerLifecycleManager id=1] "
BEGUN = f"{AT}kafka.server.SharedServer: [SharedServer id=1] Starting SharedServer"
INCARNATED = (
    f"{LIFECYCLE}Incarnation dxRisZ5NTEeMH0bOkgjrDA of broker 1 in cluster AAAAAAAAAAAAAAAAAAAAAA is now STARTING."
)
REGISTERED = f"{LIFECYCLE}Successfully registered broker 1 with broker epoch 19"
LED = (
    f"{AT}org.apache.kafka.controller.QuorumController: [QuorumController id=0] Becoming the active controller at"
    " epoch 1, next write offset 1."
)
QUORUM = f"{AT}org.apache.kafka.controller.QuorumController: [QuorumController id=0] "
RENOUNCED = (
    f"{QUORUM}Renouncing the leadership due to a metadata log event. We were the leader at epoch 1, but in the new"
    " epoch 2, the leader is (none). Reverting to last stable offset 43."
)
FOLLOWS = f"{QUORUM}In the new epoch 2, the leader is 1."
ELECTED = ControllerElected(controller_epoch=1, epoch_zk_version=None)
RESIGNED = ControllerResigned(controller_epoch=1, reason="another epoch")
CLEANED = (
    f"{AT}{JAVA}log.Cleaner: Cleaner 0: Building offset map for log my.orders-2-1 for 1 segments in offset range"
    " [20, 40)."
)
HANDED_OVER = f"{LIFECYCLE}The controller has asked us to exit controlled shutdown."
STILL_LEADS = (
    f"{AT}state.change.logger: [Broker id=0] Skipped the become-leader state change for my.orders-2-1 with topic id"
    " Some(1LEJzxCnSJCBKEVB_h76zw), partition registration PartitionRegistration(replicas=[2, 0, 1], directories=["
    "SMowSba9WFKF3HnK0VtM4g, WnmY6WIcNy0AHFrsLHlrIw, zpEH5bIAmapBSKiFLnNAJQ], isr=[0], removingReplicas=[],"
    " addingReplicas=[], elr=[], lastKnownElr=[], leader=0, leaderRecoveryState=RECOVERED, leaderEpoch=1,"
    " partitionEpoch=7) and isNew=false since it is already the leader with leader epoch 1. Current high watermark 79,"
    " ISR [0], adding replicas [] and removing replicas []."
)
WANTED = (
    "2026-11-25 16:59:26,447 DEBUG kafka.cluster.Partition: [Partition my.orders-2-1 broker=0] Submitting ISR state"
    " change PendingExpandIsr(newInSyncReplicaId=1, sentLeaderAndIsr=LeaderAndIsr(leader=0, leaderEpoch=1,"
    " isrWithBrokerEpoch=[BrokerState(brokerId=0, brokerEpoch=20), BrokerState(brokerId=2, brokerEpoch=17),"
    " BrokerState(brokerId=1, brokerEpoch=19)], leaderRecoveryState=RECOVERED, partitionEpoch=3),"
    " leaderRecoveryState=RECOVERED, lastCommittedState="
    "CommittedPartitionState[isr=[0, 2], leaderRecoveryState=RECOVERED])"
)
STOPPED = f"{AT}kafka.server.BrokerServer: [BrokerServer id=1] shut down completed"


def in_java(line: str) -> str:
    """Return a line of the storage by its logger of today."""
    return line.replace("kafka.log.", f"{JAVA}log.", 1)


@pytest.mark.parametrize(
    ("lines", "events"),
    [
        pytest.param([BEGUN], [STARTED], id="a process starts"),
        pytest.param([INCARNATED, REGISTERED], [BrokerRegistered(czxid=19)], id="it is registered"),
        pytest.param([LED], [ELECTED], id="it leads the quorum"),
        pytest.param([LED, RENOUNCED, FOLLOWS], [ELECTED, RESIGNED], id="it leads the quorum no longer"),
        pytest.param([LED, FOLLOWS], [ELECTED, RESIGNED], id="it gave up after an error, and another one leads"),
        pytest.param([FOLLOWS], [], id="another one leads the quorum"),
        pytest.param([STOPPED], [BrokerStop(controlled=False)], id="it stops, and no controller let it go"),
        pytest.param([HANDED_OVER, STOPPED], [BrokerStop(controlled=True)], id="it stops when it may"),
        pytest.param([LEADER], [leads()], id="it leads a partition, in the words of before"),
        pytest.param([LEADER, in_java(APPENDED)], [leads(), appended("leader", 1)], id="it appends"),
        pytest.param(
            [LEADER, STILL_LEADS, MARKED],
            [leads(), marked([0], 7)],
            id="its ISR shrinks by the metadata log while it leads on in the same epoch",
        ),
        pytest.param([LEADER, WANTED, FETCHED.format(1, 83)], [leads(), wanted(83, -1, 83)], id="it wants another ISR"),
        pytest.param([in_java(TRUNCATED)], [truncated(None, None)], id="it truncates"),
        pytest.param([in_java(OPENED).replace("and local-log-end", "and log-end")], [opened()], id="it opens a log"),
        pytest.param(
            [CLEANED],
            [Compaction(topic="my.orders-2", partition=1, from_offset=0, until_offset=40)],
            id="it cleans a log",
        ),
        pytest.param(
            [START, CONNECTED, ASKED.format(1), DONE, in_java(DELETED)], [], id="what belongs to ZooKeeper is nothing"
        ),
        pytest.param(
            [in_java(APPENDED).replace("my.orders-2-1", "__cluster_metadata-0")], [], id="its own log is no partition"
        ),
        pytest.param(
            [in_java(TRUNCATED).replace("my.orders-2-1", "__cluster_metadata-0")],
            [],
            id="the quorum's log is cut",
        ),
    ],
)
def test_what_lines_tell(lines: list[str], events: list[Event]) -> None:
    reader = LogReader(wording("4.4.0"))
    assert [event for _, _, event in reader.events(iter(lines))] == events
    assert not reader.unknown


@pytest.mark.parametrize(
    ("lines", "events"),
    [
        pytest.param([BEGUN, STOPPED], [STARTED, BrokerStop(controlled=False)], id="a process starts and stops"),
        pytest.param([INCARNATED, REGISTERED], [BrokerRegistered(czxid=19)], id="it is registered"),
        pytest.param([LED], [ELECTED], id="it leads the quorum"),
        pytest.param([HANDED_OVER, STOPPED], [BrokerStop(controlled=True)], id="it stops when it may"),
        pytest.param([START, CONNECTED], [], id="what belongs to ZooKeeper is nothing"),
    ],
)
def test_what_lines_of_a_release_tell_that_could_have_zookeeper(lines: list[str], events: list[Event]) -> None:
    reader = LogReader(wording("3.6.2"))
    in_scala = (line.replace("org.apache.kafka.server.BrokerL", "kafka.server.BrokerL") for line in lines)
    assert [event for _, _, event in reader.events(in_scala)] == events


def test_a_process_calls_itself_by_its_incarnation() -> None:
    reader = LogReader(wording("4.4.0"))
    process, _, _ = list(reader.events(iter([BEGUN, INCARNATED, REGISTERED])))[-1]
    assert f"{process.session:x}" == "8c1f46ce9208eb0c"
    assert process.broker_epoch == 19


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(REGISTERED.replace("with broker epoch 19", "in epoch 19"), id="a registration"),
        pytest.param(LED.replace("at epoch 1,", "at 1,"), id="a leader of the quorum"),
        pytest.param(RENOUNCED.replace("due to a", "by a"), id="a leader that resigns"),
        pytest.param(INCARNATED.replace(" is now STARTING.", " starts."), id="an incarnation"),
    ],
)
def test_words_that_are_new_are_counted(text: str) -> None:
    reader = LogReader(wording("4.4.0"))
    line = line_of(text)
    assert line is not None
    assert reader.event(line) is None
    assert reader.unknown == {line.logger: 1}


def test_controllers_ask_brokers_for_nothing() -> None:
    assert ControlReceive.ev not in wording("4.4.0").emits
    assert ControlReceive.ev in wording("3.9.1").emits
