"""Which moments and motifs can a scenario have, by its driver and by what is under test?"""

from collections.abc import Iterator

from harness.cluster.systems.system import System, system_named
from harness.contracts import registry
from harness.contracts.faults import Fault
from harness.contracts.moments import MOMENTS
from harness.contracts.registry import unknown_message
from harness.errors import ScenarioError
from harness.scenario.draft import Draft
from harness.scenario.fault_rules import unfit
from harness.scenario.mix import ALL
from harness.scenario.model import Scenario
from harness.scenario.motifs import MOTIFS
from harness.scenario.source import Problem
from harness.values import PYTHON


def motif_plugins(scenario: Scenario) -> dict[str, Fault]:
    """Return the faults of motifs, by kind, that the driver and the system of a scenario allow."""
    if scenario.mix is None or not scenario.mix.motifs:
        return {}
    system, capabilities = system_named(scenario.system), registry.capabilities(scenario.driver)
    kinds = sorted({step.kind for motif in MOTIFS.values() for step in motif.steps})
    plugins = {kind: registry.fault(kind) for kind in kinds}
    return {
        kind: plugin
        for kind, plugin in plugins.items()
        if set(plugin.requires) <= capabilities and not unfit(plugin, system)
    }


def seen_by(scenario: Scenario) -> list[str]:
    """Return the moments that the brokers of a scenario log."""
    system = system_named(scenario.system)
    return sorted(name for name in MOMENTS if told(name, system))


def told(moment: str, system: System) -> bool:
    """Return whether a system logs a moment."""
    kind, fields = MOMENTS[moment].kind, MOMENTS[moment].fields
    return kind in system.emits and not {kind, *(f"{kind}.{name}" for name in fields)} & set(system.missing_fields)


def moments(draft: Draft) -> Iterator[Problem]:
    """Moments and motifs exist, and what is under test logs the moments."""
    try:
        system = system_named(draft.system or PYTHON)
    except ScenarioError:
        return  # the rule on names reports it
    for index, spec in draft.faults.items():
        if spec.after and spec.after not in MOMENTS:
            yield Problem(("faults", index, "after"), unknown_message("moment", spec.after, list(MOMENTS)))
        elif spec.after and not told(spec.after, system):
            yield Problem(("faults", index, "after"), f"{system.name} does not log when {MOMENTS[spec.after].meaning}")
    for index, name in enumerate(draft.mix.motifs if draft.mix is not None else []):
        if name not in (ALL, *MOTIFS):
            yield Problem(("mix", "motifs", index), unknown_message("motif", name, [ALL, *MOTIFS]))
