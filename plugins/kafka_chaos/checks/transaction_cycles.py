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
from harness.analysis.frames import in_order, in_turn
from harness.analysis.subjects import TRANSACTIONS_BESIDE_READERS, TRANSACTIONS_READ
from harness.contracts.checks import Assumption, Check, Settings, Subject

_ID = "process || ' ' || transaction"


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
        edges = self._edges(facts)
        # In a circle one transaction at least asked to commit no later than the one that it read from.
        early = edges.where(F.coalesce(F.col("reader_commit_ns") <= F.col("writer_commit_ns"), F.lit(True)))
        begun = early.select("run_id", "topic", "value", F.array("reader", "writer").alias("circle"))
        steps = edges.select("run_id", F.col("reader").alias("at"), F.col("writer").alias("next"))
        circles = [begun.where(F.col("circle")[0] == F.col("circle")[1])]
        for _ in range(2):
            begun = (
                begun.where(F.col("circle")[0] != F.element_at("circle", -1))
                .withColumn("at", F.element_at("circle", -1))
                .join(steps, on=["run_id", "at"], how="inner")
                .select("run_id", "topic", "value", F.concat("circle", F.array("next")).alias("circle"))
                .distinct()
            )
            circles.append(begun.where(F.col("circle")[0] == F.element_at("circle", -1)))
        found = circles[0].unionByName(circles[1]).unionByName(circles[2])
        rows = (
            found.withColumn("members", F.array_join(F.array_sort(F.array_distinct("circle")), ", "))
            .groupBy("run_id", "members")
            .agg(F.min_by(F.struct("topic", "value", "circle"), in_turn("value", "topic")).alias("first"))
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

    def _edges(self, facts: dict[str, DataFrame]) -> DataFrame:
        """One row a record of a transaction that another one, or the same, read: `reader` and `writer` as texts."""
        transactions = facts["client_transactions"]
        written = facts["sends"].where(F.col("transaction").isNotNull())
        read = read_committed(facts["polls"]).select("run_id", "process", "topic", "value", "time_ns")
        inputs = written.where(F.col("made_from").isNotNull()).select(
            "run_id", "process", "transaction", F.col("made_from").alias("value")
        )
        used = read.join(inputs, on=["run_id", "process", "value"], how="inner")
        reads = used.unionByName(self._inside(read, transactions), allowMissingColumns=True)
        commits = transactions.select(*TRANSACTION_KEY, "commit_ns")
        readers = reads.join(commits, on=list(TRANSACTION_KEY), how="inner").select(
            *("run_id", "topic", "value"), F.expr(_ID).alias("reader"), F.col("commit_ns").alias("reader_commit_ns")
        )
        writers = written.join(commits, on=list(TRANSACTION_KEY), how="inner").select(
            *("run_id", "topic", "value"), F.expr(_ID).alias("writer"), F.col("commit_ns").alias("writer_commit_ns")
        )
        return readers.join(writers, on=["run_id", "topic", "value"], how="inner")

    def _inside(self, read: DataFrame, transactions: DataFrame) -> DataFrame:
        """What a process read while a transaction of it was open."""
        asked = F.coalesce("commit_ns", "abort_ns", F.lit(-1)).alias("asked_ns")
        begins = transactions.select("run_id", "process", F.col("begun_ns").alias("time_ns"), "transaction", asked)
        of_writers = read.join(transactions.select("run_id", "process").distinct(), on=["run_id", "process"])
        before = in_order("run_id", "process", by=("time_ns",))
        return (
            of_writers.unionByName(begins, allowMissingColumns=True)
            .withColumn("transaction", F.last("transaction", ignorenulls=True).over(before))
            .withColumn("asked_ns", F.last("asked_ns", ignorenulls=True).over(before))
            .where(F.col("value").isNotNull() & (F.col("time_ns") < F.col("asked_ns")))
            .select("run_id", "process", "topic", "value", "time_ns", "transaction")
        )


PLUGIN: type[Check] = TransactionCycles
