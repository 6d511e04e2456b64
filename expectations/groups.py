"""Expectations about consumer groups, for any table with one row a partition of a generation, or one a commit."""

from typing import ClassVar

from great_expectations.compatibility import pydantic

from expectations.row_expectation import Examples, RowExpectation, examples_of
from expectations.rows import Rows, Values


class ExpectPartitionsToHaveOneOwner(RowExpectation):
    """Expect no partition to be assigned to two members of one generation of a group."""

    key_columns: list[str] = pydantic.Field(
        default=["group", "generation", "topic", "partition"], description="What names one partition of a generation"
    )
    owner_column: str = pydantic.Field(default="owner", description="Member that owns the partition")

    sentence: ClassVar[str] = "There must be at most one $owner_column for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["round", "shard"], "owner_column": "member"},
        holds={"round": [1, 1, 2], "shard": ["a", "b", "a"], "member": ["x", "x", "y"]},
        breaks={"round": [1, 1, 2], "shard": ["a", "a", "a"], "member": ["x", "y", "y"]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether all rows of the partition name one owner."""
        return rows.all_equal(rows[self.owner_column], keys=self.key_columns)


class ExpectGenerationsNeverToGoBack(RowExpectation):
    """Expect the generation of a group never to go back."""

    key_columns: list[str] = pydantic.Field(default=["group"], description="What names one group")
    generation_column: str = pydantic.Field(default="generation", description="The generation")
    order_column: str = pydantic.Field(description="What orders the generations")

    sentence: ClassVar[str] = "$generation_column must never go back in the order of $order_column, for each $key."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["team"], "generation_column": "round", "order_column": "at"},
        holds={"team": ["a", "a", "a"], "round": [1, 1, 2], "at": [1, 2, 3]},
        breaks={"team": ["a", "a", "a"], "round": [1, 2, 1], "at": [1, 2, 3]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether the generation is at least that of every row before it."""
        before = rows.highest_before(self.generation_column, order=self.order_column, keys=self.key_columns)
        return rows[self.generation_column] >= before


class ExpectCommitsOfTheCurrentGeneration(RowExpectation):
    """Expect an accepted commit to have its group's current generation, or to come from no member."""

    key_columns: list[str] = pydantic.Field(
        default=["group", "topic", "partition"], description="What names one group's position in one partition"
    )
    generation_column: str = pydantic.Field(default="generation", description="The generation of the committer")
    current_column: str = pydantic.Field(default="group_generation", description="The generation of the group")
    no_generation: int = pydantic.Field(default=-1, description="The generation of a commit from no member")

    sentence: ClassVar[str] = "$generation_column must be $current_column, or that of a commit from no member."

    examples: ClassVar[Examples] = examples_of(
        {"key_columns": ["team"], "generation_column": "round", "current_column": "now", "no_generation": 0},
        holds={"team": ["a", "a"], "round": [2, 0], "now": [2, 3]},
        breaks={"team": ["a", "a"], "round": [2, 1], "now": [2, 2]},
    )

    def holds(self, rows: Rows) -> Values:
        """Whether it is of this generation, or of none."""
        generation = rows[self.generation_column]
        return (generation == rows[self.current_column]) | (generation == self.no_generation)
