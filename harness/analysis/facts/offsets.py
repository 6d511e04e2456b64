"""Which offsets did groups commit and read back, and which of them are in the log of the offsets topic?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.facts.clients import of_kind
from harness.analysis.frames import OFFSET_KEY, conform, in_order
from harness.analysis.tables.schemas import COMMITTED_OFFSETS
from harness.store.history import OpKind, OpType
from harness.values import OFFSETS_TOPIC


def committed_offsets(operations: DataFrame, records: DataFrame) -> DataFrame:
    """One row a commit or read-back of a client, and one a commit in the log of the offsets topic."""
    by_clients = _by_clients(of_kind(operations, OpKind.COMMIT, OpKind.FETCH_COMMITTED))
    return conform(by_clients.unionByName(_in_log(records), allowMissingColumns=True), COMMITTED_OFFSETS)


def _by_clients(operations: DataFrame) -> DataFrame:
    """Commits and read-backs, with the place of each in the sequence that must not go back.

    A read-back of no offset has no place: the offset may have expired, which the check offset-regression judges.
    """
    is_commit = F.col("kind") == OpKind.COMMIT.value
    is_ok = F.col("outcome") == OpType.OK.value
    is_info = F.col("outcome") == OpType.INFO.value
    at_ns = F.when(is_commit & is_ok, F.col("complete_ns")).otherwise(F.col("invoke_ns"))
    last_acknowledged = F.last(F.when(is_commit & is_ok, F.col("offset")), ignorenulls=True).over(
        in_order(*OFFSET_KEY, by=("at_ns", "process", "index"))
    )
    may_lower = is_commit & is_info & (F.col("offset") < last_acknowledged)
    is_read_back = ~is_commit & is_ok
    none = is_read_back & (F.col("offset") < 0)
    rank = F.row_number().over(in_order(*OFFSET_KEY, "is_read_back", by=("latest_first",)))
    return (
        operations.withColumn("at_ns", at_ns)
        .withColumn("counts_ns", F.when((is_ok & ~none) | may_lower, F.col("at_ns")))
        .withColumn("is_read_back", is_read_back)
        .withColumn("latest_first", -F.col("invoke_ns"))
        .withColumn("final", is_read_back & (rank == 1))
        .withColumn("kind", F.when(is_commit, "commit").otherwise("fetch"))
        .withColumn("source", F.lit("client"))
        .drop("is_read_back", "latest_first", "at_ns", "key", "value", "acks", "ok_offset", "error", "lines")
    )


def _in_log(records: DataFrame) -> DataFrame:
    """Commits in the offsets topic, each once however many replicas hold it; needs dumps with decoded records."""
    key = F.from_json("key", "`group` string, topic string, partition int")
    return (
        records.where(F.col("topic") == OFFSETS_TOPIC)
        .select(
            "run_id", "partition", "offset", key.alias("key"), F.from_json("value", "offset bigint").alias("commit")
        )
        .where(F.col("key.group").isNotNull() & F.col("commit.offset").isNotNull())
        .distinct()
        .select(
            "run_id",
            F.lit("log").alias("source"),
            F.lit("commit").alias("kind"),
            F.lit(OpType.OK.value).alias("outcome"),
            "key.group",
            "key.topic",
            "key.partition",
            "commit.offset",
            F.col("partition").alias("log_partition"),
            F.col("offset").alias("log_offset"),
            F.lit(False).alias("final"),
        )
    )
