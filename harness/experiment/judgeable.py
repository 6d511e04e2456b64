"""Which checks can judge a run? Those whose evidence its system leaves and its recording harness wrote down."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.analysis.sources.lineage import events_of, kinds_of, missing_events
from harness.cluster.systems.system import EXTERNAL, System, system_named
from harness.contracts import registry
from harness.contracts.checks import Check, read_by
from harness.errors import Refused
from harness.events import FIELDS
from harness.experiment.without_plugins import asked_of
from harness.progress import number_of
from harness.scenario.external import told_by, unseen
from harness.scenario.model import Scenario
from harness.store.phase_log import Phase
from harness.store.result import CheckResult, Remark
from harness.store.version import Logged
from harness.verdict import SystemVerdict

_OF_CLEANERS = ("log.cleaner.", "offsets.topic.segment.bytes")
"""Prefixes of broker properties that make the offsets topic be cleaned during a run."""
_COPIED = {"replicas": "data", "zookeeper": "metadata"}
"""What brings a kind of evidence of an existing cluster."""
AROUND_LOAD_S = 3600.0
"""The longest duration of a run beyond its load, on the busiest machine."""
EVIDENCE = "evidence"
"""The fact with defects of lines."""
UNCLEAN_ELECTION = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    """What the state-change logs of a run can contain."""

    system: System
    kinds: frozenset[str]
    """The kinds of events."""
    missing_fields: frozenset[str]
    """Fields that are never set, as kind.field."""
    not_yet: frozenset[str] = frozenset()
    """Kinds and fields that the system logs today, and that the harness that recorded the run did not."""


def logging_of(scenario: Scenario, recorded: Logged | None = None) -> Logging:
    """Return what brokers log in runs of a scenario: those of today, or one that states what was `recorded`."""
    system = told_by(scenario)
    logging = Logging(system=system, kinds=system.emits, missing_fields=system.missing_fields)
    if recorded is None:
        return logging
    today = logged_by(system)
    kinds = today.keys() - recorded.keys()
    fields = {
        f"{kind}.{name}" for kind in today.keys() & recorded.keys() for name in set(today[kind]) - set(recorded[kind])
    }
    return replace(
        logging,
        kinds=logging.kinds - kinds,
        missing_fields=logging.missing_fields | fields,
        not_yet=frozenset(kinds | fields),
    )


def logged_by(system: System) -> Logged:
    """Return the fields that a system's brokers log of each kind of event."""
    return {
        kind: [name for name in FIELDS[kind] if f"{kind}.{name}" not in system.missing_fields]
        for kind in sorted(system.emits)
    }


def checks_of(scenario: Scenario, logging: Logging | None = None) -> list[str] | None:
    """Return the names of the checks that judge a run, an empty list for all; None if no check can.

    These are the checks that the scenario names, whose plugins can be imported, and for which there is evidence.
    """
    asked = asked_of(scenario.checks)
    broken = registry.unusable(asked)
    untried = {answer.check for answer in not_judged(scenario, logging)}
    if not broken and not untried and len(asked) >= len(scenario.checks):
        return scenario.checks
    return [name for name in asked if name not in broken and registry.check(name).name not in untried] or None


def not_judged(scenario: Scenario, logging: Logging | None = None) -> list[CheckResult]:
    """Return the answers of checks for which a run leaves no evidence; without `logging`, a run of today."""
    logging = logging or logging_of(scenario)
    asked = asked_of(scenario.checks)
    broken = registry.unusable(asked)
    checks = {name: registry.check(name) for name in asked if name not in broken}
    return [
        CheckResult(
            check=check.name,
            promise=check.promise,
            verdict=SystemVerdict.NOT_JUDGED,
            reason=not_told(logging, gaps),
        )
        for check in checks.values()
        if (gaps := _gaps(check, scenario, logging))
    ]


def judged_of(scenario: Scenario) -> dict[str, list[str]]:
    """Return the names of checks, by what becomes of them: judged, or why they are not."""
    untried = not_judged(scenario)
    reasons = {answer.check: f"are not judged, as {answer.reason}" for answer in untried}
    by_reason: dict[str, list[str]] = {"are judged": []}
    for name in asked_of(scenario.checks):
        by_reason.setdefault(reasons.get(name, "are judged"), []).append(name)
    return by_reason


def _gaps(check: Check, scenario: Scenario, logging: Logging) -> set[str]:
    """Return the kinds of evidence, events and fields that a check needs and a run does not have."""
    facts = read_in(check, scenario)
    kinds = {kind for kinds in missing_events(facts, logging.kinds).values() for kind in kinds}
    kinds |= uncollected(facts, scenario)
    dispensable = set(check.judges_without)
    if "true" in effective(scenario, UNCLEAN_ELECTION):
        dispensable -= {"zookeeper"}  # the leader epochs show which elections excuse a loss
    kinds -= dispensable
    kinds |= events_of(facts) & logging.not_yet
    absent = {name for name in check.fields if name.partition(".")[0] not in logging.kinds}
    return kinds | absent | (set(check.fields) & logging.missing_fields)


def uncollected(facts: Iterable[str], scenario: Scenario) -> set[str]:
    """Return the kinds of evidence, beside state changes, that cannot be collected and that some facts are made of."""
    made_of = set(kinds_of([fact for fact in facts if fact != EVIDENCE]))  # that one is made of any evidence
    return made_of & (unseen(scenario) - {"state_changes"})


def require_evidence(scenario: Scenario) -> None:
    """Check that the system under test leaves evidence for a check that the scenario names.

    Raises:
        Refused: for none of them.
    """
    logging = logging_of(scenario)
    broken = registry.unusable(scenario.checks)
    checks = [registry.check(name) for name in scenario.checks if name not in broken]
    if checks and all(_gaps(check, scenario, logging) for check in checks):
        raise Refused(f"{scenario.system} leaves no evidence for the checks of this scenario: {scenario.checks}")


def not_told(logging: Logging, events: Iterable[str]) -> str:
    """Return why something cannot be judged: events that the brokers do not log, or commands that are not given."""
    if logging.system.name == EXTERNAL:
        lacking = {_COPIED.get(event, "logs") for event in events}
        return f"the cluster file has no command that copies {', '.join(sorted(lacking))}"
    if not_yet := sorted(logging.not_yet & set(events)):
        return f"an earlier version of the harness recorded this run, in which {logging.system.name} does not log " + (
            ", ".join(not_yet)
        )
    return f"{logging.system.name} does not log {', '.join(sorted(events))}"


def properties_of(scenario: Scenario) -> dict[str, str]:
    """Return the brokers' properties."""
    return system_named(scenario.system).effective(scenario.cluster.brokers, scenario.cluster.properties)


def effective(scenario: Scenario, name: str) -> list[str]:
    """Return each topic's effective properties: its own, else the broker's, else the default."""
    brokers = properties_of(scenario)
    return [topic.config.get(name, brokers[name]).lower() for topic in scenario.topics]


def read_in(check: Check, scenario: Scenario) -> tuple[str, ...]:
    """Return the facts that the answer of a check rests on in a run of this scenario."""
    return read_by(check, compacts=_compacts(scenario), expires=_expires(scenario))


def _expires(scenario: Scenario) -> bool:
    """Return whether a committed offset may expire during a run."""
    retention_s = 60 * int(properties_of(scenario)["offsets.retention.minutes"])
    return retention_s <= scenario.duration_s + AROUND_LOAD_S


def _compacts(scenario: Scenario) -> bool:
    """Return whether a topic is compacted during a run; `__consumer_offsets` is with small segments."""
    small = any(name.startswith(_OF_CLEANERS) for name in scenario.cluster.properties)
    of_brokers = properties_of(scenario)["log.cleanup.policy"]
    return small or any("compact" in topic.config.get("cleanup.policy", of_brokers) for topic in scenario.topics)


def fewer_than_named(scenario: Scenario, untried: Sequence[CheckResult]) -> list[Remark]:
    """Return a doubt where an existing cluster leaves no evidence for checks that the scenario names one by one."""
    if scenario.cluster.external is None or not scenario.checks or not untried:
        return []
    named = ", ".join(registry.check_title(answer.check) for answer in untried)
    text = f"{number_of(len(untried), 'check')} that the scenario names cannot judge: {named}"
    return [Remark(text=text, phase=Phase.JUDGE, forbids_pass=True)]
