"""Judges runs: lines to facts, facts to findings, findings to one answer a check.

All runs given at once are judged by the same jobs, each finding under its own run id; one run folder is the usual case.
"""

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness import registry
from harness.analysis.facts.build import Facts, cached, in_threads, row_counts, write_facts
from harness.analysis.schemas import TORN
from harness.analysis.session import for_small_data, spark_session
from harness.analysis.sources import Sources, read
from harness.checks import FINDING_COLUMNS, Check, Settings, Severity
from harness.result import CheckResult
from harness.store import RunFolder
from harness.verdict import SystemVerdict

logger = logging.getLogger(__name__)

MESSAGE_LIMIT = 300
"""Characters of an error's first line."""
REMARKS_LIMIT = 50
"""Remarks on the evidence of a run that are handed on; the fact `evidence` has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the checks make of one run."""

    run_id: str
    checks: list[CheckResult]
    """In the order in which the checks were named."""
    evidence: list[str]
    """Remarks on the quality of the evidence, in a sentence each."""
    damaged: bool
    """Whether one of them is about more than the torn last line that a kill can leave."""
    counts: dict[str, int]
    """Rows a fact."""


@dataclass(frozen=True, slots=True)
class _Found:
    """How often a check found something of one severity in one run, and the first of it."""

    number: int = 0
    first: str = ""


def judge(folder: RunFolder, settings: Settings, checks: Sequence[str] = ()) -> Judgement:
    """Return what the named checks, or all, make of one run; facts and findings are written to its folder."""
    (judgement,) = judge_runs([folder], settings, checks, into=folder)
    return judgement


def judge_runs(
    folders: Sequence[RunFolder], settings: Settings, checks: Sequence[str] = (), *, into: RunFolder
) -> list[Judgement]:
    """Return what the checks make of each run; the facts and findings of all are written to the folder `into`.

    A check that cannot be run is UNKNOWN, with the reason; the others go on.

    Raises:
        PluginError: there is no check of one of the names.
    """
    with spark_session() as spark:
        run_ids = [folder.run_id for folder in folders]
        return judge_sources(spark, read(spark, folders), run_ids, settings, checks, into=into)


def judge_sources(
    spark: SparkSession,
    sources: Sources,
    run_ids: Sequence[str],
    settings: Settings,
    checks: Sequence[str] = (),
    *,
    into: RunFolder,
) -> list[Judgement]:
    """Return what the checks make of each of the runs that the sources hold, wherever these come from."""
    plugins = [registry.check(name) for name in checks or registry.names(registry.Kind.CHECK)]
    with for_small_data(spark, sources.size_bytes):
        facts = write_facts(spark, sources, into.facts)
        counts = row_counts(into.facts, run_ids)
        with cached(facts.values()):
            unknown = _run_checks(plugins, facts, settings, counts, into.findings)
        found = _read_findings(spark, into.findings)
        remarks, damaged = _remarks(facts["evidence"], REMARKS_LIMIT * len(run_ids))
    return [
        Judgement(
            run_id=run_id,
            checks=[
                _result(
                    plugin,
                    unknown.get((run_id, plugin.name), ""),
                    {severity: found.get((run_id, plugin.name, severity), _Found()) for severity in Severity},
                )
                for plugin in plugins
            ],
            evidence=remarks.get(run_id, []),
            damaged=run_id in damaged,
            counts=dict(counts[run_id]),
        )
        for run_id in run_ids
    ]


def _run_checks(
    plugins: Sequence[Check], facts: Facts, settings: Settings, counts: Mapping[str, Mapping[str, int]], folder: Path
) -> dict[tuple[str, str], str]:
    """Write each check's findings to `folder`; return why a run could not be judged, by run id and check."""
    unknown: dict[tuple[str, str], str] = {}
    shutil.rmtree(folder, ignore_errors=True)

    def run(check: Check) -> None:
        try:
            reasons = unknown_runs(check, facts, counts)
            judged = [run_id for run_id in counts if run_id not in reasons]
            unknown.update({(run_id, check.name): reason for run_id, reason in reasons.items()})
            if judged:
                rows = check.findings(facts, settings).where(F.col("run_id").isin(judged)).drop("check")
                rows.write.mode("overwrite").parquet(str(folder / f"check={check.name}"))
        except Exception as error:  # noqa: BLE001  a check is a plugin: what it raises must not stop the others
            logger.warning("check.failed check=%s error=%s", check.name, _first_line(error))
            reason = f"the check broke: {type(error).__name__}: {_first_line(error)}"
            unknown.update({(run_id, check.name): reason for run_id in counts})

    in_threads([partial(run, check) for check in plugins])
    return unknown


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:MESSAGE_LIMIT]


def unknown_runs(check: Check, facts: Facts, counts: Mapping[str, Mapping[str, int]]) -> dict[str, str]:
    """Return why runs cannot be judged by a check, by run id: a fact without rows, or an assumption that fails.

    Args:
        check: The check.
        facts: All facts of all runs.
        counts: Rows a fact, by run id.
    """
    empty = {run_id: [name for name in check.needs if not rows[name]] for run_id, rows in counts.items()}
    reasons = {run_id: f"nothing to judge: no rows in {', '.join(names)}" for run_id, names in empty.items() if names}
    return reasons | _failed_assumptions(check, facts, [run_id for run_id, names in empty.items() if not names])


def _failed_assumptions(check: Check, facts: Facts, run_ids: list[str]) -> dict[str, str]:
    """Ask about all runs at once, and by halves where something is wrong, until the runs are found that it is about."""
    if not run_ids:
        return {}
    reason = check.unknown({name: frame.where(F.col("run_id").isin(run_ids)) for name, frame in facts.items()})
    if not reason or len(run_ids) == 1:
        return dict.fromkeys(run_ids, reason) if reason else {}
    half = len(run_ids) // 2
    return _failed_assumptions(check, facts, run_ids[:half]) | _failed_assumptions(check, facts, run_ids[half:])


def _read_findings(spark: SparkSession, folder: Path) -> dict[tuple[str, str, str], _Found]:
    """Return how often each check found what in each run, by run id, check and severity."""
    if not any(folder.glob("check=*")):
        return {}
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in FINDING_COLUMNS)
    place = F.struct("topic", "partition", "offset", "leader_epoch", "message")
    rows = (
        spark.read.schema(schema)
        .parquet(str(folder))
        .groupBy("run_id", "check", "severity")
        .agg(F.count("*").alias("number"), F.min_by("message", place).alias("first"))
    )
    return {(row.run_id, row.check, row.severity): _Found(row.number, row.first) for row in rows.collect()}


def _result(check: Check, unknown: str, found: Mapping[Severity, _Found]) -> CheckResult:
    """Return one check's answer on one run."""
    if unknown:
        return CheckResult(check=check.name, promise=check.promise, verdict=SystemVerdict.UNKNOWN.name, reason=unknown)
    violations = found[Severity.VIOLATION]
    verdict = SystemVerdict.FAIL if violations.number else SystemVerdict.PASS
    return CheckResult(
        check=check.name,
        promise=check.promise,
        verdict=verdict.name,
        violations=violations.number,
        expected=found[Severity.EXPECTED].number,
        notes=found[Severity.NOTE].number,
        reason=violations.first,
    )


def _remarks(evidence: DataFrame, limit: int) -> tuple[dict[str, list[str]], set[str]]:
    """Return the remarks on the evidence of each run, in a sentence each, and the runs with holes in it."""
    remarks: dict[str, list[str]] = {}
    holes = evidence.where(F.col("problem") != TORN).select("run_id").distinct().collect()
    for row in evidence.orderBy("run_id", "subject", "problem").limit(limit).collect():
        remarks.setdefault(row.run_id, []).append(f"{row.subject}: {row['count']} {row.problem}")
    return remarks, {row.run_id for row in holes}
