"""The reference of scenario files: every key with its type, default and meaning."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.scenario.model import Scenario
from tools.pages.page import NOTE, Page, table

_HEAD = f"""\
# Scenario keys

{NOTE}

[Write a scenario](../how-to/write-a-scenario.md) explains them. An unknown key, a wrong type and a value out of range
are errors, each with its line."""
_BOUNDS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}


def text() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_scenario(), *_workloads()]) + "\n"


def _scenario() -> Iterator[str]:
    schema = Scenario.model_json_schema()
    yield from _section("The scenario", schema, schema["$defs"])
    names = {"ClusterSpec": "cluster", "ExternalSpec": "cluster.external", "ExternalBroker": "cluster.external.brokers"}
    names |= {"ExternalRelay": "cluster.external.relay", "Forwarded": "cluster.external.relay.clients"}
    names |= {"ExternalCommands": "cluster.external.commands", "TopicSpec": "topics", "WorkloadSpec": "workloads"}
    names |= {
        "FaultSpec": "faults",
        "MixSpec": "mix",
        "MixKind": "mix.kinds",
        "StepSpec": "steps",
        "Objectives": "objectives",
    }
    for model, key in names.items():
        yield from _section(key, schema["$defs"][model], schema["$defs"])


def _workloads() -> Iterator[str]:
    for name in registry.names(Kind.WORKLOAD):
        schema = registry.workload(name).Parameters.model_json_schema()
        yield from _section(f"Parameters of {name}", schema, schema.get("$defs", {}))


def _section(title: str, schema: Mapping[str, Any], models: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    required = schema.get("required", ())
    rows = (
        (
            f"`{key}`",
            _type(each, models),
            "required" if key in required else _default(each),
            each.get("description", ""),
        )
        for key, each in schema["properties"].items()
    )
    yield from table(("key", "type", "default", "means"), rows)


def _default(each: Mapping[str, Any]) -> str:
    default = each.get("default")
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default in (None, "", [], {}) or isinstance(default, dict) else f"`{default}`"


def _type(each: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    if "$ref" in each:
        model = models[each["$ref"].rpartition("/")[2]]
        return _type(model, models) if "enum" in model else "mapping"
    if options := each.get("anyOf"):
        return " or ".join(dict.fromkeys(_type(option, models) for option in options if option.get("type") != "null"))
    if "enum" in each:
        return ", ".join(map(str, each["enum"]))
    if "const" in each:
        return str(each["const"])
    match each.get("type"):
        case "array":
            return f"list of {_type(each.get('items', {}), models)}"
        case "integer" | "number" as kind:
            bounds = " ".join(f"{word} {each[key]:g}" for key, word in _BOUNDS.items() if key in each)
            return " ".join(("whole number" if kind == "integer" else "number", bounds)).strip()
        case "object":
            return "mapping"
        case kind:
            return {"string": "text", "boolean": "true or false"}.get(str(kind), "value")


PAGES = (Page(path="docs/reference/scenario.md", text=text),)
