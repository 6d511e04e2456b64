from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from harness.analysis.check_helpers.settings import settings_at_once
from harness.contracts.checks import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = {
    f"run-{number}": Settings(
        acks=frozenset({-1}),
        min_insync_replicas=2,
        unclean_leader_election=False,
        idempotence=False,
        inherited_by_topics=f"retention.ms={number // 2}",
    )
    for number in range(400)
}
"""Two runs each share their settings."""


@pytest.mark.spark
def test_each_of_many_runs_is_judged_with_its_own_settings(spark: "SparkSession") -> None:
    runs = spark.createDataFrame([(run_id,) for run_id in RUNS], "run_id string")
    at_once = settings_at_once(RUNS)
    rows = runs.select("run_id", F.lit(at_once.inherited_by_topics).alias("inherited")).collect()
    assert {row.run_id: row.inherited for row in rows} == {
        run_id: each.inherited_by_topics for run_id, each in RUNS.items()
    }
    assert at_once.min_insync_replicas == 2
