"""Runs the suites on a run's tables as one checkpoint, writes Data Docs beside them, and says what came out.

Great Expectations is imported when the first suite runs, or shortly before (`import_library`), and is told to send
nothing home.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from expectations.lazy_modules import light_import
from harness.analysis.engine.jvm import watched
from harness.analysis.engine.session import spark_session
from harness.analysis.sources.lineage import FINDINGS
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder
from harness.store.result import SuiteResult
from harness.system.engine import by_jvm
from harness.verdict import SystemVerdict

if TYPE_CHECKING:
    import pandas as pd
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from pyspark.sql import DataFrame, SparkSession

    from expectations.suites import Suite
    from expectations.tables import StoredTable

os.environ["GX_ANALYTICS_ENABLED"] = "False"

FAILURES_SHOWN = 5
"""Rows of a failed expectation that its sentence names."""
CHECKPOINT = "judge"


def run(
    folder: RunFolder,
    settings: Settings,
    checks: Sequence[str] = (),
    unreliable: Mapping[str, str] = MappingProxyType({}),
    not_judged: Mapping[str, str] = MappingProxyType({}),
) -> list[SuiteResult]:
    """Return what each suite makes of its table; Data Docs and `expectations.json` are written to the run folder.

    Args:
        folder: A run that the checks have judged.
        settings: What the run was allowed to do.
        checks: Names of those that were asked, none for all. A suite about a table without rows that none of them
            needs is not asked either.
        unreliable: Why tables with damaged evidence prove nothing, by their names.
        not_judged: Why what was under test leaves no evidence for tables, by their names, or none that can be judged.

    A fact without rows is no evidence. That nothing was found is evidence, unless no check had any rows to judge.
    """
    import_library()
    from expectations.data_docs import make_offline
    from expectations.losses import losses_allowed
    from expectations.suites import SUITES
    from expectations.tables import stored_table

    may_lose = losses_allowed(folder, settings)
    needed = needed_tables(checks)
    context = _context(folder.data_docs)
    suites = [suite.where_losses_are_allowed() if may_lose else suite for suite in SUITES]
    judged = any(_row_count(folder, name) for name in needed - {FINDINGS})
    evidence = [
        (suite, table)
        for suite in suites
        if suite.table not in not_judged
        and (table := stored_table(folder, suite.table))
        and (table.row_count or (judged and suite.table == FINDINGS))
    ]
    too_large = [] if by_jvm() else [(suite, table) for suite, table in evidence if not table.can_be_held]
    answers = _answers(context, folder, [each for each in evidence if each not in too_large])
    answers |= {suite.name: _too_large(suite, table) for suite, table in too_large}
    context.build_data_docs()
    results = [
        _within_holes(answers.get(suite.name) or _no_evidence(suite, not_judged), unreliable.get(suite.table, ""))
        for suite in suites
        if suite.name in answers or suite.table in needed or suite.table in not_judged
    ]
    make_offline(folder.data_docs, folder.run_id, results)
    stored = [result.model_dump(mode="json") for result in results]
    folder.expectations.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
    return results


def import_library() -> None:
    """Import the suites, and Great Expectations with them."""
    with light_import():
        import expectations.suites  # noqa: F401


def needed_tables(checks: Sequence[str]) -> set[str]:
    """Return the tables without which a run cannot pass: what its checks need, and what they found."""
    validated = [registry.check(name) for name in checks or registry.names(registry.Kind.CHECK)]
    return {FINDINGS, *(name for check in validated for name in check.needs)}


def _context(data_docs: Path) -> "EphemeralDataContext":
    """Return a context that lives in memory, writes Data Docs to the run folder, and sends no usage statistics."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    shutil.rmtree(data_docs, ignore_errors=True)
    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(data_docs.resolve())},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        data_docs_sites={"run": site},
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def _answers(
    context: "EphemeralDataContext", folder: RunFolder, validated: "Sequence[tuple[Suite, StoredTable]]"
) -> dict[str, SuiteResult]:
    """Return what the suites say, by name; all are run as one checkpoint."""
    from great_expectations.checkpoint.checkpoint import Checkpoint
    from great_expectations.core import RunIdentifier, ValidationDefinition

    from expectations.validation import TableValidation

    with watched(), ExitStack() as stack:
        validations: list[ValidationDefinition] = []
        for suite, table in validated:
            in_memory = table.is_small or not by_jvm()  # Great Expectations does not speak Spark Connect
            session = None if in_memory else stack.enter_context(spark_session())
            frame = _frame(folder, suite, table, session)
            validations.append(TableValidation.of(context, suite, frame))
        if not validations:
            return {}
        checkpoint = Checkpoint(name=CHECKPOINT, validation_definitions=validations)
        results = checkpoint.run(run_id=RunIdentifier(run_name=folder.run_id)).run_results.values()
    by_name = {suite.name: suite for suite, _table in validated}
    return {result.suite_name: _answer(by_name[result.suite_name], result) for result in results}


def _frame(
    folder: RunFolder, suite: "Suite", table: "StoredTable", spark: "SparkSession | None"
) -> "pd.DataFrame | DataFrame":
    """Return the rows that a suite judges: in Spark where there is a session, else in this process."""
    from expectations.readable_end import READABLE_END, pandas_with_readable_end, spark_with_readable_end

    written = [name for name in suite.columns if name != READABLE_END]
    needs_end = len(written) < len(suite.columns)
    if spark is None:
        rows = table.in_pandas(written)
        return pandas_with_readable_end(rows, folder) if needs_end else rows
    frame = table.in_spark(spark, written)
    return spark_with_readable_end(frame, folder) if needs_end else frame


def _row_count(folder: RunFolder, name: str) -> int:
    from expectations.tables import stored_table

    table = stored_table(folder, name)
    return table.row_count if table else 0


def _too_large(suite: "Suite", table: "StoredTable") -> SuiteResult:
    return SuiteResult(
        suite=suite.name,
        verdict=SystemVerdict.UNKNOWN,
        evaluated=0,
        unsuccessful=0,
        reason=f"{suite.table} has {table.row_count:,} rows, which only Apache Spark can judge (--engine spark)",
    )


def _no_evidence(suite: "Suite", not_judged: Mapping[str, str]) -> SuiteResult:
    expected = suite.table in not_judged
    return SuiteResult(
        suite=suite.name,
        verdict=SystemVerdict.NOT_JUDGED if expected else SystemVerdict.UNKNOWN,
        evaluated=0,
        unsuccessful=0,
        reason=not_judged.get(suite.table, f"nothing to judge: no rows in {suite.table}"),
    )


def _within_holes(result: SuiteResult, why: str) -> SuiteResult:
    """Return the answer, or that there is none: what was damaged may meet expectations, or fail them, by chance."""
    return result.model_copy(update={"verdict": SystemVerdict.UNKNOWN, "reason": why}) if why else result


def _answer(suite: "Suite", result: "ExpectationSuiteValidationResult") -> SuiteResult:
    """Return the result of one suite; an expectation that raised an error proves nothing."""
    failures = [_describe(single) for single in result.results if not single.success]
    broken = sum(_raised(single.exception_info) for single in result.results)
    verdict = SystemVerdict.UNKNOWN if broken else SystemVerdict.PASS
    if len(failures) > broken:
        verdict = SystemVerdict.FAIL
    excused = [single for single in result.results if single.success and suite.is_losable(_config(single).type)]
    return SuiteResult(
        suite=suite.name,
        verdict=verdict,
        evaluated=len(result.results),
        unsuccessful=len(failures),
        failures=failures,
        expected=[_describe(single) for single in excused if single.result.get("unexpected_count")],
    )


def _config(result: "ExpectationValidationResult") -> "ExpectationConfiguration":
    assert result.expectation_config is not None, "a result carries the expectation that it is about"
    return result.expectation_config


def _raised(info: dict[str, Any] | None) -> bool:
    """Return whether an expectation broke as a program; the note has one entry a metric, or is one itself."""
    entries = [info or {}, *(entry for entry in (info or {}).values() if isinstance(entry, dict))]
    return any(entry.get("raised_exception") for entry in entries)


def _describe(result: "ExpectationValidationResult") -> str:
    """Return a failed expectation as a sentence, with the first rows that failed it."""
    from expectations.row_expectation import RowExpectation

    config = _config(result)
    expectation = config.to_domain_obj()
    if isinstance(expectation, RowExpectation):
        sentence = expectation.sentence_for(config.kwargs)
    else:
        parameters = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
        sentence = f"{config.type.replace('_', ' ')} {json.dumps(parameters)}."
    if _raised(result.exception_info):
        return f"{sentence} It could not be evaluated."
    shown = result.result.get("partial_unexpected_list", [])[:FAILURES_SHOWN]
    rows = f" First: {'; '.join(map(_row, shown))}." if shown else ""
    return f"{sentence} {result.result.get('unexpected_count', 'Some')} rows break this.{rows}"


def _row(row: Any) -> str:
    """Return a row, or the value of one column, as a reader of one run needs it."""
    if not isinstance(row, dict):
        return str(row)
    return ", ".join(f"{name} {value}" for name, value in row.items() if name != "run_id")
