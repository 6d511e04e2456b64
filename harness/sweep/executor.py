"""An executor's share of many schedules, simulated one after the other, each handed back as the lines of its run.

A schedule that raises is an error, and the others go on. One that ends the process it is simulated in ends a worker of
Spark's, which then tries the whole share again: from the second try on every schedule has a process of its own, so that
it is known which one it was, and the others are not lost.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.analysis.coverage.count import coverage_of
from harness.analysis.sources.sealing.packed import packed
from harness.judging.assessment import assemble, remark_on
from harness.run.holes import missing_evidence
from harness.run.run import Run
from harness.scenario.draws import with_drawn
from harness.scenario.file import read_scenario
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan
from harness.simulation.own_process import MAX_CPU_S, MAX_MEMORY_BYTES, ProcessDied, in_own_process, limited
from harness.simulation.run_folder import write_evidence
from harness.simulation.schedule import SimulatedHistory, simulate_plan
from harness.store.folder import RunFolder
from harness.store.result import RunResult
from harness.sweep.states import features_of, load_began_s
from harness.sweep.sweep import schedule_seed
from harness.system.scratch import scratch_folder

EVIDENCE = "evidence"
Lines = list[tuple[str, list[str]]]
"""Lines of files, without their ends, by the file's path within the run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSchedule:
    """One schedule and all that it left."""

    number: int
    run_id: str
    seed: int
    digest: str = ""
    error: str = ""
    """Why there is no history, in a sentence; else empty."""
    result: str = ""
    """A `RunResult` as JSON: faults and remarks; no check has spoken yet."""
    coverage: str = ""
    """What it tried and saw, as JSON."""
    size_bytes: int = 0
    """Of all lines."""
    evidence: dict[str, Lines] = field(default_factory=dict)
    """By the kinds of `RunFolder.evidence`."""
    features: str = ""
    """What it reached, as JSON, each feature with its instant; of a search's candidate alone."""
    tables: dict[str, bytes] = field(default_factory=dict)
    """The typed tables of `packed`, which the judge reads instead of lines."""

    def row(self) -> dict[str, Any]:
        """Return its row in the table of histories, where each kind of evidence is a column."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != EVIDENCE} | self.evidence


def simulate_share(
    scenario_yaml: str, seed: int, numbers: Iterable[int], *, each_apart: bool = False
) -> Iterator[SimulatedSchedule]:
    """Yield the schedules of these numbers of a sweep; one that breaks is an error and does not stop the others.

    Args:
        scenario_yaml: The scenario, overrides included.
        seed: The sweep's.
        numbers: Which of the sweep's schedules.
        each_apart: Give each schedule a process of its own, which may die.
    """
    scenario = read_scenario(scenario_yaml, "the scenario of the sweep")
    for number in numbers:
        yield _simulated(number, scenario, make_plan(scenario, schedule_seed(seed, number)), each_apart, _schedule)


def simulate_candidates(
    candidates: Mapping[int, tuple[str, str]], numbers: Iterable[int], *, each_apart: bool = False
) -> Iterator[SimulatedSchedule]:
    """Yield schedules of scenarios and plans of their own; one that breaks is an error and does not stop the others.

    Args:
        candidates: By number, each a scenario as YAML and a plan as JSON.
        numbers: Which of them.
        each_apart: Give each schedule a process of its own, which may die.
    """
    for number in numbers:
        scenario, plan = candidates[number]
        candidate = read_scenario(scenario, "the scenario"), Plan.model_validate_json(plan)
        yield _simulated(number, *candidate, each_apart, _featured)


Simulate = Callable[[int, str, Scenario, Plan], SimulatedSchedule]


def _simulated(
    number: int, scenario: Scenario, plan: Plan, apart_from_others: bool, simulate: Simulate
) -> SimulatedSchedule:
    """Return a schedule, or why it has no history."""
    run_id = f"{scenario.name}-{number:06}-{plan.seed:016x}"
    simulating = partial(_within_limits, number, run_id, scenario, plan, simulate)
    try:
        return in_own_process(simulating) if apart_from_others else simulating()
    except ProcessDied as error:
        return SimulatedSchedule(number=number, run_id=run_id, seed=plan.seed, error=str(error))


def _within_limits(number: int, run_id: str, scenario: Scenario, plan: Plan, simulate: Simulate) -> SimulatedSchedule:
    try:
        with limited(MAX_CPU_S, MAX_MEMORY_BYTES):
            return simulate(number, run_id, scenario, plan)
    except Exception as error:  # noqa: BLE001  whatever a broker does under one seed must not stop the others
        return SimulatedSchedule(number=number, run_id=run_id, seed=plan.seed, error=f"{type(error).__name__}: {error}")


def _schedule(number: int, run_id: str, scenario: Scenario, plan: Plan) -> SimulatedSchedule:
    return schedule_of(simulate_plan(scenario, plan), number, run_id, scenario, plan)


def _featured(number: int, run_id: str, scenario: Scenario, plan: Plan) -> SimulatedSchedule:
    history = simulate_plan(scenario, plan)
    features = features_of(history, load_began_s(history, plan))
    return replace(schedule_of(history, number, run_id, scenario, plan), features=json.dumps(features))


def schedule_of(
    history: SimulatedHistory, number: int, run_id: str, scenario: Scenario, plan: Plan
) -> SimulatedSchedule:
    """Return a schedule that was simulated, with its evidence as lines and as typed tables."""
    scenario = with_drawn(scenario, plan.drawn)
    with scratch_folder(small=True) as scratch:
        folder = RunFolder(scratch / run_id)
        folder.root.mkdir()
        write_evidence(history, folder)
        evidence = evidence_of(folder)
        numbers = {kind: [(folder.root / path, len(of_file)) for path, of_file in evidence[kind]] for kind in evidence}
        tables = packed(run_id, numbers)
        result = _result(folder, scenario, plan)
        coverage = coverage_of(folder)
    lines = [line for files in evidence.values() for _, of_file in files for line in of_file]
    return SimulatedSchedule(
        number=number,
        run_id=run_id,
        seed=plan.seed,
        digest=history.digest(),
        result=result.model_dump_json(),
        coverage=coverage.model_dump_json(),
        size_bytes=sum(map(len, lines)),
        evidence=evidence,
        tables=tables,
    )


def evidence_of(folder: RunFolder) -> dict[str, Lines]:
    """Return the lines of all evidence in a run folder, by kind."""
    return {
        kind: [(str(path.relative_to(folder.root)), _lines(path)) for path in paths]
        for kind, paths in folder.evidence().items()
    }


def _lines(path: Path) -> list[str]:
    """Return a file's lines; what `str.splitlines` takes for ends of lines too may stand within a record."""
    text = path.read_text(encoding="utf-8")
    return text.removesuffix("\n").split("\n") if text else []


def _result(folder: RunFolder, scenario: Scenario, plan: Plan) -> RunResult:
    """Return what the run folder knows of faults and evidence."""
    result = assemble(Run(folder=folder, scenario=scenario, plan=plan))
    missing = missing_evidence(folder, scenario, plan)
    if not missing:
        return result
    return result.model_copy(update={"remarks": [*result.remarks, *map(remark_on, missing)]})
