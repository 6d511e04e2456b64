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

What programs of others import: clusters from Python, tests, recording, and what plugins are made of. These names are
stable from 0.1.0 on ([policy](../../CONTRIBUTING.md#what-is-stable)); everything in `harness` may change.
[Own plugins](../how-to/own-plugins.md) and [test an application](../how-to/test-an-application.md) show their use."""
_MODULES = {
    "kafka_chaos.api": ("AsyncCluster", "run", "judge"),
    "kafka_chaos.testing": ("answer", "simulated", "client_of", "Answer"),
    "kafka_chaos.testing_cluster": ("KafkaCluster",),
    "kafka_chaos.recorder": ("Recorder",),
    "kafka_chaos.conformance": (),
    "kafka_chaos.api.checks": ("Check", "Settings", "Allowance", "Assumption", "Subject", "finding", "event"),
    "kafka_chaos.api.faults": ("Fault", "FaultContext", "Effect", "Injection", "Strict"),
    "kafka_chaos.api.workloads": ("Workload", "ClientPlan", "Stop"),
    "kafka_chaos.api.drivers": ("ClusterDriver", "System"),
}
"""By module the names that are described in full; all others that it promises have one line."""


def text() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_modules()]) + "\n"


def _modules() -> Iterator[str]:
    for name, full in _MODULES.items():
        module = import_module(name)
        yield ""
        yield f"## {name}"
        yield ""
        yield " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
        others = [each for each in getattr(module, "__all__", ()) if each not in full]
        if others:
            yield ""
            yield from (_line(each, getattr(module, each)) for each in others)
        for each in full:
            yield from _described(module, each, getattr(module, each))


def _line(name: str, what: Any) -> str:
    about = (inspect.getdoc(what) or "").partition("\n")[0] if callable(what) else ""
    return f"- `{name}`: {about}" if about else f"- `{name}`"


def _described(module: ModuleType, name: str, what: Any) -> Iterator[str]:
    if inspect.isclass(what):
        yield from _class(module, what)
        return
    yield ""
    yield f"### {name}{_signature(what)}"
    yield ""
    yield " ".join((inspect.getdoc(what) or "").split())


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
