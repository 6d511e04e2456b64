"""Every custom expectation by its own examples: in Great Expectations' diagnostics, and in Spark by one job for all."""

import contextlib
import io
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.spark

FOR_A_CODE_OWNER = "Has passed a manual review by a code owner for code standards and style guides"


@pytest.fixture(scope="module")
def custom(gx_context: Any) -> dict[str, Any]:
    """All custom expectations, by name."""
    from expectations.row_expectation import RowExpectation
    from expectations.suites import SUITES

    classes = {expectation.__name__: expectation for expectation in RowExpectation.__subclasses__()}
    assert set(classes.values()) <= {type(each) for suite in SUITES for each in suite.expectations}, (
        "each is in a suite"
    )
    return classes


@pytest.mark.filterwarnings("ignore:`result_format` configured at the:UserWarning")
def test_every_custom_expectation_passes_the_checklist(custom: dict[str, Any], gx_context: Any) -> None:
    unmet, errors, unrendered = {}, {}, {}
    for name, expectation in custom.items():
        parameters = expectation.examples[0]["tests"][0]["in"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            diagnostics = expectation(**parameters).run_diagnostics(
                only_consider_these_backends=["pandas"], context=gx_context
            )
        checks = diagnostics.maturity_checklist
        all_checks = [*checks.experimental, *checks.beta, *checks.production]
        unmet[name] = [check.message for check in all_checks if not check.passed]
        errors[name] = [error.error_msg for error in diagnostics.errors]
        assert diagnostics.execution_engines.SparkDFExecutionEngine
        samples = [sample for one in diagnostics.renderers if one.is_standard for sample in one.samples]
        unrendered[name] = [sample.error_message for sample in samples if not sample.rendered_successfully]
    nothing: dict[str, list[object]] = {name: [] for name in custom}
    assert (errors, unrendered) == (nothing, nothing)
    assert unmet == {name: [FOR_A_CODE_OWNER] for name in custom}


def test_spark_answers_every_example_as_great_expectations_diagnostics_want_it(
    custom: dict[str, Any], spark: SparkSession
) -> None:
    from expectations.metrics import spark_marks

    answers, expected = [], {}
    for name, expectation in custom.items():
        for example in expectation.examples:
            (test,) = example["tests"]
            judged, broken = spark_marks(expectation(**test["in"]))
            frame = spark.createDataFrame(pa.Table.from_pydict(example["data"]))
            marks = frame.select(judged.alias("judged"), broken.alias("broken"))
            counts = [F.lit(f"{name} {test['title']}"), F.bool_or("judged"), ~F.bool_or("broken")]
            answers.append(marks.agg(*counts).toDF("example", "judged", "success"))
            expected[f"{name} {test['title']}"] = (True, test["out"]["success"])
    rows = reduce(DataFrame.unionByName, answers).collect()
    assert {row.example: (row.judged, row.success) for row in rows} == expected
