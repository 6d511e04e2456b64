"""Which moments and motifs can a scenario have, by its driver and by what is under test?"""

from collections.abc import Iterator

from harness.cluster.capabilities import Side
from harness.cluster.systems.system import System, system_named
from harness.contracts import registry
from harness.contracts.faults import Fault
from harness.contracts.moments import MOMENTS
from harness.contracts.parameters import OfZookeeper
from harness.contracts.registry import unknown_message
from harness.errors import ScenarioError
from harness.scenario.draft import Draft
from harness.scenario.fault_rules import unfit
from harness.scenario.model import Scenario
from harness.scenario.motifs import MOTIFS, MotifStep
from harness.scenario.source import Problem
from harness.values import PYTHON

ALL = "all"
"""Of motifs: any."""


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


def motif_names(scenario: Scenario) -> list[str]:
    """Return the motifs of a scenario's mix that its driver and its system allow."""
    plugins, moments = motif_plugins(scenario), seen_by(scenario)
    zookeeper = system_named(scenario.system).zookeeper
    wanted = [] if scenario.mix is None else scenario.mix.motifs
    return sorted(
        name
        for name, motif in MOTIFS.items()
        if (ALL in wanted or name in wanted)
        and all(step.kind in plugins and step.after in ("", *moments) for step in motif.steps)
        and (zookeeper or not any(map(_takes_zookeeper, motif.steps)))
    )


def _takes_zookeeper(step: MotifStep) -> bool:
    fields = registry.fault(step.kind).Parameters.model_fields
    ends_session = any(OfZookeeper() in fields[name].metadata for name in step.parameters if name in fields)
    return ends_session or Side.ZOOKEEPER in step.parameters.get("sides", ())


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
