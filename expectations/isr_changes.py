"""Expectations about in-sync replicas, for any table with one row an ISR, or one a change of one."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values

_PARTITION = ["topic", "partition"]


class ExpectIsrNeverToBeEmpty(RowExpectation):
    """Expect an ISR always to have a member."""

    key_columns: list[str] = pydantic.Field(default=_PARTITION, description="What names one partition")
    isr_column: str = pydantic.Field(default="isr", description="The in-sync replicas, an array")

    sentence: ClassVar[str] = "$isr_column must never be empty."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "isr_column": "synced"},
        holds={"shard": ["a", "b"], "synced": [[1, 2], [3]]},
        breaks={"shard": ["a", "b"], "synced": [[1, 2], []]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether it has a member."""
        return rows.size(self.isr_column) > 0


class ExpectIsrMembersOnce(RowExpectation):
    """Expect an ISR to name each of its members once."""

    key_columns: list[str] = pydantic.Field(default=_PARTITION, description="What names one partition")
    isr_column: str = pydantic.Field(default="isr", description="The in-sync replicas, an array")

    sentence: ClassVar[str] = "$isr_column must name each member once."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "isr_column": "synced"},
        holds={"shard": ["a", "b"], "synced": [[1, 2], [3]]},
        breaks={"shard": ["a", "b"], "synced": [[1, 2], [3, 3]]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether it has as many members as names."""
        return rows.distinct_size(self.isr_column) == rows.size(self.isr_column)


class ExpectIsrWithinReplicas(RowExpectation):
    """Expect an ISR to be a subset of the assigned replicas."""

    key_columns: list[str] = pydantic.Field(default=_PARTITION, description="What names one partition")
    isr_column: str = pydantic.Field(default="isr", description="The in-sync replicas, an array")
    replicas_column: str = pydantic.Field(default="assignment", description="The assigned replicas, an array")

    sentence: ClassVar[str] = "$isr_column must be a subset of $replicas_column."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "isr_column": "synced", "replicas_column": "nodes"},
        holds={"shard": ["a", "b"], "synced": [[1, 2], []], "nodes": [[2, 1, 3], [1]]},
        breaks={"shard": ["a", "b"], "synced": [[1, 2], [4]], "nodes": [[2, 1, 3], [1]]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether every member is assigned."""
        return rows.is_subset(self.isr_column, self.replicas_column)


class ExpectLeaderInIsr(RowExpectation):
    """Expect the leader of a partition to be in its ISR."""

    key_columns: list[str] = pydantic.Field(default=_PARTITION, description="What names one partition")
    leader_column: str = pydantic.Field(default="leader", description="The broker that leads")
    isr_column: str = pydantic.Field(default="isr", description="The in-sync replicas, an array")
    no_leader: int = pydantic.Field(default=-1, description="What stands for no leader")

    sentence: ClassVar[str] = "$leader_column must be in $isr_column, or $no_leader."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "leader_column": "node", "isr_column": "synced", "no_leader": 0},
        holds={"shard": ["a", "b"], "node": [1, 0], "synced": [[1, 2], [2]]},
        breaks={"shard": ["a", "b"], "node": [1, 3], "synced": [[1, 2], [2]]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the leader is a member, or there is no leader."""
        return (rows[self.leader_column] == self.no_leader) | rows.contains(self.isr_column, self.leader_column)


class ExpectZkVersionsToIncrease(RowExpectation):
    """Expect the versions of a partition's state to strictly increase in the order in which they were written."""

    key_columns: list[str] = pydantic.Field(default=_PARTITION, description="What names one partition")
    version_column: str = pydantic.Field(default="zk_version", description="The version of the state")
    order_column: str = pydantic.Field(default="zxid", description="What orders the writes")

    sentence: ClassVar[str] = "$version_column must strictly increase in the order of $order_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "version_column": "revision", "order_column": "at"},
        holds={"shard": ["a", "a", "b"], "revision": [1, 3, 1], "at": [10, 11, 12]},
        breaks={"shard": ["a", "a", "b"], "revision": [3, 3, 1], "at": [10, 11, 12]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the version is higher than that of the row before it."""
        return rows[self.version_column] > rows.previous(
            self.version_column, order=self.order_column, keys=self.key_columns
        )
