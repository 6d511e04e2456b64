"""I30: leaders answer correctly where epochs end, and followers use only answers of their current epoch.

A follower drops every record that the answer does not confirm. So the answer must be what the leader's own epochs were
at that moment (KIP-101, KIP-279, Kafka's `LeaderEpochFileCache.endOffsetFor`), and is refused to a replica in another
leader epoch (KIP-320). A truncation must follow an answer to that follower, from the leader of its current epoch, about
the epoch that it asked for.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, has_field
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject

_UNDEFINED = -1


class EpochAnswers(Check):
    """Every answer to where a leader epoch ends, and every truncation that followed one."""

    name: ClassVar[str] = "I30"
    title: ClassVar[str] = "I30 epoch-answers"
    promise: ClassVar[str] = (
        "An OffsetForLeaderEpoch answer agrees with the leader's own epochs, and a follower acts only on answers to "
        "requests of its current epoch (KIP-101, KIP-320)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = rows_of("epoch_answers", "answers about the end of a leader epoch")
    reads: ClassVar[tuple[str, ...]] = ("epoch_answers", "truncations")
    assumes: ClassVar[tuple[Assumption, ...]] = (has_field("leader_epochs", "epoch_answers"), BROKERS_WHOLE)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an answer that is wrong or was not due, and one a truncation without a matching answer."""
        answers = facts["epoch_answers"].where(F.col("error") == 0)
        return self._answers(answers).unionByName(self._acted(facts["truncations"], answers))

    def _answers(self, answers: DataFrame) -> DataFrame:
        believed = F.col("current_leader_epoch")
        right_epoch, right_end = _right_answer()
        right = F.struct(right_epoch.alias("epoch"), right_end.alias("end"))
        wrong = F.when(
            (F.col("answer_epoch") != F.col("right.epoch")) | (F.col("end_offset") != F.col("right.end")),
            phrase("its own epochs say epoch {right.epoch} and offset {right.end}"),
        ).when(
            (believed != _UNDEFINED) & (believed != F.col("leader_epoch")),
            phrase("the replica that asked was in epoch {current_leader_epoch}"),
        )
        rows = answers.withColumn("right", right).withColumn("wrong", wrong).where(F.col("wrong").isNotNull())
        return finding(
            rows,
            self.name,
            message=(
                "A leader knows where an epoch ends: for epoch {asked_epoch} of {topic}-{partition} in epoch "
                "{leader_epoch} broker {broker} answered epoch {answer_epoch} and offset {end_offset}, but {wrong}."
            ),
            evidence=F.array(
                event(
                    "epoch_answers",
                    "broker",
                    "incarnation",
                    "seq",
                    "sender",
                    "current_leader_epoch",
                    "asked_epoch",
                    "answer_epoch",
                    "end_offset",
                    "log_end_offset",
                    "leader_epochs",
                )
            ),
        )

    def _acted(self, truncations: DataFrame, answers: DataFrame) -> DataFrame:
        question = (*PARTITION_KEY, "leader_epoch", "asked_epoch", "answer_epoch")
        answered = answers.select(
            *PARTITION_KEY,
            F.col("sender").alias("broker"),
            F.col("current_leader_epoch").alias("leader_epoch"),
            "asked_epoch",
            "answer_epoch",
            F.col("end_offset").alias("answer_end_offset"),
        )
        by_answer = truncations.where(F.col("asked_epoch") != _UNDEFINED)
        rows = by_answer.join(answered, on=[*question, "broker", "answer_end_offset"], how="left_anti")
        return finding(
            rows,
            self.name,
            offset="to_offset",
            message=(
                "A follower acts only on answers to requests of its epoch: broker {broker} cut {topic}-{partition} to "
                "{to_offset} in epoch {leader_epoch}, and no leader answered epoch {answer_epoch} and offset "
                "{answer_end_offset} for epoch {asked_epoch}."
            ),
            evidence=F.array(
                event(
                    "truncations",
                    "broker",
                    "incarnation",
                    "seq",
                    "leader_epoch",
                    "asked_epoch",
                    "answer_epoch",
                    "answer_end_offset",
                    "to_offset",
                )
            ),
        )


def _right_answer() -> tuple[Column, Column]:
    """Return the largest epoch not above the one in question, and where it ends; the newest ends with the log."""
    entries, asked_epoch = F.col("leader_epochs"), F.col("asked_epoch").cast("bigint")
    nothing = F.lit(_UNDEFINED).cast("bigint")
    newest = F.array_max(F.transform(entries, lambda entry: entry[0]))
    older = F.filter(entries, lambda entry: entry[0] <= asked_epoch)
    newer = F.filter(entries, lambda entry: entry[0] > asked_epoch)
    known = (asked_epoch != nothing) & (asked_epoch <= newest)
    epoch = F.coalesce(F.array_max(F.transform(older, lambda entry: entry[0])), asked_epoch)
    end = F.coalesce(F.array_min(F.transform(newer, lambda entry: entry[1])), F.col("log_end_offset"))
    return F.when(known, epoch).otherwise(nothing), F.when(known, end).otherwise(nothing)


PLUGIN: type[Check] = EpochAnswers
