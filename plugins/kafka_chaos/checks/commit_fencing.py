"""I35: a coordinator accepts commits only from members of the current generation.

A member that was evicted, or missed a rebalance, would move the position of the member that replaced it. So a commit is
accepted from members of the current generation, under their own instance (KIP-345), and not while members wait for
their assignments; while they are expected to rejoin it is, as they commit what they have read then. A client outside
the group, with generation -1, may commit to a group without members (Kafka's `validateOffsetCommit`).
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE, has_field
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.analysis.check_helpers.groups import COORDINATORS_TELL
from harness.analysis.subjects import COMMITS_TAKEN
from harness.contracts.checks import Assumption, Check, Settings, Subject

_WITHOUT_MEMBERS = ("Empty", "Dead")
_TAKES_COMMITS = ("Stable", "PreparingRebalance")


class CommitFencing(Check):
    """Every accepted commit, and the state of its group at that moment."""

    name: ClassVar[str] = "I35"
    title: ClassVar[str] = "I35 commit-fencing"
    promise: ClassVar[str] = (
        "No commit of an older generation, of a non-member, or of a fenced instance is accepted (KIP-345, "
        "validateOffsetCommit)."
    )
    needs: ClassVar[tuple[str, ...]] = ("leadership_claims",)
    about: ClassVar[Subject] = COMMITS_TAKEN
    reads: ClassVar[tuple[str, ...]] = ("group_commits",)
    assumes: ClassVar[tuple[Assumption, ...]] = (
        BROKERS_WHOLE,
        COORDINATORS_TELL,
        has_field("decided_seq", "group_commits"),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a commit that should have been refused."""
        without_members = F.coalesce(F.col("group_state").isin(*_WITHOUT_MEMBERS), F.lit(True))
        wrong = (
            F.when(without_members & (F.col("generation") < 0), F.lit(None))
            .when(without_members, F.lit("the group had no members"))
            .when(~F.col("known"), F.lit("it was no member then, or not under that instance"))
            .when(
                F.col("generation") != F.col("group_generation"),
                phrase("the group was in generation {group_generation}"),
            )
            .when(~F.col("group_state").isin(*_TAKES_COMMITS), phrase("the group was {group_state}"))
        )
        rows = facts["group_commits"].where(F.col("error") == 0).withColumn("wrong", wrong)
        return finding(
            rows.where(F.col("wrong").isNotNull()),
            self.name,
            at_ns="time_ns",
            message=phrase(
                "Only members of the generation commit: broker {broker} accepted offset {offset} of "
                "{topic}-{partition} for group {group} from {member} in generation {generation}, but {wrong}.",
                member=F.when(F.col("member") == "", "a non-member").otherwise(F.col("member")),
            ),
            evidence=F.array(
                event(
                    "group_commits",
                    "broker",
                    "incarnation",
                    "seq",
                    "decided_seq",
                    "group",
                    "generation",
                    "member",
                    "instance",
                    "group_state",
                    "group_generation",
                    "known",
                )
            ),
        )


PLUGIN: type[Check] = CommitFencing
