"""What the seed makes of a scenario: every instant, every target it can choose now, every client's own seed.

Every draw comes from a generator of its own, seeded by a hash of the run's seed and of what is drawn, so that the same
seed gives the same plan on any machine and a fault added to a scenario leaves the others' draws alone.
"""

import hashlib
import json
import random
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import registry
from harness.errors import EvidenceError
from harness.scenario.model import FaultSpec, Scenario
from harness.targets import Role, parse_target

VERSION = 1
MAX_SEED = 2**63 - 1


class Part(BaseModel):
    """Refuses unknown keys; does not change once made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PlannedFault(Part):
    """One injection of the schedule."""

    injection: int
    """Index within the plan, in the order of instants."""
    fault: str
    at_s: float
    """Seconds after the steady state, the seed's jitter included."""
    duration_s: float
    target: str
    brokers: list[int]
    """The broker ids it hits; empty when only known at injection."""
    resolved: Literal["plan", "injection"]
    """When the broker ids are known; at injection the journal gets them."""
    parameters: dict[str, Any]
    seed: int


class PlannedClient(Part):
    """One client process, apart from the addresses that only a running cluster has."""

    process: str
    workload: str
    role: str
    seed: int
    stop_order: int
    parameters: dict[str, Any]


class Plan(Part):
    """The content of `plan.json`."""

    version: Annotated[int, Field(ge=VERSION, le=VERSION, description="Of this format")] = VERSION
    scenario: str
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    faults: list[PlannedFault]
    clients: list[PlannedClient]

    def to_json(self) -> str:
        """Return the plan as text, the same bytes for the same plan."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"


def derived_seed(seed: int, *path: str | int) -> int:
    """Return the seed of one draw; it depends on the run's seed and on what is drawn, and on nothing else."""
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def make_plan(scenario: Scenario, seed: int) -> Plan:
    """Return what happens in a run of the scenario under this seed."""
    drawn = [_planned_fault(scenario, spec, derived_seed(seed, "fault", i)) for i, spec in enumerate(scenario.faults)]
    in_order = sorted(drawn, key=lambda fault: fault.at_s)  # stable: ties keep the scenario's order
    return Plan(
        scenario=scenario.name,
        seed=seed,
        faults=[fault.model_copy(update={"injection": index}) for index, fault in enumerate(in_order)],
        clients=_planned_clients(scenario, seed),
    )


def _planned_fault(scenario: Scenario, spec: FaultSpec, seed: int) -> PlannedFault:
    rng = random.Random(seed)  # noqa: S311  repeatable, not secret
    at_s = round(spec.at_s + rng.random() * spec.jitter_s, 3)
    target = parse_target(spec.target)
    brokers = list(target.broker_ids)
    if target.role is Role.ONE:
        brokers = [rng.choice(scenario.cluster.broker_ids)]
    return PlannedFault(
        injection=0,
        fault=spec.kind,
        at_s=at_s,
        duration_s=spec.duration_s,
        target=str(target),
        brokers=brokers,
        resolved="plan" if brokers else "injection",
        parameters=spec.parameters,
        seed=seed,
    )


def _planned_clients(scenario: Scenario, seed: int) -> list[PlannedClient]:
    topics = {topic.name: topic.partitions for topic in scenario.topics}
    clients: list[PlannedClient] = []
    for index, spec in enumerate(scenario.workloads):
        workload = registry.workload(spec.kind)
        parameters = workload.Parameters.model_validate(spec.parameters)
        prefix = f"w{index}-" if len(scenario.workloads) > 1 else ""
        planned = workload.clients(
            parameters, bootstrap_servers="", topics=topics, seed=derived_seed(seed, "workload", index)
        )
        clients += [
            PlannedClient(
                process=prefix + client.process,
                workload=spec.kind,
                role=client.role,
                seed=client.seed,
                stop_order=client.stop_order,
                parameters=client.parameters,
            )
            for client in planned
        ]
    return clients


def load_plan(path: Path) -> Plan:
    """Return the plan of a run folder.

    Raises:
        EvidenceError: the file is missing or not a plan of this version.
    """
    try:
        return Plan.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{path}: not a plan of version {VERSION}: {error}") from error
