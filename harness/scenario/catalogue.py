"""What can a scenario choose from? Names with a sentence each; no fault, load or check is imported for it."""

from dataclasses import dataclass

from ruamel.yaml import YAML

from harness.broker.rules import PLANTED_BUGS
from harness.cluster.systems.system import families, family_named
from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.errors import HarnessError
from harness.scenario.suite import load_suites
from harness.system.plugins import OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing to choose."""

    name: str
    summary: str
    provider: str = ""
    """The distribution and its version, or the folder, that brings it; empty for what this project brings."""


def catalogue(what: str) -> list[tuple[str, str]]:
    """Return name and summary of every scenario, suite, fault, workload, check, driver, system or planted bug."""
    return [(entry.name, entry.summary) for entry in entries(what)]


def entries(what: str) -> list[Entry]:
    """Return the same with what brings each; one that cannot be read is left out, and is in `broken`."""
    match what:
        case "suites":
            return [Entry(name=name, summary=suite.description) for name, suite in load_suites().items()]
        case "planted-bugs":
            return [Entry(name=bug.name, summary=bug.effect) for bug in PLANTED_BUGS]
        case _:
            listed = registry.plugins(Kind(what))
            if what == Kind.SYSTEM:
                listed.sort(key=lambda entry: families().index(entry.name))
            return [each for entry in listed for each in _entries(Kind(what), entry)]


def broken(what: str) -> list[str]:
    """Return a sentence for each plugin of a kind that cannot be used, as far as listing them shows that."""
    if what not in set(Kind):
        return []
    sentences = registry.broken(Kind(what))
    if what in (Kind.DRIVER, Kind.SYSTEM):
        sentences += filter(None, (_refusal(Kind(what), entry) for entry in registry.plugins(Kind(what))))
    return list(dict.fromkeys(sentences))


def _refusal(kind: Kind, entry: registry.CatalogueEntry) -> str:
    try:
        _named(kind, entry)
    except HarnessError as error:
        return str(error)
    return ""


def _entries(kind: Kind, entry: registry.CatalogueEntry) -> list[Entry]:
    provider = "" if entry.provider.name == OWN else str(entry.provider)
    try:
        return [Entry(name=name, summary=summary, provider=provider) for name, summary in _named(kind, entry)]
    except HarnessError:
        return []


def _named(kind: Kind, entry: registry.CatalogueEntry) -> list[tuple[str, str]]:
    match kind:
        case Kind.DRIVER:
            return [(entry.name, ", ".join(sorted(registry.capabilities(entry.name))))]
        case Kind.SYSTEM:
            family = family_named(entry.name)
            return [(each.name, each.lacks()) for each in map(family.of_release, family.releases())]
        case Kind.SCENARIO:
            return [(entry.name, _description(entry))]
        case _:
            return [(entry.name, entry.summary)]


def _description(entry: registry.CatalogueEntry) -> str:
    data = YAML(typ="safe", pure=True).load(entry.path.read_text(encoding="utf-8"))
    return " ".join(str(data.get("description", "")).split())
