"""Judges a history that others recorded, and keeps facts, findings, the answer and a report in one folder."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from harness.analysis.engine.hadoop import AnyResultFolder
from harness.analysis.engine.halves import SPARK_ERRORS
from harness.analysis.engine.jvm import still_there
from harness.analysis.engine.storage import reason
from harness.analysis.judge import Question, judge_sources
from harness.analysis.tables.schemas import UNREADABLE
from harness.contracts.registry import check_title
from harness.errors import EvidenceError
from harness.experiment.judge import remark_on, within_holes
from harness.ingest.answer import HistoryResult, all_answers, divided, doubted, settings_in_words
from harness.ingest.expansion import EXPANSION
from harness.ingest.lines import RecordedEvidence
from harness.ingest.settings import AllowedSettings
from harness.ingest.stored_evidence import StoredEvidence
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
    name: str = "",
    expansion: int = EXPANSION,
    progress: Listener | None = None,
) -> HistoryResult:
    """Return what the named checks, or all, make of a history; facts, findings and answer are written to `folder`.

    Args:
        spark: An open session.
        paths: Files, folders or globs with evidence, by its kind.
        settings: What those who recorded it allowed.
        folder: A folder of its own; Spark makes it, as any folder that it writes to.
        checks: Names; none for all.
        name: What the history is called; by default as the folder.
        expansion: How many times its size a file may hold.
        progress: Whoever wants to see how it goes on.

    Raises:
        EvidenceError: there is no evidence where it should be, or it cannot be read or judged.
        PluginError: there is no check of one of the names.
    """
    name = name or folder.run_id
    evidence = RecordedEvidence(spark, paths, expansion=expansion)
    question = Question(settings={name: settings.for_checks()}, checks=tuple(checks))
    plugins = question.plugins()
    try:
        holes = _holes(evidence, progress or Silent())
        sources = evidence.sources(name, {"acks": settings.acks})
        (judgement,) = judge_sources(spark, sources, [question], into=folder, progress=progress)
        unread = [remark.subject for remark in judgement.remarks if remark.text.endswith(UNREADABLE)]
        explained = evidence.explain(unread)
    except SPARK_ERRORS as error:
        still_there(error)
        raise EvidenceError(f"the history cannot be judged: {reason(error)}") from error
    listed = {kind: list(texts) for kind, texts in paths.items() if texts}
    judged, unjudged = divided(plugins, judgement.checks, judgement.counts, listed)
    result = HistoryResult(
        name=name,
        evidence=listed,
        settings=settings_in_words(settings),
        checks=doubted(within_holes(judged, holes), settings, judgement.counts),
        unjudged=unjudged,
        remarks=[
            *map(remark_on, holes),
            *judgement.remarks,
            *(Remark(text=sentence, phase=Phase.JUDGE) for sentence in explained),
        ],
        counts=judgement.counts,
    )
    folder.verdict.write_text(result.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return result


def _holes(evidence: RecordedEvidence, progress: Listener) -> list[Hole]:
    number = sum(map(len, evidence.chained.values()))
    if not number:
        return []
    with step(progress, f"{number_of(number, 'file')} of chained lines must be whole"):
        return evidence.holes()


def report(folder: AnyResultFolder, result: HistoryResult, command: Sequence[str]) -> None:
    """Write the page; `command` judges the history again.

    Raises:
        EvidenceError: facts or findings cannot be read, or nothing can be written.
    """
    assumed = [
        Remark(text=f"it is assumed to be {each.value}: {each.about}", subject=each.name)
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
                "Did the system hold?",
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
        still_there(error)
        raise EvidenceError(f"{folder.root}: no report can be made: {reason(error)}") from error
    folder.report.write_text(page, encoding="utf-8")
