"""Judges runs: lines to facts, facts to findings, findings to one answer a check.

All runs given at once are judged by the same jobs, each finding under its own run id; one run folder is the usual case.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness.analysis.excuses import within_power_losses
from harness.analysis.facts.build import Facts, built_facts, row_counts
from harness.analysis.frames import union
from harness.analysis.hadoop import AnyResultFolder, Folder, remove
from harness.analysis.origins import PLACES, kinds_of
from harness.analysis.schemas import TORN
from harness.analysis.session import spark_session, tuned
from harness.analysis.sources import Sources, read
from harness.analysis.storage import literal_glob
from harness.contracts import registry
from harness.contracts.checks import FINDING_COLUMNS, Check, Settings, Severity
from harness.errors import not_interrupted
from harness.store.folder import RunFolder
from harness.store.result import CheckResult
from harness.verdict import SystemVerdict

logger = logging.getLogger(__name__)

MESSAGE_LIMIT = 300
"""Characters of an error's first line."""
ATTEMPTS = 40
"""Jobs by which the runs are looked for that break a check, before it is given up for the rest of them."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about some runs."""

    run_ids: Sequence[str]
    settings: Settings
    checks: Sequence[str] = ()
    """Names; none for all."""

    def plugins(self) -> list[Check]:
        """Return the checks; raises PluginError when there is none of one of the names."""
        return [registry.check(name) for name in self.checks or registry.names(registry.Kind.CHECK)]


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
    with spark_session(size_bytes=sum(folder.evidence_bytes() for folder in folders)) as spark:
        question = Question(run_ids=[folder.run_id for folder in folders], settings=settings, checks=checks)
        return judge_sources(spark, read(spark, folders), [question], into=into)


def judge_sources(
    spark: SparkSession,
    sources: Sources,
    questions: Sequence[Question],
    *,
    into: AnyResultFolder,
    kept: bool = True,
) -> list[Judgement]:
    """Return what the checks make of each of the runs that the sources hold, wherever these come from.

    The facts are made once, whatever is asked of which run. Findings are written to the folder `into`; so are the facts
    if they are `kept`.

    Args:
        spark: An open session.
        sources: The lines of all runs.
        questions: No run is in two of them; the answers have their order.
        into: Where findings and facts go.
        kept: Whether the facts are written.

    Raises:
        PluginError: there is no check of one of the names.
    """
    run_ids = [run_id for question in questions for run_id in question.run_ids]
    asked = [(question, question.plugins()) for question in questions]
    checks_of = {run_id: checks for question, checks in asked for run_id in question.run_ids}
    remove(into.findings)
    size_bytes, together = sources.size_bytes, sources.together
    with tuned(spark, size_bytes, together=together), built_facts(sources, into.facts, write=kept) as facts:
        counts = row_counts(facts, run_ids)
        unknown: Unknown = {}
        for question, checks in asked:
            of_runs = facts if len(questions) == 1 else _only(facts, question.run_ids)
            rows = {run_id: counts[run_id] for run_id in question.run_ids}
            unknown |= _run_checks(spark, checks, of_runs, question.settings, rows, into.findings)
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
                    damaged.get(run_id, {}),
                )
                for plugin in checks_of[run_id]
            ],
            evidence=remarks.get(run_id, []),
            damaged=run_id in damaged,
            counts=dict(counts[run_id]),
        )
        for run_id in run_ids
    ]


Unknown = dict[tuple[str, str], str]
"""Why a run could not be judged, by run id and check."""


def _run_checks(
    spark: SparkSession,
    plugins: Sequence[Check],
    facts: Facts,
    settings: Settings,
    counts: Mapping[str, Mapping[str, int]],
    folder: Folder,
) -> Unknown:
    """Add the findings of all checks to `folder` by one job; return which runs could not be judged by which check.

    Where that job breaks, the checks are asked one by one, and one that breaks about fewer and fewer runs, so that
    neither a bad check nor a bad run costs the answers of others.
    """
    unknown = unknown_runs(plugins, facts, counts)

    def write(checks: Sequence[Check], run_ids: Sequence[str] | None = None) -> None:
        of_runs = facts if run_ids is None else _only(facts, run_ids)
        rows = union([check.findings(of_runs, settings) for check in checks])
        if settings.power_loss:
            rows = within_power_losses(rows, of_runs)
        if unknown:
            rows = rows.join(_pairs(spark, unknown), on=["run_id", "check"], how="left_anti")
        rows.write.mode("append").partitionBy("check").parquet(str(folder))

    asked = [check for check in plugins if any((run_id, check.name) not in unknown for run_id in counts)]
    for check, _ in _broken(asked, write):
        run_ids = [run_id for run_id in counts if (run_id, check.name) not in unknown]
        for run_id, error in _broken_runs(run_ids, partial(_about, write, check)):
            unknown[(run_id, check.name)] = _broke(error)
            logger.warning("check.failed check=%s run=%s error=%s", check.name, run_id, _first_line(error))
    return unknown


def _about(write: Callable[[Sequence[Check], Sequence[str]], None], check: Check, run_ids: Sequence[str]) -> None:
    write([check], run_ids)


def _only(facts: Facts, run_ids: Sequence[str]) -> Facts:
    return {name: frame.where(F.col("run_id").isin(list(run_ids))) for name, frame in facts.items()}


def _pairs(spark: SparkSession, unknown: Unknown) -> DataFrame:
    """One row a run and check; from Arrow, because from Python objects Spark would start Python workers."""
    run_ids, checks = zip(*unknown, strict=True)
    return spark.createDataFrame(pa.table({"run_id": list(run_ids), "check": list(checks)}))


def _broken(checks: Sequence[Check], job: Callable[[Sequence[Check]], None]) -> list[tuple[Check, Exception]]:
    """Do a job for all checks at once, or else for each alone; return those for which it cannot be done."""
    if not checks:
        return []
    try:
        job(checks)
    except Exception as error:  # noqa: BLE001  a check is a plugin: what it raises must not stop the others
        not_interrupted(error)
        if len(checks) == 1:
            return [(checks[0], error)]
        return [each for check in checks for each in _broken([check], job)]
    return []


def _broken_runs(run_ids: Sequence[str], job: Callable[[Sequence[str]], None]) -> list[tuple[str, Exception]]:
    """Do a job for the runs by halves; return those for which it cannot be done, or was given up."""
    broken: list[tuple[str, Exception]] = []
    waiting: list[Sequence[str]] = [run_ids]
    for attempt in count(1):
        if not waiting:
            break
        part = waiting.pop()
        try:
            job(part)
        except Exception as error:  # noqa: BLE001  a check is a plugin: what it raises must not stop the others
            not_interrupted(error)
            if len(part) == 1 or attempt >= ATTEMPTS:
                broken += [(run_id, error) for run_id in part]
            else:
                waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
    return broken


def _broke(error: Exception) -> str:
    return f"the check broke: {type(error).__name__}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:MESSAGE_LIMIT]


def unknown_runs(checks: Sequence[Check], facts: Facts, counts: Mapping[str, Mapping[str, int]]) -> Unknown:
    """Return why runs cannot be judged by a check: a fact without rows, or an assumption that fails.

    Args:
        checks: The checks; all are asked by one job.
        facts: All facts of all runs.
        counts: Rows a fact, by run id.
    """
    unknown: Unknown = {}

    def ask(asked: Sequence[Check]) -> None:
        reasons = [(check.name, check.unknown(facts)) for check in asked]
        named = [
            rows.select("run_id", F.lit(name).alias("check"), "reason") for name, rows in reasons if rows is not None
        ]
        if named:
            rows = union(named).groupBy("run_id", "check").agg(F.min("reason").alias("reason"))
            unknown.update({(row.run_id, row.check): row.reason for row in rows.collect()})

    for check, error in _broken(checks, ask):
        unknown.update({(run_id, check.name): _broke(error) for run_id in counts})
    for run_id, rows in counts.items():
        for check in checks:
            empty = [name for name in check.needs if not rows[name]]
            if empty:
                unknown[(run_id, check.name)] = f"nothing to judge: no rows in {', '.join(empty)}"
    return unknown


def _read_findings(spark: SparkSession, folder: Folder) -> dict[tuple[str, str, str], _Found]:
    """Return how often each check found what in each run, by run id, check and severity."""
    if not any(folder.glob("check=*")):
        return {}  # nothing was found
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in FINDING_COLUMNS)
    place = F.struct("topic", "partition", "offset", "leader_epoch", "message")
    rows = (
        spark.read.schema(schema)
        .parquet(literal_glob(str(folder)))
        .groupBy("run_id", "check", "severity")
        .agg(F.count("*").alias("number"), F.min_by("message", place).alias("first"))
    )
    return {(row.run_id, row.check, row.severity): _Found(row.number, row.first) for row in rows.collect()}


def _result(check: Check, unknown: str, found: Mapping[Severity, _Found], damaged: Mapping[str, str]) -> CheckResult:
    """Return one check's answer on one run: what was found stands, but no promise is kept in evidence with holes.

    Args:
        check: The check.
        unknown: Why it cannot judge the run, if so.
        found: What it found.
        damaged: A remark on every kind of evidence that has holes.
    """
    violations = found[Severity.VIOLATION]
    holes = [] if violations.number else [damaged[kind] for kind in kinds_of(check.needs) if kind in damaged]
    if unknown or holes:
        reason = unknown or f"nothing was found, in evidence that is damaged: {holes[0]}"
        return CheckResult(check=check.name, promise=check.promise, verdict=SystemVerdict.UNKNOWN.name, reason=reason)
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


def _remarks(evidence: DataFrame, limit: int) -> tuple[dict[str, list[str]], dict[str, dict[str, str]]]:
    """Return the remarks on the evidence of each run, in a sentence each; and of the runs with holes, one a kind."""
    sentence = F.format_string("%s: %d %s", "subject", "count", "problem")
    place = F.coalesce(*(F.when(F.col("subject").startswith(place), kind) for kind, place in PLACES.items()))
    holes = (
        evidence.where(F.col("problem") != TORN)
        .groupBy("run_id", F.coalesce(place, F.lit("")).alias("kind"))
        .agg(F.min(sentence).alias("remark"))
    )
    damaged: dict[str, dict[str, str]] = {}
    for row in holes.collect():
        damaged.setdefault(row.run_id, {})[row.kind] = row.remark
    remarks: dict[str, list[str]] = {}
    for row in evidence.orderBy("run_id", "subject", "problem").limit(limit).collect():
        remarks.setdefault(row.run_id, []).append(f"{row.subject}: {row['count']} {row.problem}")
    return remarks, damaged
