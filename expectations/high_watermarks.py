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
    """Expect the high watermark of one leader never to go back: no rise starts below the end of another one.

    In which order rises were written down does not count.
    """

    key_columns: list[str] = pydantic.Field(
        default=["broker", "topic", "partition", "leader_epoch"], description="What names one leadership of a replica"
    )
    before_column: str = pydantic.Field(default="old", description="The high watermark before")
    high_watermark_column: str = pydantic.Field(default="new", description="The high watermark after")

    sentence: ClassVar[str] = "$high_watermark_column must never go back from $before_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["term"], "before_column": "before", "high_watermark_column": "committed"},
        holds={"term": [1, 1, 2], "before": [4, 0, 0], "committed": [5, 4, 3]},
        breaks={"term": [1, 1, 1], "before": [0, 4, 2], "committed": [4, 6, 5]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether it is at least what earlier rises reached."""
        before, after = rows[self.before_column], rows[self.high_watermark_column]
        highest = rows.highest_before(self.high_watermark_column, order=self.before_column, keys=self.key_columns)
        return (after == before) | ((before >= highest) & (after >= highest))
