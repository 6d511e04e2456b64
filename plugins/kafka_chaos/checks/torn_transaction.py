"""torn-transaction: readers with read_committed get all records of a transaction, or none.

A reader with read_committed that got one record of a transaction shows that the transaction is committed, whatever its
client knows. Another record of it that such a reader passed, and that none of them got, is missing. Jepsen calls this a
torn read.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD, UNIQUE_VALUES
from harness.analysis.check_helpers.client_transactions import (
    TRANSACTION_KEY,
    UNREAD_BY,
    passed_unread,
    read_committed,
)
from harness.analysis.check_helpers.findings import event, finding, severity
from harness.analysis.check_helpers.records import acknowledged
from harness.analysis.frames import PARTITION_KEY, by_parts
from harness.analysis.subjects import RECORDS_KEPT, TRANSACTIONS_READ
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.store.history import ABORTED


class TornTransaction(Check):
    """Every record of a transaction of which readers got one, beside what they got."""

    name: ClassVar[str] = "torn-transaction"
    title: ClassVar[str] = "torn-transaction"
    promise: ClassVar[str] = "Readers with read_committed get all records of a transaction, or none (KIP-98)."
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    about: ClassVar[Subject] = TRANSACTIONS_READ
    covers: ClassVar[tuple[Subject, ...]] = (RECORDS_KEPT,)
    reads: ClassVar[tuple[str, ...]] = UNREAD_BY
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE, COMPACTIONS_TOLD)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES
    judges_without: ClassVar[tuple[str, ...]] = ("replicas", "zookeeper", "become_leader", "become_follower")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record that is missing; what was read of an aborted transaction is another check's."""
        sent = acknowledged(facts["sends"]).where(F.col("transaction_outcome") != ABORTED)
        place = [*PARTITION_KEY, "value"]

        def first_read(sent: DataFrame, read: DataFrame) -> DataFrame:
            got = sent.join(read, on=place, how="left_semi")
            return got.groupBy(*TRANSACTION_KEY).agg(F.min("value").alias("read_value"))

        read = by_parts(first_read, sent, read_committed(facts["polls"]).select(*place), on=place)
        known = read.groupBy(*TRANSACTION_KEY).agg(F.min("read_value").alias("read_value"))
        return finding(
            passed_unread(sent.join(known, on=list(TRANSACTION_KEY), how="inner"), facts, settings),
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            at_ns="invoke_ns",
            message=(
                "Readers with read_committed get all records of a transaction, or none: of transaction {transaction} "
                "of {process} ({transactional_id}) they got {read_value}, and not {value} at {topic}-{partition} "
                "offset {offset}, which one of them passed."
            ),
            evidence=F.array(
                event("sends", "process", "transactional_id", "transaction", "value", "offset", "invoke_ns", "spans"),
                event("polls", "read_value as value"),
            ),
        )


PLUGIN: type[Check] = TornTransaction
