"""Which schedules reach what none has reached? A search after HypoFuzz's corpus and ModelFuzz's signal.

A genome is a schedule with all that its seed has drawn spelled out: faults with instants and targets, and a seed for
clients and network. The corpus keeps, for each feature (`states.py`), the smallest schedule that shows it. A parent is
chosen by how rare its feature is. A quarter of all schedules stays blind, as a control and for what the corpus lacks.
Rounds are made before any of their schedules is simulated, so a search depends on its seed alone.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.contracts import registry
from harness.contracts.targets import Role
from harness.scenario.model import Scenario
from harness.scenario.plan import SESSION_TIMEOUT, make_plan
from harness.scenario.seeds import derived_seed
from harness.sweep.reductions import legal, settled
from harness.sweep.sweep import Candidate, schedule_seed

BLIND_SHARE = 4
"""One schedule in so many is drawn from the scenario alone."""
TRIES = 12
"""How often a parent is changed until a scenario comes of it that is accepted."""
MOST_FAULTS = 12
NEAR_S = (-0.3, -0.05, 0.0, 0.05, 0.3)
"""How far from a transition an instant is moved."""
OVER = (0.8, 1.2)
"""A duration is pushed to just below and just above a time-out."""
TIME_OUTS = (SESSION_TIMEOUT, "replica.lag.time.max.ms")
Faults = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A schedule of the corpus."""

    candidate: Candidate
    instants_s: tuple[float, ...]
    """When it reached what was new, in seconds of load."""

    @property
    def size(self) -> tuple[int, float]:
        """Fewer faults are smaller, then shorter ones."""
        faults = self.candidate.scenario.faults
        return len(faults), sum(fault.duration_s for fault in faults)


@dataclass(slots=True, kw_only=True)
class Guide:
    """What was learned so far, and what is tried next."""

    scenario: Scenario
    seed: int
    seen: Counter[str] = field(default_factory=Counter)
    """In how many schedules each feature was seen."""
    corpus: dict[str, Parent] = field(default_factory=dict)
    """The smallest schedule that shows a feature."""
    _made: int = 0
    _blind: int = 0

    def next_round(self, size: int) -> list[Candidate]:
        """Return so many schedules to try."""
        return [self._next() for _ in range(size)]

    def learn(self, candidates: Sequence[Candidate], features: Sequence[Mapping[str, float]]) -> int:
        """Take in what a round reached, each feature with its instant; return how many features are new."""
        known = len(self.corpus)
        for candidate, reached in zip(candidates, features, strict=True):
            new = [instant_s for feature, instant_s in reached.items() if feature not in self.corpus]
            parent = Parent(candidate=candidate, instants_s=tuple(sorted(set(new or reached.values()))))
            for feature in reached:
                self.seen[feature] += 1
                if feature not in self.corpus or parent.size < self.corpus[feature].size:
                    self.corpus[feature] = parent
        return len(self.corpus) - known

    def _next(self) -> Candidate:
        number = self._made
        self._made += 1
        if number % BLIND_SHARE and self.corpus:
            rng = random.Random(derived_seed(self.seed, "guided", number))  # noqa: S311  repeatable, not secret
            for _ in range(TRIES):
                child = self._child(rng)
                if child is not None:
                    return child
        return self._drawn()

    def _drawn(self) -> Candidate:
        seed = schedule_seed(self.seed, self._blind)
        self._blind += 1
        spelled_out = settled(self.scenario, make_plan(self.scenario, seed))
        return Candidate(scenario=spelled_out, plan=make_plan(spelled_out, seed))

    def _child(self, rng: random.Random) -> Candidate | None:
        """Return a changed schedule of the corpus; None where nothing that is accepted came of it."""
        features = sorted(self.corpus)
        parent = self.corpus[rng.choices(features, [1 / self.seen[feature] for feature in features])[0]]
        scenario, seed = parent.candidate.scenario, parent.candidate.plan.seed
        data = scenario.model_dump(mode="json")
        for _ in range(rng.choice((1, 1, 2, 3))):
            change = rng.choice(CHANGES)
            if change is None:
                seed = derived_seed(seed, "again", rng.randrange(1 << 30))
            else:
                data["faults"] = change(data["faults"], parent, self, rng)
        data["faults"] = sorted(data["faults"], key=lambda fault: float(fault["at_s"]))[:MOST_FAULTS]
        child = legal(data)
        if child is None or (child == scenario and seed == parent.candidate.plan.seed):
            return None
        return Candidate(scenario=child, plan=make_plan(child, seed))


def _retargeted(faults: Faults, parent: Parent, guide: Guide, rng: random.Random) -> Faults:
    """Return the faults, one of them on another broker."""
    places = [place for place, each in enumerate(faults) if Role.IDS in registry.fault(each["kind"]).accepts]
    if not places:
        return faults
    broker_id = rng.choice(list(guide.scenario.cluster.broker_ids))
    return _with(faults, rng.choice(places), target=str(broker_id))


def _moved(faults: Faults, parent: Parent, guide: Guide, rng: random.Random) -> Faults:
    """Return the faults, one of them just before or after something new happened."""
    if not faults or not parent.instants_s:
        return faults
    at_s = rng.choice(parent.instants_s) + rng.choice(NEAR_S)
    return _with(faults, rng.randrange(len(faults)), at_s=round(max(0.0, at_s), 3))


def _stretched(faults: Faults, parent: Parent, guide: Guide, rng: random.Random) -> Faults:
    """Return the faults, one of them about as long as a time-out."""
    lasting = [place for place, each in enumerate(faults) if each["duration_s"]]
    if not lasting:
        return faults
    properties = guide.scenario.cluster.properties
    time_outs_s = [float(properties[name]) / 1000 for name in TIME_OUTS if name in properties] or [2.0, 6.0]
    return _with(faults, rng.choice(lasting), duration_s=round(rng.choice(time_outs_s) * rng.choice(OVER), 3))


def _duplicated(faults: Faults, parent: Parent, guide: Guide, rng: random.Random) -> Faults:
    """Return the faults, one of them twice."""
    if not faults:
        return faults
    twin = rng.choice(faults)
    at_s = min(guide.scenario.duration_s, twin["at_s"] + twin["duration_s"] + rng.choice((0.1, 0.5, 2.0)))
    return [*faults, {**twin, "at_s": round(at_s, 3)}]


def _dropped(faults: Faults, parent: Parent, guide: Guide, rng: random.Random) -> Faults:
    """Return the faults without one."""
    left_out = rng.randrange(len(faults)) if faults else -1
    return [each for place, each in enumerate(faults) if place != left_out]


def _spliced(faults: Faults, parent: Parent, guide: Guide, rng: random.Random) -> Faults:
    """Return the faults until an instant, and from then on those of another schedule of the corpus."""
    other = guide.corpus[rng.choice(sorted(guide.corpus))].candidate.scenario.model_dump(mode="json")["faults"]
    cut_s = rng.random() * guide.scenario.duration_s
    return [each for each in faults if each["at_s"] < cut_s] + [each for each in other if each["at_s"] >= cut_s]


def _with(faults: Faults, changed: int, **values: Any) -> Faults:
    return [{**each, **values} if place == changed else each for place, each in enumerate(faults)]


Change = Callable[[Faults, Parent, Guide, random.Random], Faults]
CHANGES: tuple[Change | None, ...] = (_retargeted, _moved, _moved, _stretched, _duplicated, _dropped, _spliced, None)
"""None is another seed for clients and network."""


def rounds_of(schedules: int, size: int) -> Iterable[int]:
    """Return how many schedules each round has."""
    whole, rest = divmod(schedules, size)
    return [size] * whole + ([rest] if rest else [])
