"""What do the settings of a run allow? A loss that they permit accuses no broker."""

from typing import Any

from harness.cluster.inherited_properties import stated_defaults
from harness.cluster.systems.system import EXTERNAL, system_named
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.contracts.faults import MayLoseData
from harness.scenario.draws import with_drawn
from harness.scenario.model import Scenario
from harness.scenario.plan import SESSION_TIMEOUT, Plan
from harness.scenario.rules import MIN_INSYNC_REPLICAS

UNCLEAN_ELECTION = "unclean.leader.election.enable"
TOMBSTONES_KEPT, REPLICA_LAG = "log.cleaner.delete.retention.ms", "replica.lag.time.max.ms"
PRODUCERS_KEPT = "producer.id.expiration.ms"
FASTEST_CLOCK = 2
"""How much faster than time a broker's clock may run."""
RETENTION = frozenset({"retention.ms", "retention.bytes"})
RETENTION_OF_BROKERS = frozenset(f"log.retention.{of}" for of in ("ms", "minutes", "hours", "bytes"))


def settings_of(scenario: Scenario, plan: Plan) -> Settings:
    """Return what the run's settings allow; of all topics, the most permissive value."""
    scenario = with_drawn(scenario, plan.drawn)
    power_loss = any(_may_lose(kind, parameters) for kind, parameters in scenario.kinds)
    system = system_named(scenario.system)
    brokers = system.effective(scenario.cluster.brokers, scenario.cluster.properties)
    producers = [client.parameters for client in plan.clients if "acks" in client.parameters]
    return Settings(
        acks=frozenset(parameters["acks"] for parameters in producers),
        min_insync_replicas=min(int(value) for value in _effective(scenario, brokers, MIN_INSYNC_REPLICAS)),
        broker_min_insync_replicas=0 if _changes_brokers(scenario) else int(brokers[MIN_INSYNC_REPLICAS]),
        unclean_leader_election=unclean_elections(scenario, brokers),
        idempotence=all(parameters.get("idempotence", False) for parameters in producers) and bool(producers),
        power_loss=power_loss,
        deleting_topics=",".join(sorted(_deleting_topics(scenario))),
        delete_delay_ms=int(brokers["log.segment.delete.delay.ms"]),
        first_deletion_ms=round(system.first_deletion_s * 1000),
        inherited_by_topics=stated_defaults(brokers),
        session_timeout_ms=int(brokers[SESSION_TIMEOUT]),
        quorum_resigns_ms=0 if system.name == EXTERNAL else _resigns_ms(brokers),  # clocks of hosts differ
        tombstones_seen_ms=int(brokers[TOMBSTONES_KEPT]) - int(brokers[REPLICA_LAG]),
        producers_expire=system.name == EXTERNAL or _producers_expire(scenario, brokers),  # its logs may be old
    )


def unclean_elections(scenario: Scenario, brokers: dict[str, str]) -> bool:
    """Return whether a topic may get a leader from outside its ISR; Kafka's own topics take the brokers' value."""
    return "true" in (brokers[UNCLEAN_ELECTION].lower(), *_effective(scenario, brokers, UNCLEAN_ELECTION))


def _effective(scenario: Scenario, brokers: dict[str, str], name: str) -> list[str]:
    """Return each topic's effective property of this name: its own, else that of the `brokers`."""
    return [topic.config.get(name, brokers[name]).lower() for topic in scenario.topics]


def _resigns_ms(brokers: dict[str, str]) -> int:
    """Return the longest time until a leader of a quorum resigns without a majority, and begins a later epoch."""
    fetch, election = (int(brokers.get(f"controller.quorum.{of}.timeout.ms", 0)) for of in ("fetch", "election"))
    return fetch * 3 // 2 + 2 * election


def _changes_brokers(scenario: Scenario) -> bool:
    """Return whether a fault changes the brokers' own `min.insync.replicas`."""
    return any(MIN_INSYNC_REPLICAS in config for config in _configs_of_brokers(scenario))


def _configs_of_brokers(scenario: Scenario) -> list[dict[str, Any]]:
    """Return what faults set of the brokers' configuration."""
    return [parameters.get("config") or {} for _, parameters in scenario.kinds if not parameters.get("topic")]


def _producers_expire(scenario: Scenario, brokers: dict[str, str]) -> bool:
    """Return whether a producer can be idle for `producer.id.expiration.ms`, by the clocks that faults set too."""
    changed = (config[PRODUCERS_KEPT] for config in _configs_of_brokers(scenario) if PRODUCERS_KEPT in config)
    set_s = sum(abs(float(parameters.get("step_s") or 0)) for _, parameters in scenario.kinds)
    longest_ms = 1000 * (FASTEST_CLOCK * scenario.longest_drive_s + set_s)
    return min(map(int, (brokers[PRODUCERS_KEPT], *changed))) <= longest_ms


def _deleting_topics(scenario: Scenario) -> set[str]:
    """Return the topics whose retention the scenario states, and those from which its clients delete records."""
    kept = {topic.name for topic in scenario.topics if not RETENTION.isdisjoint(topic.config)}
    stated = not RETENTION_OF_BROKERS.isdisjoint(scenario.cluster.properties)
    by_clients = (spec.parameters.get("delete_records_of", []) for spec in scenario.workloads)
    return {topic.name for topic in scenario.topics if stated} | kept | {name for names in by_clients for name in names}


def _may_lose(kind: str, parameters: dict[str, Any]) -> bool:
    """Return whether a fault may remove committed records, as the scenario allows."""
    fault = registry.fault(kind).Parameters.model_validate(parameters)
    return isinstance(fault, MayLoseData) and not fault.protect_committed
