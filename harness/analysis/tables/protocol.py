"""Which fact tables describe what brokers and ZooKeeper did by the protocol? `schemas` has all tables."""

from harness.analysis.tables.table import BROKER, EPOCH, INCARNATION, LINE, NAMED, TIME, TOPIC, Column, Tables

PROTOCOL_TABLES = Tables()

ELECTIONS = PROTOCOL_TABLES.declare(
    "elections",
    "one decision of a controller about a partition's leader, with its inputs",
    *LINE,
    *NAMED,
    Column("strategy", "string", "initialize, offline, controlled_shutdown, preferred or reassign"),
    Column("trigger", "string", "what made the controller decide"),
    Column("controller_epoch", "int", "its epoch"),
    Column("profile", "string", "Kafka whose rules apply, 2.5 or 0.8; null where the log lacks it"),
    Column("assigned", "array<int>", "assigned replicas in their order; in a reassignment the target ones"),
    Column("online", "array<int>", "brokers that may lead"),
    Column("shutting_down", "array<int>", "brokers about to leave; null where the log lacks it"),
    Column("unclean_allowed", "boolean", "whether a replica outside the ISR may lead"),
    Column("unclean", "boolean", "whether the controller says that one does"),
    Column("previous_leader", "int", "leader before; null at the first election"),
    Column("previous_leader_epoch", "int", "leader epoch before; null at the first election"),
    Column("previous_isr", "array<int>", "in-sync replicas before; null at the first election"),
    Column("leader", "int", "the leader that was chosen; null for none"),
    Column("leader_epoch", "int", "leader epoch of the decision; null without a leader"),
    Column("isr", "array<int>", "in-sync replicas from then on; null without a leader"),
    Column("error", "string", "why there is no leader; empty otherwise"),
)

STATE_WRITES = PROTOCOL_TABLES.declare(
    "state_writes",
    "one write of a partition's state znode, as a broker says it ended",
    *LINE,
    *NAMED,
    Column("op", "string", "create, set or delete"),
    Column("expected_version", "int", "version that it was to replace; -1 for any"),
    Column("result", "string", "ok, or the error"),
    Column("zk_version", "int", "version of the znode after it; -1 when it failed"),
    Column("writer", "string", "controller or leader"),
)

CONTROL_REQUESTS = PROTOCOL_TABLES.declare(
    "control_requests",
    "one partition of a LeaderAndIsr or StopReplica as a broker handled it, or any other request as a whole",
    *LINE,
    Column("api", "string", "LeaderAndIsr, StopReplica or UpdateMetadata"),
    Column("sender", "int", "controller that sent it"),
    Column("controller_epoch", "int", "controller epoch in it"),
    Column("request_broker_epoch", "bigint", "registration that it was meant for; -1 for any"),
    Column("broker_epoch", "bigint", "registration of the broker then"),
    Column("verdict", "string", "applied, stale_controller_epoch or stale_broker_epoch"),
    *NAMED,
    EPOCH,
    Column("partition_verdict", "string", "applied, or why this partition was left alone; null for a whole request"),
)

REGISTRATIONS = PROTOCOL_TABLES.declare(
    "registrations",
    "one registration of a broker, as ZooKeeper holds it or as the broker says that it registered",
    Column("source", "string", "zookeeper or broker"),
    Column("broker", "int", "broker id"),
    Column("czxid", "bigint", "transaction that created it"),
    Column("session", "string", "ZooKeeper session that owns it, or that the broker had, in hexadecimal"),
    Column("until_zxid", "bigint", "transaction that ended it; null while it stands, and when the source is broker"),
    Column("time_ns", "bigint", "when it was created, converted from ZooKeeper's wall clock; null when unknown"),
    Column("until_ns", "bigint", "when it ended, converted likewise; null while it stands"),
    Column(
        "seen_ns", "bigint", "when it ended, or else the last transaction of ZooKeeper's history; null when unknown"
    ),
    Column("leaves_ns", "bigint", "when its broker asked first for a controlled shutdown; null when it did not"),
)

BROKER_LOGS = PROTOCOL_TABLES.declare(
    "broker_logs",
    "one broker whose log states that it registered, as that of every system does: the log is there",
    Column("broker", "int", "broker id"),
)

CONTROLLER_PASSES = PROTOCOL_TABLES.declare(
    "controller_passes",
    "one time that a controller read which brokers are registered, and acted on it to the end",
    *LINE,
    Column("controller_epoch", "int", "its epoch"),
    Column("name", "string", "failover, or BrokerChange"),
    Column("began_ns", "bigint", "when it began to read or before"),
    Column("brokers", "array<int>", "brokers that it found registered"),
    Column("czxids", "array<bigint>", "transactions that registered them"),
)

QUORUM_TERMS = PROTOCOL_TABLES.declare(
    "quorum_terms",
    "one election of a leader by a quorum of controllers, by the leader's log",
    *LINE,
    Column("controller_epoch", "int", "its epoch"),
    Column("led_until_ns", "bigint", "when it resigned, or when its process logged its last line"),
    Column("resigned", "boolean", "whether it resigned"),
)

BELIEFS = PROTOCOL_TABLES.declare(
    "beliefs",
    "one decision of a controller that rests on the brokers that it took for alive, an election that gave a leader "
    "or an UpdateMetadata, with what it had read of the registrations",
    *LINE,
    Column("acted", "string", "election or metadata"),
    Column("controller_epoch", "int", "epoch of the controller"),
    *NAMED,
    Column("alive", "array<int>", "brokers that it took for alive; in an election those that may lead"),
    Column("leaving", "array<int>", "brokers that it took for shutting down; null for metadata"),
    Column("made_ns", "bigint", "when it decided"),
    Column("read_ns", "bigint", "when it had read the registrations before that"),
    Column("possible", "array<int>", "brokers in what it had acted on to the end or has read since"),
    Column("certain", "array<int>", "brokers in both, by the same registration"),
    Column("czxids", "array<bigint>", "transactions of these registrations"),
)

FOLLOWER_WATERMARKS = PROTOCOL_TABLES.declare(
    "follower_watermarks",
    "one follower in one leader epoch in which it copied records: the high watermark and the log start that came with "
    "the last of them",
    BROKER,
    *NAMED,
    EPOCH,
    Column("incarnation", "string", "life of the follower in which it copied the last record of the epoch"),
    Column("seq", "bigint", "line in which it did"),
    Column("time_ns", "bigint", "when it did"),
    Column("lived_ns", "bigint", "when that life logged last"),
    Column("last_offset", "bigint", "offset of that record"),
    Column("leader", "int", "broker that leads in the epoch"),
    Column("leader_high_watermark", "bigint", "the leader's high watermark when it wrote that record; null if unknown"),
    Column("high_watermark", "bigint", "the highest that the follower logged in that epoch, or began it with"),
    Column("leader_log_start_offset", "bigint", "where the leader's log started then; null if unknown"),
    Column(
        "log_start_offset",
        "bigint",
        "the highest start that the follower's log had in that life before it wrote records of another epoch",
    ),
    Column("disk_failed", "boolean", "whether a data directory of the follower failed in that life"),
)

LEADER_ISRS = PROTOCOL_TABLES.declare(
    "leader_isrs",
    "one set of replicas for which a leader waited, in one leader epoch, before it raised its high watermark",
    BROKER,
    *NAMED,
    EPOCH,
    Column("zk_version", "int", "version of the state znode that it took the set from; null where the log lacks it"),
    Column("isr", "array<int>", "the set, in ascending order"),
    Column("advances", "bigint", "how often the high watermark rose with it"),
    Column("incarnation", "string", "life of the broker that raised it highest"),
    Column("seq", "bigint", "line in which it did"),
    Column("high_watermark", "bigint", "the highest that it reached"),
)

ISR_PROPOSALS = PROTOCOL_TABLES.declare(
    "isr_proposals",
    "one change of its ISR that a leader was about to write",
    *LINE,
    *NAMED,
    EPOCH,
    Column("kind", "string", "shrink or expand"),
    Column("old_isr", "array<int>", "in-sync replicas before"),
    Column("new_isr", "array<int>", "in-sync replicas proposed"),
    Column("log_end_offset", "bigint", "the leader's log end"),
    Column("high_watermark", "bigint", "the leader's high watermark"),
    Column("epoch_start_offset", "bigint", "where its epoch began; null where the log lacks it"),
    Column("ends", "array<bigint>", "log ends of the proposed members, in that order; null where the log lacks it"),
)

ACKNOWLEDGEMENTS = PROTOCOL_TABLES.declare(
    "acknowledgements",
    "what a leader acknowledged in one leader epoch, with one acks level, while its ISR had one size",
    BROKER,
    *NAMED,
    EPOCH,
    Column("acks", "int", "0, 1 or -1 for all"),
    Column("isr_size", "int", "members of the ISR when it answered"),
    Column("answers", "bigint", "number of answers"),
    Column("first_offset", "bigint", "lowest offset that was acknowledged"),
    Column("seq", "bigint", "line of the answer that went furthest past the high watermark, or least stayed below it"),
    Column("offset", "bigint", "last offset of that answer"),
    Column("high_watermark", "bigint", "high watermark at that answer"),
)

REFUSALS = PROTOCOL_TABLES.declare(
    "refusals",
    "one error with which a leader refused batches in one leader epoch, with one acks level, while its ISR had one "
    "size",
    BROKER,
    *NAMED,
    EPOCH,
    Column("acks", "int", "0, 1 or -1 for all"),
    Column("error", "int", "Kafka's number of the error"),
    Column("isr_size", "int", "members of the ISR when it answered"),
    Column("answers", "bigint", "number of answers"),
    Column("seq", "bigint", "line of one of them"),
    Column("from_ns", "bigint", "when the first of them was given, on the broker's monotonic clock"),
    Column("to_ns", "bigint", "when the last one was"),
)

REFUSED_RETRIES = PROTOCOL_TABLES.declare(
    "refused_retries",
    "one batch that a leader refused for its numbers although it had written the same one, as leader or follower",
    *LINE,
    *NAMED,
    EPOCH,
    Column("producer_id", "bigint", "id of the producer"),
    Column("producer_epoch", "int", "its epoch"),
    Column("base_sequence", "int", "number of the first record"),
    Column("error", "int", "Kafka's number of the error"),
    Column("offset", "bigint", "where it had written it"),
    Column("last_offset", "bigint", "offset of its last record there"),
    Column("log_start_offset", "bigint", "where its log began when it refused"),
    Column("leader_end_offset", "bigint", "its log end when it took the lead; null when it never said so"),
    Column("written_since", "boolean", "whether it wrote it after that; null likewise"),
    Column("overwritten", "boolean", "whether it wrote at or before those offsets again until it refused"),
    Column("later_batches", "bigint", "batches that it wrote behind it until then, of the same producer and epoch"),
    Column("later_epoch", "boolean", "whether one of a later epoch of the producer was among them"),
)

CONSUMER_FETCHES = PROTOCOL_TABLES.declare(
    "consumer_fetches",
    "what a broker served to consumers in one leader epoch that believed in one leader epoch",
    BROKER,
    *NAMED,
    EPOCH,
    Column("current_leader_epoch", "int", "leader epoch that the consumers believed in; -1 when they did not say"),
    Column("answers", "bigint", "number of answers with records"),
    Column("seq", "bigint", "line of the answer that went furthest past the high watermark, or least stayed below it"),
    Column("offset", "bigint", "last offset of that answer"),
    Column("high_watermark", "bigint", "high watermark at that answer"),
)

PRODUCER_ID_BLOCKS = PROTOCOL_TABLES.declare(
    "producer_id_blocks",
    "one block of producer ids that a broker claimed in ZooKeeper",
    Column("zxid", "bigint", "transaction that claimed it; orders all claims"),
    Column("zk_version", "int", "version of the znode that holds it"),
    Column("broker", "int", "broker that claimed it"),
    Column("first", "bigint", "its first id"),
    Column("last", "bigint", "its last id"),
)

METADATA_CACHES = PROTOCOL_TABLES.declare(
    "metadata_caches",
    "one partition that the metadata cache of a broker's last life held when the load ended; or a cache without any",
    BROKER,
    Column("incarnation", "string", "that life"),
    Column("ended_ns", "bigint", "when the last client's operation began or ended"),
    Column("live_brokers", "array<int>", "live brokers in that cache; null without an update or if the log lacks it"),
    *NAMED,
    Column("seq", "bigint", "line that said so last"),
    Column("leader", "int", "leader; -1 for none"),
    EPOCH,
    Column("isr", "array<int>", "in-sync replicas"),
)

DELETED_LOGS = PROTOCOL_TABLES.declare(
    "deleted_logs",
    "one folder of a deleted replica that was still on a broker's disk when it was dumped",
    BROKER,
    *NAMED,
    Column("folder", "string", "its name"),
    Column("stopped_ns", "bigint", "when the broker stopped that replica last; null if it has begun again since"),
    Column("began_ns", "bigint", "when the broker registered first in its last life; null where it did not"),
    Column("lived_ns", "bigint", "when the broker logged last, which was before the dump"),
    Column("disk_failed", "boolean", "whether a data directory failed in that life"),
)

EPOCH_ANSWERS = PROTOCOL_TABLES.declare(
    "epoch_answers",
    "one answer of a leader to where a leader epoch ends, or a refusal",
    *LINE,
    *NAMED,
    Column("leader_epoch", "int", "leader epoch in which it answers; -1 when it refuses, null where the log lacks it"),
    Column("sender", "int", "follower that asked; negative for a consumer"),
    Column("current_leader_epoch", "int", "leader epoch that it believes in; -1 when it did not say"),
    Column("asked_epoch", "int", "epoch whose end it asked for"),
    Column("answer_epoch", "int", "largest epoch not above that; -1 when the leader does not know"),
    Column("end_offset", "bigint", "where that ends; -1 likewise"),
    Column("error", "int", "Kafka's number of the error; 0 for none"),
    Column("log_end_offset", "bigint", "the leader's log end then; null where the log lacks it"),
    Column(
        "leader_epochs",
        "array<array<bigint>>",
        "all epochs of its log then, with starts; null where the log lacks it",
    ),
)

TOPICS = PROTOCOL_TABLES.declare(
    "topics",
    "one topic that ever was in ZooKeeper, in its last state",
    TOPIC,
    Column("present", "boolean", "whether its znode is there"),
    Column("zxid", "bigint", "transaction of the last change of its znode"),
    Column("configured", "boolean", "whether it has a configuration znode"),
    Column("deletion_pending", "boolean", "whether its deletion was requested and is not done"),
    Column(
        "reassigned",
        "array<int>",
        "partitions that were being reassigned when its znode was last written; null where it does not say",
    ),
    Column(
        "assignment",
        "array<struct<partition:int,replicas:array<int>>>",
        "replicas of each of its partitions, as its znode has them; null when that is gone",
    ),
)

DELETIONS = PROTOCOL_TABLES.declare(
    "deletions",
    "one request for the deletion of a topic, as ZooKeeper holds it until the topic is gone",
    TOPIC,
    Column("zxid", "bigint", "transaction that created it"),
    Column("until_zxid", "bigint", "transaction that ended it; null while it stands"),
    Column("time_ns", "bigint", "when it was created, converted from ZooKeeper's wall clock; null when unknown"),
    Column("until_ns", "bigint", "when it ended, or the last transaction of ZooKeeper's history, converted likewise"),
    Column("replicas", "array<int>", "brokers with replicas of the topic, by what its znode held last until then"),
    Column("assigned_ns", "bigint", "when that was written, converted likewise"),
    Column("reassigned", "boolean", "whether a partition of it may have been in a reassignment then"),
)

TOPIC_CONFIGS = PROTOCOL_TABLES.declare(
    "topic_configs",
    "one version of a topic's own configuration in ZooKeeper",
    TOPIC,
    Column("zxid", "bigint", "transaction that wrote it"),
    Column("until_zxid", "bigint", "transaction that replaced or deleted it; null while it holds"),
    Column("unclean_allowed", "boolean", "unclean.leader.election.enable; null where the broker's own holds"),
    Column("min_insync_replicas", "int", "min.insync.replicas; null where the broker's own holds"),
    Column("compacted", "boolean", "whether cleanup.policy has compact; null where the broker's own holds"),
)

CONFIGURATIONS = PROTOCOL_TABLES.declare(
    "configurations",
    "one property with a value on which the replicas of a topic on one broker acted",
    *LINE,
    TOPIC,
    Column("property", "string", "its name, as topics have it"),
    Column("value", "string", "its value"),
    Column("began_ns", "bigint", "when that life of the broker began; null when unknown"),
    Column(
        "until_ns", "bigint", "when the broker logged another configuration or gave the replicas up, or logged last"
    ),
)

PROPERTY_VERSIONS = PROTOCOL_TABLES.declare(
    "property_versions",
    "one property in one version of a configuration in ZooKeeper, or while there was none",
    Column("entity", "string", "whose configuration: topics/NAME, brokers/ID, or brokers/<default> of all brokers"),
    Column("property", "string", "its name, as topics have it"),
    Column("value", "string", "its value; null where the configuration does not set it"),
    Column("zxid", "bigint", "transaction that wrote the version; null before the first"),
    Column("until_zxid", "bigint", "transaction that ended it; null while it holds"),
    Column("time_ns", "bigint", "when it was written, converted from ZooKeeper's wall clock; null when unknown"),
    Column("until_ns", "bigint", "when it ended, converted likewise; null while it holds"),
    Column("ended_by", "string", "create, set or delete; null while it holds"),
    Column("noted_ns", "bigint", "when a notification named that configuration after that; null if none did"),
)

COMPACTIONS = PROTOCOL_TABLES.declare(
    "compactions",
    "one range of a log from which a cleaner took what later records with the same keys replace",
    *LINE,
    *NAMED,
    Column("from_offset", "bigint", "first offset of the range"),
    Column("until_offset", "bigint", "offset after its last"),
)

LOG_LOADS = PROTOCOL_TABLES.declare(
    "log_loads",
    "one log that a broker loaded when it started, with how its life before had left it",
    *LINE,
    *NAMED,
    Column("clean", "boolean", "whether it was trusted, as after a clean stop; null where the log lacks it"),
    Column("log_start_offset", "bigint", "first offset that it found"),
    Column("log_end_offset", "bigint", "offset after the last record that it found"),
    Column("recovery_point", "bigint", "checkpoint up to where the log was synced; null where the log lacks it"),
    Column("previous_incarnation", "string", "the broker's life before; null without one"),
    Column("closed", "boolean", "whether that life closed its logs; null without one"),
    Column("previous_log_start_offset", "bigint", "first offset by the last line about it in that life; null likewise"),
)

SEGMENT_DELETIONS = PROTOCOL_TABLES.declare(
    "segment_deletions",
    "one segment that retention deleted",
    *LINE,
    *NAMED,
    Column("base_offset", "bigint", "its first offset"),
    Column("end_offset", "bigint", "offset after its last record"),
    Column("reason", "string", "start (the log starts behind it), size or age"),
    Column("log_start_offset", "bigint", "first offset of the log then"),
    Column("high_watermark", "bigint", "high watermark of the replica then"),
    Column("segment_bytes", "bigint", "size of the segment"),
    Column("log_bytes", "bigint", "size of the log, the segment included"),
    Column("retention_bytes", "bigint", "retention.bytes of the topic, as the broker has it; -1 for no limit"),
    Column("youngest_ms", "bigint", "largest timestamp in the segment; -1 when it has none"),
    Column("now_ms", "bigint", "the broker's wall clock then"),
    Column("retention_ms", "bigint", "retention.ms of the topic, as the broker has it; -1 for no limit"),
)

UNEXPECTED_ERRORS = PROTOCOL_TABLES.declare(
    "unexpected_errors",
    "one error that the code of a broker does not foresee",
    *LINE,
    Column("operation", "string", "what failed"),
    Column("error", "string", "type and message"),
    Column("at", "string", "module, line and function that raised it"),
)

STEPS = PROTOCOL_TABLES.declare(
    "steps",
    "one kind of subject whose steps were walked in one life of a broker or in ZooKeeper's history, or, where it names "
    "a rule, one of its steps that is illegal",
    Column("subject", "string", "kind of subject: `replica`, `leader`, `controller`, `group` …"),
    Column("broker", "int", "the broker whose log was walked; -1 for ZooKeeper's history"),
    INCARNATION,
    Column("steps", "bigint", "how many of its steps were walked; null of an illegal step"),
    Column("unread", "bigint", "of these, how many lack what the model reads; null likewise"),
    Column("rule", "string", "id of the rule that the step breaks; null where the row counts steps"),
    Column("sentence", "string", "what the rule says"),
    Column("source", "string", "the class of Kafka, the KIP or the issue that the rule is from"),
    Column("seq", "bigint", "position in that incarnation's state-change log, or the transaction in ZooKeeper"),
    TIME,
    *NAMED,
    Column("name", "string", "the subject, such as topic and partition"),
    Column("before", "string", "its state before the step, as the model has it"),
    Column("step", "string", "the event, as JSON"),
)

SUPERSEDED = PROTOCOL_TABLES.declare(
    "superseded",
    "one offset whose record any cleaner of the partition may have removed, so that its absence proves nothing",
    *NAMED,
    Column("offset", "bigint", "offset of a record that was acknowledged or is in some replica's log"),
    Column("last_offset", "bigint", "last record with its key that cleaners had seen: a later one, or this tombstone"),
    Column("committed", "boolean", "whether nothing shows that all records that replace it were lost with a leader"),
    Column("compacted_to", "bigint", "up to where cleaners came"),
)
