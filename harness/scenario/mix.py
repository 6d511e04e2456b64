"""Which faults does the seed draw from a scenario's mix, when, for how long, and on which targets?

Every injection has a seed of its own, and every kind another one within it, so that one more kind or injection changes
the others only where they compete for time or brokers.
"""

import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.contracts.claims import Claim
from harness.contracts.targets import NO_BROKERS, Target, drawn, parse_target
from harness.scenario.model import ClusterSpec, MixKind, MixSpec
from harness.scenario.seeds import derived_seed

TRIES = 40
"""How many candidates are drawn for one injection before it is left out."""
CALM_SHARE = 0.25
"""Share of the load that is without any fault, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time from one injection until it is certainly healed, and what the injection claims meanwhile."""

    at_s: float
    end_s: float
    claim: Claim
    alone: bool

    def overlaps(self, other: "Window") -> bool:
        """Return whether the two overlap in time."""
        return self.at_s < other.end_s and other.at_s < self.end_s

    def excludes(self, other: "Window") -> bool:
        """Return whether the schedule cannot have both."""
        return self.overlaps(other) and (self.alone or other.alone or self.claim.excludes(other.claim))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnFault:
    """One fault that was drawn from a mix."""

    kind: MixKind
    target: Target
    brokers: list[int]
    at_s: float
    duration_s: float
    seed: int


def draw_mix(
    mix: MixSpec,
    cluster: ClusterSpec,
    duration_s: float,
    seed: int,
    *,
    composing: Mapping[str, bool],
    scheduled: Iterable[Window],
) -> list[DrawnFault]:
    """Return the drawn faults, not ordered by time.

    `composing`: by kind, whether it composes with others. `scheduled`: the windows of the faults in the schedule.
    """
    windows, faults = list(scheduled), []
    for number in range(mix.injections(duration_s)):
        for attempt in range(TRIES):
            candidate = _candidate(mix, cluster, duration_s, derived_seed(seed, number, attempt))
            window = _window(candidate, mix.settle_s, cluster, composing)
            if _fits(window, windows, mix.at_once, duration_s):
                windows.append(window)
                faults.append(candidate)
                break
    return faults


def _candidate(mix: MixSpec, cluster: ClusterSpec, duration_s: float, seed: int) -> DrawnFault:
    kind = _winner(mix.kinds, seed)
    rng = random.Random(derived_seed(seed, "place"))  # noqa: S311  repeatable, not secret
    start, length = rng.random(), rng.random()
    shortest_s, longest_s = kind.duration_s
    fault_s = round(shortest_s + length * (longest_s - shortest_s), 3)
    room_s = max(0.0, duration_s - mix.settle_s - fault_s)
    target, brokers = drawn(parse_target(kind.target), cluster.broker_ids, cluster.zookeeper_servers, rng)
    return DrawnFault(
        kind=kind,
        target=target,
        brokers=brokers,
        at_s=round(start * room_s, 3),
        duration_s=fault_s,
        seed=derived_seed(seed, "fault"),
    )


def _winner(kinds: list[MixKind], seed: int) -> MixKind:
    """Return a kind by weight: each draws an instant with its weight as the rate, and the earliest wins."""

    def instant(number: int) -> float:
        kind = kinds[number]
        same_before = sum(other.kind == kind.kind for other in kinds[:number])
        drawn_share = (derived_seed(seed, "lot", kind.kind, same_before) + 1) / 2**63
        return -math.log(drawn_share) / kind.weight

    return kinds[min(range(len(kinds)), key=instant)]


def _window(drawn: DrawnFault, settle_s: float, cluster: ClusterSpec, composing: Mapping[str, bool]) -> Window:
    # Any broker can have the role at the moment of injection.
    brokers = drawn.brokers or ([] if drawn.target.role in NO_BROKERS else cluster.broker_ids)
    return Window(
        at_s=drawn.at_s,
        end_s=drawn.at_s + drawn.duration_s + settle_s,
        claim=Claim(fault=drawn.kind.kind, composes=composing[drawn.kind.kind], brokers=frozenset(brokers)),
        alone=drawn.kind.alone,
    )


def _fits(window: Window, others: list[Window], at_once: int, duration_s: float) -> bool:
    if window.end_s > duration_s or any(window.excludes(other) for other in others):
        return False
    overlapping = [*(other for other in others if window.overlaps(other)), window]
    starts = [each.at_s for each in overlapping]
    if any(sum(each.at_s <= start_s < each.end_s for each in overlapping) > at_once for start_s in starts):
        return False
    return disturbed_s([*others, window]) <= (1 - CALM_SHARE) * duration_s


def disturbed_s(windows: Iterable[Window]) -> float:
    """Return how many seconds at least one window covers."""
    return sum(end_s - start_s for start_s, end_s in _merged(windows))


def _merged(windows: Iterable[Window]) -> Iterator[tuple[float, float]]:
    spans = sorted((window.at_s, window.end_s) for window in windows)
    while spans:
        start_s, end_s = spans.pop(0)
        while spans and spans[0][0] <= end_s:
            end_s = max(end_s, spans.pop(0)[1])
        yield start_s, end_s
