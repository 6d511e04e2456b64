"""aborted-transaction-read: no reader with read_committed gets a record of an aborted transaction.

A transaction whose client never asked to commit it, or was refused for certain, can only be aborted. Jepsen calls this
an aborted read, G1a.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, UNIQUE_VALUES
from harness.analysis.check_helpers.client_transactions import read_committed
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.subjects import TRANSACTIONS_BESIDE_READERS, TRANSACTIONS_READ
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.store.history import ABORTED


class AbortedTransactionRead(Check):
    """What readers with read_committed got, beside the outcome of its transaction."""

    name: ClassVar[str] = "aborted-transaction-read"
    title: ClassVar[str] = "aborted-transaction-read"
    promise: ClassVar[str] = "No record of an aborted transaction is read with read_committed (KIP-98; G1a)."
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    about: ClassVar[Subject] = TRANSACTIONS_BESIDE_READERS
    covers: ClassVar[tuple[Subject, ...]] = (TRANSACTIONS_READ,)
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record."""
        aborted = facts["sends"].where(F.col("transaction_outcome") == ABORTED)
        of_send = ("process", "transactional_id", "transaction")
        rows = (
            read_committed(facts["polls"])
            .withColumn("poll", F.struct("process", "index", "time_ns", "offset"))
            .drop("process")
            .join(aborted.select("run_id", "topic", "value", *of_send), on=["run_id", "topic", "value"], how="inner")
        )
        return finding(
            rows.groupBy("run_id", "topic", "partition", "offset", "value", *of_send).agg(F.min("poll").alias("poll")),
            self.name,
            message=(
                "No record of an aborted transaction is read with read_committed: {poll.process} read {value} at "
                "{topic}-{partition} offset {offset}, of transaction {transaction} of {process} ({transactional_id})."
            ),
            evidence=F.array(event("sends", *of_send, "value"), event("polls", "poll", "value")),
        )


PLUGIN: type[Check] = AbortedTransactionRead
