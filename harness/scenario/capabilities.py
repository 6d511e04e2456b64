"""Whether this machine can do what a scenario asks of its driver: probed and named before anything is made."""

from collections.abc import Iterable

from harness.cluster.broker_properties import DIRECTORIES
from harness.cluster.driver import DRIVER, CarriesOutRuns
from harness.contracts import registry
from harness.errors import Refused
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan


def refuse_unless_able(scenario: Scenario) -> None:
    """Return when the scenario's driver can do here all that its faults and its load need.

    Raises:
        Refused: names what is missing, why, and which drivers could.
    """
    _refuse(scenario.driver, needed_by(scenario))
    _refuse_unknown_roles(scenario)
    if DIRECTORIES in scenario.cluster.properties and _only_runs(scenario.driver):
        raise Refused(
            f"the driver {scenario.driver} gives every broker one data directory, and {DIRECTORIES} asks for several;"
            f" drivers that can: {_with_real_brokers(scenario)}"
        )


def refuse_unless_there(driver: str) -> None:
    """Return when a driver can start clusters here that stay.

    Raises:
        Refused: it cannot; the message says why, and which drivers could.
        PluginError: there is no such driver.
    """
    if _only_runs(driver):
        able = [name for name in registry.DRIVERS if not _only_runs(name) and not missing(name, ())]
        raise Refused(
            f"the driver {driver} keeps no cluster: it has one only while a run is under load, as in"
            f" chaos run smoke --driver {driver}; drivers that can: {', '.join(able) or 'none'}"
        )
    _refuse(driver, set())


def _only_runs(driver: str) -> bool:
    return issubclass(registry.driver_class(driver), CarriesOutRuns)


def needed_by(scenario: Scenario) -> set[str]:
    """Return the names of the optional powers that a scenario needs."""
    faults = {capability for kind, _ in scenario.kinds for capability in registry.fault(kind).requires}
    return faults | {"clients"}


def missing(driver: str, needed: Iterable[str]) -> dict[str, str]:
    """Return why not, by capability, or by `DRIVER` when a driver can do nothing here; empty when it can do all."""
    lacking: dict[str, str] = registry.driver_class(driver).lacks()
    if DRIVER in lacking:
        return {DRIVER: lacking[DRIVER]}
    has = registry.capabilities(driver)
    unknown = {name: f"the driver {driver} does not have it" for name in needed if name not in has}
    return unknown | {name: lacking[name] for name in needed if name in lacking}


def _refuse_unknown_roles(scenario: Scenario) -> None:
    """A driver with clients of its own must have one for every role of the load."""
    driver = registry.driver_class(scenario.driver)
    if not issubclass(driver, CarriesOutRuns):
        return
    known = driver.roles()
    unknown = {
        f"{client.role} of {client.workload}" for client in make_plan(scenario, 0).clients if client.role not in known
    }
    if unknown:
        raise Refused(
            f"the driver {scenario.driver} has no client for {', '.join(sorted(unknown))}; it has"
            f" {', '.join(sorted(known))}; drivers that run any: {_with_real_brokers(scenario)}"
        )


def _with_real_brokers(scenario: Scenario) -> str:
    able = [name for name in registry.DRIVERS if not _only_runs(name) and not missing(name, needed_by(scenario))]
    return ", ".join(able) or "none"


def _refuse(driver: str, needed: set[str]) -> None:
    reasons = missing(driver, needed)
    if not reasons:
        return
    able = [name for name in registry.DRIVERS if name != driver and not missing(name, needed)]
    what = "; ".join(reason if name == DRIVER else f"{name}: {reason}" for name, reason in sorted(reasons.items()))
    raise Refused(f"the driver {driver} cannot do this here: {what}; drivers that can: {', '.join(able) or 'none'}")
