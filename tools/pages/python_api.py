"""The reference of the Python API: what plugins implement and receive, by signature and docstring."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from tools.pages.page import NOTE, Page

_HEAD = f"""\
# Python API

{NOTE}

What a plugin implements and receives. These names are stable from 0.1.0 on
([policy](../../CONTRIBUTING.md#what-is-stable)); everything else in `harness` may change.
[Extend it](../how-to/extend.md) has the recipes."""
_MODULES = {
    "harness.contracts.checks": (
        "Check",
        "Settings",
        "Allowance",
        "Assumption",
    ),
    "harness.contracts.faults": ("Fault", "BrokerFault", "FaultContext", "Effect", "Injection"),
    "harness.contracts.workloads": ("Workload", "ClientPlan", "Stop"),
    "harness.contracts.parameters": ("Strict",),
    "harness.cluster.driver": ("ClusterDriver",),
    "harness.cluster.systems.system": ("System",),
    "harness.verdict": ("ExitCode",),
}


def text() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_modules()]) + "\n"


def _modules() -> Iterator[str]:
    for name, classes in _MODULES.items():
        module = import_module(name)
        yield ""
        yield f"## {name}"
        yield ""
        yield " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
        for cls in classes:
            yield from _class(module, getattr(module, cls))


def _class(module: ModuleType, cls: type) -> Iterator[str]:
    yield ""
    yield f"### {cls.__name__}"
    yield ""
    yield " ".join((inspect.getdoc(cls) or "").split())
    members = list(_members(cls))
    if members:
        yield ""
        yield from members


def _members(cls: type) -> Iterator[str]:
    source = inspect.getsource(cls)
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            about = " ".join((inspect.getdoc(function) or "").split())
            yield f"- `{name}{'' if isinstance(member, property) else _signature(function)}`: {about}"
    for match in re.finditer(r'^    (\w+)(: [^\n=]+)?( = [^\n]+)?\n    """(.+?)"""', source, re.MULTILINE | re.DOTALL):
        yield f"- `{match[1]}{match[2] or ''}`: {' '.join(match[4].split())}"


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [each.name for each in signature.parameters.values() if each.name != "self"]
    return f"({', '.join(parameters)})"


PAGES = (Page(path="docs/reference/python-api.md", text=text),)
