"""A judge that knows at once: it finds what a rule says of a scenario."""

from collections.abc import Callable, Sequence

from harness.scenario.model import Scenario
from harness.store.result import CheckResult, FaultResult, RunResult
from harness.sweep.sweep import Candidate, ScheduleVerdict, verdict_of
from tests.verdicts import CONFIRMED, FAIL, PASS

Rule = Callable[[Scenario], Sequence[str]]


class FakeJudge:
    """Finds what the rule says; of a schedule that is judged by one check, what that one finds."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.judged: list[Scenario] = []

    def __call__(self, candidates: Sequence[Candidate]) -> list[ScheduleVerdict]:
        self.judged += [each.scenario for each in candidates]
        return [self.verdict(number, each) for number, each in enumerate(candidates)]

    def verdict(self, number: int, candidate: Candidate) -> ScheduleVerdict:
        """Return the verdict on one schedule."""
        findings = self._rule(candidate.scenario)
        names = candidate.scenario.checks or ["I1", "I9", "I10"]
        result = RunResult(
            run_id="small",
            scenario="small",
            driver="simulated",
            seed=candidate.plan.seed,
            started_at="",
            duration_s=1,
            faults=[FaultResult(injection=0, fault="kill", targets=[], verdict=CONFIRMED, detail="")],
            checks=[
                CheckResult(
                    check=name,
                    promise="",
                    verdict=FAIL if name in findings else PASS,
                    reason=f"{name} is broken",
                )
                for name in names
            ],
        )
        return verdict_of(number=number, seed=candidate.plan.seed, digest="", result=result)


def kinds(scenario: Scenario) -> list[str]:
    """Return the kinds of its faults."""
    return [fault.kind for fault in scenario.faults]


def pause_breaks_two(candidate: Scenario) -> list[str]:
    """I9 takes a pause, I10 a pause and a kill."""
    return [name for name, needs in (("I9", {"pause"}), ("I10", {"pause", "kill"})) if needs <= set(kinds(candidate))]
