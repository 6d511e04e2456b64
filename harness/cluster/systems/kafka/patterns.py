"""Patterns of the lines of Kafka's own log that show state changes, one row a kind of line and range of releases."""

import sys
from typing import NamedTuple

from harness.cluster.systems.kafka import line_events
from harness.cluster.systems.kafka.line_events import Make
from harness.cluster.systems.kafka.releases import SINCE_ANSWERS
from harness.events import (
    Append,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    Compaction,
    ControllerElected,
    ControllerResigned,
    ControlReceive,
    Event,
    HighWatermark,
    IsrPropose,
    LogDirectoryFailure,
    ProduceResponse,
    Recovery,
    Truncate,
    ZkSession,
)
from harness.values import METADATA_TOPIC

_PARTITION = r"(?P<topic>[\w.-]+)-(?P<partition>\d+)"
_SERVED = r"[^,]*(?<!-delete)(?<!-stray)(?<!-future)"
"""Folder of a log that its broker serves. Logs that wait for their deletion are loaded, too."""
_QUORUMS_LOG = f"{METADATA_TOPIC}-"
"""Raft's log, which its own rules truncate."""
_TERM = r"starts at leader epoch (?P<epoch>\d+) from offset (?P<offset>\d+) with partition epoch (?P<version>\d+)"
_FIRST, _LAST = (0,), (sys.maxsize,)
_QUORUM = (4,)
"""Since which release there is no ZooKeeper, and much of the storage is in Java."""


class Pattern(NamedTuple):
    """A kind of line, and what is made of it."""

    emits: type[Event] | None
    """None for a line that says something of one to come."""
    logger: str
    text: str
    make: Make
    since: tuple[int, ...] = _FIRST
    """The first release that words it so."""
    before: tuple[int, ...] = _LAST
    """The first release that words it otherwise, or is silent."""
    watched: str = ""
    """How lines look that some pattern of the logger must know; empty where others may well look alike."""
    quorum: bool | None = None
    """Whether only releases without ZooKeeper, or only those with it, log such lines; None: both."""


PATTERNS = (
    Pattern(BrokerStart, "kafka.server.KafkaServer", r"starting", line_events.starts, quorum=False),
    Pattern(
        None,
        "kafka.server.KafkaServer",
        r"\[.*\],? Controlled shutdown (?:request returned successfully|succeeded).*",
        line_events.hands_over,
        quorum=False,
    ),
    Pattern(
        None,
        "kafka.server.BrokerLifecycleManager",
        r"\[.*\] The controller has asked us to exit controlled shutdown\.",
        line_events.hands_over,
        before=_QUORUM,
        quorum=True,
    ),
    Pattern(
        None,
        "org.apache.kafka.server.BrokerLifecycleManager",
        r"\[.*\] The controller has asked us to exit controlled shutdown\.",
        line_events.hands_over,
        since=_QUORUM,
    ),
    Pattern(BrokerStart, "kafka.server.SharedServer", r"\[.*\] Starting SharedServer", line_events.starts, quorum=True),
    Pattern(BrokerStop, "kafka.server.BrokerServer", r"\[.*\] shut down completed", line_events.stops, quorum=True),
    Pattern(
        None,
        "kafka.server.BrokerLifecycleManager",
        r"\[.*\] Incarnation (?P<incarnation>[\w-]{22}) of broker \d+ in cluster \S+ is now STARTING\.",
        line_events.is_incarnated,
        before=_QUORUM,
        quorum=True,
        watched=r"\[.*\] Incarnation .*",
    ),
    Pattern(
        None,
        "org.apache.kafka.server.BrokerLifecycleManager",
        r"\[.*\] Incarnation (?P<incarnation>[\w-]{22}) of broker \d+ in cluster \S+ is now STARTING\.",
        line_events.is_incarnated,
        since=_QUORUM,
        watched=r"\[.*\] Incarnation .*",
    ),
    Pattern(
        BrokerRegistered,
        "kafka.server.BrokerLifecycleManager",
        r"\[.*\] Successfully registered broker \d+ with broker epoch (?P<czxid>\d+)",
        line_events.registers,
        before=_QUORUM,
        quorum=True,
        watched=r"\[.*\] Successfully registered broker .*",
    ),
    Pattern(
        BrokerRegistered,
        "org.apache.kafka.server.BrokerLifecycleManager",
        r"\[.*\] Successfully registered broker \d+ with broker epoch (?P<czxid>\d+)",
        line_events.registers,
        since=_QUORUM,
        watched=r"\[.*\] Successfully registered broker .*",
    ),
    Pattern(
        ControllerElected,
        "org.apache.kafka.controller.QuorumController",
        r"\[.*\] Becoming the active controller at epoch (?P<epoch>\d+), next write offset \d+\.",
        line_events.leads_quorum,
        quorum=True,
        watched=r"\[.*\] Becoming the active controller .*",
    ),
    Pattern(
        ControllerResigned,
        "org.apache.kafka.controller.QuorumController",
        r"\[.*\] (?:Renouncing the leadership due to a metadata log event\..*|In the new epoch \d+, the leader is .*)",
        line_events.resigns,
        quorum=True,
        watched=r"\[.*\] (?:Renouncing the leadership|In the new epoch) .*",
    ),
    Pattern(BrokerStop, "kafka.server.KafkaServer", r"\[.*\],? shut down completed", line_events.stops, quorum=False),
    Pattern(
        ZkSession,
        "org.apache.zookeeper.ClientCnxn",
        r"Session establishment complete .*, session ?id = (?P<session>0x[0-9a-f]+), .*",
        line_events.connects,
        quorum=False,
    ),
    Pattern(
        ZkSession,
        "org.apache.zookeeper.ClientCnxn",
        r"(?:Session|Unable to read .* sessionid) 0x.*[Cc]losing socket connection.*reconnect.*",
        line_events.loses_connection,
        quorum=False,
    ),
    Pattern(
        ZkSession,
        "org.I0Itec.zkclient.ZkClient",
        r"zookeeper state changed \(Expired\)",
        line_events.expires,
        before=(1, 1),
    ),
    Pattern(
        ZkSession,
        "kafka.zookeeper.ZooKeeperClient",
        r"\[.*\] Session expired\.",
        line_events.expires,
        since=(1, 1),
        quorum=False,
    ),
    Pattern(
        BrokerRegistered,
        "kafka.utils.ZkUtils",
        r"Registered broker \d+ at path /brokers/ids/\d+ with addresses: .*",
        line_events.registers_somehow,
        before=(1, 1),
        watched=r"Registered broker .*",
    ),
    Pattern(
        BrokerRegistered,
        "kafka.zk.KafkaZkClient",
        r"Registered broker \d+ at path /brokers/ids/\d+ with addresses: .*",
        line_events.registers_somehow,
        since=(1, 1),
        before=(2, 2),
        watched=r"Registered broker .*",
    ),
    Pattern(
        BrokerRegistered,
        "kafka.zk.KafkaZkClient",
        r"Registered broker .*, czxid \(broker epoch\): (?P<czxid>\d+)",
        line_events.registers,
        since=(2, 2),
        watched=r"Registered broker .*",
    ),
    Pattern(
        ControllerElected,
        "kafka.controller.KafkaController",
        r".* incremented to (?P<epoch>\d+) and epoch zk version is now (?P<version>\d+)",
        line_events.is_elected,
        since=(2, 2),
        watched=r".*successfully elected as.*",
    ),
    Pattern(
        Compaction,
        "kafka.log.LogCleaner",
        rf"Cleaner \d+: Building offset map for log {_PARTITION} for \d+ segments in offset range"
        r" \[\d+, (?P<until>\d+)\)\.",
        line_events.cleans,
        before=(4, 1),
        watched=r"Cleaner \d+: Building offset map for log .*",
    ),
    Pattern(
        Compaction,
        "org.apache.kafka.storage.internals.log.Cleaner",
        rf"Cleaner \d+: Building offset map for log {_PARTITION} for \d+ segments in offset range"
        r" \[\d+, (?P<until>\d+)\)\.",
        line_events.cleans,
        since=(4, 1),
        watched=r"Cleaner \d+: Building offset map for log .*",
    ),
    Pattern(
        BecomeLeader,
        "state.change.logger",
        rf"\[.*\] Leader {_PARTITION} (?:with topic id \S+ )?{_TERM},"
        r" high watermark (?P<high_watermark>\d+), ISR \[(?P<isr>[\d,]*)\].*",
        line_events.leads,
        since=(3, 3),
        watched=r"\[Broker .*\] Leader .*",
    ),
    Pattern(
        BecomeFollower,
        "state.change.logger",
        rf"\[.*\] Follower {_PARTITION} {_TERM} and high watermark (?P<high_watermark>\d+)\."
        r" Current leader is (?P<leader>-?\d+)\..*",
        line_events.follows,
        since=(3, 3),
        watched=r"\[Broker .*\] Follower .*",
    ),
    Pattern(
        None,
        "kafka.cluster.Partition",
        rf"\[Partition {_PARTITION} broker=\d+\] ISR updated to (?P<isr>[\d,]*) *"
        r"(?:\(under-min-isr\) )?and version updated to (?P<version>\d+)",
        line_events.has_isr,
        since=(3, 9),
        watched=r".* ISR updated .*",
    ),
    Pattern(
        IsrPropose,
        "kafka.cluster.Partition",
        rf"\[Partition {_PARTITION} broker=(?P<broker>\d+)\] Submitting ISR state change Pending(?:Expand|Shrink)Isr\("
        r".*sentLeaderAndIsr=LeaderAndIsr\(leader=\d+, leaderEpoch=(?P<epoch>\d+),"
        r" isrWithBrokerEpoch=(?:List\(|\[)(?P<new>(?:BrokerState\([^()]*\)(?:, )?)*)[)\]], .*"
        r"partitionEpoch=(?P<version>\d+)\).*"
        r" lastCommittedState=CommittedPartitionState[(\[]isr=(?:Set\(|\[)(?P<old>[\d, ]*)[)\]], .*",
        line_events.proposes,
        since=(3, 9),
        watched=r".* Submitting ISR state change .*",
    ),
    Pattern(
        IsrPropose,
        "kafka.cluster.Partition",
        rf"\[Partition {_PARTITION} broker=(?P<broker>\d+)\] Recorded replica (?P<follower>\d+) log end offset \(LEO\)"
        r" position (?P<end>\d+) and log start offset -?\d+\.",
        line_events.fetches,
        since=(3, 9),
        watched=r".* Recorded replica .*",
    ),
    Pattern(
        ProduceResponse,
        "kafka.request.logger",
        r'Completed request:(?P<request>\{.*"requestApiKeyName":"PRODUCE".*\})',
        line_events.answers,
        since=SINCE_ANSWERS,
        watched=r'.*"requestApiKeyName":"PRODUCE".*',
    ),
    Pattern(
        None,
        "state.change.logger",
        rf"\[.*\] Skipped the become-leader state change for {_PARTITION} with topic id \S+ .*"
        r"partitionEpoch=(?P<version>\d+).* since it is already the leader with leader epoch \d+\."
        r" Current high watermark \d+, ISR \[(?P<isr>[\d,]*)\], .*",
        line_events.has_isr,
        since=(3, 9),
        watched=r".* Skipped the become-leader .* already the leader .*",
    ),
    Pattern(
        HighWatermark,
        "kafka.cluster.Partition",
        rf"\[Partition {_PARTITION} broker=\d+\] High watermark updated from \(offset=(?P<old>\d+), segment=.*\)"
        r" to \(offset=(?P<new>\d+), segment=.*\)",
        line_events.raises_high_watermark,
        since=(3, 9),
        watched=r".* High watermark updated .*",
    ),
    Pattern(
        None,
        "kafka.server.ReplicaFetcherManager",
        r"\[ReplicaFetcherManager on broker \d+\] Removed fetcher for partitions \w+\((?P<partitions>.*)\)",
        line_events.stops_fetching,
        since=(3, 9),
        watched=r".* Removed fetcher for partitions .*",
    ),
    Pattern(
        Append,
        "kafka.log.UnifiedLog",
        rf"\[UnifiedLog partition={_PARTITION}, dir=.*\] Appended message set with last offset: (?P<last>\d+),"
        r" first offset: (?P<first>\d+), next offset: (?P<next>\d+), and messages: .*",
        line_events.appends,
        since=(3, 9),
        before=_QUORUM,
        watched=r".* Appended message set .*",
    ),
    Pattern(
        Append,
        "org.apache.kafka.storage.internals.log.UnifiedLog",
        rf"\[UnifiedLog partition={_PARTITION}, dir=.*\] Appended message set with last offset: (?P<last>\d+),"
        r" first offset: (?P<first>\d+), next offset: (?P<next>\d+), and messages: .*",
        line_events.appends,
        since=_QUORUM,
        watched=r".* Appended message set .*",
    ),
    Pattern(
        Truncate,
        "kafka.log.UnifiedLog",
        rf"\[UnifiedLog partition=(?!{_QUORUMS_LOG}){_PARTITION}, dir=.*\] Truncating to offset (?P<to>\d+)",
        line_events.truncates,
        since=(3, 9),
        before=_QUORUM,
        watched=rf"\[UnifiedLog partition=(?!{_QUORUMS_LOG}).* Truncating to offset .*",
    ),
    Pattern(
        Truncate,
        "org.apache.kafka.storage.internals.log.UnifiedLog",
        rf"\[UnifiedLog partition=(?!{_QUORUMS_LOG}){_PARTITION}, dir=.*\] Truncating to offset (?P<to>\d+)",
        line_events.truncates,
        since=_QUORUM,
        watched=rf"\[UnifiedLog partition=(?!{_QUORUMS_LOG}).* Truncating to offset .*",
    ),
    Pattern(
        Recovery,
        "kafka.log.LogManager",
        rf"Completed load of Log\(dir={_SERVED}, .*topic=(?P<topic>[\w.-]+), partition=(?P<partition>\d+),"
        r" highWatermark=(?P<high_watermark>\d+), lastStableOffset=\d+, logStartOffset=(?P<start>\d+),"
        r" logEndOffset=(?P<end>\d+)\) .*",
        line_events.opens,
        since=(3, 9),
        before=_QUORUM,
        watched=rf"Completed load of Log\(dir={_SERVED}, .*",
    ),
    Pattern(
        Recovery,
        "org.apache.kafka.storage.internals.log.LogManager",
        rf"Completed load of Log\(dir={_SERVED}, .*topic=(?P<topic>[\w.-]+), partition=(?P<partition>\d+),"
        r" highWatermark=(?P<high_watermark>\d+), lastStableOffset=\d+, logStartOffset=(?P<start>\d+),"
        r" logEndOffset=(?P<end>\d+)\) .*",
        line_events.opens,
        since=_QUORUM,
        watched=rf"Completed load of Log\(dir={_SERVED}, .*",
    ),
    Pattern(
        None,
        "org.apache.kafka.storage.internals.log.LogDirFailureChannel",
        r"(?P<error>.+)",
        line_events.meets_error,
        since=(3, 9),
        before=_QUORUM,
    ),
    Pattern(
        LogDirectoryFailure,
        "kafka.server.ReplicaManager",
        r"\[.*\] Broker \d+ stopped fetcher for partitions (?P<replicas>\S*) and stopped moving logs for partitions .*"
        r"because they are in the failed log directory .*",
        line_events.loses_directory,
        since=(3, 9),
        before=_QUORUM,
        watched=r".* in the failed log directory .*",
    ),
    Pattern(
        None,
        "state.change.logger",
        r"\[Broker id=\d+\] Handling LeaderAndIsr request correlationId (?P<correlation>\d+) from controller"
        r" (?P<sender>\d+) for \d+ partitions",
        line_events.begins,
        since=(3, 9),
        before=_QUORUM,
    ),
    Pattern(
        None,
        "state.change.logger",
        r"\[Broker id=\d+\] Received LeaderAndIsr request LeaderAndIsrPartitionState\(topicName='(?P<topic>[\w.-]+)',"
        r" partitionIndex=(?P<partition>\d+), controllerEpoch=\d+, leader=(?P<leader>-?\d+),"
        r" leaderEpoch=(?P<epoch>\d+), isr=\[(?P<isr>[\d, ]*)\], partitionEpoch=(?P<version>\d+),"
        r" replicas=\[(?P<replicas>[\d, ]*)\], .*\) correlation id (?P<correlation>\d+)"
        r" from controller (?P<sender>\d+) epoch (?P<controller_epoch>\d+)",
        line_events.is_requested,
        since=(3, 9),
        before=_QUORUM,
        watched=r"\[Broker .*\] Received LeaderAndIsr request .*",
    ),
    Pattern(
        None,
        "state.change.logger",
        r"\[Broker id=\d+\] Ignoring LeaderAndIsr request from controller (?P<sender>\d+) with correlation id"
        rf" (?P<correlation>\d+) epoch \d+ for partition {_PARTITION} (?:since its associated leader epoch \d+"
        r" (?P<how>matches|is smaller than) the current leader epoch.*"
        r"|as the local replica for the partition is in an (?P<offline>offline) log directory)",
        line_events.ignores,
        since=(3, 9),
        before=_QUORUM,
        watched=r"\[Broker .*\] Ignoring LeaderAndIsr request .*",
    ),
    Pattern(
        ControlReceive,
        "state.change.logger",
        r"\[Broker id=\d+\] Ignoring LeaderAndIsr request from controller (?P<sender>\d+) with correlation id"
        r" (?P<correlation>\d+) since its controller epoch (?P<controller_epoch>\d+) is old\..*",
        line_events.refuses,
        since=(3, 9),
        before=_QUORUM,
    ),
    Pattern(
        ControlReceive,
        "state.change.logger",
        r"\[Broker id=\d+\] Finished LeaderAndIsr request in \d+ms correlationId (?P<correlation>\d+) from controller"
        r" (?P<sender>\d+) for \d+ partitions",
        line_events.obeys,
        since=(3, 9),
        before=_QUORUM,
        watched=r"\[Broker .*\] Finished LeaderAndIsr request .*",
    ),
    Pattern(
        None,
        "state.change.logger",
        r"\[Broker id=\d+\] Received StopReplica request StopReplicaPartitionState\(partitionIndex=\d+,"
        r" leaderEpoch=(?P<epoch>-?\d+), deletePartition=true\) correlation id \d+ from controller (?P<sender>\d+)"
        rf" epoch (?P<controller_epoch>\d+) for partition {_PARTITION}",
        line_events.is_to_delete,
        since=(3, 9),
        before=_QUORUM,
        watched=r"\[Broker .*deletePartition=true.*",
    ),
    Pattern(
        ControlReceive,
        "kafka.log.LogManager",
        rf"Log for partition {_PARTITION} is renamed to .*-delete and is scheduled for deletion",
        line_events.deletes,
        since=(3, 9),
        before=_QUORUM,
        watched=r".* is scheduled for deletion",
    ),
)
"""In no order: no line fits two of a release."""
MISSING_FIELDS: dict[type[Event], tuple[str, ...]] = {
    Append: ("batch_epoch", "crc", "producer_id", "producer_epoch", "base_sequence", "isr_size", "acks"),
    Recovery: ("clean", "recovery_point", "truncated_bytes"),
    Truncate: ("reason", "asked_epoch", "answer_epoch", "latest_epoch", "local_epoch"),
    ControlReceive: ("request_broker_epoch", "live_brokers"),
    ControllerElected: ("epoch_zk_version",),
    BrokerRegistered: ("czxid",),
    ProduceResponse: ("error",),  # successes alone are told of
    HighWatermark: ("follower",),  # those of leaders alone are logged
}
"""What lines of Kafka do not have of an event's fields."""
