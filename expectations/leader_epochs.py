"""Expectations about leader epochs, for any table with one row a leader epoch."""

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


class LeaderEpochIncreases(WindowMetric):
    """Whether a row's epoch is higher than the one of the row before it."""

    condition_metric_name = "leader_epochs.increase"
    condition_value_keys = ("epoch_column", "order_column", "key_columns")

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(
        cls, columns: DataFrame, epoch_column: str, order_column: str, key_columns: list[str], **kwargs: Any
    ) -> Column:
        in_order = Window.partitionBy(*key_columns).orderBy(order_column)
        previous = F.lag(epoch_column).over(in_order)
        return previous.isNull() | (F.col(epoch_column) > previous)


class ExpectLeaderEpochsToIncrease(WindowExpectation):
    """Expect the leader epochs of each partition to strictly increase in the order in which they were decided."""

    key_columns: list[str] = pydantic.Field(default=["topic", "partition"], description="What names one partition")
    epoch_column: str = pydantic.Field(default="leader_epoch", description="The leader epoch")
    order_column: str = pydantic.Field(default="zxid", description="What orders the decisions")

    map_metric: ClassVar[str] = "leader_epochs.increase"
    success_keys: ClassVar[tuple[str, ...]] = ("mostly", "epoch_column", "order_column", "key_columns")
    args_keys = ("key_columns", "epoch_column", "order_column")
    column_parameters: ClassVar[tuple[str, ...]] = ("epoch_column", "order_column")
    sentence: ClassVar[str] = "$epoch_column must strictly increase in the order of $order_column, for each $key."


class OneLeaderPerLeaderEpoch(WindowMetric):
    """Whether all rows of a row's epoch name one leader, those without a leader aside."""

    condition_metric_name = "leader_epochs.one_leader"
    condition_value_keys = ("leader_column", "epoch_column", "key_columns", "no_leader")

    @multicolumn_condition_partial(engine=SparkDFExecutionEngine)  # type: ignore[untyped-decorator]
    def _spark(
        cls,
        columns: DataFrame,
        leader_column: str,
        epoch_column: str,
        key_columns: list[str],
        no_leader: int,
        **kwargs: Any,
    ) -> Column:
        of_epoch = Window.partitionBy(*key_columns, epoch_column)
        leader = F.when(F.col(leader_column) != no_leader, F.col(leader_column))
        return F.coalesce(F.min(leader).over(of_epoch) == F.max(leader).over(of_epoch), F.lit(True))


class ExpectOneLeaderPerLeaderEpoch(WindowExpectation):
    """Expect at most one leader in each leader epoch of a partition."""

    key_columns: list[str] = pydantic.Field(default=["topic", "partition"], description="What names one partition")
    epoch_column: str = pydantic.Field(default="leader_epoch", description="The leader epoch")
    leader_column: str = pydantic.Field(default="leader", description="The broker that leads")
    no_leader: int = pydantic.Field(default=-1, description="What stands for no leader")

    map_metric: ClassVar[str] = "leader_epochs.one_leader"
    success_keys: ClassVar[tuple[str, ...]] = ("mostly", "leader_column", "epoch_column", "key_columns", "no_leader")
    args_keys = ("key_columns", "epoch_column", "leader_column")
    column_parameters: ClassVar[tuple[str, ...]] = ("epoch_column", "leader_column")
    sentence: ClassVar[str] = "There must be at most one $leader_column in each $epoch_column, for each $key."
