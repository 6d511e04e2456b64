"""Looks for a smaller schedule that fails with the same finding, in rounds: each asks about several at once.

First parts, by delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002):
all but a few of them at once, then fewer at a time. Then every number is reduced, each for itself, to its lowest
value and by halves after that; those that can be reduced alone are reduced together, as many as can be.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from harness.progress import Progress, number_of
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.sweep.reductions import ScenarioItem, parts_of, reduced, reductions_of, without
from harness.sweep.sweep import Candidate

MAX_ROUNDS = 40
OTHER_SEEDS = (1, 2)
"""Whatever is left out changes what is drawn for the rest, so a smaller scenario is tried with a few seeds."""
MAX_PARTS = 10_000
"""More than a scenario has: every part for itself."""
MAX_AT_ONCE = 48
"""Candidates of one round, seeds included."""

Fails = Callable[[Sequence[Candidate]], Sequence[bool]]
"""Says of each schedule whether it fails with the finding that is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smallest:
    """What a search came to."""

    candidate: Candidate
    rounds: int
    candidates: int
    """Schedules that were simulated and judged."""
    end: str
    """Why it ended, in a sentence."""
    interrupted: bool = False


class OutOfRounds(Exception):
    """The search has had its rounds."""


@dataclass(slots=True, kw_only=True)
class Search:
    """One search; `smallest` is at any time the smallest schedule that is known to fail."""

    smallest: Candidate
    fails: Fails
    progress: Progress
    max_rounds: int = MAX_ROUNDS
    rounds: int = field(default=0, init=False)
    seeds: tuple[int, ...] = field(default=(), init=False)
    """Those that are tried besides the schedule's own."""
    _answers: dict[tuple[str, int], bool] = field(default_factory=dict, init=False)
    """By scenario and seed."""

    def run(self) -> Smallest:
        """Return the smallest schedule that was found, also when out of rounds or interrupted."""
        interrupted = False
        try:
            self._until_nothing_is_left()
            end = "no smaller schedule fails the same way"
        except OutOfRounds:
            end = f"the limit of {self.max_rounds} rounds was reached"
        except KeyboardInterrupt:
            end, interrupted = "it was interrupted", True
        return Smallest(
            candidate=self.smallest,
            rounds=self.rounds,
            candidates=len(self._answers),
            end=end,
            interrupted=interrupted,
        )

    def _until_nothing_is_left(self) -> None:
        """Look for less under the seed of the schedule first, and under others when it is small and cheap."""
        self._leave_parts_out(chunks=2)
        self._reduce()
        self.seeds = OTHER_SEEDS
        before = None
        while before != self.smallest:
            before = self.smallest
            self._leave_parts_out(chunks=MAX_PARTS)
            self._reduce()

    def _leave_parts_out(self, *, chunks: int) -> None:
        """Leave out as many parts as can be, so many chunks of them at first; in the end none can go for itself."""
        while parts := parts_of(self.smallest.scenario):
            chunks = min(chunks, len(parts))
            split = _split(parts, chunks)
            left_out = [*([part for part in parts if part not in chunk] for chunk in split), *split]
            failing = self._first([without(self.smallest.scenario, each) for each in left_out if each])
            if failing is not None:
                self.smallest = failing
                chunks = max(chunks - 1, 2)
            elif chunks == len(parts):
                return
            else:
                chunks *= 2

    def _reduce(self) -> None:
        """Reduce every number as far as it goes while the others stay."""
        too_low: dict[str, float] = {}
        while probes := self._probes(too_low):
            scenario = self.smallest.scenario
            failing = self._each(
                [reduced(scenario, probes), *(reduced(scenario, {name: to}) for name, to in probes.items())]
            )
            if failing[0] is not None:
                self.smallest = failing[0]
                continue
            alone = dict(zip(probes, failing[1:], strict=True))
            too_low |= {name: probes[name] for name, candidate in alone.items() if candidate is None}
            self._reduce_many(
                scenario, {name: probes[name] for name, candidate in alone.items() if candidate is not None}
            )

    def _probes(self, too_low: Mapping[str, float]) -> dict[str, float]:
        """Return the next value of every number that may go lower."""
        reductions = reductions_of(self.smallest.scenario)
        nexts = {
            each.name: each.halfway(too_low[each.name]) if each.name in too_low else each.lowest for each in reductions
        }
        return {name: value for name, value in nexts.items() if value is not None}

    def _reduce_many(self, scenario: Scenario, turns: Mapping[str, float]) -> None:
        """Reduce as many as can be of the numbers that can be reduced alone, the first ones first."""
        names = list(turns)
        combined = [
            reduced(scenario, {name: turns[name] for name in names[:number]}) for number in range(len(names), 0, -1)
        ]
        self.smallest = self._first(combined) or self.smallest

    def _first(self, scenarios: Sequence[Scenario | None]) -> Candidate | None:
        """Return the first of the scenarios that fails."""
        return next((failing for failing in self._each(scenarios) if failing is not None), None)

    def _each(self, scenarios: Sequence[Scenario | None]) -> list[Candidate | None]:
        """Return, for each scenario that is one, the first candidate that fails."""
        seeds = dict.fromkeys((self.smallest.plan.seed, *self.seeds))
        by_scenario = [
            [Candidate(scenario=scenario, plan=make_plan(scenario, seed)) for seed in seeds] if scenario else []
            for scenario in scenarios
        ]
        self._ask([candidate for candidates in by_scenario for candidate in candidates])
        return [next((each for each in candidates if self._answers[_key(each)]), None) for candidates in by_scenario]

    def _ask(self, candidates: Iterable[Candidate]) -> None:
        """Have those judged that were not judged before.

        Raises:
            OutOfRounds: it would take another round.
        """
        unknown = [each for key, each in {_key(each): each for each in candidates}.items() if key not in self._answers]
        for first in range(0, len(unknown), MAX_AT_ONCE):
            if self.rounds == self.max_rounds:
                raise OutOfRounds
            batch = unknown[first : first + MAX_AT_ONCE]
            answers = self.fails(batch)
            self._answers |= {_key(each): answer for each, answer in zip(batch, answers, strict=True)}
            self.rounds += 1
            now = described(self.smallest.scenario)
            tried = number_of(len(batch), "schedule")
            self.progress.message(f"round {self.rounds}: {sum(answers)} of {tried} fail the same way; {now}")


def described(scenario: Scenario) -> str:
    """Return the size of a scenario as a part of a sentence."""
    faults = ", ".join(fault.kind for fault in scenario.faults) or "none"
    partitions = sum(topic.partitions for topic in scenario.topics)
    size = f"{number_of(scenario.cluster.brokers, 'broker')}, {number_of(partitions, 'partition')}"
    return f"faults: {faults}; {size}, {scenario.duration_s:g} s of load"


def _key(candidate: Candidate) -> tuple[str, int]:
    return candidate.scenario.model_dump_json(), candidate.plan.seed


def _split(parts: Sequence[ScenarioItem], chunks: int) -> list[list[ScenarioItem]]:
    """Return the parts in so many chunks of nearly equal length."""
    bounds = [len(parts) * number // chunks for number in range(chunks + 1)]
    return [list(parts[first:end]) for first, end in pairwise(bounds)]
