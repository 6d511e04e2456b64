"""Puts one check to a table of cases, each a handful of rows, and says what it answers to each.

Every case is a run of its own, so one Spark job judges all cases that share their settings: quick, and proof that a
check keeps runs apart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

import pytest
from pyspark.sql import SparkSession

from harness import registry
from harness.analysis.judge import unknown_runs
from harness.checks import Settings, Severity
from harness.verdict import SystemVerdict
from tests.analysis.fact_rows import Row, facts, remark

STRICT = Settings(acks=frozenset({-1}), min_insync_replicas=2, unclean_leader_election=False, idempotence=True)
UNCLEAN = replace(STRICT, unclean_leader_election=True)
POWER_LOSS = replace(STRICT, power_loss=True)
NOT_IDEMPOTENT = replace(STRICT, idempotence=False)

NOT_UNIQUE = remark("value ids", "sent more than once, first a", 1)

PASS, FAIL, UNKNOWN = SystemVerdict.PASS, SystemVerdict.FAIL, SystemVerdict.UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Case:
    """A few events and what a check must make of them."""

    rows: list[Row]
    settings: Settings = STRICT
    verdict: SystemVerdict
    severities: list[str] | None = None
    offsets: list[int] | None = None
    said: str = ""
    """Part of the reason or of the messages."""


@dataclass
class Answer:
    verdict: SystemVerdict = PASS
    reason: str = ""
    messages: list[str] = field(default_factory=list)
    severities: list[str] = field(default_factory=list)
    offsets: list[int | None] = field(default_factory=list)
    evidence: list[list[str]] = field(default_factory=list)


def answers_of(check: str, cases: Mapping[str, Case]) -> Callable[..., dict[str, Answer]]:
    """Return a fixture with the check's answer to every case."""

    @pytest.fixture(scope="module")
    def answers(spark: SparkSession) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        together = sorted(cases.items(), key=_alike)
        for _, group in groupby(together, key=_alike):
            found |= _judged(spark, check, dict(group))
        return found

    return answers


def _alike(item: tuple[str, Case]) -> str:
    return repr(item[1].settings)


def confirm(case: Case, answer: Answer) -> None:
    """Compare what was answered with what must be."""
    assert answer.verdict is case.verdict, [answer.reason, *answer.messages]
    assert case.said in " ".join([answer.reason, *answer.messages])
    assert case.severities is None or answer.severities == case.severities
    assert case.offsets is None or answer.offsets == case.offsets


def _judged(spark: SparkSession, check: str, cases: Mapping[str, Case]) -> dict[str, Answer]:
    plugin = registry.check(check)
    rows = [(table, row | {"run_id": name}) for name, case in cases.items() for table, row in case.rows]
    given = facts(spark, *rows)
    counts = {name: {table: sum(table == of for of, _ in case.rows) for table in given} for name, case in cases.items()}
    answers = {name: Answer(UNKNOWN, reason) for (name, _), reason in unknown_runs([plugin], given, counts).items()}
    answers |= {name: Answer() for name in cases if name not in answers}
    settings = next(iter(cases.values())).settings
    for row in plugin.findings(given, settings).orderBy("offset", "message").collect():
        answer = answers[row.run_id]
        if answer.verdict is UNKNOWN:
            continue
        assert row.check == check, "a finding is signed by its check"
        assert row.message, "a finding says what is wrong"
        assert row.evidence, "a finding shows the events"
        answer.verdict = FAIL if row.severity == Severity.VIOLATION else answer.verdict
        answer.messages.append(row.message)
        answer.severities.append(row.severity)
        answer.offsets.append(row.offset)
        answer.evidence.append(row.evidence)
    return answers
