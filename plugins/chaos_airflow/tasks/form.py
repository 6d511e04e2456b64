"""Which fields has the trigger form of an experiment, and which request do they make? By the models of a scenario.

A field has the name of the value in `chaos run --set`; an empty one means: as the scenario says. The parameters of
faults and workloads begin with the plugin's name: `fault.at_s`, `kill.confirm_timeout_s`, `produce-consume.keys`.

A field's schema selects its input element and offers its choices. Bounds are in the description only: Airflow's form
answers a value that a schema refuses with "Bad Request" and no reason, so the task `start` refuses it, with the field
and its limit.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from airflow.sdk import Param
from pydantic import BaseModel

from chaos_airflow.settings import own_file
from chaos_airflow.tasks.request import RunRequest
from harness.cluster.systems.system import EXTERNAL
from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.errors import PluginError, ScenarioError
from harness.scenario.catalogue import catalogue
from harness.scenario.model import Scenario

log = logging.getLogger(__name__)

DEFAULT_SCENARIO = "smoke"
LARGEST_SEED = 2**53 - 1
"""Larger numbers are not exact in a browser."""
DRAFT = "http://json-schema.org/draft-07/schema#"
"""Airflow checks each field's schema when it serialises a DAG; of the drafts, this one takes a quarter of the time."""
MORE_FAULTS = "faults"
PROPOSED = {"fault.at_s": 2.0}
"""Values that the form is filled in with: a fault must have an instant. They count only if a fault is chosen."""
GROUPS = {
    "cluster": ("cluster.", "Cluster"),
    "topics": ("topics.0.", "First topic"),
    "workloads": ("workloads.0.", "Load"),
    "faults": ("fault.", "Fault"),
}
"""Parts of a scenario that are in the form field by field: prefix of their names, and section. Of a list, the first."""
FIRST = (
    "scenario",
    "seed",
    "system",
    "driver",
    "duration_s",
    "planted_bugs",
    "fault.kind",
    "fault.at_s",
    "fault.duration_s",
    "fault.target",
    MORE_FAULTS,
)
"""What people change. It is before all sections, which are folded."""
MORE = "More of the scenario"
SECTIONS = (MORE, *dict.fromkeys(("Fault", *(title for _, title in GROUPS.values()))))
LEFT_OUT = {
    "name": "the scenario is chosen by it",
    "description": "the scenario brings its own",
    "topics.0.name": "the targets of the scenario's faults name it",
    "workloads.0.kind": "each kind has a section of its own",
    "workloads.0.parameters": "each kind has a section of its own",
    "fault.parameters": "each kind has a section of its own",
    "roles": "steps name them",
    "cluster.external": "an existing cluster is described in a cluster file, which the scenario names",
    "left_out": "it is noted when the scenario is loaded",
    "steps": "a story in an order is written into a scenario's file",
}
"""What a scenario may have and the form does not, with the reason."""

_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "minLength": "length at least",
    "maxLength": "length at most",
    "pattern": "matching",
}
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_TRUTHS = {"true": True, "false": False}
"""A switch could not be left as the scenario says, so a choice of these stands for it."""
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_AS_THE_SCENARIO_SAYS = {"null": "as the scenario says"}

Schema = Mapping[str, Any]


def form() -> dict[str, Param]:
    """Return the parameters of the DAG by name, in the order of the form: what people change comes first."""
    params = what_is_run() | fields_of(Scenario) | more_faults()
    broken: dict[str, str] = {}
    for kind, title in ((Kind.FAULT, "Fault"), (Kind.WORKLOAD, "Load")):
        for name in registry.names(kind):
            try:
                plugin = registry.fault(name) if kind is Kind.FAULT else registry.workload(name)
            except PluginError as error:
                broken[name] = str(error)
                continue
            params.update(fields_of(plugin.Parameters, prefix=f"{name}.", section=f"{title}: {name}"))
    _leave_out(broken, params["fault.kind"])
    for name, param in params.items():
        param.schema["$schema"] = DRAFT
        if name in FIRST:
            param.schema.pop("section", None)
            param.schema.pop("title", None)
        else:
            param.schema.setdefault("section", MORE)
    return dict(sorted(params.items(), key=lambda item: _place(*item)))


def _leave_out(broken: Mapping[str, str], field: Param) -> None:
    """Offer no plugin that cannot be used, and say why in the description of the field that would name it."""
    schema = field.schema
    schema["enum"] = [name for name in schema["enum"] if name not in broken]
    schema["values_display"] = {name: text for name, text in schema["values_display"].items() if name not in broken}
    schema["description_md"] = "; ".join([schema["description_md"], *(f"left out: {text}" for text in broken.values())])
    for sentence in broken.values():
        log.warning("form.plugin_left_out reason=%s", sentence)


def what_is_run() -> dict[str, Param]:
    """Return the fields of a scenario's name, its file and the seed."""
    scenarios = dict(catalogue("scenarios"))
    return {
        "scenario": Param(
            DEFAULT_SCENARIO,
            type="string",
            description_md="The scenario to run; fields below override parts of it",
            enum=list(scenarios),
            values_display=_displayed(scenarios),
        ),
        "scenario_file": Param(
            None,
            type=["null", "string"],
            description_md="A scenario of your own instead: the path of its YAML file on the machine that runs it",
        ),
        "seed": Param(
            None,
            type=["null", "integer"],
            description_md="Decides all draws; empty: a new one *(at least 0)*",
        ),
    }


def more_faults() -> dict[str, Param]:
    """Return the field for faults beside the one that has fields of its own."""
    example = '[{"kind": "pause", "at_s": 5, "duration_s": 2, "target": "controller"}]'
    return {
        MORE_FAULTS: Param(
            None,
            type=["null", "array"],
            items={"type": "object"},
            description_md=f"More faults, each as in a scenario's file: `{example}`",
        )
    }


def _place(name: str, param: Param) -> tuple[int, int, bool]:
    """Return where a field stands: among the first, or in its section, where what is written as JSON comes last."""
    if name in FIRST:
        return 0, FIRST.index(name), False
    section = str(param.schema["section"]).partition(":")[0]
    return 1, SECTIONS.index(section), "object" in param.schema["type"]


def fields_of(model: type[BaseModel], *, prefix: str = "", section: str = "") -> dict[str, Param]:
    """Return a field of the form for each field of the model, and of the models within it that `GROUPS` names."""
    schema = model.model_json_schema()
    return dict(_fields(_inlined(schema, schema.get("$defs", {})), prefix, section))


def _inlined(schema: Any, definitions: Schema) -> Any:
    """Return a JSON schema, or a part of one, with what it refers to in the place of each reference.

    A field of the form is checked by its schema alone, so nothing in it may refer to what stands outside.
    """
    match schema:
        case {"$ref": str(reference), **beside}:
            return _inlined(definitions[reference.rpartition("/")[2]] | beside, definitions)
        case dict():
            return {word: _inlined(value, definitions) for word, value in schema.items()}
        case list():
            return [_inlined(value, definitions) for value in schema]
        case _:
            return schema


def _fields(model: Schema, prefix: str, section: str) -> Iterator[tuple[str, Param]]:
    for field, schema in model["properties"].items():
        name = f"{prefix}{field}"
        if name in LEFT_OUT:
            continue
        if name in GROUPS:
            yield from _fields(schema.get("items", schema), *GROUPS[name])
        else:
            yield name, _param(schema, name, section)


def _param(schema: Schema, name: str, section: str) -> Param:
    """Return a field's JSON schema as a parameter that may also be empty."""
    choices = _choices(name)
    words = _validation(schema, list(choices))
    text: str = schema["description"]
    limits = [f"{phrase} {schema[bound]}" for bound, phrase in _BOUNDS.items() if bound in schema]
    if schema.get("default") not in _EMPTY:
        limits.append(f"default {json.dumps(schema['default'])}")
    words["description_md"] = f"{text} *({', '.join(limits)})*" if limits else text
    if choices:
        words["values_display"] = _displayed(choices) | _AS_THE_SCENARIO_SAYS
    if section:
        words |= {"section": section, "title": name.rpartition(".")[2]}
    return Param(PROPOSED.get(name), **words)


def _validation(schema: Schema, choices: list[str]) -> dict[str, Any]:
    """Return what selects the input element and offers the choices; the model refuses all other values later."""
    types = _types_of(schema)
    items: Schema = schema.get("items", {})
    match types:
        case ["boolean"]:
            return {"type": ["null", "string"], "enum": [*_TRUTHS, None]}
        case ["array"] if options := choices or items.get("enum", []):
            return {"type": ["null", "array"], "items": {"type": "string", "enum": options}, "examples": options}
        case ["array"]:
            return {"type": ["null", "array"], "items": {"type": items.get("type", "object")}}
        case _ if choices or "enum" in schema:
            return {"type": ["null", *types], "enum": [*(choices or schema["enum"]), None]}
        case _:
            return {"type": ["null", *types]}


def _types_of(schema: Schema) -> list[str]:
    """Return the JSON types that a schema allows, each once, without null; a schema without a type is an object."""
    if "anyOf" in schema:
        types = [name for option in schema["anyOf"] for name in _types_of(option)]
    elif "enum" in schema:
        types = [_TYPES[type(value)] for value in schema["enum"] if value is not None]
    else:
        types = [schema.get("type", "object")]
    return [name for name in dict.fromkeys(types) if name != "null"]


def _choices(name: str) -> dict[str, str]:
    """Return what a scenario's rules allow in a field, each with a sentence; empty: all that its type allows."""
    match name:
        case "driver":
            return dict.fromkeys(registry.starting(), "")
        case "fault.kind":
            return dict(catalogue("faults"))
        case "system":
            return {system: "" for system, _ in catalogue("systems") if system != EXTERNAL}
        case "checks" | "planted_bugs":
            return dict(catalogue(name.replace("_", "-")))
        case _:
            return {}


def _displayed(choices: Mapping[str, str]) -> dict[str, str]:
    return {
        name: f"{name}: {text}" if text and not text.lower().startswith(f"{name.lower()}:") else text or name
        for name, text in choices.items()
    }


def scenario_name(params: Mapping[str, Any]) -> str:
    """Return what a filled-in form runs: a built-in scenario, or a file by its name."""
    return Path(params["scenario_file"] or params["scenario"]).stem


def request_of_form(params: Mapping[str, Any]) -> RunRequest:
    """Return the request that a filled-in form makes: the options of `chaos run`.

    Raises:
        ScenarioError: a field is filled in that belongs to a fault which is not chosen, or to a load that is not there;
            or the seed is out of range.
    """
    values = {name: value for name, value in params.items() if value not in _EMPTY}
    if "seed" in values:
        in_range("seed", values["seed"], 0, LARGEST_SEED)
    request = RunRequest(
        scenario=own_file(values.pop("scenario_file")) if "scenario_file" in values else values["scenario"],
        driver=values.pop("driver", None),
        seed=values.pop("seed", None),
        planted_bugs=values.pop("planted_bugs", []),
    )
    del values["scenario"]
    kinds = registry.names(Kind.FAULT)
    more: list[Any] = values.pop(MORE_FAULTS, [])
    of_fault = {name: values.pop(name) for name in list(values) if name.partition(".")[0] in ("fault", *kinds)}
    overrides = (_set_options(name, value, request["scenario"]) for name, value in values.items())
    faults = [*_fault(of_fault), *more]
    request["set"] = [*chain.from_iterable(overrides), *([f"faults={_yaml(faults)}"] if faults else [])]
    return request


def in_range(name: str, value: int, lowest: int, highest: int) -> int:
    """Return the value of a field that no model of a scenario checks.

    Raises:
        ScenarioError: it is out of range.
    """
    if not lowest <= value <= highest:
        raise ScenarioError(f"{name}: must be from {lowest} to {highest}, not {value}")
    return value


def _set_options(name: str, value: Any, scenario: str) -> list[str]:
    """Return what follows `--set`: one for each property of a mapping, which joins those that the scenario has."""
    group, _, field = name.partition(".")
    key = name
    if registry.known(Kind.WORKLOAD, group):
        key = f"workloads.{_place_of(group, name, scenario)}.parameters.{field}"
    if isinstance(value, dict):
        return [f"{key}.{inner}={_yaml(text)}" for inner, text in value.items()]
    return [f"{key}={_yaml(value)}"]


def _place_of(load: str, name: str, scenario: str) -> int:
    """Return which of the scenario's loads is of that kind; the first, if several are."""
    from harness.scenario.file import load_scenario

    kinds = [spec.kind for spec in load_scenario(scenario).workloads]
    if load not in kinds:
        raise ScenarioError(f"{name}: filled in, but the load of {scenario} is {', '.join(kinds)}")
    return kinds.index(load)


def _fault(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fault that the fields describe; none if no kind is chosen."""
    kind = values.pop("fault.kind", None)
    spec = {name.removeprefix("fault."): value for name, value in values.items() if name.startswith("fault.")}
    parameters = {name.removeprefix(f"{kind}."): value for name, value in values.items() if name.startswith(f"{kind}.")}
    taken = {f"fault.{name}" for name in spec} | {f"{kind}.{name}" for name in parameters} if kind else PROPOSED.keys()
    if stray := sorted(values.keys() - taken):
        raise ScenarioError(f"{', '.join(stray)}: filled in, but fault.kind is {kind or 'as the scenario says'}")
    return [{"kind": kind, **spec, "parameters": parameters}] if kind else []


def _yaml(value: Any) -> str:
    return json.dumps(_TRUTHS.get(value, value) if isinstance(value, str) else value)
