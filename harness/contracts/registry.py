"""Finds plugins by kind and name at run time, so that the harness imports none of them.

A plugin is one module in the package of its kind; the module's name is the plugin's name with `_` for `-`, and its
last line declares `PLUGIN`. Listing reads file names and docstrings, and imports nothing.
"""

import ast
import difflib
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.cluster.driver import CAPABILITIES, CarriesOutRuns
from harness.contracts.checks import Check
from harness.contracts.faults import Fault
from harness.contracts.workloads import Workload
from harness.errors import PluginError
from harness.system.extras import not_installed

_BESIDE = Path(__file__).resolve().parents[2] / "plugins"
_CONTENT = "kafka_chaos"

DRIVERS: dict[str, str] = {
    "process": "harness.cluster.process:ProcessDriver",
    "docker": "harness.cluster.containers.driver:DockerDriver",
    "simulated": "harness.simulation.runs:SimulatedRuns",
}
"""Cluster drivers by name, each with the module and class that is imported when it is used."""


class Kind(StrEnum):
    """What plugins there are; the value is the name of the package."""

    FAULT = "faults"
    WORKLOAD = "workloads"
    CHECK = "checks"

    @property
    def singular(self) -> str:
        """One of them, for messages."""
        return self.value.removesuffix("s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One plugin or scenario, as far as it can be known without importing it."""

    name: str
    summary: str
    path: Path


def content_root() -> Path:
    """Return the folder of the content package.

    Raises:
        PluginError: there is none.
    """
    spec = importlib.util.find_spec(_CONTENT)
    if spec is None and (_BESIDE / _CONTENT).is_dir():
        sys.path.append(str(_BESIDE))
        spec = importlib.util.find_spec(_CONTENT)
    if spec is None or not spec.submodule_search_locations:
        raise PluginError(f"no plugins: the package {_CONTENT} is neither installed nor in {_BESIDE}")
    return Path(spec.submodule_search_locations[0])


def plugins(kind: Kind) -> list[Listed]:
    """Return every plugin of a kind by name; nothing is imported."""
    return [Listed(name=name, summary=_summary(path), path=path) for name, path in _files(kind).items()]


def _files(kind: Kind) -> dict[str, Path]:
    paths = sorted((content_root() / kind.value).glob("*.py"))
    return {path.stem.replace("_", "-"): path for path in paths if not path.stem.startswith("_")}


def _summary(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def scenarios() -> list[Listed]:
    """Return the built-in scenarios by name; the summary is left to whoever reads the file."""
    folder = content_root() / "scenarios"
    return [Listed(name=path.stem, summary="", path=path) for path in sorted(folder.glob("*.yaml"))]


def names(kind: Kind) -> list[str]:
    """Return the names of every plugin of a kind."""
    return list(_files(kind))


def known(kind: Kind, name: str) -> bool:
    """Return whether there is such a plugin, without importing it."""
    return name.lower() in (listed.lower() for listed in names(kind))


def unknown_message(what: str, name: str, names: list[str]) -> str:
    """Return the sentence that refuses a name, with the nearest known one first."""
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {what} {name!r}{hint}; known: {', '.join(names) or 'none'}"


def fault(name: str) -> Fault:
    """Return a fault plugin.

    Raises:
        PluginError: it does not exist or is misdeclared; so do `workload` and `check`.
    """
    loaded: Fault = _load(Kind.FAULT, name)()
    return loaded


def workload(name: str) -> Workload:
    """Return a workload plugin."""
    loaded: Workload = _load(Kind.WORKLOAD, name)()
    return loaded


def check(name: str) -> Check:
    """Return a check plugin."""
    loaded: Check = _load(Kind.CHECK, name)()
    return loaded


@cache
def check_title(name: str) -> str:
    """Return number and name of a check, without importing it; its key alone where there is no such check (any more).

    Answers name checks by their keys, and old ones may be of checks that are gone.
    """
    path = next((path for known, path in _files(Kind.CHECK).items() if known.lower() == name.lower()), None)
    body = ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if path else ()
    titles = (each.value for each in body if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "title")
    return next((str(title.value) for title in titles if isinstance(title, ast.Constant)), name)


def check_key(text: str) -> str:
    """Return the key of the check that is meant by its number, its name or both; the text itself where none is."""
    for key in names(Kind.CHECK):
        title = check_title(key)
        if text.lower() in (key, title.lower(), title.lower().rpartition(" ")[2]):
            return title.partition(" ")[0]
    return text


def driver_class(name: str) -> type[Any]:
    """Return the class of a cluster driver.

    Raises:
        PluginError: there is no such driver.
    """
    if name not in DRIVERS:
        raise PluginError(unknown_message("driver", name, list(DRIVERS)))
    module, _, attribute = DRIVERS[name].partition(":")
    loaded: type[Any] = getattr(importlib.import_module(module), attribute)
    return loaded


def capabilities(driver: str) -> set[str]:
    """Return the names of the optional powers that a driver has."""
    loaded = driver_class(driver)
    if issubclass(loaded, CarriesOutRuns):
        return set(loaded.powers())
    return {name for name, protocol in CAPABILITIES.items() if issubclass(loaded, protocol)}


def _load(kind: Kind, name: str) -> type[Any]:
    if not known(kind, name):
        raise PluginError(unknown_message(kind.singular, name, names(kind)))
    module = import_module(f"{_CONTENT}.{kind.value}.{name.lower().replace('-', '_')}")
    plugin = getattr(module, "PLUGIN", None)
    if not isinstance(plugin, type):
        raise PluginError(f"{module.__file__}: its last line must declare PLUGIN, a class")
    declared = getattr(plugin, "name", None)
    if not isinstance(declared, str) or declared.lower() != name.lower():
        raise PluginError(f"{module.__file__}: PLUGIN.name is {declared!r}, and must be {name!r} as the file says")
    return plugin


def import_module(name: str) -> ModuleType:
    """Import a module of the content by its name.

    Raises:
        NotInstalled: it takes a package that only an extra brings.
        PluginError: it cannot be imported for another reason, which the message names.
    """
    content_root()
    try:
        return importlib.import_module(name)
    except Exception as error:
        other = PluginError(f"{name} cannot be imported: {type(error).__name__}: {error}")
        raise not_installed(error) or other from error
