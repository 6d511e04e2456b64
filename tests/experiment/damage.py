"""Damage to the evidence of a run, as disks, people and programs do it: every kind of damage to every kind of file."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

from harness.store.folder import RunFolder

Lines = list[bytes]
Damage = Callable[[Lines, random.Random], Lines]


def _cut(lines: Lines, rng: random.Random) -> Lines:
    data = b"".join(lines)
    return [data[: rng.randrange(len(data))]]


def _cut_at_a_line(lines: Lines, rng: random.Random) -> Lines:
    return lines[: rng.randrange(len(lines))]


def _lost(lines: Lines, rng: random.Random) -> Lines:
    place = rng.randrange(len(lines))
    return lines[:place] + lines[place + 1 :]


def _doubled(lines: Lines, rng: random.Random) -> Lines:
    place = rng.randrange(len(lines))
    return [*lines[:place], lines[place], *lines[place:]]


def _swapped(lines: Lines, rng: random.Random) -> Lines:
    place = rng.randrange(max(1, len(lines) - 1))
    return lines[:place] + lines[place : place + 2][::-1] + lines[place + 2 :]


def _joined(lines: Lines, rng: random.Random) -> Lines:
    place = rng.randrange(len(lines))
    return [*lines[:place], lines[place].rstrip(b"\n"), *lines[place + 1 :]]


def _flipped(lines: Lines, rng: random.Random) -> Lines:
    data = bytearray(b"".join(lines))
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return [bytes(data)]


def _in_one_line(pattern: bytes, change: Callable[[re.Match[bytes]], bytes]) -> Damage:
    """Return damage to one match of a pattern in one line."""

    def damage(lines: Lines, rng: random.Random) -> Lines:
        places = [(number, match) for number, line in enumerate(lines) for match in re.finditer(pattern, line)]
        if not places:
            return lines
        number, match = rng.choice(places)
        line = lines[number]
        return [*lines[:number], line[: match.start()] + change(match) + line[match.end() :], *lines[number + 1 :]]

    return damage


DAMAGES: dict[str, Damage] = {
    "cut": _cut,
    "cut at a line": _cut_at_a_line,
    "emptied": lambda _lines, _rng: [],
    "a line lost": _lost,
    "a line doubled": _doubled,
    "two lines swapped": _swapped,
    "two lines joined": _joined,
    "a bit flipped": _flipped,
    "a key renamed": _in_one_line(rb'"([a-z_]+)":', lambda match: b'"' + match[1].capitalize() + b'":'),
    "a key twice": _in_one_line(rb'"([a-z_]+)":', lambda match: b'"' + match[1] + b'":null,' + match[0]),
    "another word": _in_one_line(rb':"([a-z]+)"', lambda match: b':"' + match[1][::-1] + b'x"'),
    "another number": _in_one_line(rb":(\d+)(?=[,}])", lambda match: b":" + str(int(match[1]) + 1).encode()),
    "a value of another type": _in_one_line(rb":(\d+)(?=[,}])", lambda match: b":[" + match[1] + b"]"),
}
"""By what happened; each gives a file's lines as they are afterwards."""
REPLACED = "the file of another run"
REMOVED = "removed"


def files_of(folder: RunFolder) -> list[Path]:
    """Return the files that a run rests on, within its folder, in a stable order."""
    declared = [folder.scenario, folder.plan, folder.format, folder.phases, folder.seal]
    evidence = [path for paths in folder.evidence().values() for path in paths]
    return sorted(path.relative_to(folder.root) for path in (*declared, *evidence))


def damaged(folder: RunFolder, place: Path, name: str, other: RunFolder, rng: random.Random) -> bool:
    """Damage one file of a run; return whether anything is different now."""
    path = folder.root / place
    before = path.read_bytes()
    if name == REMOVED:
        path.unlink()
        return True
    if name == REPLACED:
        counterpart = other.root / place
        after = counterpart.read_bytes() if counterpart.exists() else before
    elif before:
        after = b"".join(DAMAGES[name](before.splitlines(keepends=True), rng))
    else:
        return False
    path.write_bytes(after)
    if path == folder.phases and after.startswith(before):
        return False  # phases that come later write there
    return after != before and not (path == folder.seal and _says_the_same(before, after))


def _says_the_same(before: bytes, after: bytes) -> bool:
    try:
        return bool(json.loads(before) == json.loads(after))
    except ValueError:
        return False
