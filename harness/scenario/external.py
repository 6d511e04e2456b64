"""What may a scenario do to an external cluster, and which topics there belong to the run?"""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from harness.cluster.capabilities import Side
from harness.cluster.external.configuration import assumed
from harness.cluster.external.forwards import Forward
from harness.cluster.external.place import ExternalCluster, Host
from harness.cluster.systems.kafka.releases import SINCE_LOGGER_LEVELS, release_of
from harness.cluster.systems.system import EXTERNAL, system_named
from harness.contracts import registry
from harness.contracts.targets import CLIENTS, Target
from harness.errors import Refused, ScenarioError
from harness.scenario.draft import Draft
from harness.scenario.model import (
    ExternalCommands,
    ExternalFault,
    ExternalSpec,
    FaultSpec,
    MixKind,
    Scenario,
    WorkloadSpec,
)
from harness.scenario.source import KeyPath, Problem

COMMANDS: dict[str, tuple[str, ...]] = {
    "kill": ("kill", "start"),
    "pause": ("pause", "resume"),
    "controlled-shutdown": ("stop", "start"),
    "bounce": ("bounce",),
}
"""Which commands a kind of fault takes."""
BY_ZOOKEEPER = ("expire-session", "move-controller")
"""Kinds that take none, but writes to its ZooKeeper."""
BY_RELAY = ("isolate", "delay", "reset-connections")
"""Kinds that take none, but links to clients that lead through the relay."""
CUSTOM = "custom"
"""The kind whose commands the cluster's owner names."""
WORKLOAD = "produce-consume"
NAME = "name"
"""The parameter of a load by which its groups are called."""
OF_TOPICS = ("min.insync.replicas", "unclean.leader.election.enable")
"""Properties on which promises rest: topics are created with them, instead of the brokers' defaults."""
NOT_SHOWN = "not shown"
OPTION = "--i-own-this-cluster"
_Commands = TypeVar("_Commands", ExternalCommands, ExternalFault)


def external(draft: Draft) -> Iterator[Problem]:
    """The description of an external cluster is complete, and every fault on it has its command."""
    place, system, driver = draft.external, draft.system == EXTERNAL, draft.driver == EXTERNAL
    if not system and not driver and place is None:
        return
    if system and place is None:
        yield Problem(("cluster",), "the system external needs the description of a cluster in cluster.external")
    if place is not None and not system:
        yield Problem(("system",), "must be external in a scenario with cluster.external")
    if not driver or not system:
        yield Problem(("driver",), "the driver external and the system external go together")
    if place is None:
        return
    ids = [broker.id for broker in place.brokers]
    if len(set(ids)) < len(ids):
        yield Problem(("cluster", "external", "brokers"), "names a broker twice")
    if draft.brokers is not None and draft.brokers != len(ids):
        yield Problem(("cluster", "brokers"), f"is {draft.brokers}, and cluster.external names {len(ids)}")
    if place.prefix and not all(topic.name.startswith(place.prefix) for topic in draft.topics.values()):
        yield Problem(("topics",), f"do not all begin with {place.prefix}: leave out cluster.external.prefix")
    yield from _metadata(place)
    yield from _relay(place)
    yield from _logs(place)
    if draft.steps:
        yield Problem(("steps",), "are not carried out on an external cluster")
    for at, spec in _faults(draft):
        if spec.only_with_zookeeper and not draft.has_zookeeper:
            continue  # it is left out
        if problem := _forbidden(place, spec):
            yield Problem((*at, "kind"), problem)


def _metadata(place: ExternalSpec) -> Iterator[Problem]:
    """It has ZooKeeper or a quorum of controllers, and is asked for nothing that only the other has."""
    at = ("cluster", "external")
    if place.zookeeper is not None and place.controllers:
        yield Problem(at, "has either zookeeper or controllers: name where its metadata are")
    elif place.zookeeper is None and (place.expire_sessions or place.commands.zookeeper is not None):
        yield Problem(at, "has no ZooKeeper: leave out expire_sessions and commands.zookeeper")


def _relay(place: ExternalSpec) -> Iterator[Problem]:
    """The relay leads to every broker, and clients connect to it from the start."""
    if place.relay is None:
        return
    at = ("cluster", "external", "relay", "clients")
    if sorted(place.relay.clients) != sorted(broker.id for broker in place.brokers):
        yield Problem(at, "name exactly the brokers of the cluster")
    listens = [forward.listen for forward in place.relay.clients.values()]
    if len(set(listens)) < len(listens):
        yield Problem(at, "the relay has one address for each broker")
    if others := sorted(set(place.bootstrap_servers.split(",")) - set(listens)):
        yield Problem(
            ("cluster", "external", "bootstrap_servers"),
            f"{', '.join(others)} leads past the relay: name addresses at which it listens, such as {listens[0]}",
        )


def _logs(place: ExternalSpec) -> Iterator[Problem]:
    """Logs are read by the wording of a release, which is known and has the metadata where the cluster has them."""
    at = ("cluster", "external")
    if not place.release:
        if place.commands.logs is not None:
            yield Problem(
                (*at, "commands", "logs"), "logs are read by the wording of a release: state `release: 4.4.0`"
            )
        return
    try:
        release = release_of(place.release)
    except ScenarioError as error:
        yield Problem((*at, "release"), str(error))
        return
    if place.commands.logs is not None and release.number < SINCE_LOGGER_LEVELS:
        yield Problem((*at, "commands", "logs"), f"brokers of {release.version} do not say at which levels they log")
    if (place.zookeeper and not release.zookeeper) or (place.controllers and release.zookeeper):
        how = "without ZooKeeper" if place.zookeeper else "with ZooKeeper"
        yield Problem((*at, "release"), f"the log of {release.version} is known only {how}")


def _faults(draft: Draft) -> Iterator[tuple[KeyPath, FaultSpec | MixKind]]:
    for index, fault in draft.faults.items():
        yield ("faults", index), fault
    for index, kind in enumerate(draft.mix.kinds if draft.mix else ()):
        yield ("mix", "kinds", index), kind


def _forbidden(place: ExternalSpec, spec: FaultSpec | MixKind) -> str:
    """Return why a fault is not carried out on this cluster; empty if it may be."""
    writes = spec.kind in BY_ZOOKEEPER or (spec.kind in COMMANDS and spec.parameters.get("end_session", False))
    if writes and place.zookeeper is None:
        return f"{spec.kind} needs ZooKeeper, and the cluster has none"
    if writes and not place.expire_sessions:
        return f"{spec.kind} writes to its ZooKeeper, which cluster.external.expire_sessions does not allow"
    if spec.kind in BY_ZOOKEEPER:
        return ""
    if _hits_clients(spec):
        return ""
    if spec.kind == CUSTOM:
        name = spec.parameters.get("fault")
        known = ", ".join(sorted(place.faults)) or "none"
        return "" if name in place.faults else f"cluster.external.faults has no {name}; known: {known}"
    if spec.kind in BY_RELAY:
        return _past_the_relay(place, spec)
    if spec.kind == "bounce" and place.zookeeper is None and not place.controllers:
        return "bounce is confirmed by registrations: name controllers or zookeeper in cluster.external"
    if spec.kind not in COMMANDS:
        able = ", ".join((*COMMANDS, *BY_ZOOKEEPER, *BY_RELAY, CUSTOM))
        return f"{spec.kind} is not carried out on an external cluster; allowed: {able}"
    lacking = [command for command in COMMANDS[spec.kind] if getattr(place.commands, command) is None]
    return f"{spec.kind} needs a command for {' and '.join(lacking)} in cluster.external.commands" if lacking else ""


def _past_the_relay(place: ExternalSpec, spec: FaultSpec | MixKind) -> str:
    """Return why links are not disturbed: they do not lead through the relay; empty if they do."""
    if place.relay is None:
        return f"{spec.kind} disturbs links, and cluster.external.relay names none that lead through the relay"
    if spec.parameters.get("sides") != [Side.CLIENTS]:
        return f"only links to clients lead through the relay of this cluster: {spec.kind} takes `sides: [clients]`"
    return ""


def _hits_clients(spec: FaultSpec | MixKind) -> bool:
    """Return whether a fault hits the run's own clients only, for which it takes no command."""
    return spec.target.role in CLIENTS


def require_owned(scenario: Scenario, *, owned: bool) -> None:
    """Check that the user has stated that an external cluster may be disturbed.

    Raises:
        Refused: without that statement.
    """
    place = scenario.cluster.external
    if place is not None and not owned:
        raise Refused(f"{scenario.name} disturbs the external cluster {place.id}: give {OPTION} if you may disturb it")


def claimed(scenario: Scenario) -> Scenario:
    """Return the scenario with a prefix of its own for all that it creates on an external cluster."""
    place = scenario.cluster.external
    if place is None or place.prefix:
        return scenario
    prefix = f"chaos-{secrets.token_hex(5)}-"
    properties = system_named(scenario.system).effective(scenario.cluster.brokers, scenario.cluster.properties)
    stated = {name: properties[name] for name in OF_TOPICS}
    topics = [
        topic.model_copy(update={"name": prefix + topic.name, "config": stated | topic.config})
        for topic in scenario.topics
    ]
    faults = [spec.model_copy(update={"target": _renamed(spec.target, prefix)}) for spec in scenario.faults]
    mix = scenario.mix and scenario.mix.model_copy(
        update={
            "kinds": [kind.model_copy(update={"target": _renamed(kind.target, prefix)}) for kind in scenario.mix.kinds]
        }
    )
    workloads = [_with_own_groups(spec, prefix) for spec in scenario.workloads]
    cluster = scenario.cluster.model_copy(update={"external": place.model_copy(update={"prefix": prefix})})
    return scenario.model_copy(
        update={"topics": topics, "faults": faults, "mix": mix, "cluster": cluster, "workloads": workloads}
    )


def _with_own_groups(spec: WorkloadSpec, prefix: str) -> WorkloadSpec:
    """Return a load whose groups, if it names any, begin with the run's prefix; names of consumers have it already."""
    named = registry.workload(spec.kind).Parameters.model_fields.get(NAME)
    if named is None:
        return spec
    name = prefix + spec.parameters.get(NAME, named.default)
    return spec.model_copy(update={"parameters": {**spec.parameters, NAME: name}})


def without_commands(scenario: Scenario) -> Scenario:
    """Return a scenario without the commands, which may hold secrets."""
    place = scenario.cluster.external
    if place is None:
        return scenario
    faults = {name: _not_shown(fault) for name, fault in place.faults.items()}
    place = place.model_copy(update={"commands": _not_shown(place.commands), "faults": faults})
    return scenario.model_copy(update={"cluster": scenario.cluster.model_copy(update={"external": place})})


def _not_shown(commands: _Commands) -> _Commands:
    return commands.model_copy(update={action: NOT_SHOWN for action, command in commands if command is not None})


def _renamed(target: Target, prefix: str) -> Target:
    own = {part: prefix + name for part in ("topic", "group") if (name := getattr(target, part))}
    return replace(target, text="", **own) if own else target


def place_of(scenario: Scenario) -> ExternalCluster | None:
    """Return what the driver receives of an external cluster; None without one."""
    place = scenario.cluster.external
    if place is None:
        return None
    stated = scenario.cluster.properties
    effective = system_named(EXTERNAL).effective(scenario.cluster.brokers, stated)
    return ExternalCluster(
        cluster_id=place.id,
        bootstrap_servers=place.bootstrap_servers,
        zookeeper_connect=place.zookeeper or "",
        client=place.client,
        controllers=place.controllers,
        hosts={broker.id: Host(host=broker.host, name=broker.name or broker.host) for broker in place.brokers},
        commands=place.commands.model_dump(exclude_none=True)
        | {f"{name}.{step}": text for name, fault in place.faults.items() for step, text in fault},
        timeout_s=place.timeout_s,
        relay={}
        if place.relay is None
        else {id_: Forward(listen=each.listen, target=each.target) for id_, each in place.relay.clients.items()},
        relay_listens_on="" if place.relay is None else place.relay.listens_on,
        prefix=place.prefix,
        release=place.release,
        configuration=assumed(stated, effective, quorum=bool(place.controllers)),
    )


def kinds_not_collected(scenario: Scenario) -> frozenset[str]:
    """Return the kinds of evidence that cannot be had of the cluster under test."""
    place = place_of(scenario)
    return frozenset() if place is None else frozenset(place.unseen)
