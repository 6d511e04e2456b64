"""Which parts of a scenario are well-formed by themselves? Rules check those, so that no error hides another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from harness.cluster.systems.system import system_named
from harness.errors import ScenarioError
from harness.scenario.model import (
    ClusterSpec,
    DrawSpec,
    ExternalSpec,
    FaultSpec,
    Latencies,
    MixSpec,
    Scenario,
    StepSpec,
    TopicSpec,
    WorkloadSpec,
)
from harness.values import PYTHON

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The well-formed parts of a scenario; a malformed part is None or missing."""

    brokers: int | None
    properties: dict[str, str]
    topics: dict[int, TopicSpec]
    all_topics: bool
    """Whether every topic is well-formed: only then is a name that is missing in `topics` an unknown topic."""
    workloads: dict[int, WorkloadSpec]
    faults: dict[int, FaultSpec]
    driver: str | None
    system: str | None
    duration_s: float | None
    checks: list[str]
    planted_bugs: list[str]
    recovery_timeout_s: float | None = None
    zookeeper_servers: int | None = 1
    controllers: int | None = None
    separate_controllers: bool | None = False
    external: ExternalSpec | None = None
    """None also when the scenario has none."""
    mix: MixSpec | None = None
    """None also when the scenario has none."""
    draws: DrawSpec | None = None
    """None also when the scenario has none."""
    latencies: Latencies | None = None
    roles: dict[str, str] | None = field(default_factory=dict)
    steps: dict[int, StepSpec] = field(default_factory=dict)

    @property
    def has_zookeeper(self) -> bool:
        """Whether the cluster under test has ZooKeeper; True for an unknown system, which another rule reports."""
        if self.external is not None:
            return self.external.zookeeper is not None
        try:
            return system_named(self.system or PYTHON).zookeeper
        except ScenarioError:
            return True


def draft_of(data: Mapping[str, Any]) -> Draft:
    """Return the parts of a scenario's data that are well-formed."""
    raw_cluster = data.get("cluster", {})
    cluster: Mapping[str, Any] = raw_cluster if isinstance(raw_cluster, Mapping) else {"brokers": None}
    topics = _items(TopicSpec, data.get("topics"))
    raw_topics = data.get("topics")
    return Draft(
        brokers=_part(ClusterSpec, "brokers", cluster),
        properties=_part(ClusterSpec, "properties", cluster) or {},
        topics=topics,
        all_topics=isinstance(raw_topics, list) and len(topics) == len(raw_topics),
        workloads=_items(WorkloadSpec, data.get("workloads")),
        faults=_items(FaultSpec, data.get("faults")),
        driver=_part(Scenario, "driver", data),
        system=_part(Scenario, "system", data),
        duration_s=_part(Scenario, "duration_s", data),
        recovery_timeout_s=_part(Scenario, "recovery_timeout_s", data),
        checks=_part(Scenario, "checks", data) or [],
        planted_bugs=_part(Scenario, "planted_bugs", data) or [],
        zookeeper_servers=_part(ClusterSpec, "zookeeper_servers", cluster),
        controllers=_part(ClusterSpec, "controllers", cluster),
        separate_controllers=_part(ClusterSpec, "separate_controllers", cluster),
        external=_part(ClusterSpec, "external", cluster),
        mix=_part(Scenario, "mix", data),
        draws=_part(Scenario, "draws", data),
        latencies=_part(Scenario, "latencies", data),
        roles=_part(Scenario, "roles", data),
        steps=_items(StepSpec, data.get("steps")),
    )


def _part(model: type[BaseModel], name: str, data: Mapping[str, Any]) -> Any:
    info = model.model_fields[name]
    if name not in data:
        return info.get_default(call_default_factory=True)
    annotation: Any = info.annotation
    for constraint in info.metadata:
        annotation = Annotated[annotation, constraint]
    try:
        return TypeAdapter(annotation, config=ConfigDict(strict=True, allow_inf_nan=False)).validate_python(data[name])
    except ValidationError:
        return None


def _items(model: type[M], raw: Any) -> dict[int, M]:
    items: dict[int, M] = {}
    for index, item in enumerate(raw if isinstance(raw, list) else []):
        try:
            items[index] = model.model_validate(item)
        except ValidationError:
            continue  # the model reports it
    return items
