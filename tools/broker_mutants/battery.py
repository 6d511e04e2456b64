"""What is each mutant put to? The standing battery: schedules of scenarios that were written for no mutant, in turn."""

import importlib
import json
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import harness.broker
import harness.simulation
from harness.scenario.file import load_scenario
from harness.scenario.plan import make_plan
from harness.scenario.seeds import derived_seed
from harness.scenario.source import options
from harness.simulation.schedule import SimulatedHistory, simulate_plan
from harness.sweep.sweep import DRIVER, Candidate, schedule_seed
from tools.broker_mutants.in_force import forget_results
from tools.broker_mutants.mutants import BROKER, Mutant, within

TOOLS = Path(__file__).parents[1]
SCENARIOS = (
    str(TOOLS / "scripts-light.yaml"),
    str(TOOLS / "slow-scripts-light.yaml"),
    str(TOOLS / "restarted-scripts-light.yaml"),
    "storm-sweep",
    str(TOOLS / "mix-light.yaml"),
    str(TOOLS / "administration-light.yaml"),
    str(TOOLS / "groups-light.yaml"),
    str(TOOLS / "transactions-light.yaml"),
    str(TOOLS / "exactly-once-light.yaml"),
    str(TOOLS / "disks-light.yaml"),
    str(TOOLS / "peers-light.yaml"),
    str(TOOLS / "scarce-light.yaml"),
    "compaction",
)
NOT_SIMULATED = frozenset({"harness.broker.__main__", "harness.broker.zookeeper.kazoo_client"})
UNTOLD = "harness.broker.metrics"

Executed = frozenset[tuple[str, int]]
"""Lines of the broker by module."""


def battery(schedules: int, seed: int) -> list[Candidate]:
    """Return so many schedules; a longer battery begins as a shorter one does."""
    scenarios = [load_scenario(name, options(DRIVER, [], [])) for name in SCENARIOS]
    made = (
        Candidate(scenario=scenario, plan=make_plan(scenario, derived_seed(schedule_seed(seed, turn), scenario.name)))
        for turn in count()
        for scenario in scenarios
    )
    return list(islice(made, schedules))


def import_all() -> None:
    """Import all that a simulated broker runs, so that processes that are forked from this one import nothing."""
    for package in (harness.broker, harness.simulation):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name not in NOT_SIMULATED and not module.name.startswith(UNTOLD):
                importlib.import_module(module.name)


@dataclass(slots=True, kw_only=True)
class Intact:
    """What the intact broker does in one schedule."""

    digest: str
    cpu_s: float
    executed: Executed
    holds: bool = False
    """Whether its run holds; else the schedule says nothing about mutants."""

    def runs(self, mutant: Mutant) -> bool:
        """Return whether the schedule executes what the mutant changes."""
        first, last = mutant.lines
        return any((mutant.module, line) in self.executed for line in range(first, last + 1))

    def to_json(self) -> str:
        """Return it as JSON, lines by module."""
        lines: dict[str, list[int]] = {}
        for module, line in sorted(self.executed):
            lines.setdefault(module, []).append(line)
        fields = {"digest": self.digest, "cpu_s": round(self.cpu_s, 3), "holds": self.holds, "executed": lines}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> "Intact":
        """Return what `to_json` wrote."""
        read = json.loads(text)
        executed = frozenset((module, line) for module, lines in read.pop("executed").items() for line in lines)
        return cls(**read, executed=executed)


def traced(candidate: Candidate) -> tuple[SimulatedHistory, Executed]:
    """Return a schedule's history and the lines of the broker that it executes."""
    forget_results()
    tracer = _Tracer()
    sys.settrace(tracer.entered)
    try:
        history = simulate_plan(candidate.scenario, candidate.plan)
    finally:
        sys.settrace(None)
    return history, frozenset(tracer.executed)


class _Tracer:
    """Notes the lines of the broker that are executed. Code of which every line is noted is traced no more."""

    def __init__(self) -> None:
        self.executed: set[tuple[str, int]] = set()
        self._tracers: dict[CodeType, Callable[[FrameType, str, Any], Any] | None] = {}

    def entered(self, frame: FrameType, event: str, _: Any) -> Any:
        """Return what notes the lines of a frame; None for one of another module, or without a line left."""
        code = frame.f_code
        if code not in self._tracers:
            path = Path(code.co_filename)
            self._tracers[code] = self._tracer(code, within(path)) if path.is_relative_to(BROKER) else None
        tracer = self._tracers[code]
        return None if tracer is None else tracer(frame, event, None)

    def _tracer(self, code: CodeType, module: str) -> Callable[[FrameType, str, Any], Any]:
        left = {number for *_, number in code.co_lines() if number is not None}

        def line(frame: FrameType, event: str, _: Any) -> Any:
            number = frame.f_lineno
            if number in left:
                left.remove(number)
                self.executed.add((module, number))
                if not left:
                    self._tracers[code] = frame.f_trace = None
                    return None
            return line

        return line
