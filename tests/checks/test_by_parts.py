"""Checks that join a large history part by part answer what they answer about a small one."""

import pytest
from pyspark.sql import SparkSession

from harness.analysis import frames
from harness.analysis.engine.session import configured
from harness.analysis.frames import by_parts
from harness.contracts import registry
from tests.checks.answers import OF_A_LARGE_HISTORY, batches_of, confirm, judged, tables_in


@pytest.mark.spark
@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    "check",
    [
        "exactly-once",
        "int-poll-skip",
        "lost-committed-write",
        "lost-write",
        "poll-skip",
        "precommitted-read",
        "torn-transaction",
        "transaction-cycles",
    ],
)
def test_a_large_history_is_judged_part_by_part(check: str, spark: SparkSession) -> None:
    plugin = registry.check(check)
    with configured(spark, OF_A_LARGE_HISTORY):
        for cases in tables_in(check.replace("-", "_")):
            for batch in batches_of(spark, cases):
                for name, answer in judged(plugin, batch).items():
                    confirm(cases[name], answer)


@pytest.mark.spark
def test_parts_by_equal_values_of_other_types_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "is_sail", lambda _session: True)  # Apache Spark needs no parts
    both = [spark.range(3).selectExpr(f"cast(id as {type_}) id") for type_ in ("int", "bigint")]
    with configured(spark, OF_A_LARGE_HISTORY), pytest.raises(ValueError, match="hashes: id"):
        by_parts(lambda left, right: left.join(right, on="id"), *both, on=["id"])
