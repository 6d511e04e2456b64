"""What is expected says by which allowance, and no excuse reaches beyond its fault's partitions and its moment."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import POWER_LOSS
from harness.analysis.check_helpers.excuses import within_power_losses
from harness.analysis.check_helpers.findings import finding, severity
from harness.analysis.tables.arrow import ARROW_TYPES
from harness.contracts import registry
from harness.contracts.checks import FINDING_COLUMNS
from tests.analysis.fact_rows import facts, sent
from tests.checks.answers import STRICT

POWER = POWER_LOSS.reason
EXCUSED_BY = registry.check("lost-write").excused_by
pytestmark = pytest.mark.spark

CUT_NS = 100
RUNS = ("cut", "spared", "failed", "ended", "open")
FINDINGS: dict[str, tuple[dict[str, Any], str]] = {
    "what was asked for before the power was cut": ({"at_ns": CUT_NS}, "expected"),
    "what was asked for after it": ({"at_ns": CUT_NS + 1}, "violation"),
    "at an unknown instant": ({}, "expected"),
    "on a partition whose brokers kept their power": ({"partition": 1, "at_ns": 5}, "violation"),
    "on a partition with unknown replicas": ({"partition": 2, "at_ns": CUT_NS}, "expected"),
    "on such a one, but later": ({"partition": 2, "at_ns": CUT_NS + 1}, "violation"),
    "on no partition at all": ({"topic": None, "partition": None}, "expected"),
    "a group's offset, wherever its records are": ({"check": "offset-regression", "partition": 1}, "expected"),
    "by another allowance": ({"partition": 1, "excuse": "acks below all"}, "expected"),
    "no anomaly but a note": ({"severity": "note", "excuse": None, "partition": 1}, "note"),
    "in a run whose fault never came to be": ({"run_id": "spared"}, "violation"),
    "in a run whose fault failed, until it was judged": ({"run_id": "failed", "at_ns": CUT_NS + 20}, "expected"),
    "in such a run, after that": ({"run_id": "failed", "at_ns": CUT_NS + 21}, "violation"),
    "in such a run, elsewhere": ({"run_id": "failed", "partition": 1, "at_ns": 5}, "violation"),
    "in a run that ended meanwhile, until it was healed": ({"run_id": "ended", "at_ns": CUT_NS + 30}, "expected"),
    "in a run that was never healed either": ({"run_id": "open", "at_ns": CUT_NS + 99}, "expected"),
    "in a run without a journal": ({"run_id": "unknown", "at_ns": CUT_NS + 1}, "expected"),
}


def window(run_id: str, injected_ns: int | None, **other: Any) -> tuple[str, dict[str, Any]]:
    row = {"run_id": run_id, "injection": 0, "fault": "power-loss", "targets": ["1"], "injected_ns": injected_ns}
    return "fault_windows", row | other


def held_by(run_id: str, partition: int, brokers: list[int]) -> tuple[str, dict[str, Any]]:
    return "partition_states", {"run_id": run_id, "topic": "orders", "partition": partition, "assignment": brokers}


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> dict[str, tuple[str, str | None]]:
    """Severity and excuse of each finding."""
    tables = facts(
        spark,
        window("cut", CUT_NS),
        window("cut", CUT_NS + 50, fault="kill"),
        window("spared", None, confirmed_ns=CUT_NS),
        window("failed", None, intended_ns=CUT_NS, confirmed_ns=CUT_NS + 20, healed_ns=CUT_NS + 30),
        window("ended", None, intended_ns=CUT_NS, healed_ns=CUT_NS + 30),
        window("open", None, intended_ns=CUT_NS),
        *(held_by(run, number, brokers) for run in RUNS for number, brokers in ((0, [1, 2]), (1, [2, 3]))),
    )
    everyday = {"run_id": "cut", "check": "lost-write", "severity": "expected", "excuse": POWER}
    rows = [
        {**everyday, "topic": "orders", "partition": 0, "message": name, **row} for name, (row, _) in FINDINGS.items()
    ]
    schema = pa.schema([(name, ARROW_TYPES[type_]) for name, type_ in FINDING_COLUMNS])
    findings = spark.createDataFrame(pa.Table.from_pylist(rows, schema))
    judged_findings = within_power_losses(findings, tables, [registry.check("offset-regression")])
    assert judged_findings.columns == [name for name, _ in FINDING_COLUMNS]
    return {row.message: (row.severity, row.excuse) for row in judged_findings.collect()}


@pytest.mark.parametrize("name", FINDINGS)
def test_a_power_loss_excuses_what_it_can_have_taken(judged: dict[str, tuple[str, str | None]], name: str) -> None:
    row, expected = FINDINGS[name]
    assert judged[name][0] == expected
    assert judged[name][1] == (None if expected == "violation" else row.get("excuse", POWER))


def test_the_first_allowance_that_holds_is_named(spark: SparkSession) -> None:
    rows = facts(spark, sent("a", 0, acks=1), sent("b", 1), sent("c", 2, acks=0, leader_epoch=7))["sends"]
    settings = replace(STRICT, power_loss=True)
    by_allowances = severity(EXCUSED_BY, settings, acks=F.col("acks"), unclean=F.col("leader_epoch") == 7)
    excused = finding(
        rows, "lost-write", severity=by_allowances, message=F.col("value"), evidence=F.array(), at_ns="invoke_ns"
    )
    reasons = [each.reason for each in EXCUSED_BY]
    assert {row.message: (row.severity, row.excuse, row.at_ns) for row in excused.collect()} == {
        "a": ("expected", reasons[0], 1),
        "b": ("expected", POWER, 1),
        "c": ("expected", reasons[0], 1),
    }
    by_allowances = severity(EXCUSED_BY, STRICT, unclean=F.lit(False))
    strict = finding(rows, "lost-write", severity=by_allowances, message=F.col("value"), evidence=F.array())
    assert {(row.severity, row.excuse) for row in strict.collect()} == {("violation", None)}
