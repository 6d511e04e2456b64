"""Judges runs: lines to facts, facts to findings, findings to one answer a check.

All runs given at once are judged by the same jobs, each finding under its own run id; one run folder is the usual case.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from harness.analysis.answers import Count, read_findings, remarks_of, result_of
from harness.analysis.check_helpers.settings import settings_at_once
from harness.analysis.engine.compat import require_same_files
from harness.analysis.engine.hadoop import AnyResultFolder, Folder, remove
from harness.analysis.engine.session import spark_session, tuned
from harness.analysis.facts.build import Facts, built_facts, row_counts, through_disk, written_counts
from harness.analysis.prefilter import prefiltered
from harness.analysis.running import Unknown, any_power_loss, only, run_checks
from harness.analysis.sources.reading import Sources, read, session_bytes
from harness.analysis.subjects import subjects_of
from harness.analysis.tables.schemas import TABLES
from harness.analysis.unseen import Unseen, unseen_of
from harness.analysis.unstated import Otherwise, hanging_on
from harness.contracts import registry
from harness.contracts.checks import READ_BY_ALL, READ_FOR_POWER_LOSSES, Check, Settings, Severity, read_by
from harness.progress import Listener, Silent, number_of, step
from harness.store.folder import RunFolder
from harness.store.result import CheckResult, Remark
from harness.system.scratch import scratch_folder

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
    unseen: dict[str, str] = field(default_factory=dict)
    """By check, what the evidence does not show of what it is about."""
    absent: frozenset[str] = frozenset()
    """The checks of whose subject the evidence has nothing."""
    hanging: dict[str, list[str]] = field(default_factory=dict)
    """By check, what must be stated of the settings before it can answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about some runs."""

    settings: Mapping[str, Settings]
    """What each run was allowed to do, by its id."""
    checks: Sequence[str] = ()
    """Names; none for all."""
    otherwise: Sequence[Otherwise] = ()
    """The settings of the only run with one each at its most lenient that is not stated; the others are strict."""

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

    A check that cannot be run is UNKNOWN, with the reason; the others continue.

    Raises:
        PluginError: there is no check of one of the names.
        SparkError: Spark has ended.
    """
    with spark_session(size_bytes=session_bytes(folders), anywhere=True) as spark, scratch_folder() as scratch:
        question = Question(settings={folder.run_id: settings for folder in folders}, checks=checks)
        return judge_sources(spark, read(spark, folders, scratch), [question], into=into, progress=progress)


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
        progress: Receives the progress.

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
        with step(progress, f"deriving facts from {size_bytes / 1e6:.1f} MB of evidence"):
            names = TABLES if keep else _read_by(checks_of)
            facts = stack.enter_context(built_facts(sources, into.facts, names=names, write=keep))
            counts = _counts(facts, run_ids, into.facts if keep else None)
            facts = _planned_away(facts, counts)
        slices = facts
        if through_disk(sources):
            with step(progress, "skipping records on which all sources agree"):
                slices = stack.enter_context(prefiltered(facts, counts, into.facts))
        unknown: Unknown = {}
        unseen: dict[str, Unseen] = {}
        rows_made = sum(sum(of_run.values()) for of_run in counts.values())
        number = number_of(len({check.name for _, checks in checks_of for check in checks}), "check")
        with step(progress, f"judging {rows_made:,} rows of facts by {number}"):
            for question, checks in checks_of:
                alone = len(questions) == 1
                of_runs, of_slices = (part if alone else only(part, question.settings) for part in (facts, slices))
                rows = {run_id: counts[run_id] for run_id in question.settings}
                unknown |= run_checks(spark, checks, of_runs, of_slices, question.settings, rows, into.findings)
                unseen |= dict.fromkeys(rows, unseen_of(checks, of_runs, rows, settings_at_once(_least_seen(question))))
            numbers = read_findings(spark, into.findings)
            hanging = {
                run_id: _hanging(checks, facts, numbers, question, run_id)
                for question, checks in checks_of
                for run_id in question.settings
                if question.otherwise
            }
            remarks, holes = remarks_of(facts["evidence"], REMARKS_LIMIT * len(run_ids))
    return [
        Judgement(
            run_id=run_id,
            checks=[
                result_of(
                    plugin,
                    unknown.get((run_id, plugin.name), ""),
                    {severity: numbers.get((run_id, plugin.name, severity), Count()) for severity in Severity},
                    holes.get(run_id, {}),
                    unseen[run_id].reasons.get((run_id, plugin.name), ""),
                )
                for plugin in checks
            ],
            remarks=remarks.get(run_id, []),
            counts=dict(counts[run_id]),
            unseen=unseen[run_id].of_run(run_id),
            absent=frozenset(check for of, check in unseen[run_id].absent if of == run_id),
            hanging=hanging.get(run_id, {}),
        )
        for question, checks in checks_of
        for run_id in question.settings
    ]


def _least_seen(question: Question) -> Mapping[str, Settings]:
    """Return the settings with which the least counts as seen: readers began anywhere, unless it is stated."""
    anywhere = any(not each.settings.read_from_start for each in question.otherwise)
    return {
        run_id: replace(each, read_from_start=each.read_from_start and not anywhere)
        for run_id, each in question.settings.items()
    }


def _hanging(
    checks: Sequence[Check],
    facts: Facts,
    numbers: Mapping[tuple[str, str, str], Count],
    question: Question,
    run_id: str,
) -> dict[str, list[str]]:
    counts = {(check, severity): count.number for (of, check, severity), count in numbers.items() if of == run_id}
    found = {check for check, _ in counts}
    violations = {check: number for (check, severity), number in counts.items() if severity == Severity.VIOLATION}
    some = [check for check in checks if check.name in found]
    return hanging_on(some, facts, violations, question.otherwise) if some else {}


def _read_by(checks_of: Iterable[tuple[Question, Sequence[Check]]]) -> set[str]:
    """Return the names of the facts on which these answers rest."""
    of_checks = {name for _, checks in checks_of for check in checks for name in read_by(check)}
    of_checks |= {
        name for _, checks in checks_of for check in checks for each in subjects_of(check) for name in each.facts
    }
    cuts = READ_FOR_POWER_LOSSES if any(any_power_loss(question.settings) for question, _ in checks_of) else ()
    return {*of_checks, *cuts, *READ_BY_ALL}


def _counts(facts: Facts, run_ids: Sequence[str], written: Folder | None) -> dict[str, dict[str, int]]:
    """Return the number of rows of each fact, by run id and fact; without a job for one run with written facts."""
    if len(run_ids) == 1 and isinstance(written, Path):
        return {run_ids[0]: written_counts(written)}
    return row_counts(facts, run_ids)


def _planned_away(facts: Facts, counts: Mapping[str, Mapping[str, int]]) -> Facts:
    """Return the facts, those without rows in such a way that Spark plans nothing for them."""
    return {
        name: frame if any(rows[name] for rows in counts.values()) else frame.limit(0) for name, frame in facts.items()
    }
