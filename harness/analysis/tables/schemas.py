"""Which fact tables there are, and what each column holds: the contract between facts, checks, suites and report.

Every table is one Parquet folder `facts/<name>.parquet`. Imports nothing heavy: a reader without Spark can use it.

Instants (`…_ns`) are nanoseconds on the host's monotonic clock, one clock for all processes of a run. ZooKeeper only
knows its wall clock, so instants of its changes are converted and good for drawing, never for ordering: that is what
zxids, versions and epochs are for.
"""

from harness.analysis.tables.clients import CLIENT_TABLES
from harness.analysis.tables.groups import GROUP_TABLES
from harness.analysis.tables.protocol import PROTOCOL_TABLES
from harness.analysis.tables.table import BROKER, EPOCH, LINE, NAMED, RUN, TIME, TOPIC, Column, Table, Tables
from harness.analysis.tables.transactions import TRANSACTION_TABLES

_DECLARED = Tables()

SENDS = _DECLARED.declare(
    "sends",
    "one record that a client tried to write",
    Column("process", "string", "client process"),
    Column("index", "bigint", "number of the operation within the process"),
    TOPIC,
    Column("partition", "int", "partition it was sent to; null while unknown"),
    Column("key", "string", "key of the record"),
    Column("value", "string", "value id, unique in the run"),
    Column("acks", "int", "0, 1 or -1 for all"),
    Column("invoke_ns", "bigint", "when it was invoked"),
    Column("complete_ns", "bigint", "when it ended; null when it never did"),
    Column("outcome", "string", "ok, fail (certainly not written) or info (unknown)"),
    Column(
        "offset",
        "bigint",
        "where it stands, by the cluster's answer, or by its readers where the answer names no offset; null unless ok "
        "and acks is not 0",
    ),
    Column(
        "leader_epoch", "int", "epoch of the leader that acknowledged it, by its state-change log; null when unknown"
    ),
    Column("error", "string", "what ended a fail or an info"),
    Column("made_from", "string", "value id of the record that it was made from; null when there is none"),
    Column("transactional_id", "string", "of its producer; null outside a transaction"),
    Column("transaction", "bigint", "number of its begin_transaction within the process; null outside a transaction"),
    Column("transaction_outcome", "string", "committed, aborted or unknown; null outside a transaction"),
    Column("lines", "bigint", "lines of it: its beginning and its end, or more where evidence is duplicated"),
)

POLLS = _DECLARED.declare(
    "polls",
    "one record that a client read",
    Column("process", "string", "client process"),
    Column("index", "bigint", "number of the operation within the process"),
    TIME,
    Column("mode", "string", "assign or subscribe"),
    Column("isolation", "string", "read_committed or read_uncommitted; null when the client did not say"),
    Column("position", "int", "place within the poll, from 0"),
    *NAMED,
    Column("offset", "bigint", "offset of the record"),
    Column("value", "string", "value id, or a digest of a value that no producer of ours wrote"),
    Column("leader_epoch", "int", "epoch stamped on the record; null when the client did not say"),
)

REPLICAS = _DECLARED.declare(
    "replicas",
    "one replica's state after the run",
    Column("broker", "int", "broker that holds the replica"),
    *NAMED,
    Column("log_start_offset", "bigint", "first offset of the log"),
    Column("log_end_offset", "bigint", "offset of the next record"),
    Column("high_watermark", "bigint", "from its checkpoint; null when not named there"),
    Column("recovery_point", "bigint", "everything before it was known to be flushed"),
    Column("leader_epochs", "array<array<bigint>>", "entries (epoch, start offset) of the leader-epoch checkpoint"),
    Column("damage", "string", "empty, or what is wrong and where reading stopped"),
)

REPLICA_RECORDS = _DECLARED.declare(
    "replica_records",
    "one record in one replica's log after the run",
    Column("broker", "int", "broker that holds the replica"),
    *NAMED,
    Column("offset", "bigint", "offset of the record"),
    Column("leader_epoch", "int", "epoch stamped on the record's batch"),
    Column("key", "string", "key of the record"),
    Column("value", "string", "value id, or the SHA-256 of a value that is no UTF-8"),
    Column("digest", "string", "SHA-256 over key, value and headers"),
    Column("producer_id", "bigint", "-1 without idempotence"),
    Column("producer_epoch", "int", "-1 without idempotence"),
    Column("sequence", "bigint", "-1 without idempotence, and of offsets, which coordinators write"),
)

PARTITION_STATES = _DECLARED.declare(
    "partition_states",
    "one version of a partition's state znode",
    *NAMED,
    Column("life", "int", "how often the znode had been created by then; leader epochs begin at 0 with each"),
    Column("zxid", "bigint", "transaction that wrote it; orders all changes"),
    Column("time_ns", "bigint", "when, converted from ZooKeeper's wall clock; null when it cannot be"),
    Column("zk_version", "int", "version of the znode"),
    Column("leader", "int", "leader; -1 for none"),
    EPOCH,
    Column("isr", "array<int>", "in-sync replicas"),
    Column("eligible", "array<int>", "replicas outside the ISR that may lead too (KIP-966); null with ZooKeeper"),
    Column("last_known", "array<int>", "the last leader, if no other replica may lead (KIP-966); null with ZooKeeper"),
    Column("controller_epoch", "int", "epoch of the controller that took the last leadership decision"),
    Column("assignment", "array<int>", "replicas assigned at that transaction; null when not seen"),
    Column("once_assigned", "array<int>", "replicas assigned at that version or an earlier one of the same life"),
    Column("fewest_replicas", "int", "number of the fewest assigned until the next version; null when not seen"),
    Column("most_replicas", "int", "number of the most assigned until the next version; null when not seen"),
    Column("writer", "string", "controller or leader, by the writer's state-change log; null when unknown"),
    Column("previous_zk_version", "int", "version seen before this one in the same life; null for the first"),
    Column("previous_leader", "int", "leader at the version seen before"),
    Column("previous_leader_epoch", "int", "leader epoch at the version seen before"),
    Column("previous_isr", "array<int>", "in-sync replicas at the version seen before"),
    Column("previous_eligible", "array<int>", "those that were eligible at the version seen before"),
    Column("previous_last_known", "array<int>", "last leader at the version seen before"),
    Column("previous_controller_epoch", "int", "controller epoch at the version seen before"),
)

LEADER_EPOCHS = _DECLARED.declare(
    "leader_epochs",
    "one leader in one leader epoch, by ZooKeeper or by its own claim; two rows of one epoch are two leaders",
    *NAMED,
    Column("life", "int", "as in partition_states; null when only claimed"),
    EPOCH,
    Column("leader", "int", "broker; -1 for none"),
    Column("isr", "array<int>", "in-sync replicas when the epoch began"),
    Column("controller_epoch", "int", "epoch of the controller that decided it"),
    Column("zk_version", "int", "version of the state znode that began it; null when only claimed"),
    Column("zxid", "bigint", "transaction that began it; null when only claimed"),
    Column("time_ns", "bigint", "when it began, for drawing; null when unknown"),
    Column("start_offset", "bigint", "log end of the leader when it took over; null when it never said so"),
    Column("claimed", "boolean", "whether the broker said or showed that it leads in this epoch"),
    Column("unclean", "boolean", "whether the leader was outside the ISR before; null when unknown"),
    Column("unclean_allowed", "boolean", "whether the configuration allowed that at the election; null when unknown"),
)

LEADERSHIP_CLAIMS = _DECLARED.declare(
    "leadership_claims",
    "one line in which a broker became leader or follower",
    *LINE,
    *NAMED,
    Column("role", "string", "leader or follower"),
    Column("leader", "int", "the broker that it follows, or itself"),
    EPOCH,
    Column("previous_leader_epoch", "int", "epoch it was in before; -1 for none"),
    Column("log_start_offset", "bigint", "its log start then"),
    Column("high_watermark", "bigint", "its high watermark then"),
    Column("log_end_offset", "bigint", "its log end then: where its epoch starts if it leads"),
    Column("isr", "array<int>", "in-sync replicas in the controller's request; null for a follower"),
    Column("zk_version", "int", "version of the state znode in that request; null for a follower"),
)

APPENDS = _DECLARED.declare(
    "appends",
    "what one broker wrote to its log of a partition in one leader epoch, as its leader or following it",
    BROKER,
    *NAMED,
    Column("role", "string", "leader or follower"),
    EPOCH,
    Column("first_offset", "bigint", "lowest offset that it wrote"),
    Column("last_offset", "bigint", "highest offset that it wrote"),
    Column("batches", "bigint", "number of batches"),
    Column("acks_all", "bigint", "as leader: batches among them with acks=all; null where the log lacks it"),
    Column("smallest_isr", "int", "fewest members of its ISR when it wrote one of those; null where it wrote none"),
)

CONTROLLER_EPOCHS = _DECLARED.declare(
    "controller_epochs",
    "one controller, as ZooKeeper holds it or a broker says it was elected",
    Column("controller_epoch", "int", "controller epoch"),
    Column("broker", "int", "broker; null when ZooKeeper's history does not say"),
    Column("session", "string", "ZooKeeper session of the broker, in hexadecimal"),
    Column("source", "string", "zookeeper, quorum (where there is none; its epochs may skip) or broker"),
    Column("zk_version", "int", "version of /controller_epoch that holds it"),
    Column("zxid", "bigint", "transaction of the election; null when the source is broker"),
    Column("until_zxid", "bigint", "transaction of the next election; null for the last"),
    Column("time_ns", "bigint", "when, for drawing; null when unknown"),
    Column("left_ns", "bigint", "when its /controller ended, converted likewise; null while it stands or when unknown"),
)

ISR_CHANGES = _DECLARED.declare(
    "isr_changes",
    "one change of a partition's ISR in ZooKeeper",
    *NAMED,
    Column("life", "int", "as in partition_states"),
    Column("zxid", "bigint", "transaction of the change"),
    Column("time_ns", "bigint", "when, for drawing; null when unknown"),
    Column("zk_version", "int", "version of the state znode after the change"),
    Column("leader", "int", "leader after the change"),
    Column("leader_epoch", "int", "leader epoch after the change"),
    Column("old_isr", "array<int>", "in-sync replicas before; empty for the creation"),
    Column("new_isr", "array<int>", "in-sync replicas after"),
    Column("may_be_empty", "boolean", "whether others may lead too (KIP-966), so that the ISR needs no member"),
    Column("assignment", "array<int>", "replicas assigned at that transaction; null when not seen"),
    Column("has_removed_replicas", "boolean", "whether it has former replicas and, beside them, only assigned ones"),
    Column("writer", "string", "controller or leader; null when unknown"),
)

HIGH_WATERMARKS = _DECLARED.declare(
    "high_watermarks",
    "one advance or regress of one replica's high watermark",
    *LINE,
    *NAMED,
    Column("role", "string", "leader or follower"),
    EPOCH,
    Column("old", "bigint", "high watermark before"),
    Column("new", "bigint", "high watermark after"),
    Column("log_end_offset", "bigint", "log end at that moment"),
    Column("cause", "string", "what moved it"),
)

TRUNCATIONS = _DECLARED.declare(
    "truncations",
    "one log losing its end",
    *LINE,
    *NAMED,
    EPOCH,
    Column("log_end_offset", "bigint", "log end before"),
    Column("to_offset", "bigint", "log end after"),
    Column("high_watermark", "bigint", "high watermark before"),
    Column("reason", "string", "epoch, hw, out_of_range, full or recovery"),
    Column("asked_epoch", "int", "epoch whose end it requested from the leader; -1 for none"),
    Column("answer_epoch", "int", "epoch of the leader's answer"),
    Column("answer_end_offset", "bigint", "end offset of the leader's answer"),
    Column("latest_epoch", "int", "newest epoch in its own cache before; -1 for none; null where the log lacks it"),
    Column("local_epoch", "int", "largest epoch in its own cache not above the answer's; -1 when unknown"),
    Column("local_end_offset", "bigint", "where that epoch ended in its own log; -1 when unknown"),
)

COMMITTED_OFFSETS = _DECLARED.declare(
    "committed_offsets",
    "one commit, one read-back of a committed offset, or one commit in the log of the offsets topic",
    Column("source", "string", "client, or log (replica dumps of __consumer_offsets)"),
    Column("kind", "string", "commit or fetch"),
    Column("group", "string", "consumer group"),
    *NAMED,
    Column("offset", "bigint", "position to resume from; -1 for none"),
    Column("outcome", "string", "ok, fail or info"),
    Column("process", "string", "client process; null when the source is log"),
    Column("index", "bigint", "number of the operation within the process; null when the source is log"),
    Column("invoke_ns", "bigint", "when it was invoked; null when the source is log"),
    Column("complete_ns", "bigint", "when it ended; null when it never did"),
    Column(
        "counts_ns",
        "bigint",
        "where it stands in the sequence that must not go back: an acknowledged commit at its end, an unacknowledged "
        "lower one and a successful read-back at their beginning; null when it does not count, as a read-back of none, "
        "which an expired offset explains",
    ),
    Column("log_partition", "int", "partition of __consumer_offsets; null when the source is client"),
    Column("log_offset", "bigint", "offset within it; null when the source is client"),
    Column("final", "boolean", "whether it is the last successful read-back of its group and partition"),
)

FAULT_WINDOWS = _DECLARED.declare(
    "fault_windows",
    "one injection",
    Column("injection", "int", "index within the plan"),
    Column("fault", "string", "kind of fault"),
    Column("targets", "array<string>", "broker ids as text, zookeeper, or a client's process"),
    Column("parameters", "string", "parameters as JSON"),
    Column("intended_ns", "bigint", "when it was about to be injected"),
    Column("injected_ns", "bigint", "when it had been injected; null when it never was"),
    Column("confirmed_ns", "bigint", "when its effect had been judged; null when it never was"),
    Column("healed_ns", "bigint", "when it had been healed; null when it never was"),
    Column("step", "string", "confirmed, mismatch, inconclusive or failed; null when never judged"),
    Column("detail", "string", "what was seen when its effect was judged"),
)

LIVENESS = _DECLARED.declare(
    "liveness",
    "one sign of life that was looked for when the cluster had been left in peace",
    TIME,
    Column("sign", "string", "registered, led, in_sync, produce, fetch, read or commit"),
    Column("broker", "int", "broker that should be registered; null for other signs"),
    *NAMED,
    Column("process", "string", "client that should read; null for other signs"),
    Column("shown", "boolean", "whether the cluster showed it"),
    Column("since_ns", "bigint", "when it was seen last, or else when the last fault had been healed"),
    Column("healed_ns", "bigint", "when the last fault had been healed"),
    Column("detail", "string", "what was seen instead"),
    Column("hindrance", "string", "what keeps an intact cluster from showing it; null when nothing does"),
    Column("cpu_percent", "int", "how busy all processors of the machine were from then on"),
    Column("load_percent", "int", "processes that wanted to run in the last minute, for each 100 processors"),
    Column("late_ms", "bigint", "the longest that the harness itself was kept from running"),
)

AVAILABILITY = _DECLARED.declare(
    "availability",
    "one span without an acknowledged write although clients were sending",
    *NAMED,
    Column("acks", "int", "acks level of the sends: 0, 1 or -1 for all"),
    Column("from_ns", "bigint", "last success, or the first try after it where that is later"),
    Column("to_ns", "bigint", "next success, or the last sign of life when there was none"),
    Column("gap_ms", "double", "length of the span"),
    Column("open", "boolean", "whether no success followed"),
    Column("attempts", "bigint", "sends that ended in the span or with it"),
)

TORN = "torn last line"
"""The problem that a kill can leave in a file; any other remark on the evidence forbids a PASS."""

UNREADABLE = "unreadable lines"
MISSING = "missing lines, by their numbers"
DUPLICATED = "lines that are there already"
DAMAGED_REPLICA = "damaged replica: "
REPEATED_VALUES = "sent more than once, first "

OF_ONE_LINE = {
    UNREADABLE: "unreadable line",
    MISSING: "missing line, by the numbers",
    DUPLICATED: "line that is there already",
}
"""How problems are called where a single line has them."""

PROBLEMS: dict[str, str] = {
    TORN: "the file ends in half a line, as a killed process leaves it; only a replica must be whole",
    UNREADABLE: "lines that are no JSON, or do not fit",
    MISSING: "a broker's lines, or the beginnings of a client's operations, have gaps in their numbers",
    DUPLICATED: "a line is there twice, or an operation begins or ends twice, or a replica was dumped twice",
    f"{DAMAGED_REPLICA}…": "a replica's log could not be read to its end; the remark says where",
    f"{REPEATED_VALUES}…": "value ids are not unique, so that what became of a record cannot be followed",
}
"""Every problem that evidence can have, and what it means."""

VALUE_IDS = "value ids"
"""Subject of the remark that they are not unique."""

EVIDENCE = Table(
    "evidence",
    "one remark on the quality of the evidence",
    (
        RUN,
        Column("subject", "string", "file within the run folder, or what the remark is about"),
        Column("problem", "string", "what is wrong, in a few words"),
        Column("count", "bigint", "how often"),
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for tables in (_DECLARED, CLIENT_TABLES, PROTOCOL_TABLES, GROUP_TABLES, TRANSACTION_TABLES, (EVIDENCE,))
    for table in tables
}
