"""How many rows of a table break an expectation, and the first of them.

All expectations about one Spark frame are evaluated by one aggregation, however many there are: each adds two marks
to every row of a frame of marks, and Great Expectations bundles aggregations over the same frame.
"""

import hashlib
import json
from typing import Any, cast

import pandas as pd
from great_expectations.core.metric_domain_types import MetricDomainTypes
from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.execution_engine.execution_engine import ExecutionEngine
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sparkdf_batch_data import SparkDFBatchData
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.metrics.metric_provider import metric_partial, metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider
from great_expectations.expectations.registry import get_expectation_impl
from great_expectations.validator.metric_configuration import MetricConfiguration
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from typing_extensions import override

from expectations import pandas_rows, spark_rows
from expectations.rows import RowCondition
from expectations.spark_rows import column

COUNTS = "row_expectation.counts"
"""Metric: the numbers of rows, of judged rows, and of rows that break the expectation."""
FIRST_BROKEN = "row_expectation.first_broken"
"""Metric: the first rows that break it, by the columns that it names."""

Kwargs = dict[str, Any]


def _condition(metric_value_kwargs: Kwargs) -> RowCondition:
    question = json.loads(metric_value_kwargs["question"])
    return cast("RowCondition", get_expectation_impl(question["type"])(**question["parameters"]))


def spark_marks(expectation: RowCondition) -> tuple[Column, Column]:
    """Return whether a row of a Spark frame is judged, and whether it is and breaks the expectation."""
    judged = spark_rows.judged_rows(expectation.named_columns, expectation.only)
    return judged, judged & ~F.coalesce(expectation.holds(spark_rows.SparkRows(judged)), F.lit(True))


class _Marks(SparkDFBatchData):
    """The rows of a Spark frame, with two marks an expectation: judged, and broken."""

    def __init__(self, engine: SparkDFExecutionEngine, table: DataFrame) -> None:
        super().__init__(engine, table)
        self.table = table

    def of(self, metric_value_kwargs: Kwargs) -> tuple[Column, Column]:
        """Return the marks of an expectation, which are added to the frame at the first request."""
        question = hashlib.sha256(metric_value_kwargs["question"].encode()).hexdigest()
        names = (f"judged {question}", f"broken {question}")
        if names[0] not in self._dataframe.columns:
            expectation = _condition(metric_value_kwargs)
            _check_columns(expectation, self.table.columns)
            self._dataframe = self._dataframe.withColumns(dict(zip(names, spark_marks(expectation), strict=True)))
        return column(names[0]), column(names[1])


def _marks(engine: SparkDFExecutionEngine, metric_domain_kwargs: Kwargs) -> tuple[str, _Marks]:
    """Return the frame of marks of a batch, and the name under which the engine keeps it."""
    batch_id = metric_domain_kwargs.get("batch_id") or engine.batch_manager.active_batch_data_id
    table = engine.get_domain_records({"batch_id": batch_id})
    name = f"{batch_id} with marks"
    cache = engine.batch_manager.batch_data_cache
    marks = cache.get(name)
    if not isinstance(marks, _Marks) or marks.table is not table:
        marks = cache[name] = _Marks(engine, table)
    return name, marks


def _pandas_marks(
    engine: PandasExecutionEngine, metric_domain_kwargs: Kwargs, metric_value_kwargs: Kwargs
) -> tuple[pd.DataFrame, int, "pd.Series[bool]"]:
    """Return the named columns of the judged rows, the number of all rows, and which of the judged are broken."""
    expectation = _condition(metric_value_kwargs)
    table, _, _ = engine.get_compute_domain(metric_domain_kwargs, domain_type=MetricDomainTypes.TABLE)
    _check_columns(expectation, table.columns)
    is_judged = pandas_rows.judged_rows(table, expectation.named_columns, expectation.only)
    judged = table.loc[is_judged, list(expectation.read_columns)].reset_index(drop=True)
    holds = expectation.holds(pandas_rows.PandasRows(judged))
    return judged, len(table), ~holds.fillna(True).astype(bool)


def _check_columns(expectation: RowCondition, columns: Any) -> None:
    missing = sorted(set(expectation.read_columns) - set(columns))
    if missing:
        raise ValueError(f"the table has no column {', '.join(missing)}; it has {', '.join(map(str, columns))}")


class Counts(TableMetricProvider):
    """How many rows there are, are judged, and are broken."""

    metric_name = COUNTS
    value_keys = ("question",)

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: Kwargs,
        metric_value_kwargs: Kwargs,
        **_: Any,
    ) -> list[int]:
        judged, number, broken = _pandas_marks(execution_engine, metric_domain_kwargs, metric_value_kwargs)
        return [number, len(judged), int(broken.sum())]

    @metric_partial(
        engine=SparkDFExecutionEngine,
        partial_fn_type=MetricPartialFunctionTypes.AGGREGATE_FN,
        domain_type=MetricDomainTypes.TABLE,
    )
    def _spark(
        cls,
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: Kwargs,
        metric_value_kwargs: Kwargs,
        **_: Any,
    ) -> tuple[Column, Kwargs, Kwargs]:
        name, marks = _marks(execution_engine, metric_domain_kwargs)
        judged, broken = marks.of(metric_value_kwargs)
        counts = F.array(F.count(F.lit(1)), F.count_if(judged), F.count_if(broken))
        return counts, {"batch_id": name}, {}


class FirstBroken(TableMetricProvider):
    """The first rows that break an expectation; where none does, nothing is read."""

    metric_name = FIRST_BROKEN
    value_keys = ("question", "limit")

    @metric_value(engine=PandasExecutionEngine)
    def _pandas(
        cls,
        execution_engine: PandasExecutionEngine,
        metric_domain_kwargs: Kwargs,
        metric_value_kwargs: Kwargs,
        metrics: dict[str, Any],
        **_: Any,
    ) -> list[dict[str, Any]]:
        if not metrics[COUNTS][-1]:
            return []
        judged, _number, broken = _pandas_marks(execution_engine, metric_domain_kwargs, metric_value_kwargs)
        named = list(_condition(metric_value_kwargs).named_columns)
        rows = judged.loc[broken, named].head(metric_value_kwargs["limit"]).to_dict(orient="records")
        return [{str(name): _plain(value) for name, value in row.items()} for row in rows]

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls,
        execution_engine: SparkDFExecutionEngine,
        metric_domain_kwargs: Kwargs,
        metric_value_kwargs: Kwargs,
        metrics: dict[str, Any],
        **_: Any,
    ) -> list[dict[str, Any]]:
        if not metrics[COUNTS][-1]:
            return []
        _name, marks = _marks(execution_engine, metric_domain_kwargs)
        _judged, broken = marks.of(metric_value_kwargs)
        named = [column(name) for name in _condition(metric_value_kwargs).named_columns]
        rows = marks.dataframe.where(broken).select(*named).limit(metric_value_kwargs["limit"]).collect()
        return [row.asDict(recursive=True) for row in rows]

    @classmethod
    @override
    def _get_evaluation_dependencies(
        cls,
        metric: MetricConfiguration,
        configuration: ExpectationConfiguration | None = None,
        execution_engine: ExecutionEngine[Any] | None = None,
        runtime_configuration: Kwargs | None = None,
    ) -> dict[str, MetricConfiguration]:
        dependencies: dict[str, MetricConfiguration] = super()._get_evaluation_dependencies(
            metric, configuration, execution_engine, runtime_configuration
        )
        question = {"question": metric.metric_value_kwargs["question"]}
        dependencies[COUNTS] = MetricConfiguration(COUNTS, metric.metric_domain_kwargs, question)
        return dependencies


def _plain(value: Any) -> Any:
    """Return a value of a pandas row as JSON can hold it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if isinstance(value, list) or not pd.isna(value) else None
