"""Expectations about controller epochs, for any table with one row a controller, or one a decision of a controller."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values


class ExpectControllerEpochsToBeContinuous(RowExpectation):
    """Expect each controller epoch to be one more than the one before it."""

    key_columns: list[str] = pydantic.Field(default=[], description="What names one cluster, where there are several")
    epoch_column: str = pydantic.Field(default="controller_epoch", description="The controller epoch")
    order_column: str = pydantic.Field(default="zxid", description="What orders the elections")

    sentence: ClassVar[str] = (
        "Each $epoch_column must be one more than the one before it in the order of $order_column, for each $key."
    )

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["cluster"], "epoch_column": "term", "order_column": "at"},
        holds={"cluster": ["x", "x", "y"], "term": [3, 4, 9], "at": [1, 2, 3]},
        breaks={"cluster": ["x", "x", "y"], "term": [3, 5, 4], "at": [1, 3, 2]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the epoch follows that of the row before it."""
        before = rows.previous(self.epoch_column, order=self.order_column, keys=self.key_columns)
        return rows[self.epoch_column] == before + 1


class ExpectOneControllerPerControllerEpoch(RowExpectation):
    """Expect at most one controller in each controller epoch."""

    key_columns: list[str] = pydantic.Field(default=[], description="What names one cluster, where there are several")
    epoch_column: str = pydantic.Field(default="controller_epoch", description="The controller epoch")
    controller_column: str = pydantic.Field(default="broker", description="The broker that is controller")

    sentence: ClassVar[str] = "There must be at most one $controller_column in each $epoch_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"epoch_column": "term", "controller_column": "node"},
        holds={"term": [1, 1, 2], "node": ["a", "a", "b"]},
        breaks={"term": [1, 1, 2], "node": ["a", "b", "b"]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether all rows of the row's epoch name one controller."""
        return rows.all_equal(rows[self.controller_column], keys=[*self.key_columns, self.epoch_column])


class ExpectControllerEpochsNeverToGoBack(RowExpectation):
    """Expect nothing to be decided under an older controller epoch than what was decided before it."""

    key_columns: list[str] = pydantic.Field(default=["topic", "partition"], description="What decisions are about")
    epoch_column: str = pydantic.Field(default="controller_epoch", description="The epoch of the deciding controller")
    order_column: str = pydantic.Field(default="zxid", description="What orders the decisions")

    sentence: ClassVar[str] = "$epoch_column must never go back in the order of $order_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "epoch_column": "term", "order_column": "at"},
        holds={"shard": ["a", "a", "b"], "term": [5, 5, 1], "at": [1, 2, 3]},
        breaks={"shard": ["a", "a", "a"], "term": [5, 1, 4], "at": [1, 2, 3]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the epoch is at least the highest before it."""
        return rows[self.epoch_column] >= rows.highest_before(
            self.epoch_column, order=self.order_column, keys=self.key_columns
        )
