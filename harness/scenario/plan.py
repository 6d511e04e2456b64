"""Which plan does a seed make of a scenario: instants, targets as far as known, and a seed for each client?

Every draw has a generator of its own, seeded by a hash of the run's seed and of what is drawn, so that the same seed
gives the same plan on any machine and a fault added to a scenario does not change the draws of the others.
"""

import json
import random
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.targets import NO_BROKERS, Target, parse_target
from harness.contracts.targets import drawn as drawn_target
from harness.errors import EvidenceError
from harness.scenario.draws import Drawn, draw, with_drawn
from harness.scenario.mix import DrawnFault, Mix
from harness.scenario.model import FaultSpec, Scenario, StepSpec
from harness.scenario.motif_rules import motif_names, motif_plugins, seen_by
from harness.scenario.seeds import derived_seed
from harness.store.result import StoredModel, reason_of
from harness.values import MAX_SEED

VERSION = 1
WRITER = "produce-consume"
"""The workload whose producer a step starts."""
WHOLE_BATCHES = {"rate_per_s": 1000, "linger_ms": 100}
"""Of a step's producer, unless it says otherwise: what it writes goes in one piece, and not bit by bit."""
ALONE = {"producers": 1, "consumers": 0, "committers": 0}
"""Of a step's producer, which no step can say otherwise."""
SESSION_TIMEOUT = "zookeeper.session.timeout.ms"


class PlannedFault(StoredModel):
    """One injection of the schedule."""

    injection: int
    """Index within the plan, in the order of instants."""
    fault: str
    at_s: float
    """Seconds after the steady state, the seed's jitter included."""
    duration_s: float
    target: str
    brokers: list[int]
    """The broker ids that it hits; empty when only known at injection."""
    resolved: Literal["plan", "injection"]
    """When the broker ids are known; those known at injection are in the journal."""
    parameters: dict[str, Any]
    seed: int
    beside: int | None = None
    """Of one that was drawn from a mix: how many others may be in force meanwhile."""
    after: str = ""
    """The moment that it waits for from its instant on; empty for none."""
    offset_s: float = 0.0
    """How long after that moment it is injected."""
    within_s: float = 0.0
    """How long it waits at most."""
    motif: str = ""
    """The motif that it is a part of; empty for none."""
    overlaps: bool = False
    """Injected even while another fault of its motif is in force on its target."""
    spare: bool = False
    """Carried out only for another one of the mix that was not confirmed, when all others are healed."""

    @property
    def parsed_target(self) -> Target:
        """The target; ValueError for that of a step, which names roles of the scenario."""
        return parse_target(self.target)


class PlannedClient(StoredModel):
    """One client process, without the addresses, which only a running cluster has."""

    process: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="Names its file of operations")
    ]
    workload: str
    role: str
    seed: int
    stop_order: int
    parameters: dict[str, Any]
    step: int = -1
    """The step of the scenario that starts it; -1 for one that is a part of the load."""


class Plan(StoredModel):
    """The content of `plan.json`."""

    version: Annotated[int, Field(ge=VERSION, le=VERSION, description="Of this format")] = VERSION
    scenario: str
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    faults: list[PlannedFault]
    clients: list[PlannedClient]
    casting: list[int] = Field(default_factory=list)
    """Broker ids in the order in which roles take them."""
    drawn: Drawn | None = None
    """What the seed drew beside faults and clients; None where the scenario leaves nothing to it."""
    left_out: int = 0
    """How many faults that the scenario's mix states had no room."""

    def to_json(self) -> str:
        """Return the plan as JSON; the same bytes for the same plan."""
        data = self.model_dump(mode="json")
        if not self.casting:  # a plan without roles and steps says nothing of them
            del data["casting"]
            for client in data["clients"]:
                del client["step"]
        if not self.left_out:
            del data["left_out"]
        if self.drawn is None:
            del data["drawn"]
        for fault in data["faults"]:
            if fault["beside"] is None:  # it was not drawn from a mix
                del fault["beside"], fault["spare"]
            if not fault["after"]:
                del fault["after"], fault["offset_s"], fault["within_s"]
            if not fault["motif"]:
                del fault["motif"]
            if not fault["overlaps"]:
                del fault["overlaps"]
        return json.dumps(data, indent=2, sort_keys=True) + "\n"


def make_plan(scenario: Scenario, seed: int) -> Plan:
    """Return the plan of a run of the scenario under this seed; `with_drawn` spells the scenario out by it."""
    drawn = draw(scenario, derived_seed(seed, "draws"))
    scenario = with_drawn(scenario, drawn)
    faults = [_planned_fault(scenario, spec, derived_seed(seed, "fault", i)) for i, spec in enumerate(scenario.faults)]
    drawn_faults, left_out = _mixed_faults(scenario, faults, derived_seed(seed, "mix"))
    faults += drawn_faults
    faults += [
        _stepped_fault(step, step.fault, derived_seed(seed, "step", i))
        for i, step in enumerate(scenario.steps)
        if step.fault is not None
    ]
    in_order = sorted(faults, key=lambda fault: (fault.spare, fault.at_s))  # stable: ties keep the scenario's order
    return Plan(
        scenario=scenario.name,
        seed=seed,
        faults=[fault.model_copy(update={"injection": index}) for index, fault in enumerate(in_order)],
        clients=_planned_clients(scenario, seed) + _planned_writers(scenario, seed),
        casting=_casting(scenario, derived_seed(seed, "roles")) if scenario.steps or scenario.roles else [],
        drawn=drawn,
        left_out=left_out,
    )


def _casting(scenario: Scenario, seed: int) -> list[int]:
    brokers = list(scenario.cluster.broker_ids)
    random.Random(seed).shuffle(brokers)  # noqa: S311  repeatable, not secret
    return brokers


def _stepped_fault(step: StepSpec, kind: str, seed: int) -> PlannedFault:
    return PlannedFault(
        injection=0,
        fault=kind,
        at_s=0.0,
        duration_s=step.within_s,
        target=step.target,
        brokers=[],
        resolved="injection",
        parameters=step.fault_parameters,
        seed=seed,
    )


def _planned_fault(scenario: Scenario, spec: FaultSpec, seed: int) -> PlannedFault:
    rng = random.Random(seed)  # noqa: S311  repeatable, not secret
    at_s = round(spec.at_s + rng.random() * spec.jitter_s, 3)
    cluster = scenario.cluster
    target, brokers = drawn_target(spec.target, cluster.broker_ids, cluster.zookeeper_servers, rng, cluster.quorum_ids)
    return PlannedFault(
        injection=0,
        fault=spec.kind,
        at_s=at_s,
        duration_s=spec.duration_s,
        target=str(target),
        brokers=brokers,
        resolved=_resolved(target, brokers),
        parameters=spec.parameters,
        seed=seed,
        after=spec.after,
        offset_s=spec.offset_s,
        within_s=spec.within_s if spec.after else 0.0,
    )


def _resolved(target: Target, brokers: list[int]) -> Literal["plan", "injection"]:
    return "plan" if brokers or target.role in NO_BROKERS else "injection"


def _mixed_faults(scenario: Scenario, scheduled: list[PlannedFault], seed: int) -> tuple[list[PlannedFault], int]:
    """Return the faults drawn from the scenario's mix, beside those of the schedule, and how many had no room."""
    if scenario.mix is None:
        return [], 0
    properties = system_named(scenario.system).effective(scenario.cluster.brokers, scenario.cluster.properties)
    mix = Mix(
        spec=scenario.mix,
        cluster=scenario.cluster,
        topics=[topic.name for topic in scenario.topics],
        replicated=[topic.name for topic in scenario.topics if (len(topic.replicas) or topic.replication_factor) > 1],
        duration_s=scenario.duration_s,
        session_timeout_s=int(properties[SESSION_TIMEOUT]) / 1000,
        plugins={kind: registry.fault(kind) for kind, _ in scenario.kinds} | motif_plugins(scenario),
        moments=seen_by(scenario),
        motifs=motif_names(scenario),
    )
    windows = [
        mix.window(
            fault.fault,
            fault.parsed_target,
            fault.brokers,
            fault.parameters,
            at_s=fault.at_s,
            duration_s=fault.duration_s + fault.within_s + fault.offset_s,
        )
        for fault in scheduled
    ]
    faults = mix.draw(seed, windows)
    planned = [_drawn_fault(mix, fault) for fault in faults]
    planned += [
        _drawn_fault(mix, fault).model_copy(update={"at_s": mix.duration_s, "spare": True})
        for fault in mix.spares(seed)
    ]
    return planned, mix.stated - sum(not fault.motif for fault in faults)


def _drawn_fault(mix: Mix, fault: DrawnFault) -> PlannedFault:
    return PlannedFault(
        injection=0,
        fault=fault.kind.kind,
        at_s=fault.at_s,
        duration_s=fault.duration_s,
        target=str(fault.target),
        brokers=fault.brokers,
        resolved=_resolved(fault.target, fault.brokers),
        parameters=fault.kind.parameters,
        seed=fault.seed,
        beside=mix.beside(fault),
        after=fault.after,
        offset_s=fault.offset_s,
        within_s=fault.within_s if fault.after else 0.0,
        motif=fault.motif,
        overlaps=fault.overlaps,
    )


def _planned_clients(scenario: Scenario, seed: int) -> list[PlannedClient]:
    clients: list[PlannedClient] = []
    for index, spec in enumerate(scenario.workloads):
        external = scenario.cluster.external
        prefix = external.prefix if external else ""  # a consumer's group has its process's name
        prefix += f"w{index}-" if len(scenario.workloads) > 1 else ""
        clients += _clients(scenario, spec.kind, spec.parameters, prefix, derived_seed(seed, "workload", index))
    return clients


def _planned_writers(scenario: Scenario, seed: int) -> list[PlannedClient]:
    """Return the producers that steps start, each for as many records as its step says."""
    writers: list[PlannedClient] = []
    for index, step in enumerate(scenario.steps):
        if step.write is None:
            continue
        until_ms = {"message_timeout_ms": int(step.within_s * 1000)}
        parameters = WHOLE_BATCHES | until_ms | step.parameters | ALONE | {"records": step.write}
        of_step = _clients(scenario, WRITER, parameters, f"step-{index + 1}-", derived_seed(seed, "step", index))
        writers += [client.model_copy(update={"step": index}) for client in of_step]
    return writers


def _clients(scenario: Scenario, kind: str, parameters: dict[str, Any], prefix: str, seed: int) -> list[PlannedClient]:
    workload = registry.workload(kind)
    of_run = scenario.cluster.external.prefix if scenario.cluster.external else ""
    planned = workload.clients(
        workload.Parameters.model_validate(parameters),
        bootstrap_servers="",
        topics={topic.name: topic.partitions for topic in scenario.topics},
        seed=seed,
    )
    return [
        PlannedClient(
            process=prefix + client.process.removeprefix(of_run),
            workload=kind,
            role=client.role,
            seed=client.seed,
            stop_order=client.stop_order,
            parameters=client.parameters,
        )
        for client in planned
    ]


def load_plan(path: Path) -> Plan:
    """Return the plan of a run folder.

    Raises:
        EvidenceError: the file is missing or not a plan of this version.
    """
    try:
        return Plan.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise EvidenceError(f"{path}: not a plan of version {VERSION}: {reason_of(error)}") from error
