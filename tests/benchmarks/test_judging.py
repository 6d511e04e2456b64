"""A short history that the benchmark makes is judged by the checks that judge long ones."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.judging import judged_as_history
from tests.verdicts import PASS
from tools.synthetic_history import generate

pytestmark = pytest.mark.spark

OPERATIONS = 600


@pytest.mark.rotating(1)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense offsets", "offsets with gaps"])
def test_every_check_of_what_clients_alone_saw_passes(spark: SparkSession, tmp_path: Path, sparse: bool) -> None:
    folder, operations = generate(tmp_path, OPERATIONS, sparse=sparse, clients_alone=True)
    facts_rows, verdicts, _ = judged_as_history(spark, folder)
    assert {verdict for _, verdict in verdicts} == {PASS}
    assert "lost-write" in dict(verdicts)
    assert facts_rows > operations
