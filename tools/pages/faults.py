"""The reference page of which fault works where, made from what each states: `python -m tools.pages`.

A test holds that `docs/faults.md` is what this makes.
"""

from collections.abc import Iterator
from pathlib import Path

from harness.cluster.driver import OVER_LINKS
from harness.cluster.systems.system import EXTERNAL, System, all_systems, families
from harness.contracts import registry
from harness.contracts.faults import ChangesRelease, Fault
from harness.contracts.registry import Kind
from harness.scenario.external import BY_ZOOKEEPER, COMMANDS
from harness.scenario.fault_rules import untold
from harness.scenario.rules import starts

PAGE = Path("docs/faults.md")
_HEAD = """\
# Which fault works where

Made from the code by `python -m tools.pages`; do not edit. A fault works where the driver has the
powers that it takes, and the system tells of what it is confirmed by. Elsewhere a scenario with it is refused before
anything is made, with the reason; so is one whose machine lacks something. `kafka` on `docker` is
the releases with ZooKeeper. What each kind does is in [scenarios.md](scenarios.md#faults)."""
FEW = 2
"""So many releases on which a kind does not work are named, and not those on which it does."""
ON_EXTERNAL = {kind: f"by its owner's commands for {' and '.join(names)}" for kind, names in COMMANDS.items()}
ON_EXTERNAL |= dict.fromkeys(BY_ZOOKEEPER, "where its owner allows to write to ZooKeeper")
_RELAY = """\
Where a scenario has one of {kinds}, all traffic between brokers,
their clients and ZooKeeper, or controllers of a quorum, passes through a relay; elsewhere there is none
([decision 0066](decisions/0066-a-relay-disturbs-links.md); in containers it is one of its own,
[0074](decisions/0074-a-relay-in-a-container.md)). What waits at a cut link comes out when it is healed, as TCP sends it
again. Unlike in virtual time, a connection that is made over a cut link is accepted, and then waits. What was sent over
a slow link before it is cut still comes out."""


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, "", *_table(), "", _RELAY.format(kinds=", ".join(_over_links()))]) + "\n"


def _table() -> Iterator[str]:
    places = [
        (driver, family)
        for driver in registry.DRIVERS
        for family in families()
        if family in registry.driver_class(driver).families
    ]
    yield "| kind | " + " | ".join(f"{family} on {driver}" for driver, family in places) + " |"
    yield "|---|" + "---|" * len(places)
    for name in registry.names(Kind.FAULT):
        cells = [_cell(registry.fault(name), driver, family) for driver, family in places]
        yield f"| `{name}` | " + " | ".join(cells) + " |"


def _cell(fault: Fault, driver: str, family: str) -> str:
    """Return whether a fault works there, and why not; for a family, from which release on."""
    if family == EXTERNAL:
        return ON_EXTERNAL.get(fault.name, "refused")
    if missing := _missing(fault, driver):
        return f"refused: {missing}"
    reasons = {system.name: _reason(fault, system) for system in _systems(driver, family)}
    able = [name for name, reason in reasons.items() if not reason]
    if len(able) == len(reasons):
        return "works"
    refused = f"refused: {'; '.join(sorted({reason for reason in reasons.values() if reason}))}"
    if not able:
        return refused
    unable = [name for name, reason in reasons.items() if reason]
    if len(unable) <= FEW:
        return f"works; on {', '.join(unable)} {refused}"
    return f"works on {', '.join(able)}; else {refused}"


def _systems(driver: str, family: str) -> list[System]:
    """Return what a driver starts of a family."""
    return [system for system in all_systems() if system.name.startswith(family) and starts(driver, system)]


def refusal(fault: Fault, driver: str, system: System) -> str:
    """Return why a fault does not work on a system that a driver starts; empty if it does."""
    return _missing(fault, driver) or _reason(fault, system)


def _missing(fault: Fault, driver: str) -> str:
    """Return which powers a driver lacks for a fault, in words; empty if none."""
    missing = sorted(set(fault.requires) - registry.capabilities(driver))
    return f"the driver lacks {', '.join(missing)}" if missing else ""


def _reason(fault: Fault, system: System) -> str:
    """Return why a fault does not work on a system; empty if it does."""
    if fault.zookeeper and not system.zookeeper:
        return "there is no ZooKeeper"
    if isinstance(fault, ChangesRelease) and not system.upgrades():
        return "there is no later release with its metadata in the same place"
    if missing := untold(fault, system):
        return f"nothing tells of {', '.join(missing)}"
    return ""


def _over_links() -> list[str]:
    names = registry.names(Kind.FAULT)
    return [f"`{name}`" for name in names if not OVER_LINKS.isdisjoint(registry.fault(name).requires)]
