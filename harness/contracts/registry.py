"""Finds plugins and drivers by kind and name at run time; the harness imports none of them itself.

`harness/system/plugins.py` says where they are found. The module of a fault or workload has the plugin's name, with `_`
for `-`, and its last line declares `PLUGIN`. A check has a number too: its title is both. Its key is the number, and
evidence names it by that. Listing reads titles and docstrings, and imports nothing.
"""

import ast
import importlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.cluster.driver import CAPABILITIES, RunExecutor
from harness.cluster.systems.system import EXTERNAL
from harness.contracts.checks import Check
from harness.contracts.faults import Fault
from harness.contracts.workloads import Workload
from harness.errors import PluginError, ScenarioError
from harness.system.plugins import (
    OWN,
    Kind,
    Provider,
    cannot_import,
    found,
    load,
    names,
    only,
    title_in,
    unknown_message,
)

__all__ = ["Kind", "Provider", "names", "unknown_message"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One plugin or scenario, without importing it."""

    name: str
    summary: str
    path: Path
    provider: Provider


def content_root() -> Path:
    """Return the folder of this project's content, with its scenarios and suites.

    Raises:
        PluginError: there is none.
    """
    own = (each.path.parents[1] for each in found(Kind.SCENARIO).plugins if each.provider.name == OWN)
    if root := next(own, None):
        return root
    raise PluginError("; ".join(("this project's scenarios are not installed", *found(Kind.SCENARIO).broken)))


def plugins(kind: Kind) -> list[CatalogueEntry]:
    """Return every plugin of a kind by name; nothing is imported. The summary of a scenario is empty."""
    return [
        CatalogueEntry(name=each.name, summary=_summary(each.path), path=each.path, provider=each.provider)
        for each in found(kind).plugins
    ]


def broken(kind: Kind) -> list[str]:
    """Return a sentence for each plugin of a kind that cannot be used, as far as that is known without importing it."""
    every = found(kind)
    doubled = [name for name in names(kind) if sum(each.name == name for each in every.plugins) > 1]
    return [*every.broken, *(_refusal(kind, name) for name in doubled)]


def _refusal(kind: Kind, name: str) -> str:
    try:
        only(kind, name)
    except PluginError as error:
        return str(error)
    return ""


def _summary(path: Path) -> str:
    if path.suffix != ".py":
        return ""
    try:
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    except SyntaxError as error:
        return f"cannot be imported: {error}"
    return docstring.partition("\n")[0]


def known(kind: Kind, name: str) -> bool:
    """Return whether there is such a plugin, ignoring the case of its name; it is not imported."""
    key = check_key(name) if kind is Kind.CHECK else name
    return key.lower() in map(str.lower, names(kind))


def provider_of(kind: Kind, name: str) -> Provider:
    """Return what brings a plugin.

    Raises:
        PluginError: there is none of that name, or there are two.
    """
    return only(kind, name).provider


def unusable(names: Iterable[str]) -> dict[str, str]:
    """Return why checks cannot be asked, by the names of those that cannot."""
    reasons = {}
    for name in names:
        try:
            check(name)
        except PluginError as error:
            reasons[name] = str(error)
    return reasons


def fault(name: str) -> Fault:
    """Return a fault plugin.

    Raises:
        PluginError: it does not exist or is declared wrongly; so do `workload` and `check`.
    """
    plugin: Fault = _load(Kind.FAULT, name)()
    return plugin


def faults() -> dict[str, Fault]:
    """Return all faults that can be used, by name; a run that has another one is not judged."""
    usable = {}
    for name in names(Kind.FAULT):
        with suppress(Exception):  # a plugin of the user's own may raise anything when it is imported or made
            usable[name] = fault(name)
    return usable


def workload(name: str) -> Workload:
    """Return a workload plugin."""
    plugin: Workload = _load(Kind.WORKLOAD, name)()
    return plugin


def check(name: str) -> Check:
    """Return a check plugin."""
    plugin: Check = _load(Kind.CHECK, check_key(name))()
    return plugin


def check_title(name: str) -> str:
    """Return number and name of a check, without importing it; its key alone if there is no such check (any more).

    Stored answers name checks by their keys, and may name removed checks.
    """
    key = check_key(name).lower()
    return next((title_in(each.path) for each in found(Kind.CHECK).plugins if each.name.lower() == key), name)


def check_key(text: str) -> str:
    """Return the key of the check with this number, name or both; the text itself if there is none."""
    for each in found(Kind.CHECK).plugins:
        title = title_in(each.path).lower()
        if text.lower() in (each.name.lower(), title, title.rpartition(" ")[2]):
            return each.name
    return text


def check_keys(names_or_numbers: Iterable[str]) -> list[str]:
    """Return the keys of checks that are named by number, name or both.

    Raises:
        ScenarioError: there is no such check.
    """
    keys = [check_key(text) for text in names_or_numbers]
    if unknown := [key for key in keys if not known(Kind.CHECK, key)]:
        raise ScenarioError(unknown_message(Kind.CHECK.singular, unknown[0], names(Kind.CHECK)))
    return keys


def drivers() -> list[str]:
    """Return the names of all cluster drivers."""
    return names(Kind.DRIVER)


def starting() -> list[str]:
    """Return the drivers that start clusters and can replace each other."""
    return [name for name in drivers() if name != EXTERNAL]


def is_driver(name: str | None) -> bool:
    """Return whether there is a driver of exactly this name."""
    return name in drivers()


def driver_class(name: str) -> type[Any]:
    """Return the class of a cluster driver.

    Raises:
        PluginError: there is no such driver, or it cannot be imported.
    """
    driver: type[Any] = load(only(Kind.DRIVER, name))
    return driver


def capabilities(driver: str) -> set[str]:
    """Return the names of the capabilities that a driver has."""
    cls = driver_class(driver)
    if issubclass(cls, RunExecutor):
        return set(cls.capabilities())
    return {name for name, protocol in CAPABILITIES.items() if issubclass(cls, protocol)}


def _load(kind: Kind, name: str) -> type[Any]:
    plugin = only(kind, name)
    declaring: type[Any] = load(plugin)
    wanted = {"name": plugin.name} | ({"title": title_in(plugin.path)} if kind is Kind.CHECK else {})
    for attribute, text in wanted.items():
        if (declared := getattr(declaring, attribute, None)) != text:
            raise PluginError(
                f"{plugin.path}: {plugin.attribute}.{attribute} is {declared!r}, and must be {text!r}: {plugin.place}"
            )
    if lacking := sorted(getattr(declaring, "__abstractmethods__", ())):
        raise PluginError(f"{plugin.path}: {plugin.attribute} must define {', '.join(lacking)}: {plugin.place}")
    return declaring


def import_module(name: str) -> ModuleType:
    """Import a module of the harness or beside it by its name.

    Raises:
        NotInstalled: it needs a package of an extra.
        PluginError: it cannot be imported for another reason, given in the message.
    """
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise cannot_import(name, error) from error
