"""Judges recorded runs again, all of them by one set of jobs, and lists changed answers."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import phases
from harness.analysis.engine.jvm import watched
from harness.analysis.engine.session import spark_session
from harness.analysis.judge import Judgement
from harness.analysis.judge_many import BATCH_BYTES, Case, judge_many
from harness.analysis.sources.reading import session_bytes
from harness.errors import EvidenceError
from harness.judging.assessment import Checked, assemble, within_holes
from harness.judging.judge import suites_imported_meanwhile
from harness.judging.needs import answerable_in
from harness.progress import Progress
from harness.rejudging.differences import Difference, differences
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, RunResult
from harness.store.version import require_version
from harness.system.interruption import Background
from harness.system.scratch import scratch_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudged:
    """A run after it was judged again."""

    folder: RunFolder
    result: RunResult
    differences: list[Difference]
    """Changes from the earlier result; None if there was none."""


def rejudge(folders: Sequence[RunFolder], progress: Progress) -> Iterator[Rejudged]:
    """Yield every run with its new result, judged by checks and suites; its facts, findings and report are new too.

    Raises:
        EvidenceError: a folder's scenario or plan cannot be read, or a newer version has written it.
    """
    before = [_earlier(folder, progress) for folder in folders]
    runs = [Run.load(folder, require_version(folder)) for folder in folders]
    with Background() as thread:
        judged = thread.run(lambda: _judged(runs, progress, thread, keep=True))
        for folder, earlier in zip(folders, before, strict=True):
            phases.judge(folder, progress=progress, background=thread, judging=partial(_known, judged))
            phases.expectations(folder, progress=progress, background=thread)
            phases.report(folder, progress=progress)
            result = RunResult.load(folder.verdict)
            yield Rejudged(folder=folder, result=result, differences=differences(earlier, result))


def compare(folders: Sequence[RunFolder], progress: Progress) -> Iterator[Rejudged]:
    """Yield every run with the result of the checks alone; nothing is written to its folder.

    Raises:
        EvidenceError: as `rejudge`.
    """
    runs = [Run.load(folder, require_version(folder)) for folder in folders]
    with Background() as thread:
        judged = thread.run(lambda: _judged(runs, progress, thread, keep=False))
    for run in runs:
        folder = run.folder
        earlier, answer = _earlier(folder, progress), judged[folder.root]
        if isinstance(answer, EvidenceError):
            progress.message(f"{folder.run_id}: {answer}")
            checked = Checked()
        else:
            objectives = earlier.objectives if earlier else []
            answers = _answers(run, answer)
            checked = Checked(checks=answers, counts=answer.counts, objectives=objectives)
        suites = earlier.suites if earlier else []
        result = assemble(run, checked, suites)
        yield Rejudged(folder=folder, result=result, differences=differences(earlier, result))


def _answers(run: Run, answer: Judgement) -> list[CheckResult]:
    answerable = answerable_in(run)
    checks = within_holes(answer.checks, run.holes, answerable.evidence) if answer.checks else []
    return checks + answerable.without_evidence + answerable.without_plugin


Judgements = dict[Path, Judgement | EvidenceError]
"""The checks' answers about runs, or why they cannot judge one, by folders."""


def _judged(runs: Sequence[Run], progress: Progress, thread: Background, *, keep: bool) -> Judgements:
    """Return the checks' answers about each run; the session is left open in the thread."""
    folders = [run.folder for run in runs]
    cases = [case for run in runs if (case := _case(run))]
    size_bytes = min(session_bytes(folders, make_tables=keep), BATCH_BYTES)
    spark = thread.resources.enter_context(spark_session(size_bytes=size_bytes, progress=progress, anywhere=True))
    judged: Judgements = {
        folder.root: Judgement(run_id=folder.run_id, checks=[], remarks=[], counts={}) for folder in folders
    }
    meanwhile = suites_imported_meanwhile() if keep else nullcontext()
    with watched(), scratch_folder() as scratch, meanwhile:
        for folder, answer in judge_many(spark, cases, scratch, keep=keep, progress=progress):
            judged[folder.root] = answer
            if len(folders) > 1:
                progress.message(f"{folder.run_id}: the checks have answered, {len(judged)} of {len(folders)}")
    return judged


def _case(run: Run) -> Case | None:
    """Return what is asked about a run; None where no check can be asked."""
    if (names := answerable_in(run).judged) is None:
        return None
    return Case(folder=run.folder, settings=run.settings, checks=tuple(names))


def _known(judged: Judgements, folder: RunFolder, *_: object) -> Judgement:
    answer = judged[folder.root]
    if isinstance(answer, EvidenceError):
        raise answer
    return answer


def _earlier(folder: RunFolder, progress: Progress) -> RunResult | None:
    """Return the earlier result of the run; None if it was not judged, or its result cannot be read."""
    try:
        return RunResult.load(folder.verdict) if folder.verdict.exists() else None
    except EvidenceError as error:
        progress.message(f"{folder.run_id}: its answers before are unknown: {error}")
        return None
