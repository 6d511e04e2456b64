"""Of what is too much for every run of the tests, today's sample: CHAOS_SAMPLE=all takes all, CHAOS_DAY another day's.

Whoever runs the tests on one day gets the same sample; over the days each part has its turn.
"""

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import pytest

T = TypeVar("T")
DAY = os.environ.setdefault("CHAOS_DAY", datetime.now(UTC).date().isoformat())
"""Parallel workers inherit it, though midnight comes meanwhile."""
ALL = os.environ.get("CHAOS_SAMPLE") == "all"


def sampled(parts: Sequence[T], number: int) -> list[T]:
    """Return as many of these parts, chosen by the day, in their order."""
    if ALL or number >= len(parts):
        return list(parts)
    chosen = set(random.Random(DAY).sample(range(len(parts)), number))
    return [part for place, part in enumerate(parts) if place in chosen]


def waiting(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that wait for another day.

    Of a module's that are marked `by_turns(n)` the day draws n; with `of=name`, n of all modules' of that name. With
    `together=True` a module counts as one: its tests share what is dear.
    """
    numbers: dict[str, int] = {}
    groups = defaultdict(set)
    drawn_by: dict[pytest.Item, tuple[str, str]] = {}
    for item in items:
        if mark := item.get_closest_marker("by_turns"):
            module = item.nodeid.partition("::")[0]
            group, part = mark.kwargs.get("of", module), module if mark.kwargs.get("together") else item.nodeid
            numbers[group] = mark.args[0]
            groups[group].add(part)
            drawn_by[item] = group, part
    todays = {(group, part) for group, parts in groups.items() for part in sampled(sorted(parts), numbers[group])}
    return [item for item, drawn in drawn_by.items() if drawn not in todays]


def pytest_report_header() -> str:
    """Say which sample this is, so that it can be had again."""
    return "sample: all" if ALL else f"sample: CHAOS_DAY={DAY}; CHAOS_SAMPLE=all takes what waits for another day too"
