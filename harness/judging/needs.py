"""Which checks can judge a run? What a check needs is compared with what the run's system and harness emit.

A check without its evidence is not judged. Neither is one whose plugin is missing on this machine or cannot be
imported, which forbids PASS. Where a fault or the system is missing, no check is: nothing says which losses are
expected, or which evidence there is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.analysis.sources.lineage import LINEAGE, events_of, kinds_of, missing_events
from harness.analysis.tables.protocol import QUORUM_TERMS
from harness.cluster.systems.system import EXTERNAL
from harness.contracts import registry
from harness.contracts.checks import Check, read_by
from harness.contracts.registry import Kind
from harness.errors import Refused
from harness.progress import number_of
from harness.run.emits import Emits, emits_of
from harness.run.run import Run
from harness.scenario.model import Scenario
from harness.scenario.used_plugins import NEEDED_TO_JUDGE
from harness.store.phase_log import Phase
from harness.store.result import CheckResult, Remark
from harness.verdict import SystemVerdict

_COPIED = {"replicas": "data", "zookeeper": "metadata"}
"""What brings a kind of evidence of an existing cluster."""
EVIDENCE = "evidence"
"""The fact with defects of lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerable:
    """The checks of a run: those that judge it, and those that do not, each with the reason."""

    judged: list[str] | None
    """Names of those that judge, an empty list for all; None if no check can."""
    evidence: dict[str, list[str]] = field(default_factory=dict)
    """The kinds of evidence that each of them rests on."""
    without_evidence: list[CheckResult] = field(default_factory=list)
    without_plugin: list[CheckResult] = field(default_factory=list)
    """Those whose plugin, or that of a fault or the system, is not on this machine or cannot be imported."""


def answerable_in(run: Run) -> Answerable:
    """Return which checks judge a recorded run."""
    missing = run.missing_plugins
    if needed := next((each for each in missing if each.kind in NEEDED_TO_JUDGE), None):
        names = [name for used in run.plugins for name in used.plugins.get(Kind.CHECK, ())]
        return Answerable(judged=None, without_plugin=[_without_plugin(name, str(needed)) for name in names])
    return answerable(run.scenario, run.emits, {each.name: str(each) for each in missing if each.kind == Kind.CHECK})


def answerable(scenario: Scenario, emits: Emits | None = None, missing: dict[str, str] | None = None) -> Answerable:
    """Return which checks judge runs of a scenario; without `emits`, runs of today.

    `missing`: names of checks that a run used and that are not on this machine, with the reasons.
    """
    emits = emits or emits_of(scenario)
    named = [name for name in scenario.checks if registry.known(Kind.CHECK, name)]
    asked = named if scenario.checks else registry.names(Kind.CHECK)
    broken = registry.unusable(asked)
    checks = {name: registry.check(name) for name in asked if name not in broken}
    lacking = {name: gaps for name, check in checks.items() if (gaps := _gaps(check, emits))}
    judged = [name for name in checks if name not in lacking]
    whole = len(judged) == len(asked) >= len(scenario.checks)
    return Answerable(
        judged=scenario.checks if whole else judged or None,
        evidence=evidence_of((checks[name] for name in judged), emits),
        without_evidence=[
            CheckResult(
                check=checks[name].name,
                promise=checks[name].promise,
                verdict=SystemVerdict.NOT_JUDGED,
                reason=why_not_emitted(emits, gaps),
            )
            for name, gaps in lacking.items()
        ],
        without_plugin=[_without_plugin(name, reason) for name, reason in (broken | (missing or {})).items()],
    )


def evidence_of(checks: Iterable[Check], emits: Emits | None = None) -> dict[str, list[str]]:
    """Return the kinds of evidence that each check rests on, by its name.

    Without `emits`, as for a recorded history of others, a check rests on all facts that it may read.
    """
    return {check.name: kinds_of(emits.facts_of(check) if emits else read_by(check)) for check in checks}


def _without_plugin(name: str, reason: str) -> CheckResult:
    return CheckResult(
        check=name,
        promise=f"the check {registry.check_title(name)}",
        verdict=SystemVerdict.NOT_JUDGED,
        reason=f"without a plugin: {reason}",
        lacks_plugin=True,
    )


def names_by_reason(scenario: Scenario) -> dict[str, list[str]]:
    """Return the names of a scenario's checks, by what becomes of them: judged, or why they are not."""
    table = answerable(scenario)
    by_reason: dict[str, list[str]] = {"are judged": []}
    reasons = {each.check: f"are not judged, as {each.reason}" for each in table.without_evidence}
    for name in scenario.checks or registry.names(Kind.CHECK):
        by_reason.setdefault(reasons.get(name, "are judged"), []).append(name)
    return by_reason


def _gaps(check: Check, emits: Emits) -> set[str]:
    """Return the kinds of evidence, events and fields that a check needs and a run does not have."""
    facts = emits.facts_of(check)
    kinds = {kind for kinds in missing_events(facts, emits.kinds).values() for kind in kinds}
    kinds |= _uncollected(facts, emits)
    dispensable = set(check.judges_without)
    if emits.unclean_elections:
        dispensable -= {"zookeeper"}  # the leader epochs show which elections excuse a loss
    kinds -= dispensable
    kinds |= events_of(facts) & emits.not_yet
    absent = {name for name in check.fields if name.partition(".")[0] not in emits.kinds}
    return kinds | absent | (set(check.fields) & emits.missing_fields) | (_of_quorum(emits) & set(facts))


def _of_quorum(emits: Emits) -> set[str]:
    """Return the facts about the leaders of a quorum, if nothing is known of these."""
    return {QUORUM_TERMS.name} if emits.no_quorum else set()


def _uncollected(facts: Iterable[str], emits: Emits) -> set[str]:
    """Return the kinds of evidence that cannot be collected and that some facts are made of."""
    made_of = set(kinds_of([fact for fact in facts if fact != EVIDENCE]))  # that one is made of any evidence
    return (made_of & emits.uncollected) - {"state_changes"}  # `missing_events` has those, one by one


def require_evidence(scenario: Scenario) -> None:
    """Check that the system under test leaves evidence for a check that the scenario names.

    Raises:
        Refused: for none of them.
    """
    emits = emits_of(scenario)
    broken = registry.unusable(scenario.checks)
    checks = [registry.check(name) for name in scenario.checks if name not in broken]
    if checks and all(_gaps(check, emits) for check in checks):
        raise Refused(f"{scenario.system} leaves no evidence for the checks of this scenario: {scenario.checks}")


def tables_without_evidence(run: Run) -> dict[str, str]:
    """Return the tables of facts for which a run leaves no evidence, each with the reason."""
    lacking = {table: set(events) for table, events in missing_events(LINEAGE, run.emits.kinds).items()}
    for table in LINEAGE:
        if kinds := _uncollected([table], run.emits) | (_of_quorum(run.emits) & {table}):
            lacking[table] = lacking.get(table, set()) | kinds
    return {table: why_not_emitted(run.emits, names) for table, names in lacking.items()}


def why_not_emitted(emits: Emits, events: Iterable[str]) -> str:
    """Return why something cannot be judged: what is not copied, or not logged."""
    events = set(events)
    if events & _of_quorum(emits):
        return emits.no_quorum
    uncopied = events if emits.system.name == EXTERNAL else events & emits.uncollected
    if uncopied:
        commands = {_COPIED.get(event, "logs") for event in uncopied}
        return f"the cluster file has no command that copies {', '.join(sorted(commands))}"
    if not_yet := sorted(emits.not_yet & events):
        return f"an earlier version of the harness recorded this run, in which {emits.system.name} does not log " + (
            ", ".join(not_yet)
        )
    return f"{emits.system.name} does not log {', '.join(sorted(events))}"


def fewer_than_named(scenario: Scenario, untried: Sequence[CheckResult]) -> list[Remark]:
    """Return a doubt where an existing cluster leaves no evidence for checks that the scenario names one by one."""
    if scenario.cluster.external is None or not scenario.checks or not untried:
        return []
    named = ", ".join(registry.check_title(answer.check) for answer in untried)
    text = f"{number_of(len(untried), 'check')} that the scenario names cannot judge: {named}"
    return [Remark(text=text, phase=Phase.JUDGE, forbids_pass=True)]
