"""Expectations about high watermarks, for any table with one row a moment of one replica."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values


class ExpectHighWatermarksNotToPassLogEnd(RowExpectation):
    """Expect a high watermark never to be past the end of the log."""

    key_columns: list[str] = pydantic.Field(
        default=["broker", "topic", "partition"], description="What names one replica"
    )
    high_watermark_column: str = pydantic.Field(default="high_watermark", description="The high watermark")
    log_end_column: str = pydantic.Field(default="log_end_offset", description="Where the log ends at that moment")

    sentence: ClassVar[str] = "$high_watermark_column must not pass $log_end_column."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["shard"], "high_watermark_column": "committed", "log_end_column": "written"},
        holds={"shard": ["a", "b"], "committed": [4, 5], "written": [9, 5]},
        breaks={"shard": ["a", "b"], "committed": [4, 6], "written": [9, 5]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the log reaches that far."""
        return rows[self.high_watermark_column] <= rows[self.log_end_column]


class ExpectHighWatermarksNeverToGoBack(RowExpectation):
    """Expect the high watermark of one leader never to go back."""

    key_columns: list[str] = pydantic.Field(
        default=["broker", "topic", "partition", "leader_epoch"], description="What names one leadership of a replica"
    )
    high_watermark_column: str = pydantic.Field(default="high_watermark", description="The high watermark")
    order_column: str = pydantic.Field(description="What orders the moments of one leadership")

    sentence: ClassVar[str] = "$high_watermark_column must never go back in the order of $order_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["term"], "high_watermark_column": "committed", "order_column": "at"},
        holds={"term": [1, 1, 2], "committed": [4, 5, 0], "at": [1, 2, 3]},
        breaks={"term": [1, 1, 1], "committed": [6, 4, 5], "at": [1, 2, 3]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether it is at least the highest before it."""
        return rows[self.high_watermark_column] >= rows.highest_before(
            self.high_watermark_column, order=self.order_column, keys=self.key_columns
        )
