"""Can a scenario's driver do on this machine what the scenario needs? Checked before anything is started."""

from collections.abc import Collection, Iterable

from harness.cluster.disks import tracer
from harness.cluster.driver import (
    DISK_ERRORS,
    DRIVER,
    POWER,
    SLOW_SYNCS,
    RunExecutor,
)
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.contracts.targets import Role, Target
from harness.errors import Refused
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan


def require_capabilities(scenario: Scenario) -> None:
    """Check that the scenario's driver can do on this machine what its faults and its load need.

    Raises:
        Refused: it cannot; the message says what is missing, why, and which drivers could.
    """
    _require(scenario.driver, required_capabilities(scenario))
    for system in systems_of(scenario):
        require_system(system)
    fails_disks = DISK_ERRORS in required_capabilities(scenario)
    if fails_disks and not system_named(scenario.system).writes_logs_apart and tracer.lacking():
        raise Refused(f"the disks of {scenario.system} cannot be made to fail here: {tracer.lacking()}")
    if traces_syncs(scenario) and system_named(scenario.system).syncs_are_traced:
        if scenario.driver != "process":
            raise Refused(f"the driver {scenario.driver} cannot trace the syncs of {scenario.system}; process can")
        if tracer.lacking():
            raise Refused(f"the syncs of {scenario.system} cannot be traced here: {tracer.lacking()}")
        if fails_disks or _slows_brokers(scenario):
            raise Refused(f"the syncs of {scenario.system} cannot be both traced and slowed, or made to fail")
    _require_roles(scenario)


def systems_of(scenario: Scenario) -> list[str]:
    """Return what brokers of a scenario are: what they are started as, and what faults upgrade them to."""
    base = system_named(scenario.system)
    systems = [scenario.system]
    for kind, parameters in scenario.kinds:
        plugin = registry.fault(kind)
        if plugin.changes_release:
            systems.append(base.upgraded(plugin.release(plugin.Parameters.model_validate(parameters))).name)
    return list(dict.fromkeys(systems))


def require_system(name: str) -> None:
    """Check that what is under test can be started on this machine.

    Raises:
        Refused: it cannot; the message says why.
        ScenarioError: there is no such system.
    """
    if lacking := system_named(name).lacks():
        raise Refused(f"{name} cannot be started here: {lacking}")


def require_lasting_cluster(driver: str) -> None:
    """Check that a driver can start clusters on this machine that outlive the command.

    Raises:
        Refused: it cannot; the message says why, and which drivers could.
        PluginError: there is no such driver.
    """
    if _carries_out_runs(driver):
        raise Refused(
            f"the driver {driver} keeps no cluster: it has one only while a run is under load, as in"
            f" chaos run smoke --driver {driver}; drivers that can: {_able_with_real_brokers(())}"
        )
    _require(driver, set())


def _carries_out_runs(driver: str) -> bool:
    return issubclass(registry.driver_class(driver), RunExecutor)


def required_capabilities(scenario: Scenario) -> frozenset[str]:
    """Return the names of the capabilities that a scenario needs."""
    faults = {capability for kind, _ in scenario.kinds for capability in registry.fault(kind).requires}
    return frozenset(faults | {"clients"})


def needed_by(scenario: Scenario, plan: Plan) -> frozenset[str]:
    """Return the capabilities that the drawn faults need, by name, without those that this machine lacks.

    A motif has kinds that no scenario states. Kafka's disks fail only under a tracer, which its syncs may need, so they
    are left out.
    """
    wanted = {capability for fault in plan.faults for capability in registry.fault(fault.fault).requires}
    if not system_named(scenario.system).writes_logs_apart:
        wanted.discard(DISK_ERRORS)
    return frozenset(wanted - missing(scenario.driver, wanted).keys())


def slows_zookeeper(scenario: Scenario) -> bool:
    """Return whether a fault of the scenario may slow the syncs of a ZooKeeper server, which else syncs nothing."""
    return any(target.role is Role.ZOOKEEPER for target in _slowed(scenario))


def _slows_brokers(scenario: Scenario) -> bool:
    stepped = (step.fault for step in scenario.steps if step.fault is not None)  # their targets are brokers
    slowed = any(target.role is not Role.ZOOKEEPER for target in _slowed(scenario))
    return slowed or any(SLOW_SYNCS in registry.fault(kind).requires for kind in stepped)


def _slowed(scenario: Scenario) -> list[Target]:
    """Return the targets whose syncs are slowed, without those of steps."""
    return [spec.target for spec in scenario.specs if SLOW_SYNCS in registry.fault(spec.kind).requires]


def traces_syncs(scenario: Scenario) -> bool:
    """Return whether a power loss of the scenario needs the syncs that a tracer records."""
    losses = (parameters for kind, parameters in scenario.kinds if POWER in registry.fault(kind).requires)
    return any(parameters.get("traced", False) for parameters in losses)


def missing(driver: str, needed: Iterable[str]) -> dict[str, str]:
    """Return why a driver lacks a capability: a reason by capability, or under `DRIVER` when it cannot work here."""
    lacking: dict[str, str] = registry.driver_class(driver).lacks()
    if DRIVER in lacking:
        return {DRIVER: lacking[DRIVER]}
    has = registry.capabilities(driver)
    unknown = {name: f"the driver {driver} does not have it" for name in needed if name not in has}
    return unknown | {name: lacking[name] for name in needed if name in lacking}


def _require_roles(scenario: Scenario) -> None:
    """Raise Refused when a driver with clients of its own has none for a role of the load.

    Such a driver carries out the workloads of its own distribution; it cannot know what those of others do.
    """
    driver = registry.driver_class(scenario.driver)
    if not issubclass(driver, RunExecutor):
        return
    known, own = driver.roles(), registry.provider_of(Kind.DRIVER, scenario.driver)
    unknown = {
        f"{client.role} of {client.workload}"
        for client in make_plan(scenario, 0).clients
        if client.role not in known or registry.provider_of(Kind.WORKLOAD, client.workload) != own
    }
    if unknown:
        able = _able_with_real_brokers(required_capabilities(scenario))
        raise Refused(
            f"the driver {scenario.driver} has no client for {', '.join(sorted(unknown))}; it has"
            f" {', '.join(sorted(known))} of workloads of {own.name}; drivers that run any: {able}"
        )


def _able_with_real_brokers(needed: Iterable[str]) -> str:
    able = [name for name in registry.starting() if not _carries_out_runs(name) and not missing(name, needed)]
    return ", ".join(able) or "none"


def _require(driver: str, needed: Collection[str]) -> None:
    reasons = missing(driver, needed)
    if not reasons:
        return
    able = [name for name in registry.starting() if name != driver and not missing(name, needed)]
    what = "; ".join(reason if name == DRIVER else f"{name}: {reason}" for name, reason in sorted(reasons.items()))
    raise Refused(f"the driver {driver} cannot do this here: {what}; drivers that can: {', '.join(able) or 'none'}")
