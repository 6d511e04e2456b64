"""Finds plugins and drivers by kind and name at run time; the harness imports none of them itself.

A plugin is one module in the package of its kind; the module's name is the plugin's name with `_` for `-`, and its
last line declares `PLUGIN`. A check has a number too: its title is both, and its key, by which evidence names it, is
the number. Listing reads titles and docstrings, and imports nothing.
"""

import ast
import difflib
import importlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.cluster.driver import CAPABILITIES, RunExecutor
from harness.cluster.systems.system import EXTERNAL
from harness.contracts.checks import Check
from harness.contracts.faults import Fault
from harness.contracts.workloads import Workload
from harness.errors import PluginError
from harness.system.extras import not_installed

_CHECKOUT = Path(__file__).resolve().parents[2] / "plugins"
_CONTENT = "kafka_chaos"
_TITLE = re.compile(r'^    title: .* = "(.+)"$', re.MULTILINE)

DRIVERS: dict[str, str] = {
    "process": "harness.cluster.processes.driver:ProcessDriver",
    "docker": "harness.cluster.containers.driver:DockerDriver",
    EXTERNAL: "harness.cluster.external.driver:ExternalDriver",
    "simulated": "harness.simulation.runs:SimulatedRuns",
}
"""Cluster drivers by name, each with the module and class that is imported when it is used."""


class Kind(StrEnum):
    """The kinds of plugins; the value is the name of their package."""

    FAULT = "faults"
    WORKLOAD = "workloads"
    CHECK = "checks"

    @property
    def singular(self) -> str:
        """The word for one plugin, for messages."""
        return self.value.removesuffix("s")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One plugin or scenario, without importing it."""

    name: str
    summary: str
    path: Path


def content_root() -> Path:
    """Return the folder of the content package.

    Raises:
        PluginError: there is none.
    """
    spec = importlib.util.find_spec(_CONTENT)
    if spec is None and (_CHECKOUT / _CONTENT).is_dir():
        sys.path.append(str(_CHECKOUT))
        spec = importlib.util.find_spec(_CONTENT)
    if spec is None or not spec.submodule_search_locations:
        raise PluginError(f"no plugins: the package {_CONTENT} is neither installed nor in {_CHECKOUT}")
    return Path(spec.submodule_search_locations[0])


def plugins(kind: Kind) -> list[CatalogueEntry]:
    """Return every plugin of a kind by name; nothing is imported."""
    return [CatalogueEntry(name=name, summary=_summary(path), path=path) for name, path in _files(kind).items()]


def _files(kind: Kind) -> dict[str, Path]:
    """Return the file of each plugin by its name, checks by their keys."""
    paths = [path for path in sorted((content_root() / kind.value).glob("*.py")) if not path.stem.startswith("_")]
    if kind is not Kind.CHECK:
        return {path.stem.replace("_", "-"): path for path in paths}
    by_key = {_title_in(path).partition(" ")[0]: path for path in paths}
    return dict(sorted(by_key.items(), key=lambda item: item[0].lower()))


@cache
def _title_in(path: Path) -> str:
    """Return number and name of the check in a file, without importing it."""
    title = _TITLE.search(path.read_text(encoding="utf-8"))
    return title[1] if title else path.stem.replace("_", "-")


def _summary(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def scenarios() -> list[CatalogueEntry]:
    """Return the built-in scenarios by name, without reading their files; so the summaries are empty."""
    folder = content_root() / "scenarios"
    return [CatalogueEntry(name=path.stem, summary="", path=path) for path in sorted(folder.glob("*.yaml"))]


def names(kind: Kind) -> list[str]:
    """Return the names of every plugin of a kind."""
    return list(_files(kind))


def known(kind: Kind, name: str) -> bool:
    """Return whether there is such a plugin, ignoring the case of its name; it is not imported."""
    return _file(kind, name) is not None


def _file(kind: Kind, name: str) -> Path | None:
    key = check_key(name) if kind is Kind.CHECK else name
    return next((path for known, path in _files(kind).items() if known.lower() == key.lower()), None)


def unknown_message(what: str, name: str, names: list[str]) -> str:
    """Return the sentence that refuses a name, with the nearest known one first."""
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {what} {name!r}{hint}; known: {', '.join(names) or 'none'}"


def fault(name: str) -> Fault:
    """Return a fault plugin.

    Raises:
        PluginError: it does not exist or is declared wrongly; so do `workload` and `check`.
    """
    plugin: Fault = _load(Kind.FAULT, name)()
    return plugin


def workload(name: str) -> Workload:
    """Return a workload plugin."""
    plugin: Workload = _load(Kind.WORKLOAD, name)()
    return plugin


def check(name: str) -> Check:
    """Return a check plugin."""
    plugin: Check = _load(Kind.CHECK, name)()
    return plugin


def check_title(name: str) -> str:
    """Return number and name of a check, without importing it; its key alone if there is no such check (any more).

    Stored answers name checks by their keys, and may name removed checks.
    """
    path = _file(Kind.CHECK, name)
    return _title_in(path) if path else name


def check_key(text: str) -> str:
    """Return the key of the check with this number, name or both; the text itself if there is none."""
    for key, path in _files(Kind.CHECK).items():
        title = _title_in(path).lower()
        if text.lower() in (key.lower(), title, title.rpartition(" ")[2]):
            return key
    return text


def starting() -> list[str]:
    """Return the drivers that start clusters and can replace each other."""
    return [name for name in DRIVERS if name != EXTERNAL]


def driver_class(name: str) -> type[Any]:
    """Return the class of a cluster driver.

    Raises:
        PluginError: there is no such driver.
    """
    if name not in DRIVERS:
        raise PluginError(unknown_message("driver", name, list(DRIVERS)))
    module, _, attribute = DRIVERS[name].partition(":")
    driver: type[Any] = getattr(importlib.import_module(module), attribute)
    return driver


def capabilities(driver: str) -> set[str]:
    """Return the names of the capabilities that a driver has."""
    cls = driver_class(driver)
    if issubclass(cls, RunExecutor):
        return set(cls.capabilities())
    return {name for name, protocol in CAPABILITIES.items() if issubclass(cls, protocol)}


def _load(kind: Kind, name: str) -> type[Any]:
    path = _file(kind, name)
    if path is None:
        raise PluginError(unknown_message(kind.singular, name, names(kind)))
    module = import_module(f"{_CONTENT}.{kind.value}.{path.stem}")
    plugin = getattr(module, "PLUGIN", None)
    if not isinstance(plugin, type):
        raise PluginError(f"{module.__file__}: its last line must declare PLUGIN, a class")
    attribute = "title" if kind is Kind.CHECK else "name"
    declared, of_file = getattr(plugin, attribute, None), path.stem.replace("_", "-")
    if not isinstance(declared, str) or declared.lower().rpartition(" ")[2] != of_file:
        raise PluginError(
            f"{module.__file__}: PLUGIN.{attribute} is {declared!r}, and must name {of_file!r}, as the file"
        )
    return plugin


def import_module(name: str) -> ModuleType:
    """Import a module of the harness or of the content by its name.

    Raises:
        NotInstalled: it needs a package of an extra.
        PluginError: it cannot be imported for another reason, given in the message.
    """
    content_root()
    try:
        return importlib.import_module(name)
    except Exception as error:
        other = PluginError(f"{name} cannot be imported: {type(error).__name__}: {error}")
        raise not_installed(error) or other from error
