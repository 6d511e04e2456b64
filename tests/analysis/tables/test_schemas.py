from typing import TYPE_CHECKING

import pytest

from harness.analysis.sources.lineage import LINEAGE, PLACES
from harness.analysis.tables.schemas import TABLES
from harness.analysis.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_table_tells_runs_apart_and_says_what_its_columns_hold(table: Table) -> None:
    assert table.columns[0].name == "run_id"
    assert table.row
    assert all(column.about and not column.about.endswith(".") for column in table.columns)
    assert len({column.name for column in table.columns}) == len(table.columns)


def test_every_fact_says_what_evidence_it_is_made_of() -> None:
    assert set(LINEAGE) == set(TABLES)
    assert all(origin and set(origin) <= set(PLACES) for origin in LINEAGE.values())


@pytest.mark.spark
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_spark_reads_the_schema(spark: "SparkSession", table: Table) -> None:
    frame = spark.createDataFrame([], table.ddl)
    assert frame.columns == [column.name for column in table.columns]
    assert [type_ for _, type_ in frame.dtypes] == [column.type for column in table.columns]
