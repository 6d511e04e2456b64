"""What can a scenario choose from? Names with a sentence each, for `chaos list`; no plugin is imported."""

from ruamel.yaml import YAML

from harness.broker.rules import PLANTED_BUGS
from harness.cluster.systems.system import all_systems
from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.scenario.suite import load_suites


def catalogue(what: str) -> list[tuple[str, str]]:
    """Return name and summary of every scenario, suite, fault, workload, check, driver, system or planted bug."""
    match what:
        case "scenarios":
            return [(entry.name, _description(entry)) for entry in registry.scenarios()]
        case "suites":
            return [(name, suite.description) for name, suite in load_suites().items()]
        case "drivers":
            return [(name, ", ".join(sorted(registry.capabilities(name)))) for name in registry.DRIVERS]
        case "systems":
            return [(system.name, system.lacks()) for system in all_systems()]
        case "planted-bugs":
            return [(bug.name, bug.effect) for bug in PLANTED_BUGS]
        case _:
            return [(entry.name, entry.summary) for entry in registry.plugins(Kind(what))]


def _description(entry: registry.CatalogueEntry) -> str:
    data = YAML(typ="safe", pure=True).load(entry.path.read_text(encoding="utf-8"))
    return " ".join(str(data.get("description", "")).split())
