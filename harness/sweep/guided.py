"""Which schedules reach what none has reached? A search after HypoFuzz's corpus and ModelFuzz's signal.

A genome is a schedule with all that its seed has drawn spelled out: faults with instants, anchors and targets,
settings, load and latencies, and a seed for clients and network. The corpus keeps, for each feature (`states.py`), the
smallest schedule that shows it. To choose a parent, a class of features is chosen first, and then a feature of it: what
few schedules have shown and what was seldom chosen has the best odds, so that what is new is tried at once. A quarter
of all schedules stays blind, as a control and for what the corpus lacks. Rounds are made before any of their schedules
is simulated, so a search depends on its seed alone.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.scenario.seeds import derived_seed
from harness.sweep.mutators import Child, mutated
from harness.sweep.reductions import settled
from harness.sweep.states import class_of
from harness.sweep.sweep import Candidate, schedule_seed

BLIND_SHARE = 4
"""One schedule in so many is drawn from the scenario alone."""
GROWTH = 4
"""A round has at most one in so many of the schedules that its features come from, unless it is small."""
TRIES = 12
"""How often a parent is chosen and changed until a scenario comes of it that is accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A schedule of the corpus, as one that shows a feature."""

    candidate: Candidate
    at_s: float
    """When it showed the feature first, in seconds of load."""

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
    chosen: Counter[str] = field(default_factory=Counter)
    """How often each feature was chosen to make a schedule from."""
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
            self.seen.update(reached.keys())
            for feature, at_s in reached.items():
                parent = Parent(candidate=candidate, at_s=at_s)
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
        feature, other = self._choice(rng), self._choice(rng)
        parent = self.corpus[feature]
        before = parent.candidate
        child = Child(
            base=self.scenario,
            data=before.scenario.model_dump(mode="json"),
            seed=before.plan.seed,
            at_s=parent.at_s,
            other=self.corpus[other].candidate.scenario,
            rng=rng,
        )
        scenario = mutated(child)
        if scenario is None:
            return None
        self.chosen[feature] += 1
        return Candidate(scenario=scenario, plan=make_plan(scenario, child.seed))

    def _choice(self, rng: random.Random) -> str:
        """Return a feature: first its class, then the feature by how rare it is.

        A class has the odds of its rarest feature, times the share of its features that several schedules have shown:
        where nearly all are of one schedule, one more says little.
        """
        classes: dict[str, dict[str, float]] = {}
        for feature in sorted(self.corpus):
            rarity = 1 / (self.seen[feature] * (1 + self.chosen[feature]))
            classes.setdefault(class_of(feature), {})[feature] = rarity
        odds = [max(of_class.values()) * self._seen_again(of_class) for of_class in classes.values()]
        (of_class,) = rng.choices([*classes.values()], odds)
        (feature,) = rng.choices([*of_class], [*of_class.values()])
        return feature

    def _seen_again(self, features: Collection[str]) -> float:
        """Return the share of features that several schedules have shown; never zero."""
        return (1 + sum(self.seen[feature] > 1 for feature in features)) / (1 + len(features))


def rounds_of(schedules: int, least: int) -> Iterator[int]:
    """Yield how many schedules each round has: so many, and as soon as that is more, a share of those before it."""
    made = 0
    while made < schedules:
        size = min(max(least, made // GROWTH), schedules - made)
        yield size
        made += size
