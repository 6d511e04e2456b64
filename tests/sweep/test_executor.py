"""An executor's share of a sweep: whole histories, and a bad seed that stops nothing."""

import json
import os
import signal

import pytest

from harness.analysis.coverage.transitions import POSSIBLE
from harness.run.run import Run
from harness.scenario.file import scenario_yaml
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan, make_plan
from harness.simulation.run_folder import write_evidence
from harness.simulation.schedule import SimulatedHistory, simulate, simulate_plan
from harness.store.coverage import Coverage, Played
from harness.store.folder import RunFolder
from harness.store.result import RunResult, forbidding
from harness.sweep import executor
from harness.sweep.executor import simulate_candidates, simulate_share
from harness.sweep.sweep import schedule_seed
from tests.simulation.scenarios import KILL_LEADER, PAUSE_LEADER, scenario
from tests.verdicts import CONFIRMED

SMALL = scenario(KILL_LEADER)


def test_a_schedule_of_a_sweep_is_the_one_that_its_seed_gives() -> None:
    (schedule,) = simulate_share(scenario_yaml(SMALL), 7, [3])
    assert (schedule.number, schedule.seed, schedule.error) == (3, schedule_seed(7, 3), "")
    assert schedule.digest == simulate(SMALL, schedule.seed).digest()
    assert set(schedule.evidence) == {"operations", "journal", "zookeeper", "replicas", "state_changes", "liveness"}
    lines = [line for files in schedule.evidence.values() for _, of_file in files for line in of_file]
    assert schedule.size_bytes == sum(len(line) for line in lines)
    assert all(isinstance(json.loads(line), dict) for line in lines)
    result = RunResult.from_json(schedule.result.encode(), schedule.run_id)
    assert [(fault.fault, fault.verdict) for fault in result.faults] == [("kill", CONFIRMED)]
    assert not forbidding(result.remarks)
    coverage = Coverage.model_validate_json(schedule.coverage)
    assert {each.fault for each in coverage.injected} == {"kill"}
    assert Played.LEADER in {each.role for each in coverage.injected}
    for machine, steps in coverage.transitions.items():
        assert steps.keys() <= POSSIBLE[machine], machine


def test_candidates_are_carried_out_each_by_its_own_scenario_and_plan() -> None:
    other = scenario(PAUSE_LEADER, name="other")
    candidates = [(SMALL, make_plan(SMALL, 5)), (other, make_plan(other, 6).model_copy(update={"faults": []}))]
    texts = {n: (scenario_yaml(each), plan.to_json()) for n, (each, plan) in enumerate(candidates)}
    without_faults, as_seeded = simulate_candidates(texts, [1, 0])
    assert (as_seeded.number, as_seeded.digest) == (0, simulate(SMALL, 5).digest())
    assert (without_faults.number, without_faults.seed, without_faults.run_id[:5]) == (1, 6, "other")
    assert without_faults.evidence["journal"] == [("journal.jsonl", [])]


def test_a_seed_that_breaks_is_an_error_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(small: Scenario, plan: Plan) -> SimulatedHistory:
        if plan.seed == schedule_seed(7, 1):
            raise RecursionError("too deep")
        return simulate_plan(small, plan)

    monkeypatch.setattr(executor, "simulate_plan", breaking)
    schedules = list(simulate_share(scenario_yaml(SMALL), 7, range(3)))
    assert [schedule.error for schedule in schedules] == ["", "RecursionError: too deep", ""]
    assert [bool(schedule.digest) for schedule in schedules] == [True, False, True]
    assert [schedule.seed for schedule in schedules] == [schedule_seed(7, number) for number in range(3)]


def test_schedules_in_processes_of_their_own_are_the_same() -> None:
    shares = (simulate_share(scenario_yaml(SMALL), 7, range(3), each_apart=each_apart) for each_apart in (False, True))
    together, apart = ([(each.number, each.digest) for each in share] for share in shares)
    assert together == apart


def test_schedules_that_end_their_process_are_errors_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(small: Scenario, plan: Plan) -> SimulatedHistory:
        if plan.seed == schedule_seed(7, 0):
            os._exit(3)
        if plan.seed == schedule_seed(7, 2):
            os.kill(os.getpid(), signal.SIGKILL)
        return simulate_plan(small, plan)

    monkeypatch.setattr(executor, "simulate_plan", deadly)
    schedules = list(simulate_share(scenario_yaml(SMALL), 7, range(4), each_apart=True))
    assert [schedule.error for schedule in schedules] == [
        "its process ended by itself, with exit code 3",
        "",
        "its process died by SIGKILL",
        "",
    ]
    assert [schedule.number for schedule in schedules] == [0, 1, 2, 3]


def test_a_schedule_whose_memory_explodes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def hoarding(small: Scenario, plan: Plan) -> SimulatedHistory:
        if plan.seed == schedule_seed(7, 0):
            bytearray(1 << 30)
        return simulate_plan(small, plan)

    monkeypatch.setattr(executor, "simulate_plan", hoarding)
    monkeypatch.setattr(executor, "MAX_MEMORY_BYTES", 1 << 28)
    schedules = list(simulate_share(scenario_yaml(SMALL), 7, range(2)))
    assert [schedule.error for schedule in schedules] == ["MemoryError: ", ""]


def test_a_line_that_holds_another_sort_of_line_end_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def separated(history: SimulatedHistory, folder: RunFolder) -> None:
        written(history, folder)
        folder.journal.write_text('{"detail":"one\u2028line"}\n{"detail":"another"}\n', encoding="utf-8")

    written = write_evidence
    monkeypatch.setattr(executor, "write_evidence", separated)
    monkeypatch.setattr(executor, "assemble", assembled_without)
    (schedule,) = simulate_share(scenario_yaml(SMALL), 7, [0])
    assert schedule.evidence["journal"] == [("journal.jsonl", ['{"detail":"one\u2028line"}', '{"detail":"another"}'])]


def assembled_without(run: Run) -> RunResult:
    """Stand in for what reads the journal."""
    return RunResult(
        run_id=run.folder.run_id, scenario="small", driver="simulated", seed=0, started_at="", duration_s=0
    )


def test_evidence_that_is_missing_forbids_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(history: SimulatedHistory, folder: RunFolder) -> None:
        written(history, folder)
        folder.zookeeper.write_text("")

    written = write_evidence
    monkeypatch.setattr(executor, "write_evidence", silent)
    (schedule,) = simulate_share(scenario_yaml(SMALL), 7, [0])
    result = RunResult.from_json(schedule.result.encode(), schedule.run_id)
    assert [str(remark) for remark in forbidding(result.remarks)] == ["zookeeper.jsonl: it is missing or empty"]
