"""Operations on the rows of a table, the same in Spark and in pandas.

Both follow the rules of SQL: a comparison with null is null, and null breaks nothing.
"""

from collections.abc import Sequence
from typing import Any, Protocol

Values = Any
"""One value a row, a Spark column or a pandas series; both know `==`, `<`, `&`, `|`, `~` and `+`."""
Only = dict[str, bool | int | str]
"""What columns must hold, each one value."""


class Rows(Protocol):
    """The rows that are judged; a sequence is the rows with equal keys, in an order."""

    def __getitem__(self, column: str) -> Values:
        """The values of a column."""
        ...

    def previous(self, column: str, *, order: str, keys: Sequence[str]) -> Values:
        """The value in the row before; null in the first."""
        ...

    def highest_before(self, column: str, *, order: str, keys: Sequence[str]) -> Values:
        """The highest value in all rows before; null in the first."""
        ...

    def last_before(self, values: Values, *, order: str, keys: Sequence[str]) -> Values:
        """The last value before that is not null; null where there is none."""
        ...

    def all_equal(self, values: Values, *, keys: Sequence[str]) -> Values:
        """Whether all rows with equal keys have one value, nulls aside."""
        ...

    def where(self, condition: Values, values: Values) -> Values:
        """The values where a condition holds; null elsewhere."""
        ...

    def size(self, column: str) -> Values:
        """How many elements an array has."""
        ...

    def distinct_size(self, column: str) -> Values:
        """How many different elements an array has."""
        ...

    def contains(self, column: str, element: str) -> Values:
        """Whether the array in one column has the element in another."""
        ...

    def is_subset(self, column: str, other: str) -> Values:
        """Whether every element of one column's array is in the other's."""
        ...


class RowCondition(Protocol):
    """A condition on each row, and the columns that it reads."""

    only: Only

    @property
    def named_columns(self) -> tuple[str, ...]:
        """The columns that it is about, each once; a row with a null in one of them is not judged."""
        ...

    @property
    def read_columns(self) -> tuple[str, ...]:
        """All columns that it reads, each once."""
        ...

    def holds(self, rows: Rows) -> Values:
        """Return whether each judged row is as expected; null where that is unknown."""
        ...
