"""Which plugins are there, and which distribution or folder brings each? They are found without being imported.

A distribution declares entry points of the groups `kafka_chaos.faults`, `.workloads`, `.checks`, `.systems`, `.drivers`
and `.scenarios`. The value of one is a package, each of whose modules is a plugin; or a module, which is one plugin
under the entry point's name; or `module:Class`. A folder has one folder for each kind, with a module for each plugin.
Folders are named by `CHAOS_PLUGINS`. The content of this project is found by its own entry points.
"""

import difflib
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.errors import NotInstalled, PluginError
from harness.system.extras import not_installed
from harness.values import PYTHON

OWN = "kafka-chaos-harness"
"""The distribution of this project."""
GROUP = "kafka_chaos."
FOLDERS = "CHAOS_PLUGINS"
"""The environment variable with the folders of plugins, separated as in PATH."""
DECLARES = "PLUGIN"
_CHECKOUT = Path(__file__).resolve().parents[2]
_TITLE = re.compile(r"""^    title\b.*=\s*["'](.+)["']$""", re.MULTILINE)


class Kind(StrEnum):
    """The kinds of plugins; the value names the group of entry points and the folder."""

    FAULT = "faults"
    WORKLOAD = "workloads"
    CHECK = "checks"
    SYSTEM = "systems"
    DRIVER = "drivers"
    SCENARIO = "scenarios"

    @property
    def singular(self) -> str:
        """The word for one plugin, for messages."""
        return self.value.removesuffix("s")


USUAL = {Kind.DRIVER: "process", Kind.SYSTEM: PYTHON}
"""The plugins that are used where nothing else is said; lists begin with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A distribution or a folder that brings plugins."""

    name: str
    """Of the distribution; of a folder its path."""
    version: str
    """Of a folder the beginning of a digest of its files."""
    is_folder: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One plugin, which is not imported yet."""

    kind: Kind
    name: str
    """The name by which it is used; of a check its key."""
    module: str
    """Empty for a scenario, which is a file."""
    attribute: str
    path: Path
    provider: Provider

    @property
    def place(self) -> str:
        """The provider and the module, for messages."""
        return f"{self.module or self.path} of {self.provider}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All plugins of one kind."""

    plugins: tuple[Plugin, ...]
    """The usual one, and all others in the order of their names; two may have the same name."""
    broken: tuple[str, ...]
    """A sentence for each entry point or folder that cannot be read, with its provider."""


def found(kind: Kind) -> Found:
    """Return the plugins of a kind, and what is wrong with those that cannot be read."""
    return _found(kind, tuple(folders()))


def folders() -> list[str]:
    """Return the folders of plugins, each once, as absolute paths."""
    named = filter(None, os.environ.get(FOLDERS, "").split(os.pathsep))
    return list(dict.fromkeys(map(os.path.abspath, named)))


def refresh() -> None:
    """Forget what was found: distributions or files have changed."""
    _found.cache_clear()
    declared.cache_clear()


def use_folders(more: Iterable[Path | str]) -> None:
    """Add folders of plugins, for this process and those that it starts.

    A folder without plugins is left out, and so is the source of a package whose distribution is installed.
    """
    named = folders()
    modules = (value.partition(":")[0] for _, _, value in declared())
    packages = {module.rpartition(".")[0].rpartition(".")[2] for module in modules}
    for folder in map(os.path.abspath, more):
        has_some = any(Path(folder, kind).is_dir() for kind in Kind)
        if has_some and folder not in named and Path(folder).name not in packages:
            named.append(folder)
            os.environ[FOLDERS] = os.pathsep.join(named)


@cache
def _found(kind: Kind, folders: tuple[str, ...]) -> Found:
    plugins: list[Plugin] = []
    broken: list[str] = []
    for provider, name, value in declared():
        group, _, name = name.partition("/")
        if group != kind:
            continue
        try:
            plugins += _of_entry_point(kind, provider, name, value)
        except Exception as error:  # noqa: BLE001  the package of a plugin runs when it is looked into
            broken.append(f"{provider}: {value} cannot be read: {type(error).__name__}: {error}")
    for folder in folders:
        try:
            plugins += _of_folder(kind, Path(folder))
        except (OSError, UnicodeDecodeError) as error:
            broken.append(f"{FOLDERS}: {folder} cannot be read: {error}")
    plugins = _once(plugins) if folders else plugins
    plugins.sort(key=lambda each: (each.name != USUAL.get(kind), each.name.lower()))
    return Found(plugins=tuple(plugins), broken=tuple(broken))


def _once(plugins: Iterable[Plugin]) -> list[Plugin]:
    """Return each file once: a folder may be that of a package which is installed where it lies."""
    by_file: dict[tuple[Path, str], Plugin] = {}
    for plugin in plugins:
        by_file.setdefault((plugin.path.resolve(), plugin.name), plugin)
    return list(by_file.values())


@cache
def declared() -> tuple[tuple[Provider, str, str], ...]:
    """Return provider, `kind/name` and value of every entry point; a distribution counts once, the first in the path.

    In a checkout they are those of its `pyproject.toml`, whatever was installed of it.
    """
    every = list(_of_checkout())
    seen = {provider.name for provider, _, _ in every}
    for distribution in distributions():
        points = [point for point in distribution.entry_points if point.group.startswith(GROUP)]
        if not points or distribution.name in seen:
            continue
        seen.add(distribution.name)
        provider = Provider(name=distribution.name, version=distribution.version)
        every += [(provider, f"{point.group.removeprefix(GROUP)}/{point.name}", point.value) for point in points]
    return tuple(every)


def _of_checkout() -> Iterator[tuple[Provider, str, str]]:
    try:
        project = tomllib.loads((_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError):
        return
    if project.get("name") != OWN:
        return
    if importlib.util.find_spec("kafka_chaos") is None:  # nothing of the checkout is installed
        sys.path.append(str(_CHECKOUT / "plugins"))
    provider = Provider(name=OWN, version=project["version"])
    for group, points in project["entry-points"].items():
        if group.startswith(GROUP):
            yield from ((provider, f"{group.removeprefix(GROUP)}/{name}", points[name]) for name in points)


def _of_entry_point(kind: Kind, provider: Provider, name: str, value: str) -> Iterator[Plugin]:
    module, _, attribute = value.partition(":")
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {module}")
    if kind is Kind.SCENARIO or (not attribute and spec.submodule_search_locations and not _declares(spec.origin)):
        once: dict[str, Plugin] = {}  # a package without __init__.py has a folder in each path entry: the first counts
        for folder in spec.submodule_search_locations or []:
            for plugin in _of_files(kind, provider, Path(folder), module):
                once.setdefault(plugin.path.name, plugin)
        yield from once.values()
    elif spec.origin is None:
        raise ModuleNotFoundError(f"{module} has no file")
    else:
        yield _plugin(kind, provider, name, module, Path(spec.origin), attribute or DECLARES)


def _declares(origin: str | None) -> bool:
    """Return whether a package declares a plugin itself, instead of having some."""
    source = Path(origin).read_text(encoding="utf-8") if origin else ""
    return re.search(rf"^{DECLARES}\b", source, re.MULTILINE) is not None


def _of_folder(kind: Kind, folder: Path) -> Iterator[Plugin]:
    if not folder.is_dir():
        raise FileNotFoundError("there is no such folder")
    if (folder / kind).is_dir():
        package = f"chaos_plugins_{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"
        if package not in sys.modules:
            sys.modules[package] = module = ModuleType(package)
            module.__path__ = [str(folder)]
        provider = Provider(name=str(folder), version=_digest(folder), is_folder=True)
        yield from _of_files(kind, provider, folder / kind, f"{package}.{kind}")


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    files = (path for kind in Kind for path in (folder / kind).rglob("*.*") if "__pycache__" not in path.parts)
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _of_files(kind: Kind, provider: Provider, folder: Path, package: str) -> Iterator[Plugin]:
    for path in sorted(folder.glob("*.yaml" if kind is Kind.SCENARIO else "*.py")):
        if not path.stem.startswith("_"):
            yield _plugin(kind, provider, path.stem, f"{package}.{path.stem}", path, DECLARES)


def _plugin(kind: Kind, provider: Provider, name: str, module: str, path: Path, attribute: str) -> Plugin:
    if kind is Kind.SCENARIO:
        module = attribute = ""
    else:
        name = name.replace("_", "-")
    if kind is Kind.CHECK:
        name = title_in(path).partition(" ")[0]
    return Plugin(kind=kind, name=name, module=module, attribute=attribute, path=path, provider=provider)


@cache
def title_in(path: Path) -> str:
    """Return number and name of the check in a file, without importing it."""
    title = _TITLE.search(path.read_text(encoding="utf-8"))
    return title[1] if title else path.stem.replace("_", "-")


def only(kind: Kind, name: str) -> Plugin:
    """Return the plugin of that name.

    Raises:
        PluginError: there is none, or there are two; the message names both, or the known names.
    """
    every = found(kind)
    named = [each for each in every.plugins if each.name.lower() == name.lower()]
    if len(named) > 1:
        places = " and ".join(each.place for each in named)
        raise PluginError(f"two plugins are the {kind.singular} {name}: {places}; remove one of them, or rename it")
    if not named:
        unread = "".join(f"; {sentence}" for sentence in every.broken)
        raise PluginError(unknown_message(kind.singular, name, names(kind)) + unread)
    return named[0]


def names(kind: Kind) -> list[str]:
    """Return the names of every plugin of a kind, each once."""
    return list(dict.fromkeys(each.name for each in found(kind).plugins))


def unknown_message(what: str, name: str, names: list[str]) -> str:
    """Return the sentence that refuses a name, with the nearest known one first."""
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"unknown {what} {name!r}{hint}; known: {', '.join(names) or 'none'}"


def load(plugin: Plugin) -> Any:
    """Return what a plugin's module declares.

    Raises:
        NotInstalled: it takes a package that only an extra of this project brings.
        PluginError: the module cannot be imported, or does not declare it.
    """
    try:
        module = importlib.import_module(plugin.module)
    except Exception as error:
        raise cannot_import(plugin.place, error) from error
    plugged = getattr(module, plugin.attribute, None)
    if not isinstance(plugged, type):
        what = "its last line must declare PLUGIN, a class" if plugin.attribute == DECLARES else "it has no such class"
        raise PluginError(f"{plugin.path}: {plugin.attribute} of {plugin.place}: {what}")
    return plugged


def cannot_import(place: str, error: Exception) -> NotInstalled | PluginError:
    """Return what stands for an import that failed."""
    other = PluginError(f"{place} cannot be imported: {type(error).__name__}: {error}")
    return not_installed(error) or other
