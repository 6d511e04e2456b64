"""Expectations about committed consumer offsets, for any table with one row a commit or read-back."""

from typing import Any, ClassVar

from great_expectations.compatibility import pydantic
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.metrics.map_metric_provider.multicolumn_condition_partial import (
    multicolumn_condition_partial,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from expectations.windows import WindowExpectation, WindowMetric


class CommittedOffsetNeverRegresses(WindowMetric):
    """Whether a row's offset is at least the one that held before it."""

    condition_metric_name = "committed_offsets.never_regress"
    condition_value_keys = ("offset_column", "order_column", "key_columns", "kind_column", "commit_kind")

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(
        cls,
        columns: DataFrame,
        offset_column: str,
        order_column: str,
        key_columns: list[str],
        kind_column: str | None,
        commit_kind: str,
        **kwargs: Any,
    ) -> Column:
        before = Window.partitionBy(*key_columns).orderBy(order_column).rowsBetween(Window.unboundedPreceding, -1)
        offset = F.col(offset_column)
        if kind_column is None:
            return F.coalesce(offset >= F.max(offset).over(before), F.lit(True))
        is_commit = F.col(kind_column) == commit_kind
        held = F.last(F.when(is_commit, offset), ignorenulls=True).over(before)
        return F.coalesce(is_commit | (offset >= held), F.lit(True))


class ExpectCommittedOffsetsNeverToRegress(WindowExpectation):
    """Expect the committed offset of a group and partition never to go back.

    Without `kind_column` no row may have a lower offset than any before it. With it, a commit may set whatever it
    likes, for a group may rewind, and every other row (a read-back) must have at least what was committed last.
    """

    key_columns: list[str] = pydantic.Field(
        default=["group", "topic", "partition"], description="What names one group's position in one partition"
    )
    offset_column: str = pydantic.Field(default="offset", description="The committed offset")
    order_column: str = pydantic.Field(description="What orders commits and read-backs")
    kind_column: str | None = pydantic.Field(default=None, description="What tells commits from read-backs")
    commit_kind: str = pydantic.Field(default="commit", description="What `kind_column` holds for a commit")

    map_metric: ClassVar[str] = "committed_offsets.never_regress"
    success_keys: ClassVar[tuple[str, ...]] = (
        "mostly",
        "offset_column",
        "order_column",
        "key_columns",
        "kind_column",
        "commit_kind",
    )
    args_keys = ("key_columns", "offset_column", "order_column")
    column_parameters: ClassVar[tuple[str, ...]] = ("offset_column", "order_column")
    sentence: ClassVar[str] = "$offset_column must never go back in the order of $order_column, for each $key."
