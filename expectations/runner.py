"""Runs the suites on a run's facts, writes Data Docs beside them, and says what came out.

Great Expectations is imported when the first suite runs, never before, and is told to send nothing home.
"""

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expectations.data_docs import make_offline
from harness.analysis.facts.build import read_facts
from harness.analysis.session import spark_session
from harness.result import SuiteResult
from harness.store import RunFolder
from harness.verdict import SystemVerdict

if TYPE_CHECKING:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
    from pyspark.sql import DataFrame

    from expectations.suites import Suite

os.environ["GX_ANALYTICS_ENABLED"] = "False"

FAILURES_SHOWN = 5
"""Rows of a failed expectation that its sentence names."""


def run(folder: RunFolder) -> list[SuiteResult]:
    """Return what each suite makes of the facts of a run; Data Docs and `expectations.json` are written beside them."""
    from expectations.suites import SUITES

    with spark_session() as spark:
        facts = read_facts(spark, folder.facts)
        context = _context(folder.data_docs)
        source = context.data_sources.add_spark("facts")
        results = [_validated(context, source, suite, facts[suite.fact], folder.run_id) for suite in SUITES]
        context.build_data_docs()
    make_offline(folder.data_docs, folder.run_id, results)
    answers = [result.model_dump(mode="json") for result in results]
    folder.expectations.write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")
    return results


def _context(data_docs: Path) -> "EphemeralDataContext":
    """Return a context that lives in memory, writes Data Docs to the run folder, and reports to nobody."""
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


def _validated(
    context: "EphemeralDataContext", source: "SparkDatasource", suite: "Suite", fact: "DataFrame", run_id: str
) -> SuiteResult:
    """Return what one suite makes of its fact; a fact without rows is no evidence, so UNKNOWN."""
    from great_expectations.core import RunIdentifier, ValidationDefinition

    batch = source.add_dataframe_asset(suite.fact).add_batch_definition_whole_dataframe("whole")
    definition = ValidationDefinition(name=suite.name, data=batch, suite=context.suites.add(suite.build()))
    if fact.isEmpty():
        return SuiteResult(suite=suite.name, verdict=SystemVerdict.UNKNOWN.name, evaluated=0, unsuccessful=0)
    result = context.validation_definitions.add(definition).run(
        batch_parameters={"dataframe": fact}, result_format="SUMMARY", run_id=RunIdentifier(run_name=run_id)
    )
    failures = [_told(single) for single in result.results if not single.success]
    broken = [_raised(single.exception_info) for single in result.results]
    verdict = SystemVerdict.PASS
    if any(broken):
        verdict = SystemVerdict.UNKNOWN
    if len(failures) > sum(broken):
        verdict = SystemVerdict.FAIL
    return SuiteResult(
        suite=suite.name,
        verdict=verdict.name,
        evaluated=len(result.results),
        unsuccessful=len(failures),
        failures=failures,
    )


def _raised(info: dict[str, Any] | None) -> bool:
    """Return whether an expectation broke as a program; the note has one entry a metric, or is one itself."""
    entries = [info or {}, *(entry for entry in (info or {}).values() if isinstance(entry, dict))]
    return any(entry.get("raised_exception") for entry in entries)


def _told(result: "ExpectationValidationResult") -> str:
    """Return a failed expectation as a sentence, with the first rows that failed it."""
    from expectations.windows import WindowExpectation

    assert result.expectation_config is not None, "a result carries the expectation that it is about"
    config = result.expectation_config
    expectation = config.to_domain_obj()
    if isinstance(expectation, WindowExpectation):
        sentence = expectation.told(config.kwargs)
    else:
        parameters = {name: value for name, value in config.kwargs.items() if name != "batch_id"}
        sentence = f"{config.type.replace('_', ' ')} {json.dumps(parameters)}."
    if _raised(result.exception_info):
        return f"{sentence} It could not be evaluated."
    shown = result.result.get("partial_unexpected_list", [])[:FAILURES_SHOWN]
    rows = f" First: {json.dumps(shown, default=str)}." if shown else ""
    return f"{sentence} {result.result.get('unexpected_count', 'Some')} rows do not.{rows}"
