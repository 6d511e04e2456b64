"""Which readers jumped, which records overtook others, and where did partitions end for consumers?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window, WindowSpec

from harness.analysis.check_helpers.records import acknowledged
from harness.analysis.facts.clients import of_kind
from harness.analysis.frames import as_number, by_parts, conform, in_order, stored
from harness.analysis.sources.reading import no_rows, of_table
from harness.analysis.tables.clients import (
    END_OFFSETS,
    OFFSET_READS,
    POLL_STEPS,
    PROMISED_ANSWERS,
    SCRIPTS,
    SEND_REVERSALS,
)
from harness.store.history import READ_COMMITTED, OpKind, OpType

_READER = ("run_id", "process", "mode", "topic", "partition")
_SENDER = ("run_id", "process", "topic", "partition")
FEW = 100_000
"""Rows that every task may have."""


def poll_steps(polls: DataFrame) -> DataFrame:
    """One row a step of a reader that is not to the next offset; each mode of reading is a reader of its own."""
    return conform(_steps(polls), POLL_STEPS)


def poll_steps_of_many(polls: DataFrame, few: int = FEW) -> DataFrame:
    """Return `poll_steps` of a large history: records are put in order only around polls that do not go on.

    A poll goes on where its records of a partition have offsets that follow each other, as their places in it do, and
    the first follows the last of the poll before: then it is one row. Where many do not, all records are put in order.
    """
    shift, in_turn = F.col("offset") - F.col("position"), in_order("reader", by=("index",))
    follow = (F.min(shift) == F.max(shift)) & (F.count("*") == F.max("offset") - F.min("offset") + 1)
    reader = as_number(*_READER).alias("reader")
    spans = polls.groupBy(reader, "index").agg(
        F.min("offset").alias("first"),
        F.max("offset").alias("last"),
        F.coalesce(follow & (F.count(shift) == F.count("*")), F.lit(False)).alias("follow"),
    )
    before = F.lag(F.struct("follow", "last")).over(in_turn)
    goes_on = F.col("follow") & (before.isNull() | (before["follow"] & (F.col("first") == before["last"] + 1)))
    odd = stored(
        spans.withColumn("odd", ~F.coalesce(goes_on, F.lit(False)))
        .withColumn("before_odd", F.coalesce(F.lead("odd").over(in_turn), F.lit(False)))
        .where(F.col("odd") | F.col("before_odd"))
        .select("reader", "index", "odd")
    )
    number = odd.count()
    if not number:
        return no_rows(polls.sparkSession, of_table(POLL_STEPS))
    if number > few:
        return by_parts(poll_steps, polls, on=_READER)
    around = polls.withColumn("reader", reader).join(F.broadcast(odd), on=["reader", "index"], how="inner")
    return conform(_steps(around).where("odd"), POLL_STEPS)


def _steps(polls: DataFrame) -> DataFrame:
    before = F.lag(F.struct("index", "offset", "leader_epoch")).over(in_order(*_READER, by=("index", "position")))
    return (
        polls.withColumn("before", before)
        .where(F.col("offset") != F.col("before.offset") + 1)
        .withColumn("previous_index", F.col("before.index"))
        .withColumn("previous_offset", F.col("before.offset"))
        .withColumn("previous_leader_epoch", F.col("before.leader_epoch"))
    )


def send_reversals(sends: DataFrame) -> DataFrame:
    """One row an acknowledged record that lies before an earlier one of its process, beside the furthest of those."""
    furthest = F.max(F.struct("offset", "index", "complete_ns", "leader_epoch")).over(_earlier(*_SENDER))
    return conform(
        acknowledged(sends)
        .withColumn("furthest", furthest)
        .where(F.col("offset") < F.col("furthest.offset"))
        .withColumn("earlier_index", F.col("furthest.index"))
        .withColumn("earlier_offset", F.col("furthest.offset"))
        .withColumn("earlier_complete_ns", F.col("furthest.complete_ns"))
        .withColumn("earlier_leader_epoch", F.col("furthest.leader_epoch")),
        SEND_REVERSALS,
    )


def send_reversals_of_many(sends: DataFrame, few: int = FEW) -> DataFrame:
    """Return `send_reversals` of a large history: of few sends is more than a number put in order.

    Those are the records that lie before an earlier one, and all that stand where the furthest of those does.
    """
    sender = as_number(*_SENDER).alias("sender")
    furthest = F.max("offset").over(_earlier("sender")).alias("furthest")
    before = acknowledged(sends).select(sender, "index", "offset").select("*", furthest).where("offset < furthest")
    places = stored(before.select("sender", F.explode(F.array("offset", "furthest")).alias("offset")).distinct())
    number = places.count()
    if not number:
        return no_rows(sends.sparkSession, of_table(SEND_REVERSALS))
    if number > few:
        return send_reversals(sends)
    there = sends.withColumn("sender", sender).join(F.broadcast(places), on=["sender", "offset"], how="left_semi")
    return send_reversals(there)


def _earlier(*sender: str) -> WindowSpec:
    return in_order(*sender, by=("index",)).rowsBetween(Window.unboundedPreceding, -1)


def end_offsets(operations: DataFrame) -> DataFrame:
    """One row a successful request for a partition's end; read_committed clients get the last stable offset."""
    answered = of_kind(operations, OpKind.END_OFFSET).where(F.col("outcome") == OpType.OK.value)
    answered = answered.where(F.coalesce("isolation", F.lit("")) != READ_COMMITTED)
    return conform(answered.where(F.col("ok_offset") >= 0).withColumn("offset", F.col("ok_offset")), END_OFFSETS)


def offset_reads(operations: DataFrame) -> DataFrame:
    """One row a record of an answered read from an offset on."""
    answered = of_kind(operations, OpKind.READ).where((F.col("outcome") == OpType.OK.value) & (F.col("value") != ""))
    of_read = ["run_id", "process", "index", "mode", "topic", "partition", "invoke_ns", "complete_ns"]
    texts = F.posexplode(F.split("value", " ")).alias("position", "text")
    each = answered.select(*of_read, F.col("offset").alias("begins_at"), texts)
    parts = {"offset": F.regexp_extract("text", "^([0-9]+)=", 1), "given": F.regexp_extract("text", "=(.*)$", 1)}
    rows = each.withColumns(parts).withColumn("offset", F.col("offset").try_cast("bigint"))
    return conform(rows, OFFSET_READS)


def scripts(operations: DataFrame) -> DataFrame:
    """One row a script of client calls that was answered to its end."""
    answered = of_kind(operations, OpKind.ASK).where(F.col("outcome") == OpType.OK.value)
    differs = F.when(F.col("error") != "", F.col("error"))
    return conform(answered.withColumn("script", F.col("mode")).withColumn("difference", differs), SCRIPTS)


def promised_answers(operations: DataFrame) -> DataFrame:
    """One row an answered request whose scenario states what Kafka promises to answer."""
    answered = of_kind(operations, OpKind.REQUEST).where(F.col("outcome") == OpType.OK.value)
    rows = answered.where(F.coalesce("key", F.lit("")) != "").select(
        "*",
        F.col("mode").alias("request"),
        F.col("key").alias("promised"),
        F.col("error").alias("answer"),
        F.when(F.col("value") != "", F.col("value")).alias("difference"),
    )
    return conform(rows, PROMISED_ANSWERS)
