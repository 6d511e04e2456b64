"""Which fact tables describe the order of a client's operations? `schemas` has all tables."""

from harness.analysis.tables.table import EPOCH, NAMED, Column, Tables

_PROCESS = Column("process", "string", "client process")
CLIENT_TABLES = Tables()

POLL_STEPS = CLIENT_TABLES.declare(
    "poll_steps",
    "one step of a reader from a record of a partition to one that is not at the next offset",
    _PROCESS,
    Column("mode", "string", "assign, subscribe or reread"),
    Column("isolation", "string", "of the poll that gave this record; null when the client did not say"),
    *NAMED,
    Column("previous_index", "bigint", "number of the poll that gave the record before"),
    Column("previous_offset", "bigint", "offset of the record before"),
    Column("previous_leader_epoch", "int", "leader epoch of the record before; null when the client did not say"),
    Column("index", "bigint", "number of the poll that gave this record"),
    Column("time_ns", "bigint", "when that poll ended"),
    Column("offset", "bigint", "offset of this record"),
    EPOCH,
)

SEND_REVERSALS = CLIENT_TABLES.declare(
    "send_reversals",
    "one acknowledged record with a lower offset than one that its process had sent to the partition earlier",
    _PROCESS,
    *NAMED,
    Column("acks", "int", "0, 1 or -1 for all"),
    Column("earlier_index", "bigint", "number of the earlier send with the highest offset"),
    Column("earlier_offset", "bigint", "its offset"),
    Column("earlier_complete_ns", "bigint", "when it was acknowledged"),
    Column("earlier_leader_epoch", "int", "in which leader epoch that was; null when no broker's log says so"),
    Column("index", "bigint", "number of this send"),
    Column("offset", "bigint", "its offset"),
    Column("value", "string", "its value id"),
    Column("invoke_ns", "bigint", "when it was invoked"),
    EPOCH,
)

OFFSET_READS = CLIENT_TABLES.declare(
    "offset_reads",
    "one record of an answer to a read from an offset on",
    _PROCESS,
    Column("index", "bigint", "number of the operation within the process"),
    Column("mode", "string", "from which replica it was read: leader or replica"),
    *NAMED,
    Column("begins_at", "bigint", "the offset from which on records were requested"),
    Column("position", "int", "place of the record in the answer, from 0"),
    Column("offset", "bigint", "its offset; null if the line is not readable"),
    Column("given", "string", "its value id"),
    Column("invoke_ns", "bigint", "when the read was invoked"),
    Column("complete_ns", "bigint", "when it ended"),
)

SCRIPTS = CLIENT_TABLES.declare(
    "scripts",
    "one recorded script of client calls that was answered to its end",
    _PROCESS,
    Column("index", "bigint", "number of the operation within the process"),
    Column("script", "string", "which script it is"),
    Column("difference", "string", "the first answer that is not as recorded, ours ≠ Kafka's; null if all are"),
    Column("invoke_ns", "bigint", "when it was invoked"),
    Column("complete_ns", "bigint", "when it ended"),
)

PROMISED_ANSWERS = CLIENT_TABLES.declare(
    "promised_answers",
    "one answer to a request of a scenario's steps for which the scenario states what Kafka promises",
    _PROCESS,
    Column("index", "bigint", "number of the operation within the process"),
    Column("request", "string", "which request it is, in which version and to which broker"),
    Column("promised", "string", "fields of the answer as they are promised, as JSON"),
    Column("answer", "string", "the answer, as JSON"),
    Column("difference", "string", "what of the answer is not as promised; null if all is"),
    Column("invoke_ns", "bigint", "when it was invoked"),
    Column("complete_ns", "bigint", "when it ended"),
)

END_OFFSETS = CLIENT_TABLES.declare(
    "end_offsets",
    "one answer to where a partition ends for consumers that do not wait for the end of transactions",
    _PROCESS,
    Column("index", "bigint", "number of the operation within the process"),
    *NAMED,
    Column("offset", "bigint", "the end: offset of the next record that a consumer will get"),
    Column("invoke_ns", "bigint", "when it was invoked"),
    Column("complete_ns", "bigint", "when it ended"),
)
