"""A check declares what it reads, answers in the columns of findings, and accuses no intact cluster."""

from typing import TYPE_CHECKING

import pytest

from harness.analysis.engine.session import spark_session
from harness.analysis.judge import judge
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import no_rows, of_table
from harness.analysis.tables.schemas import TABLES
from harness.contracts import registry
from harness.contracts.checks import FINDING_COLUMNS, handed_to, subjects
from harness.events import KINDS
from harness.progress import Silent
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.verdict import SystemVerdict
from kafka_chaos.conformance.chosen import chosen
from kafka_chaos.testing import EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def engine() -> "Iterator[SparkSession]":
    """A session of the engine that judges."""
    with spark_session(progress=Silent()) as session:
        yield session


@pytest.fixture(scope="module")
def answers(
    request: pytest.FixtureRequest, intact_run: RunFolder, engine: "SparkSession"
) -> dict[str, tuple[SystemVerdict, str]]:
    """What each check says of an intact run."""
    names = chosen(request.config, registry.Kind.CHECK)
    settings = Run.load(intact_run).settings
    judgement = judge(intact_run, settings, names, Silent())
    return {each.check: (each.verdict, each.reason) for each in judgement.checks}


def test_it_declares_a_promise_and_what_it_reads(check_name: str) -> None:
    check = registry.check(check_name)
    assert check.promise.endswith("."), "a promise is a sentence"
    assert check.needs, "a check without needed facts would pass without evidence"
    assumed = [fact for each in check.assumes for fact in each.facts]
    assumed += [fact for each in subjects(check) for fact in each.facts]
    unknown = {*check.needs, *check.reads, *assumed} - set(TABLES)
    assert not unknown, f"there are no such facts; `chaos list` and docs/reference/facts.md name them: {unknown}"
    assert {field.partition(".")[0] for field in check.fields} <= set(KINDS)
    assert set(check.judges_without) <= {*KINDS, *SCHEMAS}


def test_it_answers_in_the_columns_of_findings_with_the_facts_that_it_declares(
    check_name: str, engine: "SparkSession"
) -> None:
    check = registry.check(check_name)
    empty = {name: no_rows(engine, of_table(table)) for name, table in TABLES.items()}
    findings = check.findings(handed_to(check, empty), EXAMPLE)
    assert findings.columns == [name for name, _ in FINDING_COLUMNS]
    assert findings.count() == 0, "it reports findings without any evidence of events"


def test_it_accuses_no_intact_cluster(check_name: str, answers: dict[str, tuple[SystemVerdict, str]]) -> None:
    verdict, reason = answers[registry.check(check_name).name]
    assert verdict is not SystemVerdict.FAIL, reason
