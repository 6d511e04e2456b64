"""What does the seed draw of a scenario beside its faults: sizes, properties, load, and the time that operations take?

Every draw has a generator of its own, so that one more setting changes no other. What a scenario states is not drawn.
For an external cluster only the load is drawn.
"""

import random
from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError
from pydantic.fields import FieldInfo

from harness.cluster.driver import RunExecutor
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.parameters import BetweenProperties, Draw
from harness.scenario.model import DrawSpec, Latencies, Scenario, TopicSpec, WorkloadSpec
from harness.scenario.seeds import derived_seed
from harness.scenario.settings import BROKERS, REPLICAS, SETTINGS, Setting, fits
from harness.store.result import StoredModel
from harness.values import PYTHON

OF_LOAD = 0.5
"""How often a parameter of the load is drawn at all."""
OF_TOPIC = 0.25
"""How often a topic gets a value of its own of a setting that it may have."""
LARGEST = 2**31 - 1
"""A segment at most, where nothing says how large they are."""
OF_LATENCY = 0.6
"""How often each kind of operation takes time at all."""
MEANS_MS: Mapping[str, tuple[float, ...]] = {
    "sync_ms": (1.0, 5.0, 20.0),
    "read_ms": (20.0, 100.0, 400.0),
    "zookeeper_ms": (1.0, 5.0, 20.0, 40.0),
    "stall_ms": (10.0, 40.0),
}
"""What the mean of a kind of operation may be."""


class Drawn(StoredModel):
    """What the seed drew; a part of the plan."""

    brokers: int | None = None
    replication_factors: dict[str, int] = Field(default_factory=dict)
    """By topic."""
    properties: dict[str, str] = Field(default_factory=dict)
    topics: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Properties by topic."""
    workloads: list[dict[str, Any]] = Field(default_factory=list)
    """Parameters of each workload, in the scenario's order; empty where none is drawn."""
    latencies: Latencies = Latencies()


def draw(scenario: Scenario, seed: int) -> Drawn | None:
    """Return what this seed draws; None for a scenario that leaves nothing to it."""
    spec = scenario.draws
    if spec is None:
        return None
    drawer = _Drawer(scenario, spec, seed)
    return drawer.drawn()


def with_drawn(scenario: Scenario, drawn: Drawn | None) -> Scenario:
    """Return the scenario with what was drawn spelled out; one that leaves nothing to the seed stays as it is."""
    if scenario.draws is None or drawn is None:
        return scenario
    workloads = [
        spec.model_copy(update={"parameters": {**spec.parameters, **own}})
        for spec, own in zip(scenario.workloads, drawn.workloads or [{}] * len(scenario.workloads), strict=True)
    ]
    cluster = {"properties": {**drawn.properties, **scenario.cluster.properties}}
    sizes = {} if drawn.brokers is None else {"brokers": drawn.brokers}
    return scenario.model_copy(
        update={
            "cluster": scenario.cluster.model_copy(update=cluster | sizes),
            "topics": [_topic_with(topic, drawn) for topic in scenario.topics],
            "workloads": workloads,
            "latencies": drawn.latencies if drawn.latencies.any else scenario.latencies,
            "draws": None,
        }
    )


def draws_fit(scenario: Scenario, base: Scenario) -> bool:
    """Return whether a scenario could be what a seed draws of another one, which leaves its properties to the seed.

    All values are within the bounds that settings put on each other, and records fit into segments. What the other one
    states is not asked about.
    """
    cluster = scenario.cluster
    brokers = system_named(scenario.system).effective(cluster.brokers, cluster.properties)
    replicas = [topic.replication_factor for topic in scenario.topics]
    known = {**brokers, BROKERS: str(cluster.brokers), REPLICAS: str(min(replicas))}
    own = [(topic.config, {**known, REPLICAS: str(topic.replication_factor)}) for topic in scenario.topics]
    settings = [each for each in SETTINGS if each.name not in base.cluster.properties]
    stated = {name for topic in base.topics for name in topic.config}
    return (
        all(fits(each, cluster.properties[each.name], known) for each in settings if each.name in cluster.properties)
        and all(
            fits(each, config[each.topic], of_topic)
            for each in SETTINGS
            for config, of_topic in own
            if each.topic in config and each.topic not in stated
        )
        and all(_loads_fit(spec, brokers, scenario) for spec in scenario.workloads)
    )


def _loads_fit(spec: WorkloadSpec, brokers: Mapping[str, str], scenario: Scenario) -> bool:
    """Return whether brokers take each parameter that may be drawn."""
    fields = registry.workload(spec.kind).Parameters.model_fields
    return all(
        _parameter_fits(info, spec.parameters[name], brokers, scenario)
        for name, info in fields.items()
        if name in spec.parameters
    )


def _parameter_fits(info: FieldInfo, value: Any, brokers: Mapping[str, str], scenario: Scenario) -> bool:
    """Return whether records of a size fit into a segment, and a value between the properties that bound it."""
    for each in info.metadata:
        if isinstance(each, Draw) and each.within_segments and 2 * value > _smallest_segment(brokers, scenario):
            return False
        if isinstance(each, BetweenProperties) and each.refusal(value, brokers):
            return False
    return True


def _smallest_segment(brokers: Mapping[str, str], scenario: Scenario) -> int:
    """Return the size of the smallest segment of any topic, by the properties in force."""
    of_brokers = brokers.get("log.segment.bytes", LARGEST)
    return min(int(topic.config.get("segment.bytes", of_brokers)) for topic in scenario.topics)


def _topic_with(topic: TopicSpec, drawn: Drawn) -> TopicSpec:
    factor = drawn.replication_factors.get(topic.name, topic.replication_factor)
    config = {**drawn.topics.get(topic.name, {}), **topic.config}
    return topic.model_copy(update={"replication_factor": factor, "config": config})


class _Drawer:
    """Draws for one scenario under one seed."""

    def __init__(self, scenario: Scenario, spec: DrawSpec, seed: int) -> None:
        self._scenario = scenario
        external = scenario.cluster.external is not None
        self._spec = DrawSpec(load=spec.load) if external else spec
        self._seed = seed
        self._system = system_named(scenario.system)

    def drawn(self) -> Drawn:
        """Return all draws: sizes first, as settings are bounded by them."""
        brokers = self._scenario.cluster.brokers
        if self._spec.brokers is not None:
            brokers = self._rng("brokers").randint(*self._spec.brokers)
        factors = self._factors(brokers)
        properties, topics = self._settings(brokers, factors)
        return Drawn(
            brokers=None if self._spec.brokers is None else brokers,
            replication_factors=factors,
            properties=properties,
            topics=topics,
            workloads=[
                self._load(index, spec, *self._in_force(properties, topics))
                for index, spec in enumerate(self._scenario.workloads)
            ],
            latencies=self._latencies(brokers),
        )

    def _rng(self, *what: str | int) -> random.Random:
        return random.Random(derived_seed(self._seed, *what))  # noqa: S311  repeatable, not secret

    def _factors(self, brokers: int) -> dict[str, int]:
        if self._spec.replication_factor is None:
            return {}
        low, high = self._spec.replication_factor
        return {
            topic.name: self._rng("replicas", topic.name).randint(low, min(high, brokers))
            for topic in self._scenario.topics
            if not topic.replicas
        }

    # --- properties ---

    def _settings(self, brokers: int, factors: Mapping[str, int]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        topics = {topic.name: topic for topic in self._scenario.topics}
        replicas = {name: factors.get(name, topic.replication_factor) for name, topic in topics.items()}
        stated = self._scenario.cluster.properties
        sizes = {BROKERS: str(brokers), REPLICAS: str(min(replicas.values()))}
        known = {**self._system.effective(brokers, stated), **sizes}
        properties: dict[str, str] = {}
        own: dict[str, dict[str, str]] = {}
        for setting in self._drawable():
            odds = 0.0 if setting.of_policy else setting.odds
            if setting.name not in stated and (value := self._value(setting, odds, known)) is not None:
                properties[setting.name] = known[setting.name] = value
            for name in topics if setting.topic else ():
                config = topics[name].config
                if setting.topic in config or setting.of_policy not in ("", config.get("cleanup.policy")):
                    continue
                of_topic = {**known, REPLICAS: str(replicas[name])}
                if (value := self._value(setting, OF_TOPIC, of_topic, name)) is not None:
                    own.setdefault(name, {})[setting.topic] = value
        return properties, own

    def _drawable(self) -> list[Setting]:
        groups = set(self._spec.settings)
        built_in, zookeeper = self._system.name == PYTHON, self._system.zookeeper
        return [
            each
            for each in SETTINGS
            if each.group in groups and (each.quorum or zookeeper) and (each.kafka or built_in)
        ]

    def _value(self, setting: Setting, odds: float, known: Mapping[str, str], topic: str = "") -> str | None:
        rng = self._rng("setting", setting.name, topic)
        if rng.random() >= odds:
            return None
        value = setting.values.draw(rng, self._scenario.duration_s)
        return value if fits(setting, value, known) else None

    # --- load and time ---

    def _in_force(
        self, properties: Mapping[str, str], topics: Mapping[str, dict[str, str]]
    ) -> tuple[dict[str, str], Scenario]:
        """Return the properties of brokers, and the scenario with those of topics."""
        cluster = self._scenario.cluster
        brokers = self._system.effective(cluster.brokers, {**properties, **cluster.properties})
        own = Drawn(topics=dict(topics))
        return brokers, self._scenario.model_copy(
            update={"topics": [_topic_with(topic, own) for topic in self._scenario.topics]}
        )

    def _load(self, index: int, spec: WorkloadSpec, brokers: Mapping[str, str], scenario: Scenario) -> dict[str, Any]:
        if not self._spec.load:
            return {}
        model = registry.workload(spec.kind).Parameters
        own: dict[str, Any] = {}
        for name, info in model.model_fields.items():
            draw = next((each for each in info.metadata if isinstance(each, Draw)), None)
            rng = self._rng("load", index, name)
            if draw is None or name in spec.parameters or rng.random() >= OF_LOAD:
                continue
            candidate = {**own, name: rng.choice(draw.choices)}
            if not _parameter_fits(info, candidate[name], brokers, scenario):
                continue
            try:
                model.model_validate({**spec.parameters, **candidate})
            except ValidationError:
                continue
            own = candidate
        return own

    def _latencies(self, brokers: int) -> Latencies:
        simulated = issubclass(registry.driver_class(self._scenario.driver), RunExecutor)
        if not (self._spec.latencies and simulated):
            return Latencies()
        means: dict[str, Any] = {}
        for name, choices in MEANS_MS.items():
            rng = self._rng("latency", name)
            if rng.random() < OF_LATENCY:
                means[name] = rng.choice(choices)
        if "stall_ms" in means:
            means["slow_brokers"] = [self._rng("slow broker").randrange(brokers)]
        return Latencies.model_validate(means)
