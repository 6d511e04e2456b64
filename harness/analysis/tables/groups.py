"""Which fact tables describe consumer groups: what their coordinators decided, what members owned? `schemas` has all.

The *coordinator epoch* is the leader epoch of the partition of `__consumer_offsets` that holds the group.
"""

from harness.analysis.tables.table import LINE, NAMED, TIME, Column, Tables

GROUP_TABLES = Tables()

_GROUP = Column("group", "string", "consumer group")
_TERM = Column("coordinator_epoch", "int", "coordinator epoch of the broker that logged it")
_GENERATION = Column("generation", "int", "generation of the group")
_MEMBER = Column("member", "string", "member id")
_INSTANCE = Column("instance", "string", "group.instance.id of a static member; null or empty for others")
_PROCESS = Column("process", "string", "client process")

GROUP_STATES = GROUP_TABLES.declare(
    "group_states",
    "one state of a group that its coordinator reached or read from the log",
    *LINE,
    _GROUP,
    Column("offsets_partition", "int", "partition of __consumer_offsets that holds the group"),
    _TERM,
    _GENERATION,
    Column("from_state", "string", "the state before; empty when it was read from the log"),
    Column("state", "string", "Empty, PreparingRebalance, CompletingRebalance, Stable or Dead"),
    Column("members", "array<struct<member:string,instance:string>>", "members then"),
    Column("rebalance_timeout_ms", "int", "the longest of any member"),
    Column("session_timeout_ms", "int", "the longest of any member"),
    Column("reason", "string", "what brought it about"),
    Column("until_ns", "bigint", "when its next state was logged, or else when that life of the broker logged last"),
    Column("ended", "boolean", "whether a next state was logged"),
)

GROUP_GENERATIONS = GROUP_TABLES.declare(
    "group_generations",
    "one partition that a member was assigned in a generation; or a member without any, or a generation without any",
    Column("source", "string", "coordinator (what it stored or loaded) or member (what a client process received)"),
    _GROUP,
    _GENERATION,
    _MEMBER,
    _INSTANCE,
    Column("owner", "string", "the instance, or else the member; null if both are unknown"),
    *NAMED,
    TIME,
    Column("reason", "string", "stored, replaced (an instance came back), loaded, or assigned (to a client process)"),
    Column("coordinator_epoch", "int", "coordinator epoch; null when the source is member"),
    Column("life", "int", "how often the group had ended before: in that epoch, or for a member at all"),
    Column("rebalance_ns", "bigint", "when this coordinator then began a rebalance; null if it did not"),
    Column("broker", "int", "coordinator; null when the source is member"),
    Column("incarnation", "string", "life of the coordinator's process; null when the source is member"),
    Column("seq", "bigint", "position in its log; null when the source is member"),
    Column("process", "string", "client process; null when the source is coordinator"),
    Column("index", "bigint", "number of its operation; null when the source is coordinator"),
)

GROUP_COMMITS = GROUP_TABLES.declare(
    "group_commits",
    "one commit of an offset as the coordinator answered it, beside what the group was when that was decided",
    *LINE,
    _GROUP,
    *NAMED,
    Column("offset", "bigint", "position to resume from"),
    Column("generation", "int", "as the committer gave it; -1 for a committer that is not a member"),
    _MEMBER,
    _INSTANCE,
    _TERM,
    Column("log_offset", "bigint", "where it stands in __consumer_offsets; -1 when it was refused"),
    Column("error", "int", "Kafka's number of the error; 0 for none"),
    Column("decided_seq", "bigint", "lines logged before this one when it was decided; null where the log lacks it"),
    Column("group_state", "string", "state of the group then; null for one without members that was never stored"),
    Column("group_generation", "int", "generation of the group then; null likewise"),
    Column("known", "boolean", "whether the committer was a member then, under the instance that it gave"),
)

GROUP_LOADS = GROUP_TABLES.declare(
    "group_loads",
    "one partition of __consumer_offsets that a broker began or stopped to coordinate",
    *LINE,
    Column("kind", "string", "load (its log was read) or unload"),
    *NAMED,
    Column("leader_epoch", "int", "coordinator epoch that began, or that ended the one before"),
    Column("groups", "bigint", "groups that it held; null where the log lacks it"),
    Column("offsets", "bigint", "offsets that it held; null for an unload"),
    Column("log_end_offset", "bigint", "up to where the log was read; null for an unload"),
    Column(
        "disk_error",
        "string",
        "why the disk gave no more of it; empty if it gave all, null for an unload or where the log lacks it",
    ),
)

GROUP_RETIREMENTS = GROUP_TABLES.declare(
    "group_retirements",
    "one committed offset that a coordinator took back: it had expired, or it, its group or its topic was deleted",
    *LINE,
    _GROUP,
    *NAMED,
    _TERM,
    Column("log_offset", "bigint", "where that stands in __consumer_offsets; -1 while it was not stored"),
)

OWNERSHIPS = GROUP_TABLES.declare(
    "ownerships",
    "one span in which a member of a group owned a partition, by its own word",
    _PROCESS,
    _GROUP,
    _MEMBER,
    _INSTANCE,
    _GENERATION,
    Column("mode", "string", "eager or cooperative"),
    *NAMED,
    Column("index", "bigint", "number of the operation with which it began"),
    Column("invoke_ns", "bigint", "when it was received"),
    Column("assigned_ns", "bigint", "when it could read; null when it never could"),
    Column("offset", "bigint", "where it began to read; -1 for the log's start, null if unknown"),
    Column("until_index", "bigint", "number of the operation with which it ended; null when that is not recorded"),
    Column("until_ns", "bigint", "when that began; null likewise"),
    Column("ended_by", "string", "revoked, lost, leave, or subscribe (after its end); null when that is not recorded"),
)
