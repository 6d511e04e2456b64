"""One schedule made small: that it fails is seen first, and what it became is judged in full and kept as a scenario."""

import re
import shlex
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.contracts import registry
from harness.errors import ScenarioError
from harness.progress import Progress, number_of
from harness.scenario.file import scenario_yaml
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.sweep.reductions import settled
from harness.sweep.search import MAX_ROUNDS, Search, Smallest
from harness.sweep.summary import finding_title, findings_of
from harness.sweep.sweep import DRIVER, Candidate, ScheduleVerdict
from harness.verdict import ExitCode

MAX_NAME = 64
"""Characters that a scenario's name may have."""
WIDTH = 118

Judge = Callable[[Sequence[Candidate]], Sequence[ScheduleVerdict]]
"""Simulates schedules, and judges each by the checks that its scenario names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """A failing schedule and the small one that it became."""

    finding: str
    """As `SweepFinding.what`."""
    before: Candidate
    smallest: Smallest
    verdict: ScheduleVerdict | None
    """That of all checks on the small one; None when there was no time left for it."""

    @property
    def scenario(self) -> Scenario:
        """The small schedule, under a name that tells where it comes from."""
        small = self.smallest.candidate.scenario
        stem = re.sub(r"[^a-z0-9-]+", "-", self.finding.lower())
        name = f"{small.name[: MAX_NAME - len(stem) - 1]}-{stem}"
        seen = findings_of(self.verdict)[self.finding] if self.verdict else self.before.scenario.description
        return small.model_copy(update={"name": name, "description": f"{self.finding}: {seen}", "driver": DRIVER})

    @property
    def seed(self) -> int:
        """The seed under which the small schedule fails; not always the one that it began with."""
        return self.smallest.candidate.plan.seed

    @property
    def exit_code(self) -> ExitCode:
        """What `chaos run` returns for the small one; inconclusive when it was not judged in full."""
        return self.verdict.exit_code if self.verdict else ExitCode.INCONCLUSIVE

    def replay(self, path: Path) -> str:
        """Return the command that replays the small schedule with a full report."""
        return shlex.join(["chaos", "run", str(path), "--driver", DRIVER, "--seed", str(self.seed)])

    def write(self, path: Path) -> None:
        """Store the small schedule as a scenario file."""
        origin = f"{self.finding} was found in {self.before.scenario.name} under seed {self.before.plan.seed}."
        effort = f"{number_of(self.smallest.rounds, 'round')} and {number_of(self.smallest.candidates, 'schedule')}"
        comment = f"{origin} Shrunk in {effort}: {self.smallest.end}."
        lines = [*textwrap.wrap(comment, WIDTH), self.replay(path)]
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"# {line}\n" for line in lines) + scenario_yaml(self.scenario, brief=True)
        path.write_text(text, encoding="utf-8")


def shrink(
    first: Candidate, judge: Judge, progress: Progress, *, finding: str | None = None, max_rounds: int = MAX_ROUNDS
) -> Shrunk:
    """Return what a failing schedule shrinks to.

    Args:
        first: The schedule, with the plan that its seed makes.
        judge: Simulates and judges.
        progress: Told of each round.
        finding: The finding that the small one must have, as `SweepFinding.what`; by default the first that is found.
        max_rounds: Limit of the search.

    Raises:
        ScenarioError: it does not fail, or with another finding.
    """
    spelled_out = settled(first.scenario, first.plan)
    start = Candidate(scenario=spelled_out, plan=make_plan(spelled_out, first.plan.seed))
    progress.message("does the schedule fail, and does it fail with the draws of its seed written out?")
    original, again = judge([first, start])
    finding = _wanted(finding, original)
    if finding not in findings_of(again):
        raise ScenarioError(f"{finding} is not found when the draws of the seed are written out")
    progress.message(f"{finding}: {findings_of(again)[finding]}")

    def fails(candidates: Sequence[Candidate]) -> list[bool]:
        return [finding in findings_of(verdict) for verdict in judge([_only(each, finding) for each in candidates])]

    smallest = Search(smallest=start, fails=fails, progress=progress, max_rounds=max_rounds).run()
    verdict = None
    if not smallest.interrupted:
        progress.message("the smallest is judged in full")
        (verdict,) = judge([smallest.candidate])
    return Shrunk(finding=finding, before=first, smallest=smallest, verdict=verdict)


def _wanted(finding: str | None, verdict: ScheduleVerdict) -> str:
    """Return the finding that the small schedule must have; raises ScenarioError."""
    findings = list(findings_of(verdict))
    if not findings:
        raise ScenarioError(f"seed {verdict.seed} does not fail: the system verdict is {verdict.system.name}")
    if finding is None:
        return findings[0]
    if finding not in findings:
        titles = ", ".join(map(finding_title, findings))
        raise ScenarioError(
            f"seed {verdict.seed} does not fail the same way: found were {titles}, not {finding_title(finding)}"
        )
    return finding


def _only(candidate: Candidate, finding: str) -> Candidate:
    """Return the schedule with the check that finds it and no other: all others would be asked for nothing."""
    check = finding.removesuffix(" unknown")
    if not registry.known(registry.Kind.CHECK, check):
        return candidate
    scenario = candidate.scenario.model_copy(update={"checks": [check]})
    return Candidate(scenario=scenario, plan=candidate.plan)
