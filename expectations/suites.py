"""Which expectations must each fact meet? `suites/*.json` holds the same, for people and other tools."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from great_expectations.core.expectation_suite import ExpectationSuite
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_in_set import ExpectColumnValuesToBeInSet
from great_expectations.expectations.core.expect_column_values_to_not_be_null import ExpectColumnValuesToNotBeNull
from great_expectations.expectations.expectation import Expectation

from expectations.committed_offsets import ExpectCommittedOffsetsNeverToRegress, ExpectCommittedOffsetsNotToPassEnd
from expectations.controller_epochs import (
    ExpectControllerEpochsNeverToGoBack,
    ExpectControllerEpochsToBeContinuous,
    ExpectOneControllerPerControllerEpoch,
)
from expectations.findings import ExpectFindingsToHaveEvidence, ExpectNoViolations
from expectations.groups import (
    ExpectCommitsOfTheCurrentGeneration,
    ExpectGenerationsNeverToGoBack,
    ExpectPartitionsToHaveOneOwner,
)
from expectations.high_watermarks import ExpectHighWatermarksNeverToGoBack, ExpectHighWatermarksNotToPassLogEnd
from expectations.isr_changes import (
    ExpectIsrMembersOnce,
    ExpectIsrNeverToBeEmpty,
    ExpectIsrWithinReplicas,
    ExpectLeaderInIsr,
    ExpectZkVersionsToIncrease,
)
from expectations.leader_epochs import (
    ExpectLeaderEpochsToIncrease,
    ExpectOneLeaderPerLeaderEpoch,
    ExpectUncleanElectionsOnlyWhereAllowed,
)
from expectations.records import (
    ExpectLeaderEpochsNeverToGoBackInTheLog,
    ExpectOneRecordPerOffset,
    ExpectProducerSequencesToIncrease,
    ExpectReplicasToHoldTheSameRecords,
)
from expectations.row_expectation import RowExpectation
from harness.analysis.sources.lineage import FINDINGS
from harness.analysis.tables import groups, schemas

PARTITION = ["run_id", "topic", "partition"]
LIFE = [*PARTITION, "life"]
TERM = ["run_id", "broker", "incarnation", "group", "coordinator_epoch"]
REPLICA = ["run_id", "broker", "topic", "partition"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What is expected of one table; its expectations are the library's own only where the table is always small."""

    name: str
    table: str
    expectations: tuple[Expectation, ...]
    losable: frozenset[str] = frozenset()
    """Types of those that may fail where committed records may be lost: after a power loss or an unclean election."""

    def build(self) -> ExpectationSuite:
        """Return it as Great Expectations knows it."""
        return ExpectationSuite(name=self.name, expectations=[each.copy() for each in self.expectations])

    def where_losses_are_allowed(self) -> "Suite":
        """Return the same, except that what a loss explains is counted and shown, and fails nothing."""
        return replace(self, expectations=tuple(map(self._excused, self.expectations)))

    def _excused(self, expectation: Expectation) -> Expectation:
        return (
            expectation.copy(update={"mostly": 0.0}) if self.is_losable(expectation.expectation_type) else expectation
        )

    def is_losable(self, type_: str) -> bool:
        """Return whether a loss explains that an expectation of this type is not met."""
        return type_ in self.losable

    @property
    def columns(self) -> list[str]:
        """The columns that it reads."""
        read: list[str] = []
        for expectation in self.expectations:
            if isinstance(expectation, RowExpectation):
                read += expectation.read_columns
            else:
                read.append(expectation.configuration.kwargs["column"])
        return list(dict.fromkeys(read))


LEADER_EPOCHS = Suite(
    name="leader_epochs",
    table=schemas.LEADER_EPOCHS.name,
    expectations=(
        ExpectLeaderEpochsToIncrease(key_columns=LIFE),  # a leader that is only claimed has no zxid
        ExpectOneLeaderPerLeaderEpoch(key_columns=PARTITION, life_column="life"),
        ExpectUncleanElectionsOnlyWhereAllowed(key_columns=PARTITION),
        ExpectControllerEpochsNeverToGoBack(key_columns=LIFE),
        ExpectColumnValuesToNotBeNull(column="leader"),
        ExpectColumnValuesToBeBetween(column="leader_epoch", min_value=0),
    ),
)
CONTROLLER_EPOCHS = Suite(
    name="controller_epochs",
    table=schemas.CONTROLLER_EPOCHS.name,
    expectations=(
        ExpectControllerEpochsToBeContinuous(key_columns=["run_id"], only={"source": "zookeeper"}),
        ExpectOneControllerPerControllerEpoch(key_columns=["run_id"]),
        ExpectColumnValuesToBeBetween(column="controller_epoch", min_value=1),
    ),
)
ISR_CHANGES = Suite(
    name="isr_changes",
    table=schemas.ISR_CHANGES.name,
    expectations=(
        ExpectIsrNeverToBeEmpty(key_columns=PARTITION, isr_column="new_isr", only={"may_be_empty": False}),
        ExpectIsrMembersOnce(key_columns=PARTITION, isr_column="new_isr"),
        ExpectIsrWithinReplicas(key_columns=PARTITION, isr_column="new_isr", only={"has_removed_replicas": False}),
        ExpectLeaderInIsr(key_columns=PARTITION, isr_column="new_isr"),
        ExpectZkVersionsToIncrease(key_columns=LIFE),
    ),
)
HIGH_WATERMARKS = Suite(
    name="high_watermarks",
    table=schemas.HIGH_WATERMARKS.name,
    expectations=(
        ExpectHighWatermarksNotToPassLogEnd(key_columns=REPLICA, high_watermark_column="new"),
        ExpectHighWatermarksNeverToGoBack(
            key_columns=[*REPLICA, "incarnation", "leader_epoch"],
            before_column="old",
            high_watermark_column="new",
            only={"role": "leader"},
        ),
    ),
)
COMMITTED_OFFSETS = Suite(
    name="committed_offsets",
    table=schemas.COMMITTED_OFFSETS.name,
    expectations=(
        ExpectCommittedOffsetsNeverToRegress(  # rows that do not count have no counts_ns
            key_columns=["run_id", "group", "topic", "partition"], order_column="counts_ns", kind_column="kind"
        ),
        ExpectCommittedOffsetsNotToPassEnd(
            key_columns=["run_id", "group", "process", "topic", "partition"],
            end_column="readable_end",
            only={"source": "client", "kind": "commit", "outcome": "ok"},
        ),
        ExpectColumnValuesToBeBetween(column="offset", min_value=-1),
        ExpectColumnValuesToBeInSet(column="outcome", value_set=["ok", "fail", "info"]),
    ),
    losable=frozenset(
        {ExpectCommittedOffsetsNeverToRegress.expectation_type, ExpectCommittedOffsetsNotToPassEnd.expectation_type}
    ),
)
GROUP_GENERATIONS = Suite(
    name="group_generations",
    table=groups.GROUP_GENERATIONS.name,
    expectations=(
        ExpectPartitionsToHaveOneOwner(
            key_columns=[*TERM, "seq", "generation", "topic", "partition"], only={"source": "coordinator"}
        ),
        ExpectPartitionsToHaveOneOwner(
            key_columns=["run_id", "group", "life", "generation", "topic", "partition"], only={"source": "member"}
        ),
        ExpectGenerationsNeverToGoBack(key_columns=[*TERM, "life"], order_column="seq", only={"source": "coordinator"}),
    ),
    losable=frozenset({ExpectPartitionsToHaveOneOwner.expectation_type}),
)
GROUP_COMMITS = Suite(
    name="group_commits",
    table=groups.GROUP_COMMITS.name,
    expectations=(
        ExpectCommitsOfTheCurrentGeneration(key_columns=["run_id", "group", "topic", "partition"], only={"error": 0}),
    ),
)
RECORDS = Suite(
    name="records",
    table=schemas.REPLICA_RECORDS.name,
    expectations=(
        ExpectOneRecordPerOffset(key_columns=REPLICA),
        ExpectLeaderEpochsNeverToGoBackInTheLog(key_columns=REPLICA),
        ExpectProducerSequencesToIncrease(key_columns=REPLICA),
        ExpectReplicasToHoldTheSameRecords(key_columns=PARTITION),
    ),
)
ALL_FINDINGS = Suite(
    name="findings",
    table=FINDINGS,
    expectations=(
        ExpectNoViolations(key_columns=["run_id", "check"]),
        ExpectFindingsToHaveEvidence(key_columns=["run_id", "check"]),
        ExpectColumnValuesToBeInSet(column="severity", value_set=["violation", "expected", "note"]),
    ),
)

SUITES: tuple[Suite, ...] = (
    LEADER_EPOCHS,
    CONTROLLER_EPOCHS,
    ISR_CHANGES,
    HIGH_WATERMARKS,
    COMMITTED_OFFSETS,
    GROUP_GENERATIONS,
    GROUP_COMMITS,
    RECORDS,
    ALL_FINDINGS,
)


def as_json(suite: Suite) -> str:
    """Return a suite as Great Expectations stores it, versions and ids left out."""
    expectations = [expectation.configuration.to_json_dict() for expectation in suite.build().expectations]
    return json.dumps({"name": suite.name, "expectations": expectations, "meta": {}}, indent=2) + "\n"


def stored_at(suite: Suite) -> Path:
    """Return where the stored form of a suite lies."""
    return Path(__file__).parent / "suites" / f"{suite.name}.json"
