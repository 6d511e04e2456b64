"""What is wrong in a scenario's faults and mix beyond its model: kinds, targets, and conflicting claims?

Each rule is a generator of problems over the well-formed parts of a scenario.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from pydantic import ValidationError

from harness.cluster.capabilities import Side
from harness.cluster.driver import INTERCEPT, OVER_LINKS, quorum_ids
from harness.cluster.systems.system import System, system_named
from harness.contracts import registry
from harness.contracts.claims import Claim, claim_of
from harness.contracts.faults import Fault
from harness.contracts.parameters import OfZookeeper
from harness.contracts.registry import Kind, unknown_message
from harness.contracts.targets import (
    ALLOWED,
    CLIENTS,
    COORDINATORS,
    NO_BROKERS,
    ROLES_OF_A_PARTITION,
    Part,
    Role,
    Target,
)
from harness.contracts.workloads import ClientPlan
from harness.errors import HarnessError, PluginError, ScenarioError
from harness.scenario.draft import Draft
from harness.scenario.errors import parameter_problems
from harness.scenario.model import FaultSpec, MixKind, WorkloadSpec
from harness.scenario.source import KeyPath, Problem
from harness.values import PYTHON

ONCE_ONLY = "can hit a broker only once, and a mix may draw it again: list it under faults"
LISTENERS = ("security.inter.broker.protocol", "listener.security.protocol.map")
NONE_LEFT = "all kinds are only_with_zookeeper, and the system under test has no ZooKeeper"


def faults(draft: Draft) -> Iterator[Problem]:
    """Every fault of the schedule exists, has valid parameters, can be carried out, and has a target."""
    for index, spec in draft.faults.items():
        if not _left_out(draft, spec):
            yield from _fault(draft, ("faults", index), spec.kind, spec.parameters, spec.target, spec.duration_s)
    if draft.mix is None and not draft.steps and _all_left_out(draft, draft.faults.values()):
        yield Problem(("faults",), NONE_LEFT)


def mix(draft: Draft) -> Iterator[Problem]:
    """Every kind of a mix obeys the same rule; the mix says in one way how many are drawn; each fits into the load."""
    if draft.mix is None:
        return
    if (draft.mix.count is None) == (draft.mix.every_s is None):
        yield Problem(("mix",), "give one of count (how many faults) and every_s (one in so many seconds)")
    if _all_left_out(draft, draft.mix.kinds):
        yield Problem(("mix", "kinds"), NONE_LEFT)
    for index, kind in enumerate(draft.mix.kinds):
        at: KeyPath = ("mix", "kinds", index)
        if _left_out(draft, kind):
            continue
        yield from _fault(draft, at, kind.kind, kind.parameters, kind.target, kind.duration_s[0])
        if _happens_once(kind.kind):
            yield Problem((*at, "kind"), f"{kind.kind} {ONCE_ONLY}")
        min_visible_s, longest_s = kind.duration_s
        if min_visible_s > longest_s:
            yield Problem(
                (*at, "duration_s"), f"must be a range from less to more, not [{min_visible_s:g}, {longest_s:g}]"
            )
        if draft.duration_s is not None and longest_s + draft.mix.settle_s > draft.duration_s:
            yield Problem(
                (*at, "duration_s"),
                f"{longest_s:g} s and {draft.mix.settle_s:g} s to settle (mix.settle_s) do not fit into the load of"
                f" {draft.duration_s:g} s (duration_s)",
            )


def _happens_once(kind: str) -> bool:
    try:
        return registry.fault(kind).changes_release
    except PluginError:
        return False  # the rule on kinds reports it


def _left_out(draft: Draft, spec: FaultSpec | MixKind) -> bool:
    """Return whether a fault is none of this scenario, as what is under test has no ZooKeeper."""
    return spec.only_with_zookeeper and not draft.has_zookeeper


def _all_left_out(draft: Draft, specs: Collection[FaultSpec | MixKind]) -> bool:
    return bool(specs) and all(_left_out(draft, spec) for spec in specs)


def _fault(
    draft: Draft, at: KeyPath, kind: str, parameters: dict[str, Any], target: Target, duration_s: float
) -> Iterator[Problem]:
    try:
        plugin = registry.fault(kind)
    except PluginError as error:
        yield Problem((*at, "kind"), str(error))
        yield from _target(draft, (*at, "target"), kind, target, tuple(Role))
        return
    yield from parameter_problems(plugin.Parameters, parameters, at)
    yield from capabilities(draft, (*at, "kind"), plugin)
    yield from witnesses(draft, (*at, "kind"), plugin)
    yield from of_metadata(draft, at, plugin, parameters)
    yield from releases(draft, at, plugin, parameters)
    yield from _target(draft, (*at, "target"), kind, target, plugin.accepts)
    yield from controllers(draft, (*at, "target"), plugin, target)
    if not plugin.zookeeper and target.role is Role.ZOOKEEPER and not draft.has_zookeeper:
        yield Problem((*at, "target"), f"{draft.system} has no ZooKeeper")
    if duration_s < plugin.min_visible_s:
        yield Problem((*at, "duration_s"), f"{kind} takes {plugin.min_visible_s:g} s or more, not {duration_s:g} s")


def capabilities(draft: Draft, at: KeyPath, plugin: Fault) -> Iterator[Problem]:
    """The driver has the capabilities that a fault needs."""
    if INTERCEPT in plugin.requires and (tls := _over_tls(draft.properties)):
        yield Problem(at, f"{plugin.name} reads messages, and {tls} encrypts them")
    if draft.driver is None or not registry.is_driver(draft.driver):
        return
    missing = sorted(set(plugin.requires) - registry.capabilities(draft.driver))
    if missing:
        able = [name for name in registry.starting() if registry.capabilities(name) >= set(plugin.requires)]
        yield Problem(
            at,
            f"{plugin.name} needs {', '.join(missing)}, which the driver {draft.driver} does not have;"
            f" drivers that do: {', '.join(able) or 'none'}",
        )


def _over_tls(properties: Mapping[str, str]) -> str:
    """Return the property by which brokers speak TLS; empty if none does."""
    names = (name for name, value in properties.items() if name in LISTENERS and "SSL" in value.upper())
    return next(names, "")


def witnesses(draft: Draft, at: KeyPath, plugin: Fault) -> Iterator[Problem]:
    """The system logs the events by which a fault is confirmed."""
    try:
        system = system_named(draft.system or PYTHON)
    except ScenarioError:
        return  # the rule on names reports it
    if why := unfit(plugin, system):
        yield Problem(at, why)


def of_metadata(draft: Draft, at: KeyPath, plugin: Fault, parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """Parameters of a fault that act on ZooKeeper, or on links to the servers of the metadata, need such servers."""
    try:
        system = system_named(draft.system or PYTHON)
    except ScenarioError:
        return
    fields = plugin.Parameters.model_fields
    named = [name for name in parameters if name in fields and OfZookeeper() in fields[name].metadata]
    if not draft.has_zookeeper:
        for name in (name for name in named if parameters[name]):
            yield Problem((*at, "parameters", name), f"{system.name} has no ZooKeeper")
    sides = parameters.get("sides")
    for side in sides if isinstance(sides, list) and not OVER_LINKS.isdisjoint(plugin.requires) else ():
        if why := _no_such_side(draft, system, side):
            yield Problem((*at, "parameters", "sides"), why)


def _no_such_side(draft: Draft, system: System, side: object) -> str:
    """Return why the cluster has no server on a side of links that a scenario names; empty if it has one."""
    if side == Side.ZOOKEEPER and not draft.has_zookeeper:
        return f"{system.name} has no ZooKeeper"
    if side == Side.CONTROLLERS and draft.has_zookeeper:
        return f"{system.name} has no quorum of controllers, but ZooKeeper"
    if side == Side.CONTROLLERS and not draft.separate_controllers:
        return "the controllers of this cluster are brokers, which are peers"
    return ""


def releases(draft: Draft, at: KeyPath, plugin: Fault, parameters: Mapping[str, Any]) -> Iterator[Problem]:
    """A release that brokers are to be is one that they can be upgraded to."""
    if not plugin.changes_release:
        return
    try:
        system = system_named(draft.system or PYTHON)
        if not unfit(plugin, system):
            system.upgraded(plugin.release(plugin.Parameters.model_validate(parameters)))
    except ValidationError:
        return  # the rule on parameters reports it
    except ScenarioError as error:
        yield Problem((*at, "parameters"), str(error))


def unfit(plugin: Fault, system: System) -> str:
    """Return why a fault cannot be carried out, or not confirmed, on a system; empty if it can."""
    if plugin.zookeeper and not system.zookeeper:
        return f"{plugin.name} needs ZooKeeper, and {system.name} has none"
    if plugin.changes_release and not system.upgrades():
        return f"{plugin.name} needs a later release that keeps its metadata where {system.name} does; none is known"
    if missing := missing_events(plugin, system):
        return f"{plugin.name} is confirmed by events that {system.name} does not log: {', '.join(missing)}"
    return ""


def missing_events(plugin: Fault, system: System) -> list[str]:
    """Return the witnesses of a fault that a system does not log, so that they cannot confirm it."""
    kinds = {witness: witness.partition(".")[0] for witness in plugin.witnesses}
    missing = (it for it in kinds if kinds[it] not in system.emits or it in system.missing_fields)
    return sorted(missing)


def _target(draft: Draft, at: KeyPath, kind: str, target: Target, accepts: tuple[Role, ...]) -> Iterator[Problem]:
    if wrong := _missing_target(draft, target):
        yield Problem(at, wrong)
    if target.role not in accepts:
        yield Problem(at, f"{kind} takes {', '.join(accepts)}, not {target}; all forms: {ALLOWED}")


def controllers(draft: Draft, at: KeyPath, plugin: Fault, target: Target) -> Iterator[Problem]:
    """Controllers are targets where there is a quorum, and of few faults where they are no brokers."""
    try:
        system = system_named(draft.system or PYTHON)
    except ScenarioError:
        return  # another rule reports it
    if target.role is Role.QUORUM and draft.has_zookeeper:
        yield Problem(at, f"{system.name} has no quorum of controllers, but ZooKeeper")
    elif target.role in (Role.QUORUM, Role.CONTROLLER) and draft.separate_controllers and not plugin.controllers:
        yield Problem(at, f"{plugin.name} hits brokers, and the controllers of this cluster are none")
    elif target.role is Role.QUORUM and target.part is Part.FOLLOWER and draft.brokers is not None:
        ids = quorum_ids(draft.brokers, draft.controllers, separate=bool(draft.separate_controllers))
        if len(ids) == 1:
            yield Problem(at, "a quorum of one has no follower")


def _missing_target(draft: Draft, target: Target) -> str:
    if target.role is Role.IDS and draft.external is not None:
        ids = {broker.id for broker in draft.external.brokers}
        if unknown := sorted(set(target.broker_ids) - ids):
            return f"there is no broker {', '.join(map(str, unknown))}; there are: {', '.join(map(str, sorted(ids)))}"
    elif target.role is Role.IDS and draft.brokers is not None:
        unknown = [broker_id for broker_id in target.broker_ids if broker_id >= draft.brokers]
        if unknown:
            return f"there is no broker {', '.join(map(str, unknown))}; allowed: 0 to {draft.brokers - 1}"
    if target.role is Role.MINORITY and draft.brokers is not None and draft.brokers < 3:
        return f"{draft.brokers} brokers have no minority; there must be at least 3"
    if target.role is Role.ZOOKEEPER and draft.zookeeper_servers:
        return _missing_server(target, draft.zookeeper_servers)
    if target.role in CLIENTS:
        return _missing_client(draft, target)
    if target.role in ROLES_OF_A_PARTITION:
        return missing_partition(draft, target.topic, target.partition)
    return ""


def _missing_server(target: Target, servers: int) -> str:
    if unknown := [number for number in target.servers if number > servers]:
        return f"there is no ZooKeeper server {', '.join(map(str, unknown))}; allowed: 1 to {servers}"
    return "a single ZooKeeper server has no follower" if target.part is Part.FOLLOWER and servers == 1 else ""


def missing_partition(draft: Draft, topic: str, partition: int) -> str:
    """Return why there is no such partition; empty if there may be one."""
    partitions = {each.name: each.partitions for each in draft.topics.values()}
    if topic in COORDINATORS.values() or not draft.all_topics:
        return ""  # the brokers create it; without such a partition the fault has no target
    if topic not in partitions:
        return unknown_message("topic", topic, list(partitions))
    if partition >= partitions[topic]:
        return f"topic {topic} has no partition {partition}; allowed: 0 to {partitions[topic] - 1}"
    return ""


def _missing_client(draft: Draft, target: Target) -> str:
    try:
        clients = [client for spec in draft.workloads.values() for client in _clients(spec)]
    except (HarnessError, ValidationError):
        return ""  # the rule on workloads reports it
    if target.role is not Role.MEMBER:
        count = sum(client.role == target.role for client in clients)
        allowed = f"1 to {count}" if count else "none"
        return f"the load has no {target.role} {target.member}; allowed: {allowed}" if target.member > count else ""
    groups = Counter(client.parameters["group"] for client in clients if "group" in client.parameters)
    if target.group not in groups:
        return unknown_message("group", target.group, list(groups))
    if target.member > groups[target.group]:
        return f"the group {target.group} has no member {target.member}; allowed: 1 to {groups[target.group]}"
    return ""


def _clients(spec: WorkloadSpec) -> list[ClientPlan]:
    """Return the clients that a workload has."""
    workload = registry.workload(spec.kind)
    parameters = workload.Parameters.model_validate(spec.parameters)
    return workload.clients(parameters, bootstrap_servers="", topics={}, seed=0)


def schedule(draft: Draft) -> Iterator[Problem]:
    """Every fault ends within the load, and no two certainly claim the same at the same time."""
    for index, spec in draft.faults.items():
        if draft.duration_s is not None and spec.latest_end_s > draft.duration_s:
            yield Problem(
                ("faults", index, "at_s"),
                f"ends at {spec.latest_end_s:g} s (at_s + jitter_s + duration_s), after the load of"
                f" {draft.duration_s:g} s (duration_s)",
            )
    claims = {index: claim for index, spec in draft.faults.items() if (claim := _claim(draft, spec))}
    for (first, one), (second, other) in combinations(sorted(claims.items()), 2):
        if one.excludes(other) and _may_overlap(draft.faults[first], draft.faults[second]):
            held = replace(other, brokers=one.brokers & other.brokers)
            yield Problem(("faults", second, "target"), f"claims {held} while faults.{first} may hold it")


def _claim(draft: Draft, spec: FaultSpec) -> Claim | None:
    """Return what a fault will certainly claim; None when only known at injection, or the fault is unknown."""
    target = spec.target
    if not registry.known(Kind.FAULT, spec.kind):
        return None
    brokers = set(target.broker_ids)
    if target.role is Role.ALL:
        brokers = set(range(draft.brokers or 0))
    if not brokers and target.role not in NO_BROKERS:
        return None
    try:
        return claim_of(registry.fault(spec.kind), target, brokers, spec.parameters)
    except (PluginError, ValidationError):
        return None  # the rule on faults reports it


def _may_overlap(one: FaultSpec, other: FaultSpec) -> bool:
    return one.at_s < other.latest_end_s and other.at_s < one.latest_end_s
