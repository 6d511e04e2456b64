"""The two judging phases: checks in Spark, and suites in Great Expectations."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Protocol, TypeVar

from harness.analysis.sources.lineage import FINDINGS, LINEAGE, kinds_of
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.errors import HarnessError, SparkError, not_interrupted
from harness.judging.assessment import Checked, remark_on, why_unreliable, within_holes
from harness.judging.needs import answerable_in, fewer_than_named, tables_without_evidence
from harness.progress import Progress, number_of, step
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.store.phase_log import PhaseNotes
from harness.store.result import CheckResult, ObjectiveResult, SuiteResult
from harness.store.seal import sealed_lines

if TYPE_CHECKING:
    from harness.analysis.judge import Judgement


class Judging(Protocol):
    """Runs checks on a run."""

    def __call__(self, folder: RunFolder, settings: Settings, checks: Sequence[str], progress: Progress) -> "Judgement":
        """Return their answers."""
        ...


def run_checks(
    run: Run, progress: Progress, notes: PhaseNotes, stack: ExitStack, judging: Judging | None = None
) -> Checked:
    """Return the checks' answers; the Spark session is left open in `stack`.

    `judging` provides the answers; by default the checks are run.
    """
    answerable = answerable_in(run)
    if (names := answerable.judged) is None:
        return Checked(checks=answerable.without_plugin)
    settings, holes = run.settings, run.holes
    notes.remarks += map(remark_on, holes)
    if lines := sealed_lines(run.folder):
        progress.message(f"{number_of(lines, 'line')} of evidence read, {number_of(len(holes), 'hole')} in it")
    counts: dict[str, int] = {}

    def checks() -> list[CheckResult]:
        from harness.analysis.engine.jvm import watched
        from harness.analysis.engine.session import spark_session
        from harness.analysis.judge import judge
        from harness.analysis.sources.reading import session_bytes

        with watched():
            size_bytes = session_bytes([run.folder])
            stack.enter_context(spark_session(size_bytes=size_bytes, progress=progress, anywhere=True))
            judgement = (judging or judge)(run.folder, settings, names, progress)
        notes.remarks += judgement.remarks
        counts.update(judgement.counts)
        notes.remarks += fewer_than_named(run.scenario, answerable.without_evidence)
        judged = within_holes(judgement.checks, holes, answerable.evidence)
        return judged + answerable.without_evidence + answerable.without_plugin

    answers = _attempt(checks, "the checks", notes)
    rows = number_of(sum(counts.values()), "row")
    progress.message(f"{number_of(len(answers), 'answer')} of checks, from {rows} of facts")
    measured = objectives_of(run, progress) if answers else []
    return Checked(checks=answers, counts=counts, objectives=measured)


def objectives_of(run: Run, progress: Progress) -> list[ObjectiveResult]:
    """Return what the facts that the checks left say of the scenario's objectives."""
    if run.scenario.objectives is None:
        return []
    from harness.analysis.objectives.judge import judge_objectives

    results = judge_objectives(
        run.scenario.objectives, run.folder, lambda facts: why_unreliable(kinds_of(facts), run.holes)
    )
    progress.message(f"{number_of(len(results), 'objective')} measured")
    return results


@contextmanager
def suites_imported_meanwhile() -> Iterator[None]:
    """Import the library of the suites while the checks judge, as their thread mostly waits for the engine.

    Enter this with an open session, so that all modules that both threads import are loaded.
    """
    importing = Thread(target=_import_suites, name="suites-import", daemon=True)
    importing.start()
    try:
        yield
    finally:
        importing.join()


def _import_suites() -> None:
    with suppress(Exception):  # running the suites raises it again
        registry.import_module("expectations.runner").import_library()


def run_suites(run: Run, progress: Progress, notes: PhaseNotes) -> list[SuiteResult]:
    """Return the suites' answers about the facts that the checks left; uses an open session."""
    if (names := answerable_in(run).judged) is None:
        notes.remark("the suites could not judge: no check did", forbids_pass=True)
        return []
    settings = run.settings
    unreliable = {table: why for table, origin in LINEAGE.items() if (why := why_unreliable(list(origin), run.holes))}
    if unreliable:
        unreliable[FINDINGS] = next(iter(unreliable.values()))
    lacking = tables_without_evidence(run)

    def suites() -> list[SuiteResult]:
        judge: Callable[..., list[SuiteResult]] = registry.import_module("expectations.runner").run
        with step(progress, "judging the facts by suites of expectations"):
            return judge(run.folder, settings, names, unreliable, lacking)

    answers = _attempt(suites, "the suites", notes)
    progress.message(f"{number_of(len(answers), 'answer')} of suites")
    return answers


Result = TypeVar("Result", CheckResult, SuiteResult)


def _attempt(judge: Callable[[], list[Result]], judged_by: str, notes: PhaseNotes) -> list[Result]:
    """Return the answers; an error in a judge becomes a remark that forbids PASS.

    Raises:
        SparkError: no engine can judge on this machine.
    """
    try:
        answers = judge()
    except SparkError:
        raise
    except HarnessError as error:
        notes.remark(f"{judged_by} could not judge: {error}", forbids_pass=True)
        return []
    except Exception as error:  # noqa: BLE001  a check is a plugin: what it raises is no reason to lose the run
        not_interrupted(error)
        notes.remark(f"{judged_by} could not judge: {type(error).__name__}: {error}", forbids_pass=True)
        return []
    if not answers:
        notes.remark(f"{judged_by} gave no answer", forbids_pass=True)
    return answers
