"""The custom expectations on tables that are not ours, in pandas and in Spark."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.expectations.conftest import ENGINES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


in_both_engines = pytest.mark.parametrize("engine", ENGINES)
TERMS = pd.DataFrame({"shard": ["a", "a", "a", "b"], "term": [2, None, 2, 1], "at": [10, 11, 12, 13]}).convert_dtypes()


@pytest.fixture(scope="module")
def increase() -> Callable[..., Any]:
    """Make the expectation that terms increase: call with parameters to add."""
    from expectations.leader_epochs import ExpectLeaderEpochsToIncrease

    return lambda **more: ExpectLeaderEpochsToIncrease(
        key_columns=["shard"], epoch_column="term", order_column="at", **more
    )


@in_both_engines
def test_the_rows_that_break_it_are_shown_and_one_with_a_null_is_not_judged(
    engine: str, batch_of: Callable[..., Any], increase: Callable[..., Any]
) -> None:
    result = batch_of(engine, TERMS).validate(increase())
    assert not result.success
    assert result.result == {
        "element_count": 4,
        "missing_count": 1,
        "unexpected_count": 1,
        "unexpected_percent": pytest.approx(100 / 3),
        "partial_unexpected_list": [{"shard": "a", "term": 2, "at": 12}],
    }


@in_both_engines
def test_no_more_rows_are_shown_than_the_result_may_have(
    engine: str, batch_of: Callable[..., Any], increase: Callable[..., Any]
) -> None:
    frame = pd.DataFrame({"shard": "a", "term": 1, "at": range(30)})
    result = batch_of(engine, frame).validate(increase()).result
    assert (result["unexpected_count"], len(result["partial_unexpected_list"])) == (29, 20)


@in_both_engines
@pytest.mark.parametrize(
    ("more", "success"),
    [
        pytest.param({"only": {"shard": "b"}}, True, id="only the rows of another shard are judged"),
        pytest.param({"only": {"shard": "c"}}, True, id="no row is judged"),
        pytest.param({"mostly": 0.6}, True, id="two rows of three are enough"),
        pytest.param({"mostly": 0.7}, False, id="two rows of three are not enough"),
    ],
)
def test_which_rows_and_how_many_must_meet_it(
    engine: str, batch_of: Callable[..., Any], increase: Callable[..., Any], more: dict[str, Any], success: bool
) -> None:
    assert batch_of(engine, TERMS).validate(increase(**more)).success is success


@in_both_engines
def test_a_table_without_the_column_is_an_error_and_proves_nothing(
    engine: str, batch_of: Callable[..., Any], increase: Callable[..., Any]
) -> None:
    result = batch_of(engine, TERMS[["shard", "term"]]).validate(increase())
    assert not result.success
    assert "the table has no column at; it has shard, term" in str(result.exception_info)


@in_both_engines
def test_a_second_table_is_not_taken_for_the_first(
    engine: str, batch_of: Callable[..., Any], increase: Callable[..., Any]
) -> None:
    assert not batch_of(engine, TERMS).validate(increase()).success
    assert batch_of(engine, TERMS[TERMS["shard"] == "b"]).validate(increase()).success


@in_both_engines
def test_without_kinds_a_committed_offset_may_never_be_lower_than_any_before(
    engine: str, batch_of: Callable[..., Any]
) -> None:
    from expectations.committed_offsets import ExpectCommittedOffsetsNeverToRegress

    expectation = ExpectCommittedOffsetsNeverToRegress(
        key_columns=["team"], offset_column="position", order_column="day"
    )
    frame = pd.DataFrame({"team": ["g"] * 4, "day": [1, 2, 3, 4], "position": [5, 9, 6, 7]})
    shown = batch_of(engine, frame).validate(expectation).result["partial_unexpected_list"]
    assert [row["position"] for row in shown] == [6, 7]


def test_all_expectations_about_one_spark_table_are_answered_by_one_job(
    apache_spark: "SparkSession", batch_of: Callable[..., Any]
) -> None:
    from great_expectations.core.expectation_suite import ExpectationSuite

    from expectations.suites import RECORDS

    columns = {name: [0, 0] for name in RECORDS.columns}
    batch = batch_of("spark", pd.DataFrame(columns | {"offset": [0, 1], "sequence": [0, 1]}))
    apache_spark.sparkContext.setJobGroup("judged", "all of a suite")
    try:
        result = batch.validate(ExpectationSuite(name="own", expectations=list(RECORDS.expectations)))
    finally:
        apache_spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type] # PySpark's annotation forgets that None unsets
    assert result.success
    assert len(apache_spark.sparkContext.statusTracker().getJobIdsForGroup("judged")) == 1


@pytest.mark.parametrize(
    ("parameters", "wrong"),
    [
        pytest.param({"order_column": ""}, "order_column: an empty text names no column", id="a column without a name"),
        pytest.param({"key_columns": [""]}, "key_columns", id="a key column without a name"),
        pytest.param({"mostly": 1.5}, "mostly", id="more than all rows"),
        pytest.param({"ordercolumn": "at"}, "ordercolumn", id="a parameter that there is not"),
    ],
)
def test_what_cannot_be_meant_is_refused(parameters: dict[str, Any], wrong: str) -> None:
    from expectations.leader_epochs import ExpectLeaderEpochsToIncrease

    with pytest.raises(ValueError, match=wrong):
        ExpectLeaderEpochsToIncrease(**parameters)


def test_an_expectation_says_its_sentence_with_the_columns_it_is_about(increase: Callable[..., Any]) -> None:
    expectation = increase(only={"kind": "x"}, mostly=0.5)
    sentence = (
        "Where kind is x: term must strictly increase in the order of at, for each shard. "
        "At least 50 % of the rows must meet it."
    )
    assert expectation.sentence_for(expectation.configuration.kwargs) == sentence
    (content,) = expectation._prescriptive_renderer(configuration=expectation.configuration)
    assert content.string_template["params"].items() >= {"epoch_column": "term", "key": "shard"}.items()
    assert type(expectation).sentence in content.string_template["template"]
