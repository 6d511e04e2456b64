"""Judges runs: lines to facts, facts to findings, findings to one answer a check.

All runs given at once are judged by the same jobs, each finding under its own run id; one run folder is the usual case.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.dialect import require_same_files, to_read, to_write
from harness.analysis.engine.hadoop import AnyResultFolder, Folder, remove
from harness.analysis.engine.halves import by_halves
from harness.analysis.engine.jvm import still_there
from harness.analysis.engine.session import spark_session, tuned
from harness.analysis.facts.build import Facts, built_facts, row_counts, through_disk, written_counts
from harness.analysis.frames import in_turn, union
from harness.analysis.gate import sliced
from harness.analysis.sources.origins import PLACES, kinds_of
from harness.analysis.sources.reading import Sources, read
from harness.analysis.tables.schemas import TABLES, TORN
from harness.analysis.vocabulary.excuses import within_power_losses
from harness.analysis.vocabulary.findings import phrase
from harness.analysis.vocabulary.settings import settings_at_once
from harness.contracts import registry
from harness.contracts.checks import (
    FINDING_COLUMNS,
    READ_BY_ALL,
    READ_FOR_POWER_LOSSES,
    Assumption,
    Check,
    Settings,
    Severity,
    Sliced,
    assumptions,
    handed_to,
    read_by,
)
from harness.progress import Listener, Silent, number_of, step
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from harness.store.result import CheckResult, Remark
from harness.verdict import SystemVerdict

logger = logging.getLogger(__name__)

Part = TypeVar("Part", Check, Assumption)

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
    remarks: list[Remark]
    """On the quality of the evidence; all but the torn last line that a kill can leave forbid a PASS."""
    counts: dict[str, int]
    """Rows a fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about some runs."""

    settings: Mapping[str, Settings]
    """What each run was allowed to do, by its id."""
    checks: Sequence[str] = ()
    """Names; none for all."""

    def plugins(self) -> list[Check]:
        """Return the checks; raises PluginError when there is none of one of the names."""
        return [registry.check(name) for name in self.checks or registry.names(registry.Kind.CHECK)]


Criteria = tuple[Settings, tuple[str, ...]]
"""By what a run is judged: what it was allowed to do, and the names of checks, none for all."""


def questions(criteria: Mapping[str, Criteria]) -> list[Question]:
    """Return what is asked of runs, by their ids; those that the same checks judge stand together."""
    by_checks: dict[tuple[str, ...], dict[str, Settings]] = {}
    for run_id, (settings, checks) in criteria.items():
        by_checks.setdefault(checks, {})[run_id] = settings
    return [Question(settings=settings, checks=checks) for checks, settings in by_checks.items()]


@dataclass(frozen=True, slots=True)
class _Number:
    """How often a check found something of one severity in one run, and the first of it."""

    number: int = 0
    first: str = ""


def judge(
    folder: RunFolder, settings: Settings, checks: Sequence[str] = (), progress: Listener | None = None
) -> Judgement:
    """Return what the named checks, or all, make of one run; facts and findings are written to its folder."""
    (judgement,) = judge_runs([folder], settings, checks, into=folder, progress=progress)
    return judgement


def judge_runs(
    folders: Sequence[RunFolder],
    settings: Settings,
    checks: Sequence[str] = (),
    *,
    into: RunFolder,
    progress: Listener | None = None,
) -> list[Judgement]:
    """Return what the checks make of each run; the facts and findings of all are written to the folder `into`.

    A check that cannot be run is UNKNOWN, with the reason; the others go on.

    Raises:
        PluginError: there is no check of one of the names.
        SparkError: Spark has ended.
    """
    with spark_session(size_bytes=sum(folder.evidence_bytes() for folder in folders), anywhere=True) as spark:
        question = Question(settings={folder.run_id: settings for folder in folders}, checks=checks)
        return judge_sources(spark, read(spark, folders), [question], into=into, progress=progress)


def judge_sources(
    spark: SparkSession,
    sources: Sources,
    questions: Sequence[Question],
    *,
    into: AnyResultFolder,
    keep: bool = True,
    progress: Listener | None = None,
) -> list[Judgement]:
    """Return what the checks make of each of the runs that the sources hold, wherever these come from.

    The facts are made once, whatever is asked of which run. Findings are written to the folder `into`; so are the facts
    too, to `keep` them. Otherwise those are not made that no check reads.

    Args:
        spark: An open session.
        sources: The lines of all runs.
        questions: No run is in two of them; the answers have their order.
        into: Where findings and facts go.
        keep: Whether the facts are written.
        progress: Whoever wants to see how it goes on.

    Raises:
        PluginError: there is no check of one of the names.
    """
    progress = progress or Silent()
    run_ids = [run_id for question in questions for run_id in question.settings]
    checks_of = [(question, question.plugins()) for question in questions]
    if isinstance(into.root, Path):
        require_same_files(spark, into.root)
    remove(into.findings)
    size_bytes, together = sources.size_bytes, sources.together
    fitted = tuned(spark, size_bytes, read_bytes=sources.read_bytes, together=together)
    with fitted, ExitStack() as stack:
        with step(progress, f"facts are made of {size_bytes / 1e6:.1f} MB of evidence"):
            names = TABLES if keep else _read_by(checks_of)
            facts = stack.enter_context(built_facts(sources, into.facts, names=names, write=keep))
            counts = _counts(facts, run_ids, into.facts if keep else None)
            facts = _planned_away(facts, counts)
        slices = facts
        if through_disk(sources):
            with step(progress, "records are set aside of which all sources tell the same"):
                slices = stack.enter_context(sliced(facts, counts, into.facts))
        unknown: Unknown = {}
        rows_made = sum(sum(of_run.values()) for of_run in counts.values())
        number = number_of(len({check.name for _, checks in checks_of for check in checks}), "check")
        with step(progress, f"{number} judge {rows_made:,} rows of facts"):
            for question, checks in checks_of:
                alone = len(questions) == 1
                of_runs, of_slices = (part if alone else _only(part, question.settings) for part in (facts, slices))
                rows = {run_id: counts[run_id] for run_id in question.settings}
                unknown |= _run_checks(spark, checks, of_runs, of_slices, question.settings, rows, into.findings)
            numbers = _read_findings(spark, into.findings)
            remarks, holes = _remarks(facts["evidence"], REMARKS_LIMIT * len(run_ids))
    return [
        Judgement(
            run_id=run_id,
            checks=[
                _result(
                    plugin,
                    unknown.get((run_id, plugin.name), ""),
                    {severity: numbers.get((run_id, plugin.name, severity), _Number()) for severity in Severity},
                    holes.get(run_id, {}),
                )
                for plugin in checks
            ],
            remarks=remarks.get(run_id, []),
            counts=dict(counts[run_id]),
        )
        for question, checks in checks_of
        for run_id in question.settings
    ]


def _read_by(checks_of: Iterable[tuple[Question, Sequence[Check]]]) -> set[str]:
    """Return the names of the facts on which these answers rest."""
    of_checks = {name for _, checks in checks_of for check in checks for name in read_by(check)}
    cuts = READ_FOR_POWER_LOSSES if any(_any_power_loss(question.settings) for question, _ in checks_of) else ()
    return {*of_checks, *cuts, *READ_BY_ALL}


def _any_power_loss(settings: Mapping[str, Settings]) -> bool:
    return any(each.power_loss for each in settings.values())


def _counts(facts: Facts, run_ids: Sequence[str], written: Folder | None) -> dict[str, dict[str, int]]:
    """Return how many rows each fact has, by run id and fact; no job tells it of one run whose facts are written."""
    if len(run_ids) == 1 and isinstance(written, Path):
        return {run_ids[0]: written_counts(written)}
    return row_counts(facts, run_ids)


Unknown = dict[tuple[str, str], str]
"""Why a run could not be judged, by run id and check."""


def _run_checks(
    spark: SparkSession,
    plugins: Sequence[Check],
    facts: Facts,
    slices: Facts,
    settings: Mapping[str, Settings],
    counts: Mapping[str, Mapping[str, int]],
    folder: Folder,
) -> Unknown:
    """Add the findings of all checks to `folder` by one job; return which runs could not be judged by which check.

    Where that job breaks, the checks are asked one by one, and one that breaks about fewer and fewer runs, so that
    neither a bad check nor a bad run costs the answers of others. Those that may be sliced are handed the `slices`.
    """
    unknown = unknown_runs(plugins, facts, counts)

    def write(checks: Sequence[Check], run_ids: Sequence[str] | None = None) -> None:
        of_runs, sliced_facts = (part if run_ids is None else _only(part, run_ids) for part in (facts, slices))
        allowed = {run_id: settings[run_id] for run_id in run_ids or settings}
        at_once = settings_at_once(allowed)
        handed = [handed_to(check, sliced_facts if isinstance(check, Sliced) else of_runs) for check in checks]
        rows = union([check.findings(some, at_once) for check, some in zip(checks, handed, strict=True)])
        if _any_power_loss(allowed):
            rows = within_power_losses(rows, of_runs, checks)
        if unknown:
            rows = rows.join(_pairs(spark, unknown), on=["run_id", "check"], how="left_anti")
        rows.write.mode("append").partitionBy("check").parquet(to_write(spark, folder))
        if isinstance(folder, Path):
            folder.mkdir(exist_ok=True)  # Sail makes none for no rows, but that nothing was found is evidence

    able = [check for check in plugins if any((run_id, check.name) not in unknown for run_id in counts)]
    for check, _ in _broken(able, write):
        of_check = {run_id: settings[run_id] for run_id in counts if (run_id, check.name) not in unknown}
        for run_ids in _of_same_settings(
            of_check
        ):  # a check that decides by a value in Python breaks for columns alone
            for part, error in by_halves(run_ids, partial(_about, write, check), (Exception,)):
                if isinstance(error, Exception):
                    unknown |= {(run_id, check.name): _broke(error) for run_id in part}
                    logger.warning("check.failed check=%s runs=%d error=%s", check.name, len(part), _first_line(error))
    return unknown


def _of_same_settings(settings: Mapping[str, Settings]) -> list[list[str]]:
    run_ids: dict[Settings, list[str]] = {}
    for run_id, each in settings.items():
        run_ids.setdefault(each, []).append(run_id)
    return list(run_ids.values())


def _about(write: Callable[[Sequence[Check], Sequence[str]], None], check: Check, run_ids: Sequence[str]) -> None:
    write([check], run_ids)


def _planned_away(facts: Facts, counts: Mapping[str, Mapping[str, int]]) -> Facts:
    """Return the facts, those without rows in such a way that Spark plans nothing for them."""
    return {
        name: frame if any(rows[name] for rows in counts.values()) else frame.limit(0) for name, frame in facts.items()
    }


def _only(facts: Facts, run_ids: Iterable[str]) -> Facts:
    return {name: frame.where(F.col("run_id").isin(list(run_ids))) for name, frame in facts.items()}


def _pairs(spark: SparkSession, unknown: Unknown) -> DataFrame:
    """One row a run and check; from Arrow, because from Python objects Spark would start Python workers."""
    run_ids, checks = zip(*unknown, strict=True)
    return spark.createDataFrame(pa.table({"run_id": list(run_ids), "check": list(checks)}))


def _broken(parts: Sequence[Part], job: Callable[[Sequence[Part]], None]) -> list[tuple[Part, Exception]]:
    """Do a job for all parts of plugins at once, or else for each alone; return those for which it cannot be done."""
    if not parts:
        return []
    try:
        job(parts)
    except Exception as error:  # noqa: BLE001  a check is a plugin: what it raises must not stop the others
        still_there(error)
        if len(parts) == 1:
            return [(parts[0], error)]
        return [each for part in parts for each in _broken([part], job)]
    return []


def _broke(error: Exception) -> str:
    return f"the check broke: {type(error).__name__}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:MESSAGE_LIMIT]


def unknown_runs(checks: Sequence[Check], facts: Facts, counts: Mapping[str, Mapping[str, int]]) -> Unknown:
    """Return why runs cannot be judged by a check: a fact without rows, or an assumption that fails.

    Args:
        checks: The checks; what they assume is tested by one job, once for all that do.
        facts: All facts of all runs.
        counts: Rows a fact, by run id.
    """
    unknown: Unknown = {}
    assuming: dict[Assumption, list[str]] = {}
    for check in checks:
        for each in assumptions(check):
            assuming.setdefault(each, []).append(check.name)

    def test(some: Sequence[Assumption]) -> None:
        reasons = [
            each.broken(*(facts[name] for name in each.facts)).select(
                "run_id", F.lit(number).alias("number"), phrase(each.reason).alias("reason")
            )
            for number, each in enumerate(some)
        ]
        rows = union(reasons, apart=False).groupBy("run_id", "number").agg(F.min("reason").alias("reason"))
        for run_id, number, reason in rows.collect():
            for name in assuming[some[number]]:
                unknown[(run_id, name)] = min(reason, unknown.get((run_id, name), reason))

    for assumption, error in _broken(list(assuming), test):
        unknown.update({(run_id, name): _broke(error) for run_id in counts for name in assuming[assumption]})
    for run_id, rows in counts.items():
        for check in checks:
            empty = [name for name in check.needs if not rows[name]]
            if empty:
                unknown[(run_id, check.name)] = f"nothing to judge: no rows in {', '.join(empty)}"
    return unknown


def _read_findings(spark: SparkSession, folder: Folder) -> dict[tuple[str, str, str], _Number]:
    """Return how often each check found what in each run, by run id, check and severity."""
    if not any(folder.glob("check=*")):
        return {}  # nothing was found
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in FINDING_COLUMNS)
    place = in_turn("topic", "partition", "offset", "leader_epoch", "message")
    rows = (
        spark.read.schema(schema)
        .parquet(to_read(spark, folder))
        .groupBy("run_id", "check", "severity")
        .agg(F.count("*").alias("number"), F.min_by("message", place).alias("first"))
    )
    return {(row.run_id, row.check, row.severity): _Number(row.number, row.first) for row in rows.collect()}


def _result(
    check: Check, unknown: str, numbers: Mapping[Severity, _Number], holes: Mapping[str, Remark]
) -> CheckResult:
    """Return one check's answer on one run: what was found stands, but no promise is kept in evidence with holes.

    Args:
        check: The check.
        unknown: Why it cannot judge the run, if so.
        numbers: How much it found.
        holes: A remark on every kind of evidence that has some.
    """
    violations = numbers[Severity.VIOLATION]
    damaged = [] if violations.number else [holes[kind] for kind in kinds_of(check.needs) if kind in holes]
    if unknown or damaged:
        reason = unknown or f"nothing was found, in evidence that is damaged: {damaged[0]}"
        return CheckResult(check=check.name, promise=check.promise, verdict=SystemVerdict.UNKNOWN, reason=reason)
    verdict = SystemVerdict.FAIL if violations.number else SystemVerdict.PASS
    return CheckResult(
        check=check.name,
        promise=check.promise,
        verdict=verdict,
        violations=violations.number,
        expected=numbers[Severity.EXPECTED].number,
        notes=numbers[Severity.NOTE].number,
        reason=violations.first,
    )


def _remarks(evidence: DataFrame, limit: int) -> tuple[dict[str, list[Remark]], dict[str, dict[str, Remark]]]:
    """Return the remarks on the evidence of each run, so many of all runs; and of the runs with holes, one a kind."""
    place = F.coalesce(*(F.when(F.col("subject").startswith(place), kind) for kind, place in PLACES.items()))
    first = (
        evidence.where(F.col("problem") != TORN)
        .groupBy("run_id", F.coalesce(place, F.lit("")).alias("kind"))
        .agg(F.min_by(F.struct("subject", "problem", "count"), F.struct("subject", "problem")).alias("hole"))
    )
    holes: dict[str, dict[str, Remark]] = {}
    for row in first.collect():
        holes.setdefault(row.run_id, {})[row.kind] = _remark(row.hole)
    remarks: dict[str, list[Remark]] = {}
    for row in evidence.orderBy("run_id", "subject", "problem").limit(limit).collect():
        remarks.setdefault(row.run_id, []).append(_remark(row))
    for run_id, of_run in holes.items():  # the limit may have left out what forbids a PASS
        shown = remarks.setdefault(run_id, [])
        shown += [remark for remark in of_run.values() if remark not in shown]
    return remarks, holes


def _remark(row: Row) -> Remark:
    text, forbids_pass = f"{row['count']} {row.problem}", row.problem != TORN
    return Remark(text=text, phase=Phase.JUDGE, subject=row.subject, forbids_pass=forbids_pass)
