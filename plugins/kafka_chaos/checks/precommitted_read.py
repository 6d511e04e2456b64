"""precommitted-read: no reader with read_committed gets a record before its client has asked to commit it.

Until then the transaction may still be aborted. Jepsen calls this a precommitted read.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, UNIQUE_VALUES
from harness.analysis.check_helpers.client_transactions import TRANSACTION_KEY, read_committed
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.frames import by_parts
from harness.analysis.subjects import TRANSACTIONS_BESIDE_READERS, TRANSACTIONS_READ
from harness.contracts.checks import Assumption, Check, Settings, Subject


class PrecommittedRead(Check):
    """When readers with read_committed got a record, beside when its commit was asked for."""

    name: ClassVar[str] = "precommitted-read"
    title: ClassVar[str] = "precommitted-read"
    promise: ClassVar[str] = (
        "No record is read with read_committed before the commit of its transaction is asked for (KIP-98)."
    )
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    about: ClassVar[Subject] = TRANSACTIONS_BESIDE_READERS
    covers: ClassVar[tuple[Subject, ...]] = (TRANSACTIONS_READ,)
    reads: ClassVar[tuple[str, ...]] = ("client_transactions",)
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record that was read too early."""
        asked = facts["client_transactions"].select(*TRANSACTION_KEY, "commit_ns")
        sent = facts["sends"].select(*TRANSACTION_KEY, "topic", "value", "transactional_id")
        of_record = ["run_id", "topic", "value"]
        place = ("run_id", "topic", "partition", "offset", "value")

        def too_early(read: DataFrame, sent: DataFrame) -> DataFrame:
            joined = read.join(sent, on=of_record, how="inner")
            of_records = joined.join(asked, on=list(TRANSACTION_KEY), how="inner")
            return of_records.where(F.col("poll.time_ns") < F.col("commit_ns"))

        read = read_committed(facts["polls"]).select(*place, F.struct("time_ns", "process", "index").alias("poll"))
        rows = (
            by_parts(too_early, read, sent, on=of_record)
            .groupBy(*place, "process", "transaction", "transactional_id", "commit_ns")
            .agg(F.min("poll").alias("poll"))
        )
        return finding(
            rows,
            self.name,
            message=(
                "No record is read with read_committed before its commit is asked for: {poll.process} read {value} at "
                "{topic}-{partition} offset {offset}, and {process} asked to commit transaction {transaction} later."
            ),
            evidence=F.array(
                event("polls", "poll", "topic", "partition", "offset", "value"),
                event("client_transactions", "process", "transactional_id", "transaction", "commit_ns"),
            ),
        )


PLUGIN: type[Check] = PrecommittedRead
