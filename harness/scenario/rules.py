"""What is wrong in a scenario beyond its model: unknown names, and combinations that cannot work?

Each rule is a generator of problems over the well-formed parts of a scenario.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from harness.broker.configs.config import PROPERTIES
from harness.broker.configs.config_types import Property
from harness.broker.configs.refused import refusal
from harness.broker.configs.topic_properties import TOPIC_PROPERTIES, TopicProperty
from harness.broker.rules import PLANTED_BUGS
from harness.cluster.broker_properties import LOG_DIRS, data_directories, set_by_driver
from harness.cluster.systems.system import System, system_named
from harness.contracts import registry
from harness.contracts.parameters import BetweenProperties, Idle
from harness.contracts.registry import Kind, unknown_message
from harness.errors import PluginError, ScenarioError
from harness.scenario.draft import Draft
from harness.scenario.draw_rules import draws, latencies
from harness.scenario.errors import parameter_problems, unknown_key
from harness.scenario.external import external
from harness.scenario.fault_rules import faults, mix, schedule
from harness.scenario.motif_rules import moments
from harness.scenario.source import KeyPath, Problem
from harness.scenario.step_rules import roles, steps
from harness.values import PYTHON

MIN_INSYNC_REPLICAS = "min.insync.replicas"

Rule = Callable[[Draft], Iterator[Problem]]


def broken_rules(draft: Draft) -> list[Problem]:
    """Return the problems of all rules."""
    return [problem for rule in RULES for problem in rule(draft)]


def known_names(draft: Draft) -> Iterator[Problem]:
    """Driver, workloads, checks and planted bugs exist, and workloads get the parameters they take."""
    if draft.driver is not None and not registry.is_driver(draft.driver):
        yield Problem(("driver",), unknown_message("driver", draft.driver, registry.drivers()))
    yield from _system(draft)
    for index, spec in draft.workloads.items():
        yield from _workload(("workloads", index), spec.kind, spec.parameters)
    asked = list(map(registry.check_key, draft.checks))
    yield from _each_known("checks", asked, Kind.CHECK.singular, registry.names(Kind.CHECK))
    yield from _each_known("planted_bugs", draft.planted_bugs, "planted bug", [bug.name for bug in PLANTED_BUGS])


def _system(draft: Draft) -> Iterator[Problem]:
    if draft.system is None:
        return
    try:
        system = system_named(draft.system)
    except ScenarioError as error:
        yield Problem(("system",), str(error))
        return
    if system.name != PYTHON and registry.is_driver(draft.driver) and not starts(str(draft.driver), system):
        able = [name for name in registry.drivers() if starts(name, system)]
        yield Problem(
            ("system",), f"the driver {draft.driver} does not start {draft.system}; drivers that do: {', '.join(able)}"
        )
    if draft.planted_bugs and not system.can_have_planted_bugs:
        yield Problem(("planted_bugs",), f"no bug can be planted in {draft.system}")


def starts(driver: str, system: System) -> bool:
    """Return whether a driver starts a system: others of its family may run in containers, and this one not."""
    able = registry.driver_class(driver)
    family = system.name.partition(":")[0]
    return family in able.families and (system.in_containers or not getattr(able, "in_containers", False))


def keepers(draft: Draft) -> Iterator[Problem]:
    """Servers of ZooKeeper are asked for where there are some, controllers where there are none, and not too many."""
    try:
        system = system_named(draft.system or PYTHON)
    except ScenarioError:
        return  # the rule on names reports it
    if not system.zookeeper and (draft.zookeeper_servers or 1) > 1:
        yield Problem(("cluster", "zookeeper_servers"), f"{system.name} has no ZooKeeper")
    if system.zookeeper:
        for name, number in (("controllers", draft.controllers), ("separate_controllers", draft.separate_controllers)):
            if number:
                yield Problem(("cluster", name), f"{system.name} has no quorum of controllers, but ZooKeeper")
    elif draft.separate_controllers or draft.controllers is None:
        return
    elif draft.brokers is not None and draft.controllers > draft.brokers:
        yield Problem(("cluster", "controllers"), f"{draft.controllers} do not fit on {draft.brokers} brokers")


def _ours(draft: Draft) -> bool:
    """Return whether properties must be those of our broker; another system's brokers know their own."""
    try:
        return draft.system is None or system_named(draft.system).properties_are_ours
    except ScenarioError:
        return True


def _each_known(key: str, names: list[str], what: str, known: list[str]) -> Iterator[Problem]:
    folded = {name.lower() for name in known}
    for index, name in enumerate(names):
        if name.lower() not in folded:
            yield Problem((key, index), unknown_message(what, name, known))
        elif name in names[:index]:
            yield Problem((key, index), f"{name} is named twice")


def _workload(at: KeyPath, name: str, parameters: dict[str, Any]) -> Iterator[Problem]:
    try:
        plugin = registry.workload(name)
    except PluginError as error:
        yield Problem((*at, "kind"), str(error))
        return
    yield from parameter_problems(plugin.Parameters, parameters, at)


def broker_properties(draft: Draft) -> Iterator[Problem]:
    """Broker properties are known, well-formed and not set by the driver."""
    reserved = set_by_driver(zookeeper=draft.has_zookeeper)
    settable = [prop for prop in PROPERTIES if prop.name not in reserved]
    for name in draft.properties.keys() & reserved:
        yield Problem(("cluster", "properties", name), "is set by the harness for each broker")
    try:
        data_directories(draft.properties)
    except ValueError as error:
        yield Problem(("cluster", "properties", LOG_DIRS), str(error))
    requested = {name: text for name, text in draft.properties.items() if name not in reserved}
    if _ours(draft):
        yield from _properties(("cluster", "properties"), requested, settable)


def _properties(
    at: KeyPath, properties: Mapping[str, str], known: Sequence[Property] | Sequence[TopicProperty]
) -> Iterator[Problem]:
    by_name = {prop.name: prop for prop in known}
    for name, text in properties.items():
        if name not in by_name:
            yield Problem((*at, name), refusal(name) or unknown_key(name, list(by_name)))
            continue
        try:
            by_name[name].parse(text)
        except ValueError as error:
            yield Problem((*at, name), f"{error}, not {text!r}")


def refused_parameters(draft: Draft) -> Iterator[Problem]:
    """Brokers accept what clients ask for: with a session that they refuse no member ever joins its group."""
    in_force = {each.name: each.default for each in PROPERTIES if each.default is not None} | draft.properties
    unstated = "" if draft.external is None else ", unless `properties` of the cluster say otherwise"
    for at, value, bounds in _marked(draft, BetweenProperties):
        if refusal := bounds.refusal(value, in_force):
            yield Problem(at, refusal + unstated)


def pauses(draft: Draft) -> Iterator[Problem]:
    """A client pauses for less time than recovery gives it to succeed again."""
    most_s = draft.recovery_timeout_s
    for at, value, _ in _marked(draft, Idle):
        if most_s is not None and at[-1] in draft.workloads[int(at[1])].parameters and 2 * value > most_s:
            yield Problem(
                at,
                f"{value:g} s are more than half of recovery_timeout_s, {most_s:g} s: a client that is away for so long"
                " seems to be stuck",
            )


Mark = TypeVar("Mark")


def _marked(draft: Draft, mark: type[Mark]) -> Iterator[tuple[KeyPath, float, Mark]]:
    """Yield the numbers in parameters of workloads that have such a mark: key, value and mark."""
    for index, spec in draft.workloads.items():
        known = spec.kind in registry.names(Kind.WORKLOAD)
        fields = registry.workload(spec.kind).Parameters.model_fields if known else {}
        for name, info in fields.items():
            value = spec.parameters.get(name, info.default)
            for each in info.metadata:
                if isinstance(each, mark) and isinstance(value, int | float):
                    yield ("workloads", index, "parameters", name), value, each


def topics(draft: Draft) -> Iterator[Problem]:
    """Topics are distinct, have known properties, and fit on the brokers."""
    names: list[str] = []
    for index, topic in draft.topics.items():
        at = ("topics", index)
        if topic.name in names:
            yield Problem((*at, "name"), f"topic {topic.name} is declared twice")
        names.append(topic.name)
        if topic.name in (".", "..") or topic.name.startswith("__"):
            yield Problem((*at, "name"), "`.`, `..` and names that start with `__` are Kafka's own")
        if _ours(draft):
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


def drawn(draft: Draft) -> Iterator[Problem]:
    """Whatever the seed draws, the scenario works."""
    return draws(draft, (topics, faults, mix, schedule))


RULES: Iterable[Rule] = (
    known_names,
    external,
    keepers,
    broker_properties,
    refused_parameters,
    pauses,
    topics,
    faults,
    mix,
    schedule,
    drawn,
    latencies,
    moments,
    roles,
    steps,
)
