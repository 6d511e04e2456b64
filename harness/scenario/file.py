"""How is a scenario read? From a built-in name or a path, with overrides; or it is refused with all its errors."""

import io
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.registry import Kind, unknown_message
from harness.errors import EvidenceError, ScenarioError
from harness.scenario.cluster_file import with_cluster_file
from harness.scenario.draft import draft_of
from harness.scenario.errors import problems_of
from harness.scenario.model import FaultSpec, MixKind, Scenario, WorkloadSpec
from harness.scenario.rules import broken_rules
from harness.scenario.source import Override, Problem, Source, parse_yaml, text_of
from harness.scenario.used_plugins import Missing, missing_plugins, plugins_of
from harness.store.folder import RunFolder
from harness.store.result import reason_of
from harness.system.plugins import use_folders

YAML_SUFFIXES = (".yaml", ".yml")


def load_scenario(name_or_path: str, overrides: Sequence[Override] = ()) -> Scenario:
    """Return the scenario of a built-in name or a file, with the overrides of the command line applied.

    Raises:
        ScenarioError: one line an error, each with file and line (or the option), the key, and what is allowed.
    """
    try:
        path = find_scenario(name_or_path)
    except OSError as error:
        raise ScenarioError(f"{name_or_path}: cannot be read: {reason_of(error)}") from error
    return read_scenario(text_of(path, name_or_path), _display_path(path), overrides)


def _display_path(path: Path) -> str:
    """Return the path for messages: relative when the file is below the working directory."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def find_scenario(name_or_path: str) -> Path:
    """Return the file of a built-in scenario, or the given path, absolute.

    Raises:
        ScenarioError: neither a built-in name nor an existing file.
    """
    path = Path(name_or_path)
    if path.suffix in YAML_SUFFIXES or "/" in name_or_path:
        if not path.is_file():
            raise ScenarioError(f"{name_or_path}: {'not a file' if path.exists() else 'no such file'}")
        use_folders([path.absolute().parent / "plugins"])
        return path.absolute()
    built_in = {entry.name: entry.path for entry in registry.plugins(Kind.SCENARIO)}
    if name_or_path not in built_in:
        raise ScenarioError(f"{unknown_message('scenario', name_or_path, list(built_in))}; or the path of a YAML file")
    return built_in[name_or_path]


def read_scenario(text: str, name: str, overrides: Sequence[Override] = ()) -> Scenario:
    """Return the scenario that a YAML text declares; messages call the file `name`.

    Raises:
        ScenarioError: as `load_scenario`.
    """
    source = parse_yaml(text, name)
    if not source.problems and not isinstance(source.data, dict):
        source.problems.append(Problem((), "must be a mapping of keys; a scenario starts with `name:`"))
    if not isinstance(source.data, dict):
        raise refusal(source)
    if source.data and all(isinstance(value, dict) and "runs" in value for value in source.data.values()):
        suites, command = ", ".join(source.data), shlex.join(["chaos", "run", f"{name}:{next(iter(source.data))}"])
        raise ScenarioError(f"{name}: not a scenario but a file of suites ({suites}); a suite is run with: {command}")
    with_cluster_file(source, Path(name).parent)
    for override in overrides:
        source.override(override)
        with_cluster_file(source, Path())
    scenario: Scenario | None = None
    try:
        scenario = Scenario.model_validate(source.data)
    except ValidationError as error:
        source.problems += problems_of(Scenario, error)
    source.problems += broken_rules(draft_of(source.data))
    if source.problems or scenario is None:
        raise refusal(source)
    return fitted(scenario)


def fitted(scenario: Scenario) -> Scenario:
    """Return a scenario as the system under test takes it.

    Without ZooKeeper, faults with `only_with_zookeeper` are left out, and noted in `left_out`. Time-outs that the
    scenario does not name are the system's.
    """
    system = system_named(scenario.system)
    changes: dict[str, Any] = {}
    place = scenario.cluster.external
    if not (system.zookeeper if place is None else place.zookeeper):
        changes["faults"] = [each for each in scenario.faults if not each.only_with_zookeeper]
        specs: list[FaultSpec | MixKind] = [*scenario.faults]
        if scenario.mix is not None:
            specs += scenario.mix.kinds
            kinds = [each for each in scenario.mix.kinds if not each.only_with_zookeeper]
            changes["mix"] = scenario.mix.model_copy(update={"kinds": kinds})
        left_out = [f"{each.kind} {each.target.text}" for each in specs if each.only_with_zookeeper]
        changes["left_out"] = [*scenario.left_out, *left_out]
    if "recovery_timeout_s" not in scenario.model_fields_set:
        changes["recovery_timeout_s"] = system.recovery_timeout_s
    if system.load_timeouts_ms:
        changes["workloads"] = [_patient(spec, system.load_timeouts_ms) for spec in scenario.workloads]
    return scenario.model_copy(update=changes)


def _patient(spec: WorkloadSpec, timeouts_ms: Mapping[str, int]) -> WorkloadSpec:
    """Return a load with those of these time-outs that it has as parameters and does not state itself."""
    if not timeouts_ms.keys().isdisjoint(spec.parameters):
        return spec
    known = registry.workload(spec.kind).Parameters.model_fields
    own = {name: value for name, value in timeouts_ms.items() if name in known}
    return spec.model_copy(update={"parameters": {**spec.parameters, **own}})


def refusal(source: Source) -> ScenarioError:
    """Return an error with every problem of a file, a line each, in the order of the file's lines."""
    lines = dict.fromkeys(source.describe(problem) for problem in source.problems)
    text = "\n".join(sorted(lines, key=_by_line))
    return ScenarioError(text.encode(errors="backslashreplace").decode())  # quoted input may hold half a surrogate pair


def _by_line(message: str) -> tuple[str, int]:
    name, _, rest = message.partition(":")
    number = rest.partition(":")[0]
    return name, int(number) if number.isdecimal() else 0


def scenario_yaml(scenario: Scenario, *, brief: bool = False) -> str:
    """Return the scenario as YAML: complete, as in the run folder, or `brief`, without values that are defaults."""
    buffer = io.StringIO()
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 10_000
    data: dict[str, Any] = scenario.model_dump(mode="json", exclude_defaults=brief)
    yaml.dump(data, buffer)
    return buffer.getvalue()


def scenario_of(folder: RunFolder, missing: Sequence[Missing] | None = None) -> Scenario:
    """Return the scenario of a run folder; where a plugin of the run is missing, as it was when the run was made.

    Without `missing`, the run's list of plugins is read.

    Raises:
        EvidenceError: the file cannot be read, or the run's list of plugins.
        ScenarioError: it holds no scenario.
    """
    try:
        text = folder.scenario.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{folder.scenario}: cannot be read: {reason_of(error)}") from error
    if missing_plugins(plugins_of(folder)) if missing is None else missing:
        return _unchecked(text, str(folder.scenario))
    return read_scenario(text, str(folder.scenario))


def _unchecked(text: str, name: str) -> Scenario:
    """Return a scenario that was read before, without the rules that ask its plugins."""
    source = parse_yaml(text, name)
    if not source.problems:
        try:
            return Scenario.model_validate(source.data)
        except ValidationError as error:
            source.problems += problems_of(Scenario, error)
    raise refusal(source)
