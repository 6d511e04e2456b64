"""Tests of plugins: rows of facts that a check judges, and a scenario in virtual time, in one call each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from harness import phases
from harness.contracts import registry
from harness.contracts.checks import Settings, handed_to
from harness.contracts.workloads import Stop
from harness.errors import PluginError
from harness.experiment.client import run_client
from harness.progress import Silent
from harness.scenario.file import load_scenario, read_scenario
from harness.scenario.model import Scenario
from harness.scenario.source import set_option
from harness.store.history import read_jsonl
from harness.store.result import RunResult
from harness.verdict import SystemVerdict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EXAMPLE", "Answer", "Settings", "SystemVerdict", "answer", "client_of", "simulated"]

EXAMPLE = Settings(acks=frozenset({-1}), min_insync_replicas=2, unclean_leader_election=False, idempotence=True)
"""What a run of strict producers was allowed to do."""
RUN = "run-1"
JOIN_TIMEOUT_S = 60.0
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a check on some rows."""

    verdict: SystemVerdict
    reason: str = ""
    """Why it is UNKNOWN."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """Each with the columns of findings, as `message` and `severity`."""


def answer(check: str, rows: Rows, settings: Settings = EXAMPLE) -> Answer:
    """Return the answer of a check on these rows of facts; a column that a row does not name is null.

    Args:
        check: Its name.
        rows: By fact, as docs/reference/facts.md has their columns: `{"sends": [{"value": "a", "offset": 0}]}`.
        settings: What the run was allowed to do.

    Raises:
        PluginError: there is no such check, or no such fact or column.
    """
    from harness.analysis.engine.session import spark_session
    from harness.analysis.running import unknown_runs

    plugin = registry.check(check)
    with spark_session(progress=Silent()) as spark:
        facts = _facts(spark, rows)
        counts = {RUN: {name: len(rows.get(name, ())) for name in facts}}
        if unknown := unknown_runs([plugin], facts, counts):
            return Answer(verdict=SystemVerdict.UNKNOWN, reason=next(iter(unknown.values())))
        findings = [row.asDict() for row in plugin.findings(handed_to(plugin, facts), settings).collect()]
    violated = any(each["severity"] == "violation" for each in findings)
    return Answer(verdict=SystemVerdict.FAIL if violated else SystemVerdict.PASS, findings=findings)


def _facts(spark: "SparkSession", rows: Rows) -> "dict[str, DataFrame]":
    import pyarrow as pa

    from harness.analysis.sources.reading import no_rows, of_table
    from harness.analysis.tables.arrow import ARROW_TYPES
    from harness.analysis.tables.schemas import TABLES

    if unknown := sorted(rows.keys() - TABLES.keys()):
        raise PluginError(registry.unknown_message("fact", unknown[0], list(TABLES)))
    facts = {name: no_rows(spark, of_table(table)) for name, table in TABLES.items() if not rows.get(name)}
    for name in filter(rows.get, rows):
        schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in TABLES[name].columns])
        if unknown := sorted({column for row in rows[name] for column in row} - set(schema.names)):
            raise PluginError(f"the fact {name} has no column {unknown[0]!r}; it has {', '.join(schema.names)}")
        table = pa.Table.from_pylist([{"run_id": RUN, **row} for row in rows[name]], schema)
        facts[name] = spark.createDataFrame(table)
    return facts


def simulated(scenario: Mapping[str, Any] | str, folder: Path, *, seed: int = 1) -> RunResult:
    """Carry out a scenario in virtual time and return the verdict on each fault; no check judges the run.

    Args:
        scenario: A built-in scenario's name, or what a scenario's file says; what is left out of topics and load is
            one topic `orders` with three replicas, and `produce-consume`.
        folder: Where the run's folder is made.
        seed: Decides all that is drawn.

    Raises:
        ScenarioError: the scenario is wrong; the message has every error.
        ClusterError: the cluster could not be had.
    """
    made = phases.create_from(_scenario(scenario), seed, folder)
    try:
        for phase in (phases.start, phases.drive, phases.collect):
            phase(made, progress=Silent())
    finally:
        result = phases.stop(made, progress=Silent())
    return result


def _scenario(scenario: Mapping[str, Any] | str) -> Scenario:
    if isinstance(scenario, str):
        return load_scenario(scenario, [set_option("driver=simulated")])
    usual = {
        "name": "test",
        "description": "A test of a plugin.",
        "driver": "simulated",
        "duration_s": 8,
        "topics": [{"name": "orders", "partitions": 1, "replication_factor": 3}],
        "workloads": [{"kind": "produce-consume"}],
    }
    return read_scenario(json.dumps({**usual, **scenario}), "the scenario of the test")


def client_of(
    workload: str, bootstrap_servers: str, topics: Mapping[str, int], folder: Path, *, seconds: float
) -> list[dict[str, Any]]:
    """Return what the first client of a workload notes in so many seconds, a line each, as `operations/` has them.

    Raises:
        PluginError: there is no such workload.
    """
    plugin = registry.workload(workload)
    parameters = plugin.Parameters.model_validate({})
    plans = plugin.clients(parameters, bootstrap_servers=bootstrap_servers, topics=dict(topics), seed=1)
    operations, stop = folder / "operations.jsonl", Stop()
    client = Thread(target=run_client, args=(plans[0], operations, stop), daemon=True)
    client.start()
    stop.wait(seconds)
    stop.set()
    client.join(JOIN_TIMEOUT_S)
    return list(read_jsonl(operations))
