import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import EvidenceError
from harness.scenario.file import load_scenario, read_scenario
from harness.scenario.model import Scenario
from harness.scenario.plan import load_plan, make_plan
from harness.scenario.seeds import derived_seed
from harness.scenario.source import set_option

SCENARIO = """\
name: drawn
description: Everything is drawn
topics: [{name: orders, partitions: 2}]
workloads: [{kind: produce-consume, parameters: {producers: 2, consumers: 1, acks: [1, all]}}]
faults:
  - {kind: kill, at_s: 5, jitter_s: 4, target: one}
  - {kind: kill, at_s: 1, target: "2"}
  - {kind: kill, at_s: 2, target: "leader(orders,1)"}
"""


@pytest.fixture
def scenario() -> Scenario:
    return read_scenario(SCENARIO, "drawn.yaml")


def test_two_processes_with_different_hash_seeds_make_the_same_bytes(scenario: Scenario) -> None:
    program = (
        "import sys; from harness.scenario.plan import make_plan; from harness.scenario.file import load_scenario;"
        "sys.stdout.write(make_plan(load_scenario('smoke'), 7).to_json())"
    )
    plans = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert plans[0] == plans[1] == make_plan(load_scenario("smoke"), 7).to_json().encode()


def test_what_the_seed_can_choose_now_is_chosen_and_the_rest_is_left_to_the_moment(scenario: Scenario) -> None:
    plan = make_plan(scenario, 42)
    assert [(fault.injection, fault.resolved, fault.target) for fault in plan.faults] == [
        (0, "plan", "2"),
        (1, "injection", "leader(orders,1)"),
        (2, "plan", "one"),
    ]
    assert plan.faults[0].brokers == [2]
    assert plan.faults[1].brokers == []
    assert plan.faults[2].brokers[0] in (0, 1, 2)
    assert 5 <= plan.faults[2].at_s <= 9


def test_every_broker_is_drawn_under_some_seed_and_instants_differ(scenario: Scenario) -> None:
    plans = [make_plan(scenario, seed) for seed in range(40)]
    assert {plan.faults[-1].brokers[0] for plan in plans} == {0, 1, 2}
    assert len({plan.faults[-1].at_s for plan in plans}) > 30


def test_clients_have_seeds_of_their_own_and_their_acks(scenario: Scenario) -> None:
    clients = make_plan(scenario, 42).clients
    assert [client.process for client in clients] == ["producer-1", "producer-2", "consumer-1"]
    assert len({client.seed for client in clients}) == 3
    assert [client.parameters.get("acks") for client in clients] == [1, -1, None]


def test_a_fault_added_to_a_scenario_leaves_the_other_draws_alone(scenario: Scenario) -> None:
    more = read_scenario(SCENARIO + '  - {kind: kill, at_s: 20, target: "0"}\n', "drawn.yaml")
    assert make_plan(more, 3).faults[:3] == make_plan(scenario, 3).faults


def test_two_workloads_of_a_kind_have_processes_of_their_own() -> None:
    text = SCENARIO.replace("workloads: [", "workloads: [{kind: produce-consume}, ")
    processes = [client.process for client in make_plan(read_scenario(text, "x"), 1).clients]
    assert len(processes) == len(set(processes)) == 6


def test_a_plan_survives_the_run_folder(tmp_path: Path, scenario: Scenario) -> None:
    plan = make_plan(scenario, 42)
    path = tmp_path / "plan.json"
    path.write_text(plan.to_json())
    assert load_plan(path) == plan


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param('{"version": 2, "scenario": "x", "seed": 1, "faults": [], "clients": []}', id="a later version"),
        pytest.param('{"version": 1, "scenario": "x", "seed": 1, "faults": [], "clients": [], "x": 1}', id="more keys"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(EvidenceError, match=r"plan\.json: not a plan of version 1"):
        load_plan(path)


def test_a_client_whose_file_would_lie_elsewhere_is_refused_in_one_line(tmp_path: Path, scenario: Scenario) -> None:
    path = tmp_path / "plan.json"
    path.write_text(make_plan(scenario, 42).to_json().replace('"producer-1"', '"../../producer-1"'))
    with pytest.raises(EvidenceError, match=r"plan\.json: not a plan of version 1: clients\.0\.process: .*pattern.*$"):
        load_plan(path)


def test_derived_seeds_depend_on_the_seed_and_on_the_whole_path() -> None:
    seeds = {derived_seed(1, "a", 1), derived_seed(1, "a", 2), derived_seed(2, "a", 1), derived_seed(1, "b", 1)}
    assert len(seeds) == 4


def test_an_override_changes_the_plan_and_not_its_seed() -> None:
    plan = make_plan(read_scenario(SCENARIO, "x", [set_option("faults=[]")]), 42)
    assert plan.faults == []
    assert plan.seed == 42
