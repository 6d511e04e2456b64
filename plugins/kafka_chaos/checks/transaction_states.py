"""transaction-states: a transactional id goes through the states of Kafka's protocol, and so do its partitions.

The records of `__transaction_state` are the transitions. From each state only some are reached. Partitions are added
while a transaction is Ongoing, Prepare names the same ones, and Complete none. The first partition sets the time at
which a transaction began (Kafka's `TransactionMetadata`).
A record may be there twice: a coordinator repeats an append whose answer it did not get.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import COMPLETED, OPEN, PREPARED, OfTransactions, steps
from harness.contracts.checks import Check, Settings
from harness.model.transaction import DEAD, EMPTY, STEPS


class TransactionStates(OfTransactions):
    """Every transition beside the one before it."""

    name: ClassVar[str] = "transaction-states"
    title: ClassVar[str] = "transaction-states"
    promise: ClassVar[str] = (
        "A transactional id takes valid transitions only; its partitions grow while Ongoing, stay at Prepare and are "
        "none at Complete; each transaction has a start time of its own (TransactionMetadata)."
    )
    reads: ClassVar[tuple[str, ...]] = ("transactions", "leader_epochs")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a transition that is not valid."""
        lenient = F.col("doubtful") & _wrong("earlier").isNull()
        rows = (
            steps(facts["transactions"])
            .where(F.col("whole") & (F.col("before.state") != DEAD))
            .withColumn("wrong", _wrong("before"))
            .where(F.col("wrong").isNotNull() & ~lenient)
        )
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message="A transactional id takes valid transitions only: {transactional_id} became {state}, {wrong}.",
            evidence=F.array(
                event("transactions", "partition", "transactional_id", "before"),
                event(
                    "transactions",
                    *("partition", "offset", "transactional_id", "state", "producer_id", "producer_epoch"),
                    "partitions",
                ),
            ),
        )


def _wrong(before: str) -> Column:
    """Return what is wrong with a transition from another one, in words; null if nothing is."""
    state, was = F.col("state"), F.col(f"{before}.state")
    names, had = F.col("partitions"), F.col(f"{before}.partitions")
    reached = F.lit(False)
    for to, origins in STEPS.items():
        reached = reached | ((state == to) & was.isin(*sorted(origins)))
    same = F.lit(True)
    for column in ("state", "producer_id", "producer_epoch"):
        same = same & F.col(column).eqNullSafe(F.col(f"{before}.{column}"))
    repeated = same & (F.array_sort(names) == F.array_sort(had))
    lost = F.size(F.array_except(had, names)) > 0
    other = lost | (F.size(F.array_except(names, had)) > 0)
    begins = (state == OPEN) & was.isin(*COMPLETED)
    started = F.col("started_ms")  # a coordinator takes its own start and the record's timestamp at one instant
    is_copied = (started == F.col(f"{before}.started_ms")) & (F.col("timestamp_ms") > started)
    return (
        F.when(repeated, None)
        .when(~reached, F.concat(F.lit("which does not follow "), was))
        .when((state == OPEN) & lost, "without partitions that it had")
        .when(state.isin(*PREPARED) & other, "with other partitions than before")
        .when(state.isin(*COMPLETED, EMPTY) & (F.size(names) > 0), "and still has partitions")
        .when(begins & is_copied, "with the start of the transaction before it")
    )


PLUGIN: type[Check] = TransactionStates
