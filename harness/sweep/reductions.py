"""What can be made less of in a scenario: parts that it may do without, and numbers that can be smaller.

Whatever is made smaller is checked as strictly as the file of a scenario; what is refused there does not exist.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from annotated_types import Ge
from pydantic import BaseModel, ValidationError

from harness.contracts import registry
from harness.contracts.parameters import Size
from harness.contracts.targets import Role
from harness.scenario.draft import draft_of
from harness.scenario.draws import with_drawn
from harness.scenario.model import Scenario
from harness.scenario.plan import Plan
from harness.scenario.rules import broken_rules

STEP_S = 0.5
"""Times are made shorter by no less than this."""
LISTS = {"faults": 0, "workloads": 1, "topics": 1}
"""Lists of a scenario whose items are parts, with how many of them there must be."""

GAP = "gap_s"
"""Instead of a fault's instant: the time since the one before, so that all later ones come earlier with it."""
TARGETS = "targets"
"""Instead of a fault's target: how many of the brokers that it names."""

ScenarioItem = tuple[str, int]
"""An item of one of the lists: the list's name and the item's index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """A number of a scenario that is simpler when it is smaller."""

    name: str
    """Keys and list indexes from the top, joined by dots."""
    value: float
    lowest: float
    step: float
    """Values in between lie whole steps above the lowest."""

    def halfway(self, too_low: float) -> float | None:
        """Return a value between one that is too low and this one; None when they are close."""
        if self.value - too_low <= max(self.step, self.value / 8):
            return None
        steps = math.floor((self.value - too_low) / 2 / self.step)
        return round(too_low + max(steps, 1) * self.step, 3)


def settled(scenario: Scenario, plan: Plan) -> Scenario:
    """Return the scenario with all that the plan has drawn spelled out, so that one fault less leaves the others alone.

    A fault on a broker that another one holds already is left out: the nemesis refuses it, or postpones it. Steps are
    never drawn.
    """
    scenario = with_drawn(scenario, plan.drawn)
    if scenario.steps:
        return scenario
    data = scenario.model_dump(mode="json") | {"faults": []}
    data.pop("mix", None)  # what was drawn from a mix stands in the plan
    for planned in (fault for fault in plan.faults if not fault.spare):
        known = planned.brokers and Role.IDS in registry.fault(planned.fault).accepts
        fault = {
            "kind": planned.fault,
            "at_s": planned.at_s,
            "duration_s": planned.duration_s,
            "target": ",".join(map(str, planned.brokers)) if known else planned.target,
            "parameters": planned.parameters,
        }
        if planned.after:
            fault |= {"after": planned.after, "offset_s": planned.offset_s, "within_s": planned.within_s}
        more = {**data, "faults": [*data["faults"], fault]}
        data = data if legal(more) is None else more
    return Scenario.model_validate(data)


def legal(data: dict[str, Any]) -> Scenario | None:
    """Return the scenario that the data declare if a file of it would be accepted."""
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError:
        return None
    return None if broken_rules(draft_of(data)) else scenario


def parts_of(scenario: Scenario) -> list[ScenarioItem]:
    """Return everything that the scenario may do without: of topics and workloads one must stay."""
    return [
        (name, index)
        for name, least in LISTS.items()
        for index in range(len(getattr(scenario, name)))
        if len(getattr(scenario, name)) > least
    ]


def without(scenario: Scenario, parts: Iterable[ScenarioItem]) -> Scenario | None:
    """Return the scenario without these parts."""
    left_out = set(parts)
    data = scenario.model_dump(mode="json")
    for name in LISTS:
        data[name] = [item for index, item in enumerate(data[name]) if (name, index) not in left_out]
    return legal(data)


def reductions_of(scenario: Scenario) -> list[Reduction]:
    """Return every number that can be reduced; what simplifies the most comes first."""
    reductions = [*_of_cluster(scenario), *_of_plugins(scenario), *_of_time(scenario)]
    return [each for each in reductions if each.value > each.lowest]


def reduced(scenario: Scenario, values: Mapping[str, float]) -> Scenario | None:
    """Return the scenario with these numbers, by name, at these values."""
    data = scenario.model_dump(mode="json")
    for name, value in values.items():
        *path, last = [int(key) if key.isdecimal() else key for key in name.split(".")]
        inner: Any = data
        for key in path:
            inner = inner[key]
        if last == GAP:
            _bring_forward(data["faults"], int(path[-1]), value)
        elif last == TARGETS:
            inner["target"] = ",".join(inner["target"].split(",")[: int(value)])
        else:
            inner[last] = int(value) if value == int(value) else value
    for topic in data["topics"]:  # no more replicas than brokers
        topic["replication_factor"] = min(topic["replication_factor"], data["cluster"]["brokers"])
    return legal(data)


def _of_cluster(scenario: Scenario) -> Iterator[Reduction]:
    yield Reduction(name="cluster.brokers", value=scenario.cluster.brokers, lowest=1, step=1)
    yield Reduction(name="cluster.zookeeper_servers", value=scenario.cluster.zookeeper_servers, lowest=1, step=2)
    for index, topic in enumerate(scenario.topics):
        yield Reduction(name=f"topics.{index}.partitions", value=topic.partitions, lowest=1, step=1)
        yield Reduction(name=f"topics.{index}.replication_factor", value=topic.replication_factor, lowest=1, step=1)
    for index, fault in enumerate(scenario.faults):
        yield Reduction(name=f"faults.{index}.{TARGETS}", value=len(fault.target.broker_ids), lowest=1, step=1)


def _of_plugins(scenario: Scenario) -> Iterator[Reduction]:
    for index, workload in enumerate(scenario.workloads):
        model = registry.workload(workload.kind).Parameters
        yield from _sizes(f"workloads.{index}.parameters", model, workload.parameters)
    for index, fault in enumerate(scenario.faults):
        yield from _sizes(f"faults.{index}.parameters", registry.fault(fault.kind).Parameters, fault.parameters)


def _sizes(at: str, model: type[BaseModel], parameters: Mapping[str, Any]) -> Iterator[Reduction]:
    """Yield a reduction for every parameter that its plugin has marked as a size."""
    values = model.model_validate(parameters)
    for name, about in model.model_fields.items():
        if Size() in about.metadata:
            lowest = next((float(str(each.ge)) for each in about.metadata if isinstance(each, Ge)), 1.0)
            yield Reduction(name=f"{at}.{name}", value=getattr(values, name), lowest=lowest, step=1)


def _of_time(scenario: Scenario) -> Iterator[Reduction]:
    before_s = 0.0
    for index, fault in enumerate(scenario.faults):
        yield Reduction(name=f"faults.{index}.{GAP}", value=round(fault.at_s - before_s, 3), lowest=0, step=STEP_S)
        yield Reduction(name=f"faults.{index}.duration_s", value=fault.duration_s, lowest=0, step=STEP_S)
        before_s = fault.at_s
    ends_s = max((fault.latest_end_s for fault in scenario.faults), default=0.0)
    yield Reduction(name="duration_s", value=scenario.duration_s, lowest=max(round(ends_s, 3), STEP_S), step=STEP_S)


def _bring_forward(faults: list[dict[str, Any]], first: int, gap_s: float) -> None:
    """Let a fault follow the one before it after so many seconds, and all later ones as they followed it."""
    before_s = faults[first - 1]["at_s"] if first else 0.0
    earlier_s = faults[first]["at_s"] - before_s - gap_s
    for fault in faults[first:]:
        fault["at_s"] = round(fault["at_s"] - earlier_s, 3)
