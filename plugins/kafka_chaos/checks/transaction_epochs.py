"""transaction-epochs: the epoch of a transactional id stays, grows by one, or begins at 0 with a new producer id.

An epoch fences older producers, so it must not go back, and nothing but a fence or a new session may raise it: a
transaction is Ongoing in the epoch of its session. With transactions version 2 the end of each transaction raises it,
and a fence together with an abort does so twice (`TransactionMetadata.completeTransitionTo`, KIP-360, KIP-890).
An abort that no producer asked for raises the epoch (KIP-588).
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import COMPLETED, ID_KEY, OPEN, OfTransactions, steps
from harness.analysis.frames import in_order
from harness.contracts.checks import Check, Settings
from harness.model.transaction import DEAD

_VERSION_2 = 2


class TransactionEpochs(OfTransactions):
    """Every transition beside the one before it, and every abort beside the request for it."""

    name: ClassVar[str] = "transaction-epochs"
    title: ClassVar[str] = "transaction-epochs"
    promise: ClassVar[str] = (
        "The epoch of a transactional id stays, grows by one, or is 0 with a new producer id; an abort that its "
        "producer did not ask for raises it (TransactionMetadata, KIP-588)."
    )
    reads: ClassVar[tuple[str, ...]] = ("transactions", "transaction_answers", "leader_epochs")
    judges_without: ClassVar[tuple[str, ...]] = (*OfTransactions.judges_without, "txn_response")

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a transition with a wrong epoch, and one an abort that did not raise it."""
        transitions = steps(facts["transactions"]).where("whole")
        lenient = F.col("doubtful") & _right("earlier")
        rows = transitions.where((F.col("before.state") != DEAD) & (F.col("state") != DEAD))
        wrong = rows.where(~_right("before") & ~lenient).withColumn(
            "wrong", F.lit("The epoch of a transactional id stays, grows by one, or is 0 with a new producer id")
        )
        unasked = self._unasked(rows, facts["transaction_answers"]).withColumn(
            "wrong", F.lit("An abort that its producer did not ask for raises the epoch")
        )
        return finding(
            self.judged(wrong.unionByName(unasked), facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "{wrong}: {transactional_id} became {state} with producer {producer_id} of epoch {producer_epoch}, "
                "after {before.state} with producer {before.producer_id} of epoch {before.producer_epoch}."
            ),
            evidence=F.array(
                event("transactions", "partition", "transactional_id", "before"),
                event("transactions", "partition", "offset", "transactional_id", "state", "producer_epoch"),
            ),
        )

    def _unasked(self, rows: DataFrame, answers: DataFrame) -> DataFrame:
        """The aborts in the epoch of their transaction without a request that the same coordinator answered.

        It answers right after it has stored the decision, so before it stores the completion.
        """
        following = F.lead(F.struct("state", "stored_by", "told_ns")).over(in_order(*ID_KEY, by=("offset",)))
        of_producer = ["run_id", "transactional_id", "producer_id", "producer_epoch"]
        asked = answers.where((F.col("api") == "EndTxn") & (F.col("error") == 0)).select(
            *of_producer, F.col("time_ns").alias("asked_ns")
        )
        aborts = (
            rows.withColumn("following", following)
            .where((F.col("state") == "PrepareAbort") & (F.col("before.state") == OPEN))
            .where(F.col("before.producer_epoch") == F.col("producer_epoch"))
            .where(F.col("following.state").isin(*COMPLETED) & (F.col("following.stored_by") == F.col("stored_by")))
        )
        place = ["run_id", "partition", "offset"]
        requested = (
            aborts.select(*place, *of_producer[1:], "told_ns", "following")
            .join(asked, on=of_producer, how="inner")
            .where(F.col("asked_ns").between(F.col("told_ns"), F.col("following.told_ns")))
            .select(*place)
        )
        return (
            aborts.join(requested, on=place, how="left_anti")
            .join(answers.select("run_id").distinct(), on="run_id", how="left_semi")
            .drop("following")
        )


def _right(before: str) -> Column:
    """Return whether an epoch may follow another one; a transactional id without any begins at 0."""
    state, epoch, was = F.col("state"), F.col("producer_epoch"), F.col(f"{before}.producer_epoch")
    same_producer = F.col("producer_id") == F.col(f"{before}.producer_id")
    twice = (F.col("transaction_version") >= _VERSION_2) & (state == "PrepareAbort") & (epoch == was + 2)
    stays = (state == OPEN) | ((state == "PrepareCommit") & (F.col("transaction_version") < _VERSION_2))
    grown = F.when(stays, epoch == was).otherwise((epoch == was) | (epoch == was + 1) | twice)
    return F.when(same_producer, grown).otherwise(epoch == 0)


PLUGIN: type[Check] = TransactionEpochs
