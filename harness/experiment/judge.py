"""The two judging phases, checks in Spark and suites in Great Expectations, and the combined result of all phases."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness.analysis.sources.lineage import FINDINGS, LINEAGE, kinds_of, missing_events
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.checks import Settings, read_by
from harness.contracts.faults import MayLoseData
from harness.errors import HarnessError, SparkError, not_interrupted
from harness.experiment.early_metadata import begun_late
from harness.experiment.journal import fault_results, readable_journal
from harness.experiment.judgeable import (
    UNCLEAN_ELECTION,
    checks_of,
    effective,
    fewer_than_named,
    logging_of,
    not_judged,
    not_told,
    properties_of,
    read_in,
    uncollected,
)
from harness.experiment.without_plugins import judged_without, needed_plugin, remarks_without
from harness.progress import Progress, number_of, step
from harness.scenario.draws import with_drawn
from harness.scenario.external import unseen
from harness.scenario.file import scenario_of
from harness.scenario.model import Scenario
from harness.scenario.plan import SESSION_TIMEOUT, Plan, load_plan
from harness.scenario.rules import MIN_INSYNC_REPLICAS
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, PhaseNotes, Quiescence, ends, started_at
from harness.store.result import CheckResult, ObjectiveResult, Remark, RunResult, SuiteResult
from harness.store.seal import Hole, damage, of_kind, sealed_lines
from harness.store.version import logged_in
from harness.verdict import SystemVerdict

if TYPE_CHECKING:
    from harness.analysis.judge import Judgement

RETENTION = frozenset({"retention.ms", "retention.bytes"})
RETENTION_OF_BROKERS = frozenset(f"log.retention.{of}" for of in ("ms", "minutes", "hours", "bytes"))


def settings_of(scenario: Scenario, plan: Plan) -> Settings:
    """Return what the run's settings allow; of all topics, the most permissive value."""
    scenario = with_drawn(scenario, plan.drawn)
    brokers = properties_of(scenario)
    producers = [client.parameters for client in plan.clients if "acks" in client.parameters]
    return Settings(
        acks=frozenset(parameters["acks"] for parameters in producers),
        min_insync_replicas=min(int(value) for value in effective(scenario, MIN_INSYNC_REPLICAS)),
        unclean_leader_election="true" in effective(scenario, UNCLEAN_ELECTION),
        idempotence=all(parameters.get("idempotence", False) for parameters in producers) and bool(producers),
        power_loss=any(_forfeits(kind, parameters) for kind, parameters in scenario.kinds),
        deleting_topics=",".join(sorted(_deleting_topics(scenario))),
        delete_delay_ms=int(brokers["log.segment.delete.delay.ms"]),
        first_deletion_ms=round(system_named(scenario.system).first_deletion_s * 1000),
        session_timeout_ms=int(brokers[SESSION_TIMEOUT]),
    )


def _deleting_topics(scenario: Scenario) -> set[str]:
    """Return the topics whose retention the scenario states, and those from which its clients delete records."""
    kept = {topic.name for topic in scenario.topics if not RETENTION.isdisjoint(topic.config)}
    stated = not RETENTION_OF_BROKERS.isdisjoint(scenario.cluster.properties)
    by_clients = (spec.parameters.get("delete_records_of", []) for spec in scenario.workloads)
    return {topic.name for topic in scenario.topics if stated} | kept | {name for names in by_clients for name in names}


def _forfeits(kind: str, parameters: dict[str, Any]) -> bool:
    """Return whether a fault may remove committed records, as the scenario allows."""
    fault = registry.fault(kind).Parameters.model_validate(parameters)
    return isinstance(fault, MayLoseData) and not fault.protect_committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The checks' answers about a run."""

    checks: list[CheckResult] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Rows a fact."""
    objectives: list[ObjectiveResult] = field(default_factory=list)


def assemble(folder: RunFolder, checked: Checked | None = None, suites: list[SuiteResult] | None = None) -> RunResult:
    """Return the result from what is in the run folder.

    Earlier answers of checks and suites stay unless there are new ones; new answers of the checks remove those of
    the suites, which were about other facts.
    """
    return assembled(folder, scenario_of(folder), load_plan(folder.plan), checked, suites)


def assembled(
    folder: RunFolder,
    scenario: Scenario,
    plan: Plan,
    checked: Checked | None = None,
    suites: list[SuiteResult] | None = None,
) -> RunResult:
    """Return the same for a known scenario and plan; the folder need not have them."""
    before = RunResult.load(folder.verdict) if checked is None and folder.verdict.exists() else None
    if suites is None:
        suites = before.suites if before else []
    if checked is None:
        checked = Checked()
        if before:
            checked = Checked(checks=before.checks, counts=before.counts, objectives=before.objectives)
    phases = ends(folder)
    entries, unreadable = readable_journal(folder.journal)
    return RunResult(
        run_id=folder.run_id,
        scenario=scenario.name,
        driver=scenario.driver,
        system=scenario.system,
        seed=plan.seed,
        planted_bugs=scenario.planted_bugs,
        started_at=started_at(folder),
        duration_s=round(sum(end.duration_s for end in phases.values()), 3),
        phase_durations_s={phase.value: end.duration_s for phase, end in phases.items()},
        faults=fault_results(plan, entries, unreadable),
        left_out=scenario.left_out,
        checks=checked.checks,
        suites=suites,
        objectives=checked.objectives or not_measured(scenario),
        residue=[what for end in phases.values() for what in end.residue],
        remarks=[
            *([_doubt(f"the record of the faults is incomplete: {unreadable}", Phase.DRIVE)] if unreadable else []),
            *_silent(checked.checks, suites),
            *remarks_without(checked.checks),
            *(remark for phase, end in phases.items() if phase is not Phase.REPORT for remark in end.remarks),
        ],
        counts=checked.counts,
    )


def not_measured(scenario: Scenario) -> list[ObjectiveResult]:
    """Return the results of a run's objectives before they are judged."""
    if scenario.objectives is None:
        return []
    from harness.analysis.objectives.judge import not_judged as unknown

    return unknown(scenario.objectives)


def _doubt(text: str, phase: Phase) -> Remark:
    return Remark(text=text, phase=phase, forbids_pass=True)


def _silent(checks: list[CheckResult], suites: list[SuiteResult]) -> list[Remark]:
    """Return the judge that has not answered while the other has: one alone does not make a PASS."""
    if bool(checks) == bool(suites):
        return []
    if suites:
        return [_doubt("no check has answered", Phase.JUDGE)]
    return [_doubt("no suite of expectations has answered", Phase.EXPECTATIONS)]


def holes_in(folder: RunFolder, scenario: Scenario, plan: Plan) -> list[Hole]:
    """Return what is missing from a run's evidence, and the damage that can be detected."""
    missing = missing_evidence(folder, scenario, plan) + under_load(folder) + begun_late(folder)
    known = {hole.place for hole in missing}
    return missing + [hole for hole in damage(folder) if hole.place not in known]


def missing_evidence(folder: RunFolder, scenario: Scenario, plan: Plan) -> list[Hole]:
    """Return the files that every run leaves and this one lacks."""
    absent = unseen(scenario)
    expected = [("zookeeper", folder.zookeeper)]
    expected += [("state_changes", folder.state_change_log(number)) for number in scenario.cluster.broker_ids]
    expected += [("operations", folder.operations_of(client.process)) for client in plan.clients]
    expected += [("journal", folder.journal)] if plan.faults else []
    return [
        Hole(place=path.relative_to(folder.root).as_posix(), kind=kind, text="it is missing or empty")
        for kind, path in expected
        if kind not in absent
        if not path.is_file() or not path.stat().st_size
    ]


def under_load(folder: RunFolder) -> list[Hole]:
    """Return why evidence of several brokers cannot be compared: it was copied under load, or without a proof of rest.

    Earlier versions recorded no proof. They copied under load if the drive, which ends the load, was cut off.
    """
    phases = ends(folder)
    collected, driven = phases.get(Phase.COLLECT), phases.get(Phase.DRIVE)
    if collected is None:
        return []
    known = collected.quiescence or Quiescence()
    loaded, unsettled = known.loaded, known.unsettled
    if collected.quiescence is None and driven is not None and not driven.over:
        loaded = [f"nothing proves that the load had ended: {driven.error}"]
    elif collected.quiescence is None and collected.error:
        unsettled = [f"nothing proves that they had caught up: {collected.error}"]
    dumps = [Hole(place="replicas", kind="replicas", text=f"not comparable: {text}") for text in (*loaded, *unsettled)]
    logs = [Hole(place="brokers", kind="state_changes", text=f"copied at different times: {text}") for text in loaded]
    return dumps + logs


def remark_on(hole: Hole) -> Remark:
    """Return the remark about a hole."""
    return Remark(text=hole.text, phase=Phase.COLLECT, subject=hole.place, forbids_pass=True)


def within_holes(
    checks: Sequence[CheckResult], holes: Sequence[Hole], scenario: Scenario | None = None
) -> list[CheckResult]:
    """Return the answers; a check that rests on a kind of evidence with a hole becomes UNKNOWN, whatever it found.

    Lost evidence looks like an idle broker or client, and changed evidence like a faulty one. A recorded history of
    others has no scenario: a check rests on all facts that it may read.
    """

    def as_far_as_known(result: CheckResult) -> CheckResult:
        check = registry.check(result.check)
        reason = _unreliable(kinds_of(read_in(check, scenario) if scenario else read_by(check)), holes)
        if not reason or result.verdict is SystemVerdict.UNKNOWN:
            return result
        counted = f"{result.counted} found in evidence that cannot be relied on: " if result.counted else ""
        return CheckResult(
            check=result.check, promise=result.promise, verdict=SystemVerdict.UNKNOWN, reason=f"{counted}{reason}"
        )

    return [as_far_as_known(result) for result in checks] if holes else list(checks)


def _unreliable(kinds: Sequence[str], holes: Sequence[Hole]) -> str:
    """Return why evidence of some of these kinds is unreliable; empty if it is not."""
    return next((f"{hole.place}: {hole.text}" for kind in kinds if (hole := of_kind(holes, kind))), "")


class Judging(Protocol):
    """Runs checks on a run."""

    def __call__(self, folder: RunFolder, settings: Settings, checks: Sequence[str], progress: Progress) -> "Judgement":
        """Return their answers."""
        ...


def run_checks(
    folder: RunFolder, progress: Progress, notes: PhaseNotes, stack: ExitStack, judging: Judging | None = None
) -> Checked:
    """Return the checks' answers; the Spark session is left open in `kept`.

    `judging` provides the answers; by default the checks are run.
    """
    scenario = scenario_of(folder)
    plan = load_plan(folder.plan)
    without = judged_without(folder)
    logging = logging_of(scenario, logged_in(folder))
    if needed_plugin(folder) or (names := checks_of(scenario, logging)) is None:
        return Checked(checks=without)
    settings = settings_of(scenario, plan)
    holes = holes_in(folder, scenario, plan)
    notes.remarks += map(remark_on, holes)
    if lines := sealed_lines(folder):
        progress.message(f"{number_of(lines, 'line')} of evidence read, {number_of(len(holes), 'hole')} in it")
    counts: dict[str, int] = {}

    def checks() -> list[CheckResult]:
        from harness.analysis.engine.jvm import watched
        from harness.analysis.engine.session import spark_session
        from harness.analysis.judge import judge
        from harness.analysis.sources.reading import session_bytes

        stack.enter_context(spark_session(size_bytes=session_bytes([folder]), progress=progress, anywhere=True))
        with watched():
            judgement = (judging or judge)(folder, settings, names, progress)
        notes.remarks += judgement.remarks
        counts.update(judgement.counts)
        untried = not_judged(scenario, logging)
        notes.remarks += fewer_than_named(scenario, untried)
        return within_holes(judgement.checks, holes, scenario) + untried + without

    answers = _attempt(checks, "the checks", notes)
    rows = number_of(sum(counts.values()), "row")
    progress.message(f"{number_of(len(answers), 'answer')} of checks, from {rows} of facts")
    measured = objectives_of(folder, scenario, holes, progress) if answers else []
    return Checked(checks=answers, counts=counts, objectives=measured)


def objectives_of(
    folder: RunFolder, scenario: Scenario, holes: Sequence[Hole], progress: Progress
) -> list[ObjectiveResult]:
    """Return what the facts that the checks left say of the scenario's objectives."""
    if scenario.objectives is None:
        return []
    from harness.analysis.objectives.judge import judge_objectives

    results = judge_objectives(scenario.objectives, folder, lambda facts: _unreliable(kinds_of(facts), holes))
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


def run_suites(folder: RunFolder, progress: Progress, notes: PhaseNotes) -> list[SuiteResult]:
    """Return the suites' answers about the facts that the checks left; uses an open session."""
    scenario, plan = scenario_of(folder), load_plan(folder.plan)
    logging = logging_of(scenario, logged_in(folder))
    if needed_plugin(folder) or (names := checks_of(scenario, logging)) is None:
        notes.remark("the suites could not judge: no check did", forbids_pass=True)
        return []
    settings = settings_of(scenario, plan)
    holes = holes_in(folder, scenario, plan)
    unreliable = {table: why for table, origin in LINEAGE.items() if (why := _unreliable(list(origin), holes))}
    if unreliable:
        unreliable[FINDINGS] = next(iter(unreliable.values()))

    lacking = {table: set(events) for table, events in missing_events(LINEAGE, logging.kinds).items()}
    for table in LINEAGE:
        if kinds := uncollected([table], scenario):
            lacking[table] = lacking.get(table, set()) | kinds
    not_told_of = {table: not_told(logging, names) for table, names in lacking.items()}

    def suites() -> list[SuiteResult]:
        run: Callable[..., list[SuiteResult]] = registry.import_module("expectations.runner").run
        with step(progress, "judging the facts by suites of expectations"):
            return run(folder, settings, names, unreliable, not_told_of)

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
