"""Expectations about leader epochs, for any table with one row a leader epoch."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values


class ExpectLeaderEpochsToIncrease(RowExpectation):
    """Expect the leader epochs of each partition to strictly increase in the order in which they were decided."""

    key_columns: list[str] = pydantic.Field(default=["topic", "partition"], description="What names one partition")
    epoch_column: str = pydantic.Field(default="leader_epoch", description="The leader epoch")
    order_column: str = pydantic.Field(default="zxid", description="What orders the decisions")

    sentence: ClassVar[str] = "$epoch_column must strictly increase in the order of $order_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "epoch_column": "term", "order_column": "at"},
        holds={"shard": ["a", "a", "b"], "term": [1, 2, 1], "at": [10, 11, 10]},
        breaks={"shard": ["a", "a", "b"], "term": [2, 2, 1], "at": [10, 11, 12]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the epoch is higher than that of the row before it."""
        return rows[self.epoch_column] > rows.previous(
            self.epoch_column, order=self.order_column, keys=self.key_columns
        )


class ExpectOneLeaderPerLeaderEpoch(RowExpectation):
    """Expect at most one leader in each leader epoch of a partition."""

    key_columns: list[str] = pydantic.Field(default=["topic", "partition"], description="What names one partition")
    epoch_column: str = pydantic.Field(default="leader_epoch", description="The leader epoch")
    leader_column: str = pydantic.Field(default="leader", description="The broker that leads")
    no_leader: int = pydantic.Field(default=-1, description="What stands for no leader")
    life_column: str | None = pydantic.Field(
        default=None, description="Distinguishes topics of one name; an epoch of several is not judged"
    )

    nullable_parameters: ClassVar[tuple[str, ...]] = ("life_column",)
    sentence: ClassVar[str] = "There must be at most one $leader_column in each $epoch_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "epoch_column": "term", "leader_column": "node", "no_leader": 0},
        holds={"shard": ["a", "a", "a"], "term": [1, 1, 2], "node": [7, 0, 8]},
        breaks={"shard": ["a", "a", "a"], "term": [1, 1, 2], "node": [7, 8, 8]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether all rows of the row's epoch name one leader, those without a leader aside."""
        leader, epoch = rows[self.leader_column], [*self.key_columns, self.epoch_column]
        alone = rows.all_equal(rows.where(leader != self.no_leader, leader), keys=epoch)
        return alone if self.life_column is None else alone | ~rows.all_equal(rows[self.life_column], keys=epoch)


class ExpectUncleanElectionsOnlyWhereAllowed(RowExpectation):
    """Expect a leader from outside the ISR only where unclean election was allowed."""

    key_columns: list[str] = pydantic.Field(default=["topic", "partition"], description="What names one partition")
    epoch_column: str = pydantic.Field(default="leader_epoch", description="The leader epoch")
    unclean_column: str = pydantic.Field(default="unclean", description="Whether the leader was outside the ISR")
    allowed_column: str = pydantic.Field(default="unclean_allowed", description="Whether that was allowed")

    sentence: ClassVar[str] = "No $epoch_column may begin $unclean_column where $allowed_column is false."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": [], "epoch_column": "term", "unclean_column": "unsafe", "allowed_column": "forced"},
        holds={"term": [1, 2], "unsafe": [False, True], "forced": [False, True]},
        breaks={"term": [1, 2], "unsafe": [False, True], "forced": [False, False]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the election was clean, or allowed to be unclean."""
        return ~rows[self.unclean_column] | rows[self.allowed_column]
