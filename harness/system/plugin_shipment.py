"""What does another machine need to find the same plugins, as executors of a sweep do?"""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from harness.system.plugins import FOLDERS, GROUP, Provider, declared, folders

SHIPPED_FOLDERS = "chaos-plugins"
"""Where folders of plugins lie in what is shipped."""


def shipment() -> Iterator[tuple[str, Path | str]]:
    """Return what another machine needs on its path to find the same plugins: each file's place, and file or content.

    The packages of every distribution that brings plugins, with its entry points; and the folders.
    """
    points: dict[Provider, list[tuple[str, str, str]]] = {}
    for provider, name, value in declared():
        group, _, name = name.partition("/")
        points.setdefault(provider, []).append((group, name, value))
    for provider, own in points.items():
        lines = [line for group, name, value in own for line in (f"[{GROUP}{group}]", f"{name} = {value}")]
        info = f"{provider.name.replace('-', '_')}-{provider.version}.dist-info"
        yield f"{info}/entry_points.txt", "\n".join(lines)
        yield f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {provider.name}\nVersion: {provider.version}\n"
        for package in sorted({value.partition(":")[0].partition(".")[0] for _, _, value in own}):
            yield from _files_of(package)
    for number, folder in enumerate(folders()):
        yield from _below(Path(folder), f"{SHIPPED_FOLDERS}/{number:03}")


def use_shipped(root: str) -> None:
    """Use the folders of plugins in what was shipped, and no others."""
    folders = sorted(Path(root, SHIPPED_FOLDERS).glob("*"))
    os.environ[FOLDERS] = os.pathsep.join(map(str, folders))


def _files_of(package: str) -> Iterator[tuple[str, Path]]:
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        yield from _below(Path(folder), package)
    if spec and spec.origin and not spec.submodule_search_locations:
        yield f"{package}.py", Path(spec.origin)


def _below(root: Path, place: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"{place}/{path.relative_to(root).as_posix()}", path
