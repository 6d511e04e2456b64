"""The reference of faults: what each does, what confirms it, its parameters, and where it works."""

import ast
import inspect
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic_core import PydanticUndefined

from harness.cluster.driver import OVER_LINKS
from harness.cluster.systems.system import EXTERNAL, System, all_systems, families
from harness.contracts import registry
from harness.contracts.faults import Fault
from harness.contracts.registry import Kind
from harness.scenario.external import BY_RELAY, BY_ZOOKEEPER, COMMANDS, CUSTOM
from harness.scenario.fault_rules import missing_events
from harness.scenario.rules import starts
from tools.pages.page import NOTE, Page, table

_CONFIRMED = "Confirmed by: "
_HEAD = f"""\
# Faults

{NOTE}

Each fault is healed whatever happens; one with a `duration_s` ends by itself when the harness is gone. A fault that has
another effect, or none in time, is a MISMATCH. A fault that could not be carried out, or whose effect could not be
observed, is INCONCLUSIVE. Neither is a pass. A fault holds its brokers alone, except those that may overlap others:
{{composing}}."""
_WHERE = """\
## Where each fault works

A fault works where the driver has its capabilities and the system logs what confirms it. Elsewhere a scenario with it
is refused before anything starts, with the reason; so is one for which the machine lacks something. `kafka` on `docker`
is the releases with ZooKeeper; *existing* is a [cluster of your own](../how-to/test-your-kafka.md#your-own-cluster)."""
FEW = 2
"""So many releases on which a fault does not work are named instead of those on which it does."""
ON_EXTERNAL = {kind: f"by your command `{'` and `'.join(names)}`" for kind, names in COMMANDS.items()}
ON_EXTERNAL |= dict.fromkeys(BY_RELAY, "of links to clients, with `relay`")
ON_EXTERNAL |= dict.fromkeys(BY_ZOOKEEPER, "with `expire_sessions: true`") | {CUSTOM: "by three commands of your own"}
_RELAY = """\
If a scenario has one of {kinds}, a relay carries all traffic between brokers, their clients and ZooKeeper or
controllers; otherwise there is none ([decision 0091](../decisions/0091-messages-are-intercepted-by-one-rule.md)). Data
that waits at a cut link arrives when the link is healed, as TCP retransmits it. A connection over a cut link is
accepted and then waits; in virtual time it is not accepted. Data sent over a slow link before a cut still arrives."""


def text() -> str:
    """Return the page as Markdown."""
    faults = [registry.fault(name) for name in registry.names(Kind.FAULT)]
    composing = ", ".join(f"`{fault.name}`" for fault in faults if fault.may_overlap)
    what = table(("kind", "what happens", "confirmed by", "parameters"), map(_fault, faults))
    relay = _RELAY.format(kinds=", ".join(_over_links()))
    return "\n".join([_HEAD.format(composing=composing), "", *what, "", _WHERE, "", *_places(), "", relay]) + "\n"


def _fault(fault: Fault) -> tuple[str, ...]:
    about, _, confirmed = _docstring(fault).partition(_CONFIRMED)
    if not confirmed:
        raise ValueError(f"the fault {fault.name}: the docstring of its module has no line {_CONFIRMED.strip()!r}")
    return f"`{fault.name}`", about, confirmed.removesuffix("."), "<br>".join(_parameters(fault))


def _docstring(fault: Fault) -> str:
    source = inspect.getsourcefile(type(fault))
    assert source is not None, "a plugin is a file"
    return ast.get_docstring(ast.parse(Path(source).read_text(encoding="utf-8"))) or ""


def _parameters(fault: Fault) -> Iterator[str]:
    for name, field in fault.Parameters.model_fields.items():
        default = "" if field.default is PydanticUndefined else f" ({_value(field.default)})"
        yield f"`{name}`{default}: {field.description}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case StrEnum():
            return value.value
        case list():
            return ", ".join(map(_value, value))
        case None | "":
            return "none"
        case _:
            return str(value)


def _places() -> Iterator[str]:
    places = [
        (driver, family)
        for driver in registry.drivers()
        for family in families()
        if family in registry.driver_class(driver).families
    ]
    head = ("kinds", *("existing" if family == EXTERNAL else f"{family} on {driver}" for driver, family in places))
    kinds: dict[tuple[str, ...], list[str]] = {}
    for fault in map(registry.fault, registry.names(Kind.FAULT)):
        cells = tuple(_cell(fault, driver, family) for driver, family in places)
        kinds.setdefault(cells, []).append(f"`{fault.name}`")
    yield from table(head, ((", ".join(names), *cells) for cells, names in kinds.items()))


def _cell(fault: Fault, driver: str, family: str) -> str:
    """Return whether a fault works there, and why not; for a family, on which releases."""
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
    return f"works on {', '.join(able)}; elsewhere {refused}"


def _systems(driver: str, family: str) -> list[System]:
    """Return what a driver starts of a family."""
    return [system for system in all_systems() if system.name.startswith(family) and starts(driver, system)]


def refusal(fault: Fault, driver: str, system: System) -> str:
    """Return why a fault does not work on a system that a driver starts; empty if it does."""
    return _missing(fault, driver) or _reason(fault, system)


def _missing(fault: Fault, driver: str) -> str:
    missing = sorted(set(fault.requires) - registry.capabilities(driver))
    return f"the driver lacks {', '.join(missing)}" if missing else ""


def _reason(fault: Fault, system: System) -> str:
    if fault.zookeeper and not system.zookeeper:
        return "there is no ZooKeeper"
    if fault.changes_release and not system.upgrades():
        return "no later release keeps its metadata in the same place"
    if missing := missing_events(fault, system):
        return f"its log has no {', '.join(missing)}"
    return ""


def _over_links() -> list[str]:
    names = registry.names(Kind.FAULT)
    return [f"`{name}`" for name in names if not OVER_LINKS.isdisjoint(registry.fault(name).requires)]


PAGES = (Page(path="docs/reference/faults.md", text=text),)
