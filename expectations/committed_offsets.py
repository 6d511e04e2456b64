"""Expectations about committed consumer offsets, for any table with one row a commit or read-back."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values


class ExpectCommittedOffsetsNeverToRegress(RowExpectation):
    """Expect the committed offset of a group and partition never to go back.

    Without `kind_column` no row may have a lower offset than any before it. With it, a commit may set whatever it
    likes, as a group may rewind, and every other row (a read-back) must have at least the last committed offset.
    """

    key_columns: list[str] = pydantic.Field(
        default=["group", "topic", "partition"], description="What names one group's position in one partition"
    )
    offset_column: str = pydantic.Field(default="offset", description="The committed offset")
    order_column: str = pydantic.Field(description="What orders commits and read-backs")
    kind_column: str | None = pydantic.Field(default=None, description="Distinguishes commits from read-backs")
    commit_kind: str = pydantic.Field(default="commit", description="What `kind_column` holds for a commit")

    sentence: ClassVar[str] = "$offset_column must never go back in the order of $order_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {
            "key_columns": ["team"],
            "offset_column": "position",
            "order_column": "day",
            "kind_column": "what",
            "commit_kind": "set",
        },
        holds={"team": ["g"] * 4, "position": [9, 5, 5, 7], "day": [1, 2, 3, 4], "what": ["set", "set", "get", "get"]},
        breaks={"team": ["g"] * 4, "position": [9, 5, 4, 7], "day": [1, 2, 3, 4], "what": ["set", "set", "get", "get"]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the offset is at least the one that held before it."""
        offset = rows[self.offset_column]
        if self.kind_column is None:
            return offset >= rows.highest_before(self.offset_column, order=self.order_column, keys=self.key_columns)
        is_commit = rows[self.kind_column] == self.commit_kind
        committed = rows.where(is_commit, offset)
        return is_commit | (offset >= rows.last_before(committed, order=self.order_column, keys=self.key_columns))


class ExpectCommittedOffsetsNotToPassEnd(RowExpectation):
    """Expect a committed offset not to be past the end of what a consumer can have read."""

    key_columns: list[str] = pydantic.Field(
        default=["group", "topic", "partition"], description="What names one group's position in one partition"
    )
    offset_column: str = pydantic.Field(default="offset", description="The committed offset")
    end_column: str = pydantic.Field(default="log_end_offset", description="Log end or high watermark of the partition")

    sentence: ClassVar[str] = "$offset_column must not pass $end_column."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["team"], "offset_column": "position", "end_column": "written"},
        holds={"team": ["g", "h"], "position": [5, 9], "written": [9, 9]},
        breaks={"team": ["g", "h"], "position": [5, 10], "written": [9, 9]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether there is that much to read."""
        return rows[self.offset_column] <= rows[self.end_column]
