"""What tests of several rooms share."""

import os
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.airflow_server import airflow_server

__all__ = ["airflow_server"]

_airflow_home = tempfile.TemporaryDirectory(prefix="airflow-home-")
os.environ["AIRFLOW_HOME"] = _airflow_home.name  # the first import of Airflow writes its configuration there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One Spark session for all tests that are marked `spark`."""
    from harness.analysis.session import for_small_data, spark_session

    with spark_session() as session, for_small_data(session, 0):
        yield session
