"""How is a schedule changed into another one? By a few changes of its faults, its draws, or its seed.

A change works on a scenario's data, and near an instant at which the schedule showed a feature. What it makes need not
be a scenario that is accepted; what a file of it would be refused for is refused here too.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.targets import Role
from harness.scenario.draws import draw, draws_fit, with_drawn
from harness.scenario.mix import OFFSETS_S, WAIT_S
from harness.scenario.model import Scenario
from harness.scenario.motif_rules import seen_by
from harness.scenario.seeds import derived_seed
from harness.sweep.reductions import legal

MOST_FAULTS = 12
MOST_CHANGES = 3
"""Of one schedule, beside its seed: many bugs are races within a situation that is there already."""
MOST_SPLICED = 3
"""So many faults of another schedule come into one at a time."""
NEAR_S = (-3.0, -1.0, -0.3, -0.05, 0.0, 0.05, 0.3, 1.0)
"""How far from a feature's instant a fault is put; a broker's death shows when its session ends, some seconds later."""
OVER = (0.8, 1.2)
"""A duration is pushed to just below and just above a time-out."""
Data = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Child:
    """A schedule that is being made of another one."""

    base: Scenario
    """The scenario of the search, whose draws say what may be drawn."""
    data: Data
    """Of the scenario, with everything spelled out."""
    seed: int
    """Of clients and network, and of what faults draw."""
    at_s: float
    """When its parent showed the feature that it was chosen for, in seconds of load."""
    other: Scenario
    """Another schedule, of which it may take faults."""
    rng: random.Random

    @property
    def faults(self) -> list[Data]:
        """Its faults, which changes replace."""
        faults: list[Data] = self.data["faults"]
        return faults

    def near_s(self) -> float:
        """Return an instant just before or after that of the feature."""
        return max(0.0, self.at_s + self.rng.choice(NEAR_S))

    def put(self, fault: Data, at_s: float) -> None:
        """Let a fault begin at an instant, or as late as the load allows."""
        wait_s = fault["within_s"] + fault["offset_s"] if fault["after"] else 0.0
        latest_s = self.data["duration_s"] - fault["duration_s"] - fault["jitter_s"] - wait_s
        fault["at_s"] = round(max(0.0, min(at_s, latest_s)), 3)


def mutated(child: Child) -> Scenario | None:
    """Return the scenario after a few changes, and another seed; None where a file of it would be refused."""
    reseeded(child)
    for change in child.rng.sample(CHANGES, child.rng.randint(0, MOST_CHANGES)):
        change(child)
    child.data["faults"] = sorted(child.faults, key=lambda fault: float(fault["at_s"]))[:MOST_FAULTS]
    scenario = legal(child.data)
    return scenario if scenario is not None and draws_fit(scenario, child.base) else None


def reseeded(child: Child) -> None:
    """Draw anew what clients, network, disks and faults draw."""
    child.seed = derived_seed(child.seed, "again", child.rng.getrandbits(30))


def retargeted(child: Child) -> None:
    """Let a fault hit another broker."""
    those = [fault for fault in child.faults if Role.IDS in registry.fault(fault["kind"]).accepts]
    if those:
        child.rng.choice(those)["target"] = str(child.rng.randrange(child.data["cluster"]["brokers"]))


def moved(child: Child) -> None:
    """Let a fault begin near the feature."""
    if child.faults:
        child.put(child.rng.choice(child.faults), child.near_s())


def anchored(child: Child) -> None:
    """Let a fault wait for another moment, or for none, from shortly before the feature on."""
    if not child.faults:
        return
    fault = child.rng.choice(child.faults)
    fault |= {
        "after": child.rng.choice(["", *seen_by(child.base)]),
        "offset_s": child.rng.choice(OFFSETS_S),
        "within_s": WAIT_S,
    }
    child.put(fault, child.near_s())


def stretched(child: Child) -> None:
    """Let a fault last just less or just longer than a time-out of brokers or clients."""
    lasting = [fault for fault in child.faults if fault["duration_s"]]
    time_outs_s = sorted({*_time_outs_s(child.data)})
    if lasting and time_outs_s:
        fault = child.rng.choice(lasting)
        fault["duration_s"] = round(child.rng.choice(time_outs_s) * child.rng.choice(OVER), 3)
        child.put(fault, fault["at_s"])


def duplicated(child: Child) -> None:
    """Let a fault happen once more, after it has ended."""
    if child.faults:
        fault = dict(child.rng.choice(child.faults))
        child.put(fault, fault["at_s"] + fault["duration_s"] + child.rng.choice((0.1, 0.5, 2.0)))
        child.faults.append(fault)


def dropped(child: Child) -> None:
    """Leave a fault out."""
    if child.faults:
        child.faults.pop(child.rng.randrange(len(child.faults)))


def spliced(child: Child) -> None:
    """Take over some of the faults of another schedule, when they were there or from shortly before the feature on."""
    others = child.other.model_dump(mode="json")["faults"]
    first = child.rng.randrange(len(others)) if others else 0
    taken = others[first : first + child.rng.randint(1, MOST_SPLICED)]
    later_s = child.near_s() - taken[0]["at_s"] if taken and child.rng.random() < 0.5 else 0.0
    for fault in taken:
        child.put(fault, fault["at_s"] + later_s)
        if legal({**child.data, "faults": [*child.faults, fault]}) is not None:
            child.faults.append(fault)


def redrawn(child: Child) -> None:
    """Change one draw: a setting, a parameter of the load, or a latency has another value, or is not drawn any more."""
    drawn = draw(child.base, child.rng.getrandbits(62))
    fresh = with_drawn(child.base, drawn).model_dump(mode="json") if drawn is not None else child.data
    differing = [
        (own, new, name)
        for own, new in zip(_drawn_parts(child.data), _drawn_parts(fresh), strict=True)
        for name in sorted({*own, *new})
        if own.get(name) != new.get(name)
    ]
    if differing:
        own, new, name = child.rng.choice(differing)
        if name in new:
            own[name] = new[name]
        else:
            del own[name]


def _drawn_parts(data: Data) -> Iterator[Data]:
    """Yield what a scenario's draws can be a part of."""
    yield data["cluster"]["properties"]
    yield from (topic["config"] for topic in data["topics"])
    yield from (workload["parameters"] for workload in data["workloads"])
    data["latencies"] = data["latencies"] or {}
    yield data["latencies"]


def _time_outs_s(data: Data) -> Iterator[float]:
    """Yield the time-outs of brokers and clients that end within the load, in seconds."""
    brokers: Mapping[str, Any] = system_named(data["system"]).effective(
        data["cluster"]["brokers"], data["cluster"]["properties"]
    )
    clients = (
        registry.workload(spec["kind"]).Parameters.model_validate(spec["parameters"]).model_dump()
        for spec in data["workloads"]
    )
    for values in (brokers, *clients):
        for name, value in values.items():
            if name.endswith(TIME_OUTS) and value is not None and 0 < float(value) / 1000 < data["duration_s"] / 2:
                yield float(value) / 1000


TIME_OUTS = (
    "timeout.ms",
    "lag.time.max.ms",
    "rebalance.delay.ms",
    "_timeout_ms",
    "max_poll_interval_ms",
)
"""How the names of time-outs end: of requests, sessions, rebalances, transactions, and of followers that lag."""
Change = Callable[[Child], None]
CHANGES: tuple[Change, ...] = (
    retargeted,
    moved,
    moved,
    anchored,
    stretched,
    duplicated,
    dropped,
    spliced,
    spliced,
    spliced,
    redrawn,
)
"""One that is named twice has twice the odds."""
