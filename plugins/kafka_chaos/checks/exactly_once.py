"""exactly-once: each input record of a pipeline has one committed output.

A process that reads, makes records of what it read, and commits both in one transaction may be killed, fenced or
restarted at any time: what it had not committed is done again, and what it had committed is not (KIP-447). An output
names the input that it was made from, and its transaction the group that reads. It is committed if its client was told
so, if a commit marker closes it, or if a reader with read_committed got it. One whose client does not know may be. What
is made outside of a transaction, or in one that commits no offsets, may be made again. An input that its producer wrote
several times is several input records; the check duplicate judges that.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES_OF_OFFSETS
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD, UNIQUE_VALUES
from harness.analysis.check_helpers.client_transactions import (
    TRANSACTION_KEY,
    UNREAD_BY,
    ended_sends,
    read_committed,
)
from harness.analysis.check_helpers.compaction import SUPERSEDED, not_superseded
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.log_starts import decided, not_deleted
from harness.analysis.check_helpers.records import acknowledged, stays_readable
from harness.analysis.check_helpers.transactions import OfTransactions
from harness.analysis.frames import PARTITION_KEY, by_parts, stored_for_parts
from harness.analysis.subjects import counted
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.store.history import COMMITTED, UNKNOWN
from harness.values import ACKS_ALL


def _outputs(sends: DataFrame, client_transactions: DataFrame) -> DataFrame:
    """One row a record made from another in a transaction that commits offsets, of its `group`."""
    groups = client_transactions.where(F.col("group").isNotNull()).select(*TRANSACTION_KEY, "group")
    return sends.where(F.col("made_from").isNotNull()).join(groups, on=list(TRANSACTION_KEY), how="inner")


class ExactlyOnce(OfTransactions):
    """Every input record beside the committed records that were made from it."""

    name: ClassVar[str] = "exactly-once"
    title: ClassVar[str] = "exactly-once"
    promise: ClassVar[str] = "Each input record of a pipeline has one committed output, whatever was killed (KIP-447)."
    needs: ClassVar[tuple[str, ...]] = ("sends",)
    about: ClassVar[Subject] = Subject(
        facts=("sends", "client_transactions"),
        pieces=lambda _, *facts: counted(_outputs(*facts)),
        what="records made from others",
    )
    reads: ClassVar[tuple[str, ...]] = ("client_transactions", "polls", "replica_records", "markers", *UNREAD_BY)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE, UNIQUE_VALUES, COMPACTIONS_TOLD)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES_OF_OFFSETS
    judges_without: ClassVar[tuple[str, ...]] = ("replicas", "zookeeper", "become_leader", "become_follower")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an input record with several committed outputs, and one without any before one with it."""
        made = self._made(facts)
        output = F.col("value")  # values are unique, so each row is another one
        repeated = (
            made.where("committed")
            .groupBy("run_id", "topic", "group", F.col("made_from").alias("input"))
            .agg(F.count("*").alias("number"), F.array(F.min(output), F.max(output)).alias("values"))
            .where(F.col("number") > 1)
        )
        places = (
            facts["polls"]
            .withColumn("input", F.col("value"))
            .join(repeated, on=["run_id", "input"], how="left_semi")
            .groupBy("run_id", "input")
            .agg(F.count_distinct("topic", "partition", "offset").alias("places"))
        )
        several = (
            repeated.join(places, on=["run_id", "input"], how="left")
            .where(F.col("number") > F.coalesce("places", F.lit(1)))
            .withColumn("wrong", phrase("{number} in {topic}"))
            .select("run_id", "topic", "group", "input", "values", "wrong")
        )
        rows = several.unionByName(self._lost(facts, made, settings), allowMissingColumns=True)
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message="Each input record has one committed output: of group {group} {input} has {wrong}.",
            evidence=F.array(event("sends", "topic", "partition", "offset", "group", "input", "values")),
        )

    def _made(self, facts: dict[str, DataFrame]) -> DataFrame:
        """One row a record made from another, with its `group`, and whether it is and may be `committed`."""
        of_record = ["run_id", "topic", "value"]
        ends = ended_sends(facts).groupBy(*of_record).agg(F.min("result").alias("result"))
        outcome, result = F.col("transaction_outcome"), F.col("result")

        def with_readers(outputs: DataFrame, read: DataFrame) -> DataFrame:
            seen = read.distinct().withColumn("seen", F.lit(True))
            return outputs.join(seen, on=of_record, how="left")

        outputs = _outputs(facts["sends"], facts["client_transactions"])
        return (
            by_parts(with_readers, outputs, read_committed(facts["polls"]).select(*of_record), on=of_record)
            .join(ends, on=of_record, how="left")
            .withColumn("committed", (outcome == COMMITTED) | (result == "commit") | F.col("seen"))
            .withColumn("possible", F.col("committed") | ((outcome == UNKNOWN) & result.isNull()))
        )

    def _lost(self, facts: dict[str, DataFrame], made: DataFrame, settings: Settings) -> DataFrame:
        """The input records that have no output, between or before those of their partition that have one."""
        sent = acknowledged(facts["sends"]).where(stays_readable() & (F.col("acks") == ACKS_ALL))
        done = stored_for_parts(
            made.groupBy("run_id", "group", F.col("made_from").alias("value")).agg(
                F.bool_or("committed").alias("done"), F.bool_or("possible").alias("possible")
            )
        )
        of_group = [*PARTITION_KEY, "group"]
        spans = stored_for_parts(
            done.where("done")
            .join(sent, on=["run_id", "value"], how="inner")
            .groupBy(*of_group)
            .agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
        )
        from_start = F.lit(settings.read_from_start) | (F.col("offset") > F.col("first"))

        def without_output(sent: DataFrame, done: DataFrame) -> DataFrame:
            between = sent.join(spans, on=list(PARTITION_KEY), how="inner").where(
                (F.col("offset") < F.col("last")) & from_start
            )
            of_input = between.join(done, on=["run_id", "group", "value"], how="left")
            return of_input.where(~F.coalesce("possible", F.lit(False)))

        missing = by_parts(without_output, sent, done, on=("run_id", "value"))
        kept = decided(not_superseded(missing, facts[SUPERSEDED]), facts, settings)
        return (
            not_deleted(kept, facts["replicas"], settings)
            .withColumn("input", F.col("value"))
            .withColumn("values", F.array().cast("array<string>"))
            .withColumn("wrong", F.lit("none, and a later one has"))
            .select(*of_group, "input", "values", "offset", "wrong")
        )


PLUGIN: type[Check] = ExactlyOnce
