"""transaction-cycles: no transactions read from each other in a circle (G1c), with read_committed.

A transaction reads from another one when its client got a record of the other with read_committed before it asked to
commit, inside of the transaction or as the input of one of its records. The other had then committed. In a circle each
would have committed before the others. Circles of up to three transactions are sought. A longer one, as any, has a
record that was read before its commit was asked for, which is precommitted-read's. Jepsen allows circles with writes
(G0, and G1c with writes), as Kafka does not isolate writes.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, UNIQUE_VALUES
from harness.analysis.check_helpers.client_transactions import TRANSACTION_KEY, read_committed
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.frames import balanced_union, by_parts, in_order, stored
from harness.analysis.subjects import TRANSACTIONS_BESIDE_READERS, TRANSACTIONS_READ
from harness.contracts.checks import Assumption, Check, Settings, Subject

_ID = "process || ' ' || transaction"
_OPEN, _CLOSED = (f"circle[0] {is_} element_at(circle, -1)" for is_ in ("!=", "="))


class TransactionCycles(Check):
    """Which transaction read from which, as clients tell."""

    name: ClassVar[str] = "transaction-cycles"
    title: ClassVar[str] = "transaction-cycles"
    promise: ClassVar[str] = "With read_committed no transactions read from each other in a circle (KIP-98; G1c)."
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    about: ClassVar[Subject] = TRANSACTIONS_BESIDE_READERS
    covers: ClassVar[tuple[Subject, ...]] = (TRANSACTIONS_READ,)
    reads: ClassVar[tuple[str, ...]] = ("client_transactions",)
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a circle, in which the transaction comes first that read too early."""
        read = read_committed(facts["polls"]).select("run_id", "process", "topic", "value", "time_ns")
        begun = stored(
            self._edges(self._early(read, facts), facts).select(
                *("run_id", "topic", "value", "process", "transaction"), F.array("reader", "writer").alias("circle")
            )
        )
        circles = [begun]
        for _ in range(2):
            begun = begun.where(_OPEN)
            last = begun.select("run_id", "process", "transaction").distinct()
            steps = self._edges(read.join(last, on=["run_id", "process"], how="left_semi"), facts)
            steps = steps.select("run_id", F.col("reader").alias("at"), "writer", "process", "transaction")
            begun = stored(
                begun.withColumn("at", F.element_at("circle", -1))
                .drop("process", "transaction")
                .join(steps, on=["run_id", "at"], how="inner")
                .withColumn("circle", F.concat("circle", F.array("writer")))
                .drop("at", "writer")
                .distinct()
            )
            circles.append(begun)
        rows = (
            balanced_union(circles)
            .where(_CLOSED)
            .withColumn("members", F.array_join(F.array_sort(F.array_distinct("circle")), ", "))
            .groupBy("run_id", "members")
            .agg(F.min(F.struct("value", "topic", "circle")).alias("first"))
            .select("run_id", "members", "first.*")
            .withColumn("path", F.array_join("circle", " from "))
        )
        return finding(
            rows,
            self.name,
            message=(
                "With read_committed no transactions read from each other in a circle: {path}, the first of them the "
                "record {value} of {topic}."
            ),
            evidence=F.array(event("sends", "topic", "value"), event("client_transactions", "circle")),
        )

    def _early(self, read: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
        """The reads before the commit of their record was asked for, or of which one was made that was committed first.

        There is one at least in each circle.
        """
        of_record = ["run_id", "topic", "value"]
        commits = facts["client_transactions"].select(*TRANSACTION_KEY, "commit_ns")
        written = facts["sends"].select(*TRANSACTION_KEY, "topic", "value")
        made = facts["sends"].select(*TRANSACTION_KEY, F.col("made_from").alias("value"))

        def early(read: DataFrame, written: DataFrame) -> DataFrame:
            asked = commits.join(written, on=list(TRANSACTION_KEY), how="inner").drop("process", "transaction")
            too_early = F.coalesce(F.col("time_ns") < F.col("commit_ns"), F.lit(True))
            return asked.join(read, on=of_record, how="inner").where(too_early).drop("commit_ns")

        def made_early(made: DataFrame, written: DataFrame) -> DataFrame:
            outputs = made.join(commits, on=list(TRANSACTION_KEY), how="inner").drop("transaction")
            inputs = written.join(commits.withColumnRenamed("commit_ns", "input_ns"), on=list(TRANSACTION_KEY))
            pairs = outputs.join(inputs.drop("process", "transaction"), on=["run_id", "value"], how="inner")
            return pairs.where(F.col("commit_ns") <= F.col("input_ns"))

        used = by_parts(made_early, made, written, on=["run_id", "value"])
        used_reads = read.join(used, on=[*of_record, "process"], how="left_semi")
        return by_parts(early, read, written, on=of_record).unionByName(used_reads).distinct()

    def _edges(self, read: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
        """One row a record of these that a transaction read: `reader` and `writer` as texts.

        `process` and `transaction` are the writer's.
        """
        written, transactions = facts["sends"], facts["client_transactions"]
        inputs = written.select("run_id", "process", "transaction", F.col("made_from").alias("value"))
        used = read.join(inputs, on=["run_id", "process", "value"], how="inner")
        readers = used.unionByName(self._inside(read, transactions)).select(
            "run_id", "topic", "value", F.expr(_ID).alias("reader")
        )
        writers = written.join(transactions, on=list(TRANSACTION_KEY), how="left_semi").select(
            "run_id", "topic", "value", "process", "transaction", F.expr(_ID).alias("writer")
        )
        return readers.join(writers, on=["run_id", "topic", "value"], how="inner")

    def _inside(self, read: DataFrame, transactions: DataFrame) -> DataFrame:
        """What a process read while a transaction of it was open."""
        begun = F.struct("transaction", F.coalesce("commit_ns", "abort_ns").alias("asked_ns")).alias("begun")
        begins = transactions.select("run_id", "process", F.col("begun_ns").alias("time_ns"), begun)
        readers = read.select("run_id", "process").distinct()
        before = in_order("run_id", "process", by=("time_ns",))
        return (
            read.withColumn("begun", F.lit(None).cast("struct<transaction:bigint,asked_ns:bigint>"))
            .unionByName(begins.join(readers, on=["run_id", "process"], how="left_semi"), allowMissingColumns=True)
            .withColumn("begun", F.last("begun", ignorenulls=True).over(before))
            .where(F.col("time_ns") < F.col("begun.asked_ns"))
            .select(*read.columns, "begun.transaction")
        )


PLUGIN: type[Check] = TransactionCycles
