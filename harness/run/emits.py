"""What evidence can a run leave, as its system, its scenario and the harness that recorded it emit?"""

from dataclasses import dataclass

from harness.cluster.systems.system import System, system_named
from harness.contracts.checks import Check, read_by
from harness.events import FIELDS
from harness.run.settings import unclean_elections
from harness.scenario.external import kinds_not_collected
from harness.scenario.model import Scenario
from harness.store.version import Logged

_OF_CLEANERS = ("log.cleaner.", "offsets.topic.segment.bytes")
"""Prefixes of broker properties that make the offsets topic be cleaned during a run."""
AROUND_LOAD_S = 3600.0
"""The longest duration of a run beyond its load, on the busiest machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emits:
    """What evidence a run can leave."""

    system: System
    kinds: frozenset[str]
    """The kinds of state changes that its brokers log."""
    missing_fields: frozenset[str]
    """Fields that are never set, as kind.field."""
    not_yet: frozenset[str]
    """Kinds and fields that the system logs today, and that the harness that recorded the run did not."""
    no_quorum: str
    """Why nothing is known of leaders of a quorum of controllers; empty where brokers' logs show them."""
    uncollected: frozenset[str]
    """The kinds of evidence that cannot be collected of the cluster."""
    compacts: bool
    """Whether a topic is compacted during the run; `__consumer_offsets` is with small segments."""
    expires: bool
    """Whether a committed offset may expire during the run."""
    unclean_elections: bool
    """Whether a topic may get a leader from outside its ISR."""

    def facts_of(self, check: Check) -> tuple[str, ...]:
        """Return the facts that the answer of a check rests on in such a run."""
        return read_by(check, compacts=self.compacts, expires=self.expires)


def emits_of(scenario: Scenario, recorded: Logged | None = None) -> Emits:
    """Return what runs of a scenario can leave: those of today, or one that states which fields were `recorded`."""
    uncollected = kinds_not_collected(scenario)
    under_test, logging = system_named(scenario.system), scenario.logging_system
    system = under_test if logging == scenario.system else system_named(logging)
    today = logged_by(system)
    recorded = today if recorded is None else recorded
    kinds = today.keys() - recorded.keys()
    fields = {
        f"{kind}.{name}" for kind in today.keys() & recorded.keys() for name in set(today[kind]) - set(recorded[kind])
    }
    brokers = under_test.effective(scenario.cluster.brokers, scenario.cluster.properties)
    return Emits(
        system=system,
        kinds=system.emits - kinds,
        missing_fields=system.missing_fields | fields,
        not_yet=frozenset(kinds | fields),
        no_quorum=_no_quorum(scenario),
        uncollected=uncollected,
        compacts=_compacts(scenario, brokers["log.cleanup.policy"]),
        expires=60 * int(brokers["offsets.retention.minutes"]) <= scenario.duration_s + AROUND_LOAD_S,
        unclean_elections=unclean_elections(scenario, brokers),
    )


def _no_quorum(scenario: Scenario) -> str:
    """Return why nothing is known of leaders of a quorum; empty if the logs of brokers show them."""
    if scenario.cluster.external is not None:
        return "the clocks of an existing cluster's hosts may differ"
    return "the logs of separate controllers are not collected" if scenario.cluster.separate_controllers else ""


def _compacts(scenario: Scenario, policy: str) -> bool:
    """Return whether a topic is compacted during a run, with this `policy` of the brokers."""
    small = any(name.startswith(_OF_CLEANERS) for name in scenario.cluster.properties)
    return small or any("compact" in topic.config.get("cleanup.policy", policy) for topic in scenario.topics)


def logged_by(system: System) -> Logged:
    """Return the fields that a system's brokers log of each kind of event."""
    return {
        kind: [name for name in FIELDS[kind] if f"{kind}.{name}" not in system.missing_fields]
        for kind in sorted(system.emits)
    }
