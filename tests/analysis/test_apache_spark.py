"""Apache Spark answers as Sail does, which judges all cases in the fast tier: a part of each check's, by the commit."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.contracts import registry
from harness.ingest.lines import RecordedEvidence
from tests.checks.answers import alike, batches_of, confirm, judged, tables_in
from tests.ingest.test_lines import MISFITS, SEND
from tests.sampling import sampled

pytestmark = [pytest.mark.spark, pytest.mark.jvm]


@pytest.mark.parametrize("check", registry.names(registry.Kind.CHECK))
def test_a_check_answers_its_cases(check: str, spark: SparkSession) -> None:
    plugin = registry.check(check)
    tables = tables_in(type(plugin).__module__.rpartition(".")[2])
    assert tables
    for cases in sampled([part for table in tables for part in alike(table)], 1):
        for batch in batches_of(spark, cases):
            answer = judged(plugin, batch)
            for name, case in cases.items():
                confirm(case, answer[name])


@pytest.mark.parametrize("name", sampled(list(MISFITS), 4))
def test_a_line_of_others_that_does_not_fit_is_explained(name: str, spark: SparkSession, tmp_path: Path) -> None:
    (line, explanation), path = MISFITS[name], tmp_path / "operations.jsonl"
    path.write_text(f"{json.dumps(SEND)}\n\n{json.dumps(line)}\n", encoding="utf-8")
    evidence = RecordedEvidence(spark, {"operations": [str(path)]}, tmp_path / "lines")
    assert evidence.explain(["operations/operations.jsonl"]) == [f"{path}:3: {explanation}"]
