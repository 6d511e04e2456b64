"""Of what is too much for every run of the tests, a sample that the commit draws.

Every run of one commit has the same sample, on whatever day; over the commits each part has its turn. Without a
repository the content of the tree draws it. CHAOS_DRAW=COMMIT takes another commit's, CHAOS_SAMPLE=all takes all.
"""

import hashlib
import os
import random
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]


def drawn_by(root: Path) -> str:
    """Return the commit of a checkout, or a digest of the Python files of a tree without a repository."""
    git = ["git", "-C", str(root), "rev-parse", "--show-toplevel", "HEAD"]
    answer = subprocess.run(git, capture_output=True, text=True, check=False)
    if not answer.returncode:
        checkout, commit = answer.stdout.splitlines()
        if Path(checkout).resolve() == root.resolve():
            return commit
    digest = hashlib.blake2b(digest_size=20)
    for folder in ("harness", "plugins", "tests"):
        for path in sorted(root.joinpath(folder).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


DRAW = os.environ.get("CHAOS_DRAW") or drawn_by(ROOT)
os.environ["CHAOS_DRAW"] = DRAW  # parallel workers inherit it, though another commit is checked out meanwhile
ALL = os.environ.get("CHAOS_SAMPLE") == "all"


def sampled(parts: Sequence[T], number: int) -> list[T]:
    """Return as many of these parts, chosen by the commit, in their order."""
    if ALL or number >= len(parts):
        return list(parts)
    chosen = set(random.Random(DRAW).sample(range(len(parts)), number))
    return [part for place, part in enumerate(parts) if place in chosen]


def waiting(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that wait for another commit.

    Of a module's that are marked `rotating(n)` the commit draws n; with `of=name`, n of all modules' of that name. With
    `together=True` a module counts as one: its tests share what is dear.
    """
    numbers: dict[str, int] = {}
    groups = defaultdict(set)
    parts_of: dict[pytest.Item, tuple[str, str]] = {}
    for item in items:
        if mark := item.get_closest_marker("rotating"):
            module = item.nodeid.partition("::")[0]
            group, part = mark.kwargs.get("of", module), module if mark.kwargs.get("together") else item.nodeid
            numbers[group] = mark.args[0]
            groups[group].add(part)
            parts_of[item] = group, part
    drawn = {(group, part) for group, parts in groups.items() for part in sampled(sorted(parts), numbers[group])}
    return [item for item, part in parts_of.items() if part not in drawn]


def pytest_report_header() -> str:
    """Say which sample this is, so that it can be had again."""
    return "sample: all" if ALL else f"sample: CHAOS_DRAW={DRAW}; CHAOS_SAMPLE=all takes what another commit draws too"
