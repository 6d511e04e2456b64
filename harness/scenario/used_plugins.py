"""Which plugins does a run use, and which of them are not on this machine? Noted in the run folder when it is made."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.errors import EvidenceError
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan
from harness.store.folder import RunFolder
from harness.store.result import StoredModel, reason_of
from harness.system.plugins import Provider, use_folders

NEEDED_TO_JUDGE = (Kind.FAULT, Kind.SYSTEM)
"""Without one of these no check can be asked: it says which losses are expected, or which evidence there is."""


class Used(StoredModel):
    """The plugins that one distribution or folder brought to a run."""

    distribution: str
    """Its name; of a folder the path."""
    version: str
    folder: bool
    plugins: dict[str, list[str]]
    """Names by kind, as `chaos list` has them."""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


class UsedPlugins(StoredModel):
    """The content of `plugins.json`."""

    providers: list[Used]


class Missing(StoredModel):
    """A plugin that a run used and that is not on this machine."""

    kind: str
    name: str
    provider: str

    def __str__(self) -> str:
        return f"the {Kind(self.kind).singular} {self.name} is not installed: {self.provider} brings it"


def used_plugins(scenario: Scenario, plan: Plan) -> UsedPlugins:
    """Return the plugins that a run uses, by what brings them.

    Raises:
        PluginError: one does not exist, or two have its name.
    """
    of_kinds: dict[Kind, Iterable[str]] = {
        Kind.DRIVER: [scenario.driver],
        Kind.SYSTEM: [scenario.system.partition(":")[0]],
        Kind.FAULT: [kind for kind, _ in scenario.kinds] + [fault.fault for fault in plan.faults],
        Kind.WORKLOAD: [client.workload for client in plan.clients],
        Kind.CHECK: map(registry.check_key, scenario.checks) if scenario.checks else registry.names(Kind.CHECK),
    }
    by_provider: dict[Provider, dict[str, list[str]]] = {}
    for kind, names in of_kinds.items():
        for name in dict.fromkeys(names):
            by_provider.setdefault(registry.provider_of(kind, name), {}).setdefault(kind.value, []).append(name)
    return UsedPlugins(
        providers=[
            Used(distribution=each.name, version=each.version, folder=each.is_folder, plugins=plugins)
            for each, plugins in by_provider.items()
        ]
    )


def write_plugins(folder: RunFolder, scenario: Scenario, plan: Plan) -> None:
    """Note in a new run folder which plugins the run uses."""
    text = used_plugins(scenario, plan).model_dump_json(indent=2)
    folder.plugins.write_text(text + "\n", encoding="utf-8")


def plugins_of(folder: RunFolder) -> list[Used]:
    """Return what brought the plugins of a run; nothing where an earlier version of this program has made it.

    Raises:
        EvidenceError: the file cannot be read.
    """
    if not folder.plugins.exists():
        return []
    try:
        return UsedPlugins.model_validate_json(folder.plugins.read_bytes()).providers
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{folder.plugins}: not a list of plugins: {reason_of(error)}") from error


def missing_plugins(used: Sequence[Used]) -> list[Missing]:
    """Return the plugins of a run that are not on this machine; a folder of plugins that still exists is used."""
    use_folders(each.distribution for each in used if each.folder)
    return [
        Missing(kind=kind, name=name, provider=str(each))
        for each in used
        for kind, names in each.plugins.items()
        for name in names
        if not registry.known(Kind(kind), name)
    ]
