"""lost-committed-write: a record of a transaction that was committed is read with read_committed.

The client was told that its transaction is committed. A reader with read_committed that passes the record gets it.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import LOSSES
from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE, COMPACTIONS_TOLD, UNIQUE_VALUES
from harness.analysis.check_helpers.client_transactions import UNREAD_BY, passed_unread
from harness.analysis.check_helpers.findings import event, finding, severity
from harness.analysis.check_helpers.records import acknowledged
from harness.analysis.subjects import RECORDS_KEPT, TRANSACTIONS_READ
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject
from harness.store.history import COMMITTED


class LostCommittedWrite(Check):
    """Every record of a transaction that its client knows to be committed, beside what readers got."""

    name: ClassVar[str] = "lost-committed-write"
    title: ClassVar[str] = "lost-committed-write"
    promise: ClassVar[str] = (
        "A reader with read_committed that passes a record of a committed transaction gets it (KIP-98)."
    )
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    about: ClassVar[Subject] = TRANSACTIONS_READ
    covers: ClassVar[tuple[Subject, ...]] = (RECORDS_KEPT,)
    reads: ClassVar[tuple[str, ...]] = UNREAD_BY
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES, CLIENTS_WHOLE, COMPACTIONS_TOLD)
    excused_by: ClassVar[tuple[Allowance, ...]] = LOSSES
    judges_without: ClassVar[tuple[str, ...]] = ("replicas", "zookeeper", "become_leader", "become_follower")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a record that is missing."""
        committed = acknowledged(facts["sends"]).where(F.col("transaction_outcome") == COMMITTED)
        return finding(
            passed_unread(committed, facts, settings),
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            at_ns="invoke_ns",
            message=(
                "A record of a committed transaction is read with read_committed: {value} at {topic}-{partition} "
                "offset {offset}, of transaction {transaction} of {process} ({transactional_id}), was not, and a "
                "reader of that kind read on."
            ),
            evidence=F.array(
                event("sends", "process", "transactional_id", "transaction", "value", "offset", "invoke_ns", "spans")
            ),
        )


PLUGIN: type[Check] = LostCommittedWrite
