"""Which fact tables describe transactions: their coordinators, and the logs of partitions? `schemas` has all tables.

The *coordinator epoch* is the leader epoch of the partition of `__transaction_state` that holds the transactional id,
when its leader became the coordinator. The leader epoch may grow since without another coordinator.
"""

from harness.analysis.tables.table import EPOCH, LINE, NAMED, Column, Tables

TRANSACTION_TABLES = Tables()

_HOLDER = Column("broker", "int", "broker whose replica holds it")
_ID = Column("transactional_id", "string", "transactional id")
_STATE_PARTITION = Column("state_partition", "int", "partition of __transaction_state that holds the transactional id")
_PRODUCER = (
    Column("producer_id", "bigint", "id of the producer"),
    Column("producer_epoch", "int", "epoch of the producer"),
)
_COORDINATOR_EPOCH = Column("coordinator_epoch", "int", "coordinator epoch")
_RESULT = Column("result", "string", "commit or abort")
_WRITTEN = Column("timestamp_ms", "bigint", "its timestamp: a wall clock")

TRANSACTIONS = TRANSACTION_TABLES.declare(
    "transactions",
    "one record of a transactional id in __transaction_state, in the log of the replica that has come furthest",
    *NAMED,
    Column("offset", "bigint", "its offset"),
    EPOCH,
    _ID,
    Column("state", "string", "Empty, Ongoing, PrepareCommit … as Kafka names them; Dead for a tombstone"),
    *_PRODUCER,
    Column("timeout_ms", "int", "how long a transaction may be open"),
    Column("partitions", "array<string>", "partitions of the transaction, as topic-partition"),
    Column("started_ms", "bigint", "when the transaction began, by the coordinator's wall clock; -1 for none"),
    Column("transaction_version", "int", "2 if each transaction has a producer epoch of its own"),
    _WRITTEN,
    Column("whole", "boolean", "whether no offset before it is missing from the log"),
    Column("told_ns", "bigint", "when a coordinator logged that it stored or loaded it; null if none did"),
    Column("stored_by", "string", "life of the broker that logged that it stored it; null if none did"),
    Column(
        "counts",
        "boolean",
        "whether a coordinator logged that; what was appended and not stored is no transition; null where none logs",
    ),
)

MARKERS = TRANSACTION_TABLES.declare(
    "markers",
    "one transaction marker in one replica's log",
    _HOLDER,
    *NAMED,
    Column("offset", "bigint", "its offset"),
    EPOCH,
    _WRITTEN,
    *_PRODUCER,
    _RESULT,
    _COORDINATOR_EPOCH,
)

TRANSACTIONAL_BATCHES = TRANSACTION_TABLES.declare(
    "transactional_batches",
    "one batch of a transaction in one replica's log",
    _HOLDER,
    *NAMED,
    Column("first_offset", "bigint", "its base offset"),
    Column("last_offset", "bigint", "its last offset, by its header"),
    EPOCH,
    _WRITTEN,
    *_PRODUCER,
    Column("first_sequence", "int", "sequence number of its first record"),
)

ABORTED_TRANSACTIONS = TRANSACTION_TABLES.declare(
    "aborted_transactions",
    "one entry of a replica's index of aborted transactions",
    _HOLDER,
    *NAMED,
    Column("segment", "bigint", "base offset of its segment"),
    Column("producer_id", "bigint", "id of the producer"),
    Column("first_offset", "bigint", "first offset of the transaction"),
    Column("last_offset", "bigint", "offset of its marker"),
    Column("last_stable_offset", "bigint", "last stable offset when the marker had been written"),
)

PRODUCER_STATES = TRANSACTION_TABLES.declare(
    "producer_states",
    "one producer in the latest snapshot of one replica's producers",
    _HOLDER,
    *NAMED,
    Column("snapshot_offset", "bigint", "the snapshot covers everything before it"),
    *_PRODUCER,
    Column("last_sequence", "int", "sequence number of its last record; -1 for none in this epoch"),
    Column("last_offset", "bigint", "offset of its last record; -1 for none in this epoch"),
    Column("coordinator_epoch", "int", "coordinator epoch of its last marker; -1 for none"),
    Column("transaction_first_offset", "bigint", "first offset of its open transaction; -1 for none"),
)

MARKER_WRITES = TRANSACTION_TABLES.declare(
    "marker_writes",
    "one transaction marker as a leader logged that it wrote it",
    *LINE,
    *NAMED,
    EPOCH,
    Column("offset", "bigint", "its offset"),
    *_PRODUCER,
    _RESULT,
    _COORDINATOR_EPOCH,
    Column("first_offset", "bigint", "where the transaction began; -1 when none was open there"),
)

STABLE_OFFSETS = TRANSACTION_TABLES.declare(
    "stable_offsets",
    "one change of one replica's last stable offset while it is or was below the high watermark",
    *LINE,
    *NAMED,
    Column("role", "string", "leader or follower"),
    EPOCH,
    Column("old", "bigint", "last stable offset before"),
    Column("new", "bigint", "last stable offset after"),
    Column("high_watermark", "bigint", "high watermark then"),
    Column("first_unstable_offset", "bigint", "first offset of the first open transaction; -1 for none"),
)

TRANSACTION_ANSWERS = TRANSACTION_TABLES.declare(
    "transaction_answers",
    "one answer of a coordinator to a transactional producer",
    *LINE,
    _ID,
    _STATE_PARTITION,
    _COORDINATOR_EPOCH,
    *_PRODUCER,
    Column("api", "string", "InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn or EndTxn"),
    Column("error", "int", "Kafka's number of the error; 0 for none"),
)

TRANSACTIONAL_COMMITS = TRANSACTION_TABLES.declare(
    "transactional_commits",
    "one offset that a producer commits in a transaction, as the group's coordinator answered it",
    *LINE,
    Column("group", "string", "consumer group"),
    _ID,
    *_PRODUCER,
    *NAMED,
    Column("offset", "bigint", "position to resume from"),
    Column("generation", "int", "as the producer gave it; -1 if it names no member"),
    Column("member", "string", "member id"),
    Column("coordinator_epoch", "int", "epoch of the group's coordinator; -1 if it is not the coordinator"),
    Column("decided_seq", "bigint", "lines logged before this one when it was decided; null where the log lacks it"),
    Column("error", "int", "Kafka's number of the error; 0 for none"),
    Column("group_generation", "int", "generation of the group then; null if that coordinator knew no such group"),
)

CLIENT_TRANSACTIONS = TRANSACTION_TABLES.declare(
    "client_transactions",
    "one transaction that a client began",
    Column("process", "string", "client process"),
    _ID,
    Column("transaction", "bigint", "number of its begin_transaction within the process"),
    Column("begun_ns", "bigint", "when it began"),
    Column("commit_ns", "bigint", "when its commit was asked for first; null if it never was"),
    Column("abort_ns", "bigint", "when its abort was asked for first; null if it never was"),
    Column("ended_ns", "bigint", "when a commit or an abort was answered last; null if none was"),
    Column("outcome", "string", "committed, aborted or unknown, as its client knows"),
    Column("group", "string", "consumer group whose offsets it commits; null if none"),
)
