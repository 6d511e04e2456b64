"""Which faults does the seed draw from a scenario's mix, when, for how long, and on which targets?

Every injection has a seed of its own, and every kind another one within it, so that one more kind or injection changes
the others only where they compete for time or brokers.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.contracts.claims import Claim, claim_of, in_the_way
from harness.contracts.faults import Fault
from harness.contracts.targets import NO_BROKERS, Target, drawn, parse_target
from harness.scenario.model import ClusterSpec, MixKind, MixSpec
from harness.scenario.motifs import FOLLOWERS, LEADER, MOTIFS, SAME
from harness.scenario.seeds import derived_seed

TRIES = 40
"""How many candidates are drawn for one injection before it is left out."""
ROUNDS = 20
"""How often all are drawn anew, if there was no room for some of those that the mix states."""
WAIT_S = 3.0
"""How long a drawn fault waits for its moment at most."""
OFFSETS_S = (0.0, 0.005, 0.05, 0.3)
"""How long after its moment a drawn fault begins."""
MOTIF_ROUNDS = 6
"""How often motifs are drawn anew, if there was no room beside them for what the mix states."""
CALM_SHARE = 0.25
"""Share of the load that is without any fault, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWindow:
    """The time from one injection until it is certainly healed, and what the injection claims meanwhile."""

    at_s: float
    end_s: float
    claim: Claim

    def overlaps(self, other: "PlannedWindow") -> bool:
        """Return whether the two overlap in time."""
        return self.at_s < other.end_s and other.at_s < self.end_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnFault:
    """One fault that was drawn from a mix."""

    kind: MixKind
    target: Target
    brokers: list[int]
    at_s: float
    duration_s: float
    seed: int
    after: str = ""
    """The moment that it waits for; empty for none."""
    offset_s: float = 0.0
    within_s: float = WAIT_S
    motif: str = ""
    overlaps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A scenario's mix, with all that must be known to draw from it nothing that would be refused."""

    spec: MixSpec
    cluster: ClusterSpec
    topics: Sequence[str]
    replicated: Sequence[str]
    """Topics with several replicas."""
    duration_s: float
    """Of the load."""
    session_timeout_s: float
    """After so long ZooKeeper misses a broker that has died."""
    plugins: Mapping[str, Fault]
    """By kind, those of the schedule and of motifs too."""
    moments: Sequence[str]
    """Those that what is under test logs."""
    motifs: Sequence[str]
    """Names of those that the scenario allows."""

    @property
    def stated(self) -> int:
        """How many faults the scenario asks for."""
        return self.spec.injections(self.duration_s)

    def beside(self, fault: DrawnFault) -> int:
        """Return how many others may be in force beside one; beside one of a motif, all of the motif."""
        of_motif = len(MOTIFS[fault.motif].steps) if fault.motif else 0
        return 0 if fault.kind.alone else max(self.spec.at_once, of_motif) - 1

    def window(
        self,
        kind: str,
        target: Target,
        brokers: Sequence[int],
        parameters: Mapping[str, Any],
        *,
        at_s: float,
        duration_s: float,
        beside: int | None = None,
    ) -> PlannedWindow:
        """Return when an injection is in force and what it claims: any broker can have its role at that moment."""
        plugin = self.plugins[kind]
        if plugin.hits_all or not (brokers or target.role in NO_BROKERS):
            brokers = self.cluster.broker_ids
        own = plugin.Parameters.model_validate(parameters)
        duration_s = max(duration_s, plugin.min_hold_s(target, own, self.session_timeout_s))
        claim = claim_of(plugin, target, brokers, parameters, beside)
        return PlannedWindow(at_s=at_s, end_s=at_s + duration_s + self.spec.settle_s, claim=claim)

    def draw(self, seed: int, scheduled: Sequence[PlannedWindow]) -> list[DrawnFault]:
        """Return the drawn faults, not ordered by time: as many as stated, if there is room for them.

        Motifs are drawn first, and left out where they take the room of what is stated.

        `scheduled`: the windows of the faults in the schedule.
        """
        most: list[DrawnFault] = []
        whole: list[DrawnFault] = []
        for number in range(MOTIF_ROUNDS if self.motifs else 0):
            motifs = list(self._motifs(derived_seed(seed, "motifs", number), scheduled))
            beside = self._rounds(seed, [*scheduled, *map(self._window_of, motifs)]) if motifs else []
            if len(beside) == self.stated:
                return [*motifs, *beside]
            if not whole or len(beside) > len(most):
                whole, most = motifs, beside
        alone = self._rounds(seed, scheduled)
        return alone if len(alone) > len(most) else [*whole, *most]

    def _rounds(self, seed: int, scheduled: Sequence[PlannedWindow]) -> list[DrawnFault]:
        """Return the faults of the round that has room for most."""
        best = self._round(seed, scheduled)
        for number in range(1, ROUNDS):
            if len(best) == self.stated or self._hopeless:
                break
            best = max(best, self._round(derived_seed(seed, "round", number), scheduled), key=len)
        return best

    def spares(self, seed: int) -> list[DrawnFault]:
        """Return those that are carried out, when all others are healed, for such as were not confirmed."""
        return [
            self._candidate(derived_seed(seed, "spare", number)) for number in range(self.spec.spares(self.duration_s))
        ]

    @property
    def _hopeless(self) -> bool:
        """Whether not even the shortest ones would have room."""
        min_visible_s = min(kind.duration_s[0] for kind in self.spec.kinds) + self.spec.settle_s
        return self.stated * min_visible_s > self.spec.at_once * (1 - CALM_SHARE) * self.duration_s

    def _round(self, seed: int, scheduled: Sequence[PlannedWindow]) -> list[DrawnFault]:
        windows, faults = [*scheduled], []
        for number in range(self.stated):
            for attempt in range(TRIES):
                candidate = self._candidate(derived_seed(seed, number, attempt))
                window = self._window_of(candidate)
                if self._fits(window, windows):
                    windows.append(window)
                    faults.append(candidate)
                    break
        return faults

    def _window_of(self, fault: DrawnFault) -> PlannedWindow:
        wait_s = fault.within_s + fault.offset_s if fault.after else 0.0
        return self.window(
            fault.kind.kind,
            fault.target,
            fault.brokers,
            fault.kind.parameters,
            at_s=fault.at_s,
            duration_s=fault.duration_s + wait_s,
            beside=self.beside(fault),
        )

    def _motifs(self, seed: int, scheduled: Sequence[PlannedWindow]) -> Iterator[DrawnFault]:
        """Yield the faults of the motifs that are drawn, of each all or none.

        The faults of one motif may be in each other's way: each is postponed until it can begin.
        """
        windows = [*scheduled]
        for number in range(self.spec.motif_count):
            name = random.Random(derived_seed(seed, number)).choice(self.motifs)  # noqa: S311  repeatable, not secret
            for attempt in range(TRIES):
                rng = random.Random(derived_seed(seed, number, attempt))  # noqa: S311  repeatable, not secret
                faults = self._motif(name, rng)
                own = [self._window_of(fault) for fault in faults]
                if all(self._fits(window, windows) for window in own) and self._leaves_calm([*windows, *own]):
                    windows += own
                    yield from faults
                    break

    def _motif(self, name: str, rng: random.Random) -> list[DrawnFault]:
        """Return the faults of a motif, somewhere within the load."""
        motif = MOTIFS[name]
        steps, topics = motif.steps, (self.replicated if motif.needs_followers else None) or self.topics
        same, topic = str(rng.choice(list(self.cluster.broker_ids))), rng.choice(list(topics))
        length_s = max(
            step.delay_s + step.duration_s + (step.within_s + step.offset_s if step.after else 0.0) for step in steps
        )
        at_s = rng.random() * max(0.0, self.duration_s - self.spec.settle_s - length_s)
        faults = []
        for step in steps:
            roles = {SAME: same, LEADER: f"leader({topic},0)", FOLLOWERS: f"followers({topic},0)"}
            target = parse_target(roles.get(step.target, step.target))
            begins_s = round(at_s + step.delay_s, 3)
            lasts_s = self.duration_s - self.spec.settle_s - begins_s if step.until_end else step.duration_s
            parsed, brokers = drawn(
                target,
                self.cluster.broker_ids,
                self.cluster.zookeeper_servers,
                rng,
                self.cluster.quorum_ids,
            )
            faults.append(
                DrawnFault(
                    kind=MixKind(kind=step.kind, target=target, parameters=dict(step.parameters)),
                    target=parsed,
                    brokers=brokers,
                    at_s=begins_s,
                    duration_s=round(max(0.0, lasts_s), 3),
                    seed=rng.getrandbits(63),
                    after=step.after,
                    offset_s=step.offset_s,
                    within_s=step.within_s,
                    motif=name,
                    overlaps=step.overlaps,
                )
            )
        return faults

    def _candidate(self, seed: int) -> DrawnFault:
        kind = _winner(self.spec.kinds, seed)
        rng = random.Random(derived_seed(seed, "place"))  # noqa: S311  repeatable, not secret
        start, length = rng.random(), rng.random()
        min_visible_s, longest_s = kind.duration_s
        fault_s = round(min_visible_s + length * (longest_s - min_visible_s), 3)
        after, offset_s = self._moment(derived_seed(seed, "moment"))
        wait_s = WAIT_S + offset_s if after else 0.0
        room_s = max(0.0, self.duration_s - self.spec.settle_s - fault_s - wait_s)
        target, brokers = drawn(
            kind.target,
            self.cluster.broker_ids,
            self.cluster.zookeeper_servers,
            rng,
            self.cluster.quorum_ids,
        )
        return DrawnFault(
            kind=kind,
            target=target,
            brokers=brokers,
            at_s=round(start * room_s, 3),
            duration_s=fault_s,
            seed=derived_seed(seed, "fault"),
            after=after,
            offset_s=offset_s,
        )

    def _moment(self, seed: int) -> tuple[str, float]:
        """Return a moment and how long after it a fault begins; none for most."""
        rng = random.Random(seed)  # noqa: S311  repeatable, not secret
        if not self.moments or rng.random() >= self.spec.moments:
            return "", 0.0
        return rng.choice(list(self.moments)), rng.choice(OFFSETS_S)

    def _fits(self, window: PlannedWindow, others: list[PlannedWindow]) -> bool:
        if window.end_s > self.duration_s:
            return False
        overlapping = [other for other in others if window.overlaps(other)]
        for at_s in (max(window.at_s, other.at_s) for other in overlapping):
            held = {number: other.claim for number, other in enumerate(overlapping) if other.at_s <= at_s < other.end_s}
            if in_the_way(window.claim, held):
                return False
        return self._leaves_calm([*others, window])

    def _leaves_calm(self, windows: Iterable[PlannedWindow]) -> bool:
        return disturbed_s(windows) <= (1 - CALM_SHARE) * self.duration_s


def _winner(kinds: list[MixKind], seed: int) -> MixKind:
    """Return a kind by weight: each draws an instant with its weight as the rate, and the earliest wins."""
    instants = []
    same_before: Counter[str] = Counter()
    for kind in kinds:
        drawn_share = (derived_seed(seed, "lot", kind.kind, same_before[kind.kind]) + 1) / 2**63
        same_before[kind.kind] += 1
        instants.append(-math.log(drawn_share) / kind.weight)
    return kinds[instants.index(min(instants))]


def disturbed_s(windows: Iterable[PlannedWindow]) -> float:
    """Return how many seconds at least one window covers."""
    return sum(end_s - start_s for start_s, end_s in _merged(windows))


def _merged(windows: Iterable[PlannedWindow]) -> Iterator[tuple[float, float]]:
    spans = sorted((window.at_s, window.end_s) for window in windows)
    while spans:
        start_s, end_s = spans.pop(0)
        while spans and spans[0][0] <= end_s:
            end_s = max(end_s, spans.pop(0)[1])
        yield start_s, end_s
