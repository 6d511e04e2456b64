"""What a scenario's model alone cannot refuse: names nobody knows, and combinations that cannot work.

Each rule is a generator of problems over the well-formed parts of a scenario.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from pydantic import BaseModel, ValidationError

from harness import registry
from harness.broker.config import PROPERTIES
from harness.broker.config_types import Property
from harness.broker.rules import PLANTED_BUGS
from harness.broker.topic_properties import TOPIC_PROPERTIES, TopicProperty
from harness.cluster.broker_properties import FIXED
from harness.errors import PluginError
from harness.registry import Kind, unknown_message
from harness.scenario.draft import Draft
from harness.scenario.errors import problems_of, unknown_key
from harness.scenario.source import KeyPath, Problem
from harness.targets import ALLOWED, ROLES_OF_A_PARTITION, Role, Target, parse_target

OFFSETS_TOPIC = "__consumer_offsets"
MIN_INSYNC_REPLICAS = "min.insync.replicas"

Rule = Callable[[Draft], Iterator[Problem]]


def broken_rules(draft: Draft) -> list[Problem]:
    """Return what every rule finds."""
    return [problem for rule in RULES for problem in rule(draft)]


def known_names(draft: Draft) -> Iterator[Problem]:
    """Driver, workloads, checks and planted bugs exist, and workloads get the parameters they take."""
    if draft.driver is not None and draft.driver not in registry.DRIVERS:
        yield Problem(("driver",), unknown_message("driver", draft.driver, list(registry.DRIVERS)))
    for index, spec in draft.workloads.items():
        yield from _plugin(("workloads", index), Kind.WORKLOAD, spec.kind, spec.parameters)
    yield from _each_known("checks", draft.checks, Kind.CHECK.singular, registry.names(Kind.CHECK))
    yield from _each_known("planted_bugs", draft.planted_bugs, "planted bug", [bug.name for bug in PLANTED_BUGS])


def _each_known(key: str, given: list[str], what: str, known: list[str]) -> Iterator[Problem]:
    folded = {name.lower() for name in known}
    for index, name in enumerate(given):
        if name.lower() not in folded:
            yield Problem((key, index), unknown_message(what, name, known))
        elif name in given[:index]:
            yield Problem((key, index), f"{name} is named twice")


def _plugin(at: KeyPath, kind: Kind, name: str, parameters: dict[str, Any]) -> Iterator[Problem]:
    try:
        plugin = registry.fault(name) if kind is Kind.FAULT else registry.workload(name)
    except PluginError as error:
        yield Problem((*at, "kind"), str(error))
        return
    model: type[BaseModel] = plugin.Parameters
    try:
        model.model_validate(parameters)
    except ValidationError as error:
        yield from problems_of(model, error, (*at, "parameters"))


def broker_properties(draft: Draft) -> Iterator[Problem]:
    """Broker properties are known, well-formed and not the harness's own."""
    settable = [prop for prop in PROPERTIES if prop.name not in FIXED]
    for name in draft.properties.keys() & FIXED:
        yield Problem(("cluster", "properties", name), "is set by the harness for each broker")
    given = {name: text for name, text in draft.properties.items() if name not in FIXED}
    yield from _properties(("cluster", "properties"), given, settable)


def _properties(
    at: KeyPath, given: Mapping[str, str], known: Sequence[Property] | Sequence[TopicProperty]
) -> Iterator[Problem]:
    by_name = {prop.name: prop for prop in known}
    for name, text in given.items():
        if name not in by_name:
            yield Problem((*at, name), unknown_key(name, list(by_name)))
            continue
        try:
            by_name[name].parse(text)
        except ValueError as error:
            yield Problem((*at, name), f"{error}, not {text!r}")


def topics(draft: Draft) -> Iterator[Problem]:
    """Topics are distinct, configured with known properties, and fit on the brokers."""
    names: list[str] = []
    for index, topic in draft.topics.items():
        at = ("topics", index)
        if topic.name in names:
            yield Problem((*at, "name"), f"topic {topic.name} is declared twice")
        names.append(topic.name)
        if topic.name in (".", "..") or topic.name.startswith("__"):
            yield Problem((*at, "name"), "`.`, `..` and names that start with `__` are Kafka's own")
        yield from _properties((*at, "config"), topic.config, TOPIC_PROPERTIES)
        if draft.brokers is not None and topic.replication_factor > draft.brokers:
            yield Problem(
                (*at, "replication_factor"),
                f"{topic.replication_factor} replicas do not fit on {draft.brokers} brokers;"
                f" allowed: 1 to {draft.brokers}",
            )
        yield from _min_insync_replicas(draft, index)


def _min_insync_replicas(draft: Draft, index: int) -> Iterator[Problem]:
    topic = draft.topics[index]
    own = MIN_INSYNC_REPLICAS in topic.config
    text = (topic.config if own else draft.properties).get(MIN_INSYNC_REPLICAS, "1")
    if text.isdecimal() and int(text) > topic.replication_factor:
        at: KeyPath = ("topics", index, "config") if own else ("cluster", "properties")
        yield Problem(
            (*at, MIN_INSYNC_REPLICAS),
            f"{text} is more than the {topic.replication_factor} replicas of topic {topic.name}: nothing could be"
            " written with acks=all",
        )


def faults(draft: Draft) -> Iterator[Problem]:
    """Faults exist, get the parameters they take, and the driver can carry them out."""
    for index, spec in draft.faults.items():
        at = ("faults", index)
        yield from _plugin(at, Kind.FAULT, spec.kind, spec.parameters)
        if draft.driver not in registry.DRIVERS or not registry.known(Kind.FAULT, spec.kind):
            continue
        try:
            required = registry.fault(spec.kind).requires
        except PluginError:
            continue  # said above
        missing = sorted(set(required) - registry.capabilities(draft.driver))
        if missing:
            able = [name for name in registry.DRIVERS if registry.capabilities(name) >= set(required)]
            yield Problem(
                (*at, "kind"),
                f"{spec.kind} needs {', '.join(missing)}, which the driver {draft.driver} does not have;"
                f" drivers that do: {', '.join(able) or 'none'}",
            )


def targets(draft: Draft) -> Iterator[Problem]:
    """Targets are well-formed, exist, and make sense for the fault."""
    for index, spec in draft.faults.items():
        at = ("faults", index, "target")
        try:
            target = parse_target(spec.target)
        except ValueError as error:
            yield Problem(at, str(error))
            continue
        if wrong := _missing_target(draft, target):
            yield Problem(at, wrong)
        try:
            accepts = registry.fault(spec.kind).accepts
        except PluginError:
            continue  # the rule on faults says so
        if target.role not in accepts:
            yield Problem(at, f"{spec.kind} takes {', '.join(accepts)}, not {target}; all forms: {ALLOWED}")


def _missing_target(draft: Draft, target: Target) -> str:
    if target.role is Role.IDS and draft.brokers is not None:
        unknown = [broker_id for broker_id in target.broker_ids if broker_id >= draft.brokers]
        if unknown:
            return f"there is no broker {', '.join(map(str, unknown))}; allowed: 0 to {draft.brokers - 1}"
    if target.role not in ROLES_OF_A_PARTITION or not draft.all_topics:
        return ""
    partitions = {topic.name: topic.partitions for topic in draft.topics.values()}
    if target.topic == OFFSETS_TOPIC:
        return ""  # made by the brokers; if it has no such partition, the fault matches no target
    if target.topic not in partitions:
        return unknown_message("topic", target.topic, list(partitions))
    if target.partition >= partitions[target.topic]:
        return f"topic {target.topic} has no partition {target.partition}; allowed: 0 to {partitions[target.topic] - 1}"
    return ""


def schedule(draft: Draft) -> Iterator[Problem]:
    """Every fault ends within the load, and no two are sure to claim the same broker at the same time."""
    for index, spec in draft.faults.items():
        if draft.duration_s is not None and spec.latest_end_s > draft.duration_s:
            yield Problem(
                ("faults", index, "at_s"),
                f"ends at {spec.latest_end_s:g} s (at_s + jitter_s + duration_s), after the load of"
                f" {draft.duration_s:g} s (duration_s)",
            )
    for (first, one), (second, other) in combinations(sorted(draft.faults.items()), 2):
        shared = _ids(draft, first) & _ids(draft, second)
        if shared and one.at_s < other.latest_end_s and other.at_s < one.latest_end_s:
            brokers = ", ".join(map(str, sorted(shared)))
            yield Problem(("faults", second, "target"), f"claims broker {brokers} while faults.{first} may hold it")


def _ids(draft: Draft, index: int) -> set[int]:
    target = draft.targets.get(index)
    return set(target.broker_ids) if target else set()


RULES: Iterable[Rule] = (known_names, broker_properties, topics, faults, targets, schedule)
