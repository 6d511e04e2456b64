"""Judges a history that others recorded, and keeps facts, findings, the answer and a report in one folder."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.bisection import SPARK_ERRORS
from harness.analysis.engine.compat import require_same_files
from harness.analysis.engine.hadoop import AnyResultFolder, remove
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.storage import reason
from harness.analysis.facts.build import LINES
from harness.analysis.judge import Question, judge_sources
from harness.analysis.tables.schemas import EVIDENCE, UNREADABLE
from harness.analysis.unstated import Otherwise
from harness.contracts.registry import check_title
from harness.errors import EvidenceError
from harness.ingest.answer import HistoryResult, all_answers, described_settings, divided, doubted, undecided, unlogged
from harness.ingest.ends import describe_ends, fact_of
from harness.ingest.expansion import EXPANSION
from harness.ingest.lines import RecordedEvidence
from harness.ingest.settings import COMPACTED, AllowedSettings, otherwise, stated_in
from harness.ingest.stored_evidence import StoredEvidence
from harness.judging.assessment import remark_on, within_holes
from harness.judging.needs import evidence_of
from harness.progress import Listener, Silent, number_of, step
from harness.report.evidence import RunEvidence
from harness.report.page import Heading, render
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from harness.store.result import Remark, RunResult
from harness.store.seal import Hole
from harness.verdict import SystemVerdict, mood_of


def judge_history(
    spark: SparkSession,
    paths: Mapping[str, Sequence[str]],
    settings: AllowedSettings,
    folder: AnyResultFolder,
    *,
    checks: Sequence[str] = (),
    expansion: int = EXPANSION,
    progress: Listener | None = None,
) -> HistoryResult:
    """Judge a history by the named checks, or all, and return the result; facts, findings and result go to `folder`.

    Args:
        spark: An open session.
        paths: Files, folders or globs with evidence, by its kind.
        settings: What the recorded cluster allowed.
        folder: A folder of its own; Spark creates it.
        checks: Names; none for all.
        expansion: Limit of the expanded size of a file, as a multiple.
        progress: Receives the progress.

    Raises:
        EvidenceError: there is no evidence in a path, or it cannot be read or judged.
        PluginError: there is no check of that name.
    """
    name = folder.run_id
    rows_of_lines = folder.root / LINES
    evidence = RecordedEvidence(spark, paths, rows_of_lines, expansion=expansion, progress=progress)
    plugins = Question(settings={}, checks=tuple(checks)).plugins()
    if isinstance(folder.root, Path):
        require_same_files(spark, folder.root)
    try:
        of_history = stated_in(evidence.said(), evidence.place_of)
        contradictions = of_history.contradicting(settings)
        stated, deleted = of_history.under(settings), evidence.deleted_from()
        settings = stated.deleting(deleted)
        question = Question(
            settings={name: settings.for_checks()},
            checks=tuple(checks),
            otherwise=_otherwise(stated, deleted, evidence),
        )
        holes = _holes(evidence, progress or Silent())
        sources = evidence.sources(name, settings.acks)
        (judgement,) = judge_sources(spark, sources, [question], into=folder, progress=progress)
        unread = _unreadable_files(spark, folder, len(judgement.remarks)) if judgement.remarks else []
        ends = [Remark(text=text, phase=Phase.JUDGE, subject="operations") for text in describe_ends(spark, folder)]
        explained = evidence.explain(unread)
        accused = any(check.verdict is SystemVerdict.FAIL for check in judgement.checks)
        stated_events = settings.is_stated("every_event") and settings.every_event
        events = evidence.events() if accused and paths.get("state_changes") and not stated_events else None
    except SPARK_ERRORS as error:
        raise_if_engine_lost(error)
        raise EvidenceError(f"the history cannot be judged: {reason(error)}") from error
    finally:
        remove(rows_of_lines)
    listed = {kind: list(texts) for kind, texts in paths.items() if texts}
    judged, unjudged = divided(plugins, judgement, listed)
    if events is not None:
        judged = unlogged(judged, events)
    judged = within_holes(judged, holes, evidence_of(plugins))
    result = HistoryResult(
        name=name,
        evidence=listed,
        settings=described_settings(settings),
        checks=undecided(doubted(judged, settings, judgement.counts), judgement.hanging),
        unjudged=unjudged,
        remarks=[
            *map(remark_on, holes),
            *judgement.remarks,
            *ends,
            *(Remark(text=sentence, phase=Phase.JUDGE) for sentence in (*contradictions, *explained)),
        ],
        counts=judgement.counts,
    )
    folder.verdict.write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return result


def _unreadable_files(spark: SparkSession, folder: AnyResultFolder, limit: int) -> list[str]:
    """Return the files with unreadable lines, so many at most."""
    rows = fact_of(spark, folder, EVIDENCE.name).where(F.col("problem") == UNREADABLE)
    return [row.subject for row in rows.orderBy("subject").limit(limit).collect()]


def _otherwise(settings: AllowedSettings, deleted: Sequence[str], evidence: RecordedEvidence) -> list[Otherwise]:
    """Return the settings with each one that is not stated at its most lenient; acks only if a send leaves it open."""
    others, without_acks = otherwise(settings), evidence.without_acks()
    return [
        Otherwise(
            decides=decides,
            settings=each.deleting(deleted).for_checks(),
            acks=each.acks if each.acks != settings.acks else None,
            without_acks=without_acks,
            compacted=decides == COMPACTED,
        )
        for decides, each in others.items()
        if each.acks == settings.acks or without_acks is not None
    ]


def _holes(evidence: RecordedEvidence, progress: Listener) -> list[Hole]:
    number = sum(map(len, evidence.chained.values()))
    if not number:
        return []
    with step(progress, f"verifying {number_of(number, 'file')} of chained lines"):
        return evidence.holes()


def report(folder: AnyResultFolder, result: HistoryResult, command: Sequence[str]) -> None:
    """Write the page; `command` judges the history again.

    Raises:
        EvidenceError: facts or findings cannot be read, or nothing can be written.
    """
    assumed = [
        Remark(text=f"not stated, and taken for {each.value}: {each.about}", subject=each.name)
        for each in result.settings
        if each.assumed
    ]
    shown = RunResult(
        run_id=result.name,
        scenario=result.name,
        driver="",
        seed=0,
        started_at="",
        duration_s=0.0,
        checks=all_answers(result),
        remarks=[*result.remarks, *assumed],
        counts=result.counts,
    )
    failed = [check_title(check.check) for check in result.checks if check.verdict is SystemVerdict.FAIL]
    promises = len(result.checks) + len(result.unjudged)
    heading = Heading(
        about=f"recorded elsewhere · judged {datetime.now(UTC).isoformat(timespec='seconds')}",
        answer=result.verdict.name,
        cards=[
            (
                "Were the promises kept?",
                result.verdict.name,
                mood_of(result.verdict),
                f"broken: {', '.join(failed)}" if failed else "",
            ),
            ("How much could be judged?", f"{len(result.checks)} of {number_of(promises, 'promise')}", "open", ""),
        ],
        commands={"Judge again": shlex.join(command)},
    )
    try:
        evidence = RunEvidence(folder) if isinstance(folder, RunFolder) else StoredEvidence(folder)
        page = render(evidence, shown, heading)
    except SPARK_ERRORS as error:
        raise_if_engine_lost(error)
        raise EvidenceError(f"{folder.root}: no report can be made: {reason(error)}") from error
    folder.report.write_text(page, encoding="utf-8")
