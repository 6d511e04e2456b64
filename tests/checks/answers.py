"""Puts a table of cases, each a run of a handful of rows, to one check, and compares its answers."""

import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, groupby
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from harness.analysis.check_helpers.findings import EVIDENCE_LIMIT
from harness.analysis.frames import TASKS_A_PART
from harness.analysis.running import unknown_runs
from harness.contracts import registry
from harness.contracts.checks import Check, Settings, Severity, handed_to
from harness.verdict import SystemVerdict
from tests.analysis.fact_rows import Row, facts, remark
from tests.analysis.protocol_rows import configured

STRICT = Settings(
    acks=frozenset({-1}),
    min_insync_replicas=2,
    unclean_leader_election=False,
    idempotence=True,
    producers_expire=False,
)
UNCLEAN = replace(STRICT, unclean_leader_election=True)
POWER_LOSS = replace(STRICT, power_loss=True)
DELETING = replace(STRICT, deleting_topics="orders,events")
COMPACTED = replace(STRICT, compacted_topics="orders")
FROM_ANYWHERE = replace(STRICT, read_from_start=False)
NOT_IDEMPOTENT = replace(STRICT, idempotence=False)

OF_A_LARGE_HISTORY = {"spark.sql.shuffle.partitions": str(3 * TASKS_A_PART)}
"""With this setting of Sail what is made of a history is made part by part."""

UNREADABLE = remark("operations/c0.jsonl", "unreadable lines", 1)
UNHEARD = remark("brokers/2/x", "missing lines, by their numbers", 2)
NOT_UNIQUE = remark("value ids", "sent more than once, first a", 1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A few events and what a check must make of them."""

    rows: list[Row]
    settings: Settings = STRICT
    verdict: SystemVerdict
    severities: list[str]
    offsets: list[int] | None = None
    epochs: list[int] | None = None
    """Leader epochs of the findings."""
    text: str = ""
    """Part of the reason or of the messages."""
    shown: str = ""
    """Part of the evidence."""
    facts: list[str] | None = None
    """What the events of the evidence are."""

    def without_each(self, *tables: str) -> dict[str, "Case"]:
        """Return, for each of the facts that a check needs, a case that lacks it and is UNKNOWN for that reason."""
        assert {table for table, _ in self.rows} >= set(tables)
        return {f"nothing in {table}": self._without(table) for table in tables}

    def with_unknown_cleaners(self) -> dict[str, "Case"]:
        """Return a case of a compacted topic without broker's logs, which is UNKNOWN for that reason."""
        rows = [row for row in self.rows if row[0] != "broker_logs"]
        case = unknown(*rows, configured(compacted=True), settings=self.settings, text="orders is compacted")
        return {"the topic is compacted, and no broker's log has it": case}

    def _without(self, table: str) -> "Case":
        rows = [row for row in self.rows if row[0] != table]
        return unknown(*rows, settings=self.settings, text=f"no rows in {table}")


def passes(*rows: Row, severities: Sequence[str] = (), **wanted: Any) -> Case:
    return Case(rows=[*rows], verdict=SystemVerdict.PASS, severities=[*severities], **wanted)


def noted(*rows: Row, **wanted: Any) -> Case:
    return passes(*rows, severities=["note"], **wanted)


def excused(*rows: Row, **wanted: Any) -> Case:
    return passes(*rows, severities=["expected"], **wanted)


def fails(*rows: Row, severities: Sequence[str] = ("violation",), **wanted: Any) -> Case:
    return Case(rows=[*rows], verdict=SystemVerdict.FAIL, severities=[*severities], **wanted)


def unknown(*rows: Row, **wanted: Any) -> Case:
    return Case(rows=[*rows], verdict=SystemVerdict.UNKNOWN, severities=[], **wanted)


@dataclass
class Answer:
    verdict: SystemVerdict = SystemVerdict.PASS
    reason: str = ""
    messages: list[str] = field(default_factory=list)
    severities: list[str] = field(default_factory=list)
    offsets: list[int | None] = field(default_factory=list)
    epochs: list[int | None] = field(default_factory=list)
    evidence: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Batch:
    """Cases with the same settings, as facts."""

    cases: Mapping[str, Case]
    facts: dict[str, DataFrame]


TABLES: list[Mapping[str, Case]] = []
"""Every table of cases of the modules that are imported."""


def table_of(check: str, cases: Mapping[str, Case]) -> Callable[..., None]:
    """Return a test that puts every case to a check."""
    TABLES.append(cases)

    @cache
    def answers(spark: SparkSession) -> dict[str, Answer]:
        plugin = registry.check(check)
        return {name: answer for batch in batches_of(spark, cases) for name, answer in judged(plugin, batch).items()}

    @pytest.mark.spark
    @pytest.mark.parametrize("case", cases)
    def test(case: str, spark: SparkSession) -> None:
        confirm(cases[case], answers(spark)[case])

    return test


def tables_in(check: str) -> list[Mapping[str, Case]]:
    """Return the tables of cases of a check, by the name of its module."""
    name = f"tests.checks.test_{check}"
    TABLES.clear()
    sys.modules.pop(name, None)
    importlib.import_module(name)
    return list(TABLES)


def batches_of(spark: SparkSession, cases: Mapping[str, Case]) -> list[Batch]:
    """Return the cases as facts, a run each; those with other settings are judged by another job."""
    batches = []
    for part in alike(cases):
        rows = [(table, row | {"run_id": name}) for name, case in part.items() for table, row in case.rows]
        batches.append(Batch(part, facts(spark, *rows)))
    return batches


def alike(cases: Mapping[str, Case]) -> list[dict[str, Case]]:
    """Return the cases in groups with the same settings."""

    def settings(item: tuple[str, Case]) -> str:
        return repr(item[1].settings)

    return [dict(group) for _, group in groupby(sorted(cases.items(), key=settings), key=settings)]


def confirm(case: Case, answer: Answer) -> None:
    """Compare an answer with what the case wants."""
    assert answer.verdict is case.verdict, [answer.reason, *answer.messages]
    assert case.text in " ".join([answer.reason, *answer.messages])
    assert case.shown in " ".join(chain.from_iterable(answer.evidence))
    assert answer.severities == case.severities
    assert case.facts is None or [json.loads(event)["fact"] for event in chain(*answer.evidence)] == case.facts
    assert case.offsets is None or answer.offsets == case.offsets
    assert case.epochs is None or answer.epochs == case.epochs


def judged(plugin: Check, batch: Batch) -> dict[str, Answer]:
    """Return what a check answers to each case."""
    cases, tables = batch.cases, batch.facts
    counts = {
        name: {table: sum(table == of for of, _ in case.rows) for table in tables} for name, case in cases.items()
    }
    answers = {
        name: Answer(SystemVerdict.UNKNOWN, reason)
        for (name, _), reason in unknown_runs([plugin], tables, counts).items()
    }
    answers |= {name: Answer() for name in cases if name not in answers}
    settings = next(iter(cases.values())).settings
    reasons = {allowance.reason for allowance in plugin.excused_by}
    for row in plugin.findings(handed_to(plugin, tables), settings).orderBy("offset", "message").collect():
        answer = answers[row.run_id]
        if answer.verdict is SystemVerdict.UNKNOWN:
            continue
        assert row.check == plugin.name, "a finding is signed by its check"
        assert row.message, "a finding says what is wrong"
        assert 0 < len(row.evidence) <= EVIDENCE_LIMIT, "a finding shows the events, and not too many"
        allowed = reasons if row.severity == Severity.EXPECTED else {None}
        assert row.excuse in allowed, "what is expected says why, and nothing else does"
        answer.verdict = SystemVerdict.FAIL if row.severity == Severity.VIOLATION else answer.verdict
        answer.messages.append(row.message)
        answer.severities.append(row.severity)
        answer.offsets.append(row.offset)
        answer.epochs.append(row.leader_epoch)
        answer.evidence.append(row.evidence)
    return answers
