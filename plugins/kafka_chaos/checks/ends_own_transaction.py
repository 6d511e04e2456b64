"""ends-own-transaction: an EndTxn ends the transaction that was open when it was sent, as its client was told.

A request that is held and arrives when the next transaction is open must not end that one (KAFKA-17754). So records of
a transaction that its client never asked to commit are not committed, none is committed before that, and none is
aborted after the client was told that it had committed.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, UNIQUE_VALUES
from harness.analysis.check_helpers.client_transactions import TRANSACTION_KEY, ended_sends, marker_times
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import OfTransactions
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject


class EndsOwnTransaction(OfTransactions):
    """Every record of a client's transaction and the marker that closes it, beside what the client asked for."""

    name: ClassVar[str] = "ends-own-transaction"
    title: ClassVar[str] = "ends-own-transaction"
    promise: ClassVar[str] = (
        "An EndTxn ends only the transaction that was open when it was sent, as its client was told (KAFKA-17754)."
    )
    needs: ClassVar[tuple[str, ...]] = ("replicas",)
    about: ClassVar[Subject] = rows_of("client_transactions", "transactions of clients")
    reads: ClassVar[tuple[str, ...]] = (
        *("client_transactions", "sends", "replica_records", "markers", "marker_writes", "leader_epochs"),
    )
    assumes: ClassVar[tuple[Assumption, ...]] = (*OfTransactions.assumes, CLIENTS_WHOLE, UNIQUE_VALUES)
    judges_without: ClassVar[tuple[str, ...]] = (*OfTransactions.judges_without, "txn_marker")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a partition and transaction whose records ended otherwise than their client was told."""
        asked = facts["client_transactions"].select(*TRANSACTION_KEY, "commit_ns", "ended_ns")
        times = marker_times(facts["marker_writes"])
        rows = (
            ended_sends(facts)
            .join(asked, on=list(TRANSACTION_KEY), how="left")
            .join(times, on=[*PARTITION_KEY, "marker_offset", "producer_id"], how="left")
        )
        commits, outcome = F.col("result") == "commit", F.col("transaction_outcome")
        wrong = (
            F.when(commits & (outcome == "aborted"), "it was committed, and its client never got a commit through")
            .when(~commits & (outcome == "committed"), "it was aborted, and its client was told that it is committed")
            .when(commits & (F.col("last_written_ns") < F.col("commit_ns")), "it was committed before it was asked for")
        )
        found = (
            rows.withColumn("wrong", wrong)
            .where(F.col("wrong").isNotNull())
            .groupBy(*PARTITION_KEY, *TRANSACTION_KEY[1:], "transactional_id", "wrong", "marker_offset", "result")
            .agg(F.min("offset").alias("offset"), F.min_by("value", "offset").alias("value"))
        )
        return finding(
            self.judged(found, facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "An EndTxn ends the transaction that was open when it was sent: transaction {transaction} of {process} "
                "({transactional_id}) has {value} in {topic}-{partition} at offset {offset}, and {wrong}."
            ),
            evidence=F.array(
                event("sends", "process", "transactional_id", "transaction", "value", "offset"),
                event("markers", "topic", "partition", "marker_offset as offset", "result"),
            ),
        )


PLUGIN: type[Check] = EndsOwnTransaction
