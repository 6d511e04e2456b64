"""What lines of real Kafka 3.9.1 tell; each is as a broker wrote it."""

from dataclasses import asdict, replace

import pytest

from harness.cluster.systems.kafka.log_reader import LogReader, line_of, wording
from harness.events import (
    Append,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    Compaction,
    ControlledPartition,
    ControllerElected,
    ControlReceive,
    Event,
    HighWatermark,
    LogDirectoryFailure,
    Recovery,
    Truncate,
    ZkSession,
)

AT = "2026-11-22 21:59:23,694 INFO "
START = f"{AT}kafka.server.KafkaServer: starting"
CONNECTED = (
    f"{AT}org.apache.zookeeper.ClientCnxn: Session establishment complete on server /127.0.0.1:15254, session id ="
    " 0x10003015c690002, negotiated timeout = 4000"
)
BROKEN = (
    f"{AT}org.apache.zookeeper.ClientCnxn: Session 0x100050e78420003 for server /127.0.0.1:24678, Closing socket"
    " connection. Attempting reconnect except it is a SessionExpiredException."
)
EXPIRED = f"{AT}kafka.zookeeper.ZooKeeperClient: [ZooKeeperClient Kafka server] Session expired."
REGISTERED = (
    f"{AT}kafka.zk.KafkaZkClient: Registered broker 0 at path /brokers/ids/0 with addresses:"
    " PLAINTEXT://127.0.0.1:22660,REPL://127.0.0.1:12664, czxid (broker epoch): 58"
)
ELECTED = (
    f"{AT}kafka.controller.KafkaController: [Controller id=0] 0 successfully elected as the controller. Epoch"
    " incremented to 2 and epoch zk version is now 2"
)
LEADER = (
    f"{AT}state.change.logger: [Broker id=0] Leader my.orders-2-1 with topic id Some(bFV-Q8sqR2iGdZWuXB0LBQ) starts at"
    " leader epoch 1 from offset 83 with partition epoch 3, high watermark 79, ISR [0,2], adding replicas [] and"
    " removing replicas [] . Previous leader Some(0) and previous leader epoch was 0."
)
FOLLOWER = (
    f"{AT}state.change.logger: [Broker id=0] Follower my.orders-2-1 starts at leader epoch {{}} from offset 88 with"
    " partition epoch 1 and high watermark 84. Current leader is 2. Previous leader Some(2) and previous leader epoch"
    " was 1."
)
UNFETCHED = (
    f"{AT}kafka.server.ReplicaFetcherManager: [ReplicaFetcherManager on broker 0] Removed fetcher for partitions"
    " HashSet(__consumer_offsets-0, my.orders-2-1)"
)
HANDED_OVER = (
    f"{AT}kafka.server.KafkaServer: [KafkaServer id=1] Controlled shutdown request returned successfully after 251ms"
)
CLEANED = (
    f"{AT}kafka.log.LogCleaner: Cleaner 0: Building offset map for log my.orders-2-1 for 1 segments in offset range"
    " [20, 40)."
)
TRACED = "2026-11-23 00:44:26,071 TRACE "
APPENDED = (
    f"{TRACED}kafka.log.UnifiedLog: [UnifiedLog partition=my.orders-2-1, dir=/data] Appended message set with last"
    " offset: 86, first offset: 83, next offset: 87, and messages: MemoryRecords(size=136,"
    " buffer=java.nio.HeapByteBuffer[pos=0 lim=136 cap=139])"
)
TRUNCATED = f"{AT}kafka.log.UnifiedLog: [UnifiedLog partition=my.orders-2-1, dir=/data] Truncating to offset 84"
NOTHING_TO_TRUNCATE = (
    f"{AT}kafka.log.UnifiedLog: [UnifiedLog partition=my.orders-2-1, dir=/data] Truncating to 83 has no effect as the"
    " largest offset in the log is 82"
)
MARKED = (
    "2026-11-23 00:44:26,296 DEBUG kafka.cluster.Partition: [Partition my.orders-2-1 broker=0] High watermark updated"
    " from (offset=79, segment=[0:222]) to (offset=83, segment=[0:335])"
)
IN_SYNC = (
    f"{AT}kafka.cluster.Partition: [Partition my.orders-2-1 broker=0] ISR updated to 0,2,1  and version updated to 6"
)
TOO_FEW_IN_SYNC = (
    f"{AT}kafka.cluster.Partition: [Partition my.orders-2-1 broker=0] ISR updated to 0 (under-min-isr) and version"
    " updated to 7"
)
BEGUN = (
    f"{AT}state.change.logger: [Broker id=0] Handling LeaderAndIsr request correlationId 2 from controller 2 for 1"
    " partitions"
)
ASKED = (
    f"{TRACED}state.change.logger: [Broker id=0] Received LeaderAndIsr request LeaderAndIsrPartitionState("
    "topicName='my.orders-2', partitionIndex={}, controllerEpoch=1, leader=2, leaderEpoch=0, isr=[2, 0],"
    " partitionEpoch=3, replicas=[2, 1, 0], addingReplicas=[], removingReplicas=[], isNew=true,"
    " leaderRecoveryState=0) correlation id 2"
    " from controller 2 epoch 5"
)
IGNORED = (
    f"{AT}state.change.logger: [Broker id=0] Ignoring LeaderAndIsr request from controller 2 with correlation id 2"
    " epoch 5 for partition my.orders-2-1 since its associated leader epoch 0 matches the current leader epoch"
)
OUT_OF_REACH = (
    f"{AT}state.change.logger: [Broker id=0] Ignoring LeaderAndIsr request from controller 2 with correlation id 2"
    " epoch 5 for partition my.orders-2-1 as the local replica for the partition is in an offline log directory"
)
STALE = (
    f"{AT}state.change.logger: [Broker id=0] Ignoring LeaderAndIsr request from controller 2 with correlation id 2"
    " since its controller epoch 5 is old. Latest known controller epoch is 6"
)
DONE = (
    f"{AT}state.change.logger: [Broker id=0] Finished LeaderAndIsr request in 2324ms correlationId 2 from controller 2"
    " for 2 partitions"
)
TO_DELETE = (
    f"{TRACED}state.change.logger: [Broker id=0] Received StopReplica request StopReplicaPartitionState("
    "partitionIndex=1, leaderEpoch=8, deletePartition=true) correlation id 45 from controller 1 epoch 5 for partition"
    " my.orders-2-1"
)
DELETED = (
    f"{AT}kafka.log.LogManager: Log for partition my.orders-2-1 is renamed to"
    " /data/my.orders-2-1.be9db395b83541f1955a6a2701a90ccc-delete and is scheduled for deletion"
)
OPENED = (
    f"{AT}kafka.log.LogManager: Completed load of Log(dir=/data/my.orders-2-1, topicId=bFV-Q8sqR2iGdZWuXB0LBQ,"
    " topic=my.orders-2, partition=1, highWatermark=79, lastStableOffset=79, logStartOffset=5, logEndOffset=83) with 1"
    " segments, local-log-start-offset 0 and local-log-end-offset 83 in 12ms (1/3 completed in /data)"
)
OPENED_TO_DELETE = OPENED.replace("dir=/data/my.orders-2-1", "dir=/data/my.orders-2-1.227ad9a5-delete")
DISK_ERROR = (
    "2026-11-25 16:41:15,265 ERROR org.apache.kafka.storage.internals.log.LogDirFailureChannel: Error while appending"
    " records to orders-1 in dir /var/lib/kafka"
)
OFFLINE = (
    "2026-11-25 16:41:15,315 WARN kafka.server.ReplicaManager: [ReplicaManager broker=1] Broker 1 stopped fetcher for"
    " partitions orders-0,orders-1,__consumer_offsets-0 and stopped moving logs for partitions  because they are in the"
    " failed log directory /var/lib/kafka."
)
STOPPED = f"{AT}kafka.server.KafkaServer: [KafkaServer id=1] shut down completed"


def leads(**changed: int) -> BecomeLeader:
    numbers = {"leader_epoch": 1, "previous_leader_epoch": -1} | changed
    return BecomeLeader(topic="my.orders-2", partition=1, log_start_offset=-1, high_watermark=79, log_end_offset=83,
                        isr=[0, 2], zk_version=3, **numbers)  # fmt: skip


def follows(epoch: int, before: int) -> BecomeFollower:
    return BecomeFollower(topic="my.orders-2", partition=1, leader=2, leader_epoch=epoch, previous_leader_epoch=before,
                          log_start_offset=-1, high_watermark=84, log_end_offset=88)  # fmt: skip


def received(api: str, sender: int, *partitions: ControlledPartition, verdict: str = "applied") -> ControlReceive:
    return ControlReceive(api=api, sender=sender, controller_epoch=5, request_broker_epoch=None, verdict=verdict,
                          partitions=list(partitions), live_brokers=None)  # fmt: skip


def controlled(partition: int, verdict: str) -> ControlledPartition:
    return ControlledPartition(topic="my.orders-2", partition=partition, leader=2, leader_epoch=0, isr=[2, 0],
                               zk_version=3, replicas=[2, 1, 0], verdict=verdict)  # fmt: skip


def appended(role: str, epoch: int) -> Append:
    return Append(topic="my.orders-2", partition=1, role=role, leader_epoch=epoch, base_offset=83, last_offset=86,
                  batch_epoch=None, crc=None, producer_id=None, producer_epoch=None, base_sequence=None, isr_size=None,
                  acks=None)  # fmt: skip


def marked(isr: list[int], zk_version: int, end: int = 83) -> HighWatermark:
    return HighWatermark(topic="my.orders-2", partition=1, role="leader", leader_epoch=1, old=79, new=83,
                         log_end_offset=end, isr=isr, zk_version=zk_version, cause="")  # fmt: skip


def opened() -> Recovery:
    return Recovery(topic="my.orders-2", partition=1, clean=None, log_start_offset=5, log_end_offset=83,
                    recovery_point=None, high_watermark=79, truncated_bytes=None)  # fmt: skip


def truncated(log_end_offset: int | None, epoch: int | None, high_watermark: int | None = None) -> Truncate:
    return Truncate(topic="my.orders-2", partition=1, log_end_offset=log_end_offset, to=84,
                    high_watermark=high_watermark,
                    leader_epoch=epoch, reason="", asked_epoch=None, answer_epoch=None, answer_end_offset=None,
                    latest_epoch=None, local_epoch=None, local_end_offset=None)  # fmt: skip


DELETION = ControlledPartition(topic="my.orders-2", partition=1, leader=-1, leader_epoch=8, isr=[], zk_version=-1,
                               replicas=[], verdict="applied")  # fmt: skip
STARTED = BrokerStart(config_digest="", clean_marker=False, planted_bugs=[])


@pytest.mark.parametrize(
    ("lines", "events"),
    [
        pytest.param([START], [STARTED], id="a process starts"),
        pytest.param([CONNECTED], [ZkSession(state="connected")], id="it has a session"),
        pytest.param(
            [BROKEN, CONNECTED],
            [ZkSession(state="suspended"), ZkSession(state="connected")],
            id="a connection that breaks is replaced",
        ),
        pytest.param(
            [EXPIRED, CONNECTED],
            [ZkSession(state="lost"), ZkSession(state="reinit")],
            id="a session that follows an expired one replaces it",
        ),
        pytest.param([REGISTERED], [BrokerRegistered(czxid=58)], id="it is registered"),
        pytest.param(
            [ELECTED], [ControllerElected(controller_epoch=2, epoch_zk_version=2)], id="it is elected controller"
        ),
        pytest.param([LEADER], [leads()], id="it leads a partition of a topic with dots, hyphens and a number"),
        pytest.param(
            [FOLLOWER.format(2), FOLLOWER.format(3)],
            [follows(2, -1), follows(3, 2)],
            id="the epoch before is the one that it told before, not the one that the line repeats",
        ),
        pytest.param(
            [FOLLOWER.format(2), START, FOLLOWER.format(3)],
            [follows(2, -1), STARTED, follows(3, -1)],
            id="a new process remembers no epoch",
        ),
        pytest.param(
            [CLEANED.replace("offset map for log my", "offset map for my"), CLEANED],
            [Compaction(topic="my.orders-2", partition=1, from_offset=0, until_offset=40)],
            id="it cleans a log up to an offset, and what was clean before too",
        ),
        pytest.param([HANDED_OVER, STOPPED], [BrokerStop(controlled=True)], id="it hands over and stops"),
        pytest.param([STOPPED], [BrokerStop(controlled=False)], id="it stops and has no replica to hand over to"),
        pytest.param(
            [HANDED_OVER, START, STOPPED],
            [STARTED, BrokerStop(controlled=False)],
            id="what one process handed over says nothing of the next",
        ),
        pytest.param([LEADER, APPENDED], [leads(), appended("leader", 1)], id="it appends as leader"),
        pytest.param(
            [FOLLOWER.format(2), APPENDED], [follows(2, -1), appended("follower", 2)], id="it appends as follower"
        ),
        pytest.param(
            [FOLLOWER.format(2), FOLLOWER.format(3), APPENDED, UNFETCHED, APPENDED],
            [follows(2, -1), follows(3, 2), appended("follower", 2), appended("follower", 3)],
            id="a fetcher of the epoch before appends until it is stopped",
        ),
        pytest.param(
            [FOLLOWER.format(2), FOLLOWER.format(3), UNFETCHED.replace("my.orders-2-1", "my.orders-2-10"), APPENDED],
            [follows(2, -1), follows(3, 2), appended("follower", 2)],
            id="the fetcher of another partition is stopped",
        ),
        pytest.param([APPENDED], [], id="an append without a role has no leader"),
        pytest.param(
            [LEADER, MARKED, IN_SYNC, MARKED],
            [leads(), marked([0, 2], 3), marked([0, 2, 1], 6)],
            id="a high watermark is raised with the ISR and version that it told of last",
        ),
        pytest.param(
            [LEADER, TOO_FEW_IN_SYNC, MARKED], [leads(), marked([0], 7)], id="its ISR has fewer members than it should"
        ),
        pytest.param([FOLLOWER.format(2), MARKED], [follows(2, -1)], id="only a leader raises one"),
        pytest.param(
            [LEADER, MARKED.replace("offset=79", "offset=83").replace("=[0:335]", "=[83:0]")],
            [leads()],
            id="its position in a new segment is the same high watermark",
        ),
        pytest.param([TRUNCATED], [truncated(None, None)], id="it truncates a log of which nothing is known"),
        pytest.param(
            [FOLLOWER.format(2), APPENDED, TRUNCATED, TRUNCATED],
            [follows(2, -1), appended("follower", 2), truncated(87, 2, 84), truncated(84, 2, 84)],
            id="it truncates from where the log ended by the lines before",
        ),
        pytest.param(
            [FOLLOWER.format(2).replace("watermark 84", "watermark 86"), TRUNCATED, TRUNCATED],
            [replace(follows(2, -1), high_watermark=86), truncated(88, 2, 86), truncated(84, 2, 84)],
            id="it truncates below its high watermark, which is lower then",
        ),
        pytest.param(
            [LEADER, APPENDED, MARKED],
            [leads(), appended("leader", 1), marked([0, 2], 3, end=87)],
            id="a high watermark is raised within what was appended",
        ),
        pytest.param([OPENED], [opened()], id="it opens a log at its start"),
        pytest.param(
            [OPENED, TRUNCATED], [opened(), truncated(83, None, 79)], id="what it opened it truncates from its end"
        ),
        pytest.param([NOTHING_TO_TRUNCATE], [], id="what truncates nothing is no truncation"),
        pytest.param(
            [ASKED.format(0), ASKED.format(1), IGNORED, DONE, DONE],
            [received("LeaderAndIsr", 2, controlled(0, "applied"), controlled(1, "ignored_same"))],
            id="a control request is told of once, when it is done, with what became of each partition",
        ),
        pytest.param(
            [ASKED.format(0), ASKED.format(1), OUT_OF_REACH, DONE],
            [received("LeaderAndIsr", 2, controlled(0, "applied"), controlled(1, "storage_error"))],
            id="a replica of a disk that has failed is not changed",
        ),
        pytest.param(
            [BEGUN, ASKED.format(0).replace("epoch 5", "epoch 3"), BEGUN, ASKED.format(1), DONE],
            [received("LeaderAndIsr", 2, controlled(1, "applied"))],
            id="a request that never ended is none of a later one with its number",
        ),
        pytest.param(
            [ASKED.format(0), STALE, DONE],
            [received("LeaderAndIsr", 2, verdict="stale_controller_epoch")],
            id="a request of an earlier controller is refused as a whole",
        ),
        pytest.param(
            [TO_DELETE, DELETED, DELETED],
            [received("StopReplica", 1, DELETION)],
            id="a replica is stopped for good when its log is put aside",
        ),
        pytest.param(
            [DISK_ERROR, "java.io.IOException: Input/output error", OFFLINE],
            [LogDirectoryFailure(error="Error while appending records to orders-1 in dir /var/lib/kafka", replicas=3)],
            id="a directory fails",
        ),
        pytest.param([DELETED], [], id="a log deleted without a request has none"),
        pytest.param([START[:-4]], [], id="a torn line gives nothing"),
        pytest.param(["\tat kafka.Kafka.main(Kafka.scala)", ""], [], id="the lines of a stack trace give nothing"),
        pytest.param([f"{AT}kafka.log.LogManager: starting"], [], id="another logger may say the same"),
    ],
)
def test_what_lines_tell(lines: list[str], events: list[Event]) -> None:
    read = [event for _, _, event in LogReader(wording("3.9.1")).events(iter(lines))]
    assert read == events
    assert {event.ev for event in read} <= wording("3.9.1").emits


def test_lines_are_stamped_with_what_their_process_knew() -> None:
    seen = [
        (hex(process.session), process.broker_epoch)
        for process, _, _ in LogReader(wording("3.9.1")).events(iter([CONNECTED, REGISTERED, LEADER]))
    ]
    assert seen[-1] == ("0x10003015c690002", 58)


def test_the_instant_is_utc_to_the_millisecond() -> None:
    line = line_of("1970-01-02 00:00:01,005 WARN a.b$C: text: with colon")
    assert line is not None
    assert (line.time_ns, line.logger, line.text) == (86_401_005_000_000, "a.b$C", "text: with colon")


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        pytest.param(LEADER.replace("starts at leader epoch", "begins in epoch"), 1, id="a leader in other words"),
        pytest.param(CLEANED.replace("offset range", "range"), 1, id="a cleaning in other words"),
        pytest.param(REGISTERED.replace("broker epoch", "epoch"), 1, id="a registration in other words"),
        pytest.param(APPENDED.replace("next offset", "end"), 1, id="an append in other words"),
        pytest.param(UNFETCHED.replace("HashSet(", "").removesuffix(")"), 1, id="a stopped fetcher in other words"),
        pytest.param(OPENED.replace("logEndOffset", "end"), 1, id="a log opened in other words"),
        pytest.param(OPENED_TO_DELETE, 0, id="a log opened that waits for its deletion"),
        pytest.param(TRUNCATED.replace("offset 84", "offset <84>"), 1, id="a truncation in other words"),
        pytest.param(MARKED.replace("offset=79", "79"), 1, id="a high watermark in other words"),
        pytest.param(OFFLINE.replace("stopped fetcher", "ended"), 1, id="a failed directory in other words"),
        pytest.param(ASKED.format(1).replace("isr=", "inSync="), 1, id="a control request in other words"),
        pytest.param(f"{AT}state.change.logger: [Broker id=0] Handling LeaderAndIsr request", 0, id="of no interest"),
    ],
)
def test_a_line_that_must_be_known_and_is_not_is_counted(text: str, counted: int) -> None:
    reader, line = LogReader(wording("3.9.1")), line_of(text)
    assert line is not None
    assert reader.event(line) is None
    assert reader.unknown.total() == counted


OLD_SESSION = (
    f"{AT}org.apache.zookeeper.ClientCnxn: Session establishment complete on server 127.0.0.1/127.0.0.1:27445,"
    " sessionid = 0x100038a205c0003, negotiated timeout = 15000"
)
OLD_BREAK = (
    f"{AT}org.apache.zookeeper.ClientCnxn: Unable to read additional data from server sessionid 0x100038a205c0003,"
    " likely server has closed socket, closing socket connection and attempting reconnect"
)
OLD_EXPIRY = f"{AT}org.I0Itec.zkclient.ZkClient: zookeeper state changed (Expired)"
OLD_HANDOVER = f"{AT}kafka.server.KafkaServer: [Kafka Server 0], Controlled shutdown succeeded"
OLD_STOP = f"{AT}kafka.server.KafkaServer: [Kafka Server 0], shut down completed"
OLD_REGISTRATION = (
    f"{AT}kafka.utils.ZkUtils: Registered broker 0 at path /brokers/ids/0 with addresses:"
    " EndPoint(127.0.0.1,17169,ListenerName(PLAINTEXT),PLAINTEXT)"
)
NEWER_REGISTRATION = (
    f"{AT}kafka.zk.KafkaZkClient: Registered broker 0 at path /brokers/ids/0 with addresses:"
    " ArrayBuffer(EndPoint(127.0.0.1,16923,ListenerName(PLAINTEXT),PLAINTEXT),"
    " EndPoint(127.0.0.1,14379,ListenerName(REPL),PLAINTEXT))"
)
OLD_LEADER = (
    f"{AT}state.change.logger: [Broker id=0] Leader orders-2 starts at leader epoch 0 from offset 0 with high watermark"
    " 0 ISR [0,2,1] addingReplicas [] removingReplicas []. Previous leader epoch was -1."
)
OLD_FOLLOWER = (
    f"{AT}state.change.logger: [Broker id=0] Follower orders-1 starts at leader epoch 0 from offset 0 with high"
    " watermark 0. Previous leader epoch was -1."
)


@pytest.mark.parametrize(
    ("version", "lines", "events"),
    [
        pytest.param(
            "0.10.2.2",
            [OLD_SESSION, OLD_BREAK, OLD_EXPIRY, OLD_SESSION],
            [ZkSession(state=state) for state in ("connected", "suspended", "lost", "reinit")],
            id="sessions until 1.0",
        ),
        pytest.param("1.1.1", [OLD_SESSION, OLD_EXPIRY], [ZkSession(state="connected")], id="another client since 1.1"),
        pytest.param("0.10.2.2", [OLD_HANDOVER, OLD_STOP], [BrokerStop(controlled=True)], id="a clean stop until 0.11"),
        pytest.param("0.10.2.2", [OLD_REGISTRATION], [BrokerRegistered(czxid=None)], id="a registration until 1.0"),
        pytest.param("1.1.1", [NEWER_REGISTRATION], [BrokerRegistered(czxid=None)], id="a registration until 2.1"),
        pytest.param("3.0.2", [OLD_LEADER, OLD_FOLLOWER], [], id="roles say nothing of versions until 3.0"),
    ],
)
def test_what_lines_of_older_releases_tell(version: str, lines: list[str], events: list[Event]) -> None:
    reader = LogReader(wording(version))
    assert [event for _, _, event in reader.events(iter(lines))] == events
    assert reader.unknown.total() == 0
    assert {event.ev for event in events} <= wording(version).emits


def test_what_a_line_omits_is_null() -> None:
    events = [event for _, _, event in LogReader(wording("3.9.1")).events(iter([LEADER, APPENDED, MARKED, TRUNCATED]))]
    fields = {f"{event.ev}.{name}": getattr(event, name) for event in events for name in asdict(event)}
    omitted = wording("3.9.1").missing_fields & fields.keys()
    assert {fields[name] for name in omitted} <= {None, ""}
    assert "append.acks" in omitted
