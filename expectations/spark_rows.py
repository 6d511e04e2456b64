"""How does Spark carry out the operations on rows? By windows and column expressions, without Python; see `rows`."""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.window import Window, WindowSpec
from typing_extensions import override

from expectations.rows import Only, Rows


def column(name: str) -> Column:
    """Return the column of that very name, dots and all."""
    return F.col("`" + name.replace("`", "``") + "`")


def judged_rows(named: Sequence[str], only: Only) -> Column:
    """Return whether a row is judged: no named column is null, and it holds what it must."""
    not_null = [column(name).isNotNull() for name in named]
    equal = [F.coalesce(column(name) == F.lit(value), F.lit(False)) for name, value in only.items()]
    return reduce(and_, [*not_null, *equal], F.lit(True))


class SparkRows(Rows):
    """The rows of a Spark frame; those that are not judged are in groups of their own."""

    def __init__(self, judged: Column) -> None:
        self._judged = judged

    @override
    def __getitem__(self, name: str) -> Column:
        return column(name)

    @override
    def previous(self, name: str, *, order: str, keys: Sequence[str]) -> Column:
        return F.lag(column(name)).over(self._sequence(order, keys))

    @override
    def highest_before(self, name: str, *, order: str, keys: Sequence[str]) -> Column:
        return F.max(column(name)).over(self._before(order, keys))

    @override
    def last_before(self, values: Column, *, order: str, keys: Sequence[str]) -> Column:
        return F.last(values, ignorenulls=True).over(self._before(order, keys))

    @override
    def all_equal(self, values: Column, *, keys: Sequence[str]) -> Column:
        group = self._group(keys)
        return F.coalesce(F.min(values).over(group) == F.max(values).over(group), F.lit(True))

    @override
    def where(self, condition: Column, values: Column) -> Column:
        return F.when(condition, values)

    @override
    def size(self, name: str) -> Column:
        return F.size(column(name))

    @override
    def distinct_size(self, name: str) -> Column:
        return F.size(F.array_distinct(column(name)))

    @override
    def contains(self, name: str, element: str) -> Column:
        return F.array_contains(column(name), column(element))

    @override
    def is_subset(self, name: str, other: str) -> Column:
        return F.size(F.array_except(column(name), column(other))) == 0

    def _group(self, keys: Sequence[str]) -> WindowSpec:
        return Window.partitionBy(self._judged, *(column(key) for key in keys))

    def _sequence(self, order: str, keys: Sequence[str]) -> WindowSpec:
        return self._group(keys).orderBy(column(order))

    def _before(self, order: str, keys: Sequence[str]) -> WindowSpec:
        return self._sequence(order, keys).rowsBetween(Window.unboundedPreceding, -1)
