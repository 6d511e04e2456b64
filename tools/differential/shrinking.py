"""Which smallest script still shows a difference? Steps are removed, then elements and fields of what is left."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.client_rules.scripts.script import Script, without

Shows = Callable[[Script], Awaitable[bool]]
Path = tuple[str | int, ...]
KEPT_FIELDS = frozenset({"validate_only", "resource_name"})
"""Without them a change would reach the whole broker, and so other scripts."""
MOST_PLAYS = 60


async def shrunk(script: Script, shows: Shows, most_plays: int = MOST_PLAYS) -> Script:
    """Return a smaller script that still shows the difference, after at most so many plays."""
    plays = 0

    async def still(candidate: Script) -> bool:
        nonlocal plays
        plays += 1
        return plays <= most_plays and await shows(candidate)

    size = max(len(script) // 2, 1)
    while True:
        script, removed = await _without_steps(script, size, still)
        if size == 1 and not removed:
            break
        size = max(size // 2, 1)
    for index in range(len(script)):
        script = await _with_less_fields(script, index, still)
    return script


async def _without_steps(script: Script, size: int, still: Shows) -> tuple[Script, bool]:
    """Return the script without the runs of `size` steps that it does not need, from the end on."""
    removed, at = False, len(script) - size
    while at >= 0:
        candidate = script[:at] + script[at + size :]
        if candidate and await still(candidate):
            script, removed = candidate, True
        at -= size
    return script, removed


async def _with_less_fields(script: Script, index: int, still: Shows) -> Script:
    """Return the script with the fields and elements of one step that it needs."""
    tried: set[Path] = set()
    while True:
        path = next((each for each in paths_of(script[index].fields) if each not in tried), None)
        if path is None:
            return script
        tried.add(path)
        candidate = (*script[:index], without(script[index], path), *script[index + 1 :])
        if await still(candidate):
            script = candidate
            if isinstance(path[-1], int):
                tried = {each for each in tried if each[: len(path) - 1] != path[:-1]}


def paths_of(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all elements and optional fields, outer ones first."""
    if isinstance(value, Mapping):
        children: Sequence[tuple[str | int, Any]] = list(value.items())
    elif isinstance(value, list | tuple) and not _is_record(value):
        children = list(enumerate(value))
    else:
        return
    for name, _ in children:
        if name not in KEPT_FIELDS:
            yield (*path, name)
    for name, each in children:
        yield from paths_of(each, (*path, name))


def _is_record(value: Sequence[Any]) -> bool:
    """Whether a list is a key, a value and a time, which belong together."""
    return (
        len(value) == 3
        and isinstance(value[2], int)
        and not isinstance(value[2], bool)
        and not all(isinstance(each, int) for each in value)
    )
