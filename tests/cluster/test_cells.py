"""Every cell of the page of faults that says "works": there the kind is confirmed and healed, and nothing is left.

Each is a run of its own with that fault alone, without what judges it. A second run of each loses its supervisor while
the fault is in force, and then its harness: a reaper leaves nothing. The days take turns.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness import phases
from harness.cluster.systems.system import System, system_named
from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.contracts.targets import Role, parse_target
from harness.run.journal import fault_results, read_journal
from harness.scenario.capabilities import missing, systems_of
from harness.scenario.external import CUSTOM
from harness.scenario.file import read_scenario
from harness.scenario.plan import load_plan
from harness.scenario.rules import starts
from harness.store.history import InjectionStep
from harness.store.phase_log import Phase, ends
from harness.values import PYTHON
from harness.verdict import FaultVerdict
from tools.kills.kill import Kill, Victim, carried_out
from tools.kills.left import left_of, namespaces_of
from tools.kills.place import Place
from tools.pages.faults import refusal

KAFKA, QUORUM = "kafka:3.9.1", "kafka:4.4.0"
MARKS = {"process": [pytest.mark.cluster], "docker": [pytest.mark.docker], "simulated": [pytest.mark.whole]}
AT_S = 1.0
MOMENT_S = 0.3
BY_PROCESS_S = 15.0
"""Of what a process brings about, which takes seconds to begin on a busy machine, and is seen only then."""
GROUP = {
    "kind": "consume-group",
    "parameters": {"groups": 1, "members": 2, "session_timeout_ms": 6000, "heartbeat_interval_ms": 500},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How a kind is tried; what is not said is as it would be in most scenarios."""

    kind: str = ""
    """Empty for what it is called by."""
    target: str = "leader(orders,0)"
    duration_s: float = 4.0
    """A fault that is over at once cannot be in force when a process dies."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    topic: Mapping[str, Any] = field(default_factory=dict)
    """Configuration of the topic."""
    cluster: Mapping[str, Any] = field(default_factory=dict)
    kafka: str = KAFKA
    """The release of Kafka with ZooKeeper that it is tried on, beside our broker and one without."""
    group: bool = False
    """Whether there is a consumer group."""

    def fits(self, system: System) -> bool:
        """Return whether a system has what it is aimed at: ZooKeeper, or a quorum of controllers."""
        absent = Role.QUORUM if system.zookeeper else Role.ZOOKEEPER
        return parse_target(self.target).role is not absent


ROWS = {
    "add-partitions": Row(duration_s=0),
    "bounce": Row(target="0,2", duration_s=0),
    "cancel-reassignment": Row(duration_s=0, cluster={"brokers": 4}),  # two without a replica: one may be controller
    "change-config": Row(target="all", parameters={"config": {"log.segment.bytes": "2000000"}}),
    "clock": Row(parameters={"step_s": 60}),
    "connection-storm": Row(target="all", parameters={"connections": 50}),
    "controlled-shutdown": Row(target="1"),
    "cpu-limit": Row(duration_s=BY_PROCESS_S, parameters={"cpus": 0.05}),
    "delay": Row(target="0,1", parameters={"extra_ms": 50}),
    "delete-controller-epoch": Row(target="controller"),
    "delete-topic": Row(target="all", duration_s=0),
    "disk-damage": Row(target="1", duration_s=0, parameters={"what": "disk"}),
    "disk-error": Row(duration_s=BY_PROCESS_S),
    "disk-full": Row(target="1", duration_s=BY_PROCESS_S),
    "drop-packets": Row(duration_s=BY_PROCESS_S),
    "expire-session": Row(target="controller", duration_s=0),
    "file-limit": Row(target="controller", duration_s=BY_PROCESS_S),
    "hostile-client": Row(target="all", duration_s=0, parameters={"times": 2}),
    "intercept": Row(parameters={"apis": ["Fetch"], "sides": ["peers"], "action": "hold", "hold_s": 1}),
    "isolate": Row(),
    "isolate of a controller": Row(
        kind="isolate",
        target="quorum(leader)",
        parameters={"sides": ["controllers"]},
        cluster={"controllers": 3, "separate_controllers": True},
    ),
    "isolate-zookeeper": Row(target="zookeeper(follower)", duration_s=9, cluster={"zookeeper_servers": 3}),
    "kill": Row(),
    "kill-zookeeper": Row(target="zookeeper(leader)"),
    "leave": Row(target="member(group-1,2)", group=True),
    "lose-zookeeper-reply": Row(target="1", duration_s=0),
    "memory-limit": Row(target="1", duration_s=BY_PROCESS_S),
    "move-controller": Row(target="controller", duration_s=0),
    "overwrite-controller": Row(target="controller"),
    "partition": Row(target="controller"),
    "pause": Row(),
    "pause-zookeeper": Row(target="zookeeper(1)"),
    "power-loss": Row(target="0"),
    "preferred-election": Row(),
    "reassign": Row(),
    "reset-connections": Row(target="controller", duration_s=0),
    "rolling-restart": Row(target="0,1", duration_s=0),
    "slow-sync": Row(duration_s=BY_PROCESS_S, parameters={"extra_ms": 300}, topic={"flush.messages": 10}),
    "slow-sync of ZooKeeper": Row(
        kind="slow-sync", target="zookeeper(1)", duration_s=BY_PROCESS_S, parameters={"extra_ms": 300}
    ),
    "unclean-election": Row(
        duration_s=1, parameters={"lag_records": 10}, topic={"unclean.leader.election.enable": True}
    ),
    "upgrade": Row(target="1", kafka="kafka:3.3.2", parameters={"to": "3.9.1"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell, or one of two in which a kind hits something else."""

    name: str
    driver: str
    system: str

    @property
    def row(self) -> Row:
        """How it is tried."""
        return ROWS[self.name]

    @property
    def kind(self) -> str:
        """What it is a cell of."""
        return self.row.kind or self.name

    def scenario(self) -> str:
        """Return a scenario with this fault alone, as JSON, which is YAML."""
        row = self.row
        topic = {"min.insync.replicas": 1, **row.topic}
        fault = {
            "kind": self.kind,
            "at_s": AT_S,
            "duration_s": row.duration_s,
            "target": row.target,
            "parameters": dict(row.parameters),
        }
        load = {"kind": "produce-consume", "parameters": {"producers": 1, "consumers": 1, "rate_per_s": 40}}
        return json.dumps(
            {
                "name": "cell",
                "description": f"{self.kind} alone",
                "driver": self.driver,
                "system": self.system,
                "cluster": dict(row.cluster),
                "topics": [{"name": "orders", "partitions": 2, "replication_factor": 2, "config": topic}],
                "workloads": [load, *([GROUP] if row.group else [])],
                "faults": [fault],
                "duration_s": AT_S + row.duration_s + 1,
                "recovery_timeout_s": 120,
            }
        )


def working() -> Iterator[Cell]:
    """Yield the cells in which a kind works, on what drivers start by themselves."""
    for driver, (name, row) in product(MARKS, ROWS.items()):
        for system in (PYTHON, row.kafka, QUORUM):
            cell = Cell(name=name, driver=driver, system=system)
            able = system.partition(":")[0] in registry.driver_class(driver).families
            able = able and starts(driver, system_named(system)) and row.fits(system_named(system))
            if able and not refusal(registry.fault(cell.kind), driver, system_named(system)):
                yield cell


def parameters(cells: Iterator[Cell]) -> list[Any]:
    """Return each as a case of a test, with what marks its driver."""
    return [
        pytest.param(each, marks=MARKS[each.driver], id=f"{each.name} of {each.system} on {each.driver}")
        for each in cells
    ]


def lasting() -> Iterator[Cell]:
    """Yield those that are in force for a while, on what may leave something."""
    return (each for each in working() if each.row.duration_s and each.driver != "simulated")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Where a run is made."""
    place = Place(tmp_path)
    place.temporary.mkdir()
    return place


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """The cell; a machine that lacks something for it skips it, with the reason."""
    cell: Cell = request.param
    systems = systems_of(read_scenario(cell.scenario(), "cell"))
    lacking = next(filter(None, (system_named(system).lacks() for system in systems)), "")
    needs = registry.fault(cell.kind).requires
    if cell.driver == "docker":
        request.getfixturevalue("docker_images")
    if lacking or (reasons := missing(cell.driver, needs)):
        pytest.skip(lacking or "; ".join(reasons.values()))
    return cell


def test_every_kind_has_a_row_and_each_cell_that_works_a_scenario_that_is_valid() -> None:
    cells = list(working())
    assert {cell.kind for cell in cells} == set(registry.names(Kind.FAULT)) - {CUSTOM}, "each fault needs a row in ROWS"
    for cell in cells:
        assert read_scenario(cell.scenario(), "cell").driver == cell.driver


@pytest.mark.rotating(6, of="cells")
@pytest.mark.parametrize("cell", parameters(working()), indirect=True)
def test_a_fault_is_confirmed_and_healed_and_nothing_is_left(cell: Cell, place: Place) -> None:
    folder = phases.create_from(read_scenario(cell.scenario(), "cell"), 1, place.runs)
    try:
        phases.start(folder, owner_pid=os.getpid())
        phases.drive(folder)
        namespaces = namespaces_of(place)
        phases.collect(folder)
    finally:
        phases.stop(folder)
    journal = read_journal(folder.journal)
    (result,) = fault_results(load_plan(folder.plan), journal)
    assert result.verdict is FaultVerdict.CONFIRMED, result.detail
    assert journal[-1].step is InjectionStep.HEALED
    assert ends(folder)[Phase.STOP].residue == []
    assert list(left_of(place, namespaces)) == []


@pytest.mark.rotating(0, of="cells whose harness dies")
@pytest.mark.parametrize("cell", parameters(lasting()), indirect=True)
def test_a_reaper_leaves_nothing_where_supervisor_and_harness_died_while_it_was_in_force(
    cell: Cell, place: Place, tmp_path: Path
) -> None:
    scenario = tmp_path / "cell.yaml"
    scenario.write_text(cell.scenario(), encoding="utf-8")
    kill = Kill(
        number=0,
        driver=cell.driver,
        scenario=scenario,
        victim=Victim.SUPERVISOR,
        phase=Phase.DRIVE,
        fault=0,
        step=InjectionStep.INJECTED,
        after_s=MOMENT_S,
    )
    outcome = carried_out(kill, place)
    assert (outcome.ended_before, outcome.wrong) == (False, [])
