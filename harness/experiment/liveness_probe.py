"""Liveness: after the last heal, every sign of life is probed until it shows or the time is up.

An intact cluster shows all of them within a time that follows from its configuration. A missing sign is recorded
with what was seen instead; the checks decide whether that is a violation.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from harness.client_rules.steps import partitions_of
from harness.cluster.systems.system import system_named
from harness.contracts.faults import Fault, FaultContext, Injection
from harness.errors import ClusterError
from harness.experiment.load import Load
from harness.experiment.machine import Machine
from harness.experiment.nemesis import brokers_hit
from harness.experiment.probes import ClientProgress
from harness.scenario.model import Scenario
from harness.store.history import Liveness, Sign
from harness.system.process_state import ProcessState
from harness.values import OFFSETS_TOPIC, TopicPartition
from harness.zookeeper.view import PartitionView, Registration

LOOK_EVERY_S = 0.5
RETRIES_S = 15.0
"""The least time for which a request is retried: one may be lost, and the next one wait for it."""
_SEEN_FROM_OUTSIDE = frozenset({Sign.REGISTERED, Sign.LED, Sign.IN_SYNC})
_OF_PROCESSES = frozenset({"disk-files", "early-start", "kill", "pause", "power"})
"""Capabilities of faults with no effect on a target whose process runs."""
_DELAYS = (
    "zookeeper.session.timeout.ms",
    "replica.lag.time.max.ms",
    "replica.lag.time.max.ms",
    "controller.socket.timeout.ms",
    "replica.socket.timeout.ms",
)
"""Delays of recovery, one after the other: until a broker is missed; until a stuck follower has left the ISR, and a
returning one is considered; until a request of the controller, and of a follower, times out."""


class Asks(Protocol):
    """Sends each kind of request that clients need, once."""

    offsets: dict[TopicPartition, int]
    """Of each partition's acknowledged record."""

    async def produce(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        """Send one record to each partition, with acks=all; return the problem of each, empty for none."""
        ...

    async def fetch(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        """Read each partition's acknowledged record; return the same."""
        ...

    async def commit(self, groups: Sequence[int], of: int, partitions: Sequence[TopicPartition]) -> dict[int, str]:
        """Commit by one group in each of these partitions, `of` so many, of `__consumer_offsets`; return the same."""
        ...

    async def offline(self, broker_id: int) -> bool:
        """Return whether a broker says that a log directory of its own is offline."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The parts of a cluster that a probe needs; real and simulated runs differ in nothing else."""

    ask: Asks
    machine: Machine
    clock_ns: Callable[[], int]
    write: Callable[[Liveness], None]
    patience: float
    """Factor on recovery deadlines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a scenario requires of a cluster."""

    quiet_s: float
    """An intact cluster shows every sign of life within this time."""
    offsets_partitions: int
    properties: Mapping[str, str]
    of_topics: Mapping[str, Mapping[str, str]]
    """Properties of topics that have their own."""
    prefix: str = ""
    """Prefix of the topics to probe, beside the offsets topic."""

    @classmethod
    def of(cls, scenario: Scenario) -> "Terms":
        """Return them."""
        properties = system_named(scenario.system).effective(scenario.cluster.brokers, scenario.cluster.properties)
        return cls(
            quiet_s=sum(int(properties[name]) for name in _DELAYS) / 1000,
            offsets_partitions=int(properties["offsets.topic.num.partitions"]),
            properties=properties,
            of_topics={topic.name: topic.config for topic in scenario.topics},
            prefix=scenario.cluster.external.prefix if scenario.cluster.external else "",
        )

    def min_isr(self, topic: str) -> int:
        """Return the number of replicas that must be in sync for acks=all."""
        return int(self._property(topic, "min.insync.replicas"))

    def concerns(self, topic: str) -> bool:
        """Return whether a topic belongs to the run, or to its groups."""
        return topic == OFFSETS_TOPIC or topic.startswith(self.prefix)

    def may_be_unclean(self, topic: str) -> bool:
        """Return whether a replica outside the ISR may lead."""
        return self._property(topic, "unclean.leader.election.enable").lower() == "true"

    def _property(self, topic: str, name: str) -> str:
        return self.of_topics.get(topic, {}).get(name, self.properties[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One sign of life."""

    sign: Sign
    broker: int = -1
    topic: str = ""
    partition: int = -1
    process: str = ""


@dataclass(slots=True, kw_only=True)
class _Sight:
    """The state of a cluster at one look."""

    states: dict[int, ProcessState]
    """Of the brokers' processes."""
    registered: Mapping[int, Registration]
    partitions: dict[TopicPartition, PartitionView]
    """Of topics that are there to stay."""

    def running(self, brokers: Iterable[int]) -> list[int]:
        return [broker for broker in brokers if self.states.get(broker) == ProcessState.RUNNING]


@dataclass(slots=True, kw_only=True)
class Watch:
    """Probes one cluster from its last heal on."""

    context: FaultContext
    load: Load
    probe: Probe
    terms: Terms
    in_force: str = ""
    """A fault that is still in force, as a sentence; empty for none."""
    _healed_s: float = field(init=False)
    _healed_ns: int = field(init=False)
    _late_s: float = 0.0
    _sight: _Sight = field(init=False)
    _seen: dict[Wanted, str] = field(default_factory=dict)
    """The problem of every sign at the last look, empty for none."""
    _answered: dict[Wanted, str] = field(default_factory=dict)
    """The same of signs that the cluster has to be asked for; one that it gave once is there."""
    _since_ns: dict[Wanted, int] = field(default_factory=dict)
    """When each was seen last."""

    async def begin(self) -> None:
        """Look for the first time: the last fault has just been healed."""
        self._healed_s, self._healed_ns = _now_s(), self.probe.clock_ns()
        self.probe.machine.busyness()
        with suppress(ClusterError):
            await self._look()

    async def finish(self) -> list[str]:
        """Probe until every sign of life shows, or the time is up; write down and return what is missing.

        Raises:
            ClusterError: the registered brokers could not be read in time; nothing is written down.
        """
        progress = self.load.clients.progress()
        end_s = max(self._healed_s + self.probe.patience * self.terms.quiet_s, _now_s() + RETRIES_S)
        while True:
            try:
                await self._look()
                await self._ask(progress)
            except ClusterError:
                if _now_s() >= end_s:
                    raise
            else:
                if not any(self._signs.values()) or _now_s() >= end_s:
                    break
            due_s = _now_s() + LOOK_EVERY_S
            await asyncio.sleep(LOOK_EVERY_S)
            self._late_s = max(self._late_s, _now_s() - due_s)
        return await self._written(progress)

    # --- looking ---

    async def _look(self) -> None:
        """Read the registered brokers, the leaders and the in-sync replicas."""
        view = self.context.view
        status = await self.context.driver.status()
        if status.severed:
            raise ClusterError(status.severed)
        partitions = {
            (each.topic, each.partition): each for each in await view.partitions() if self.terms.concerns(each.topic)
        }
        deleted = {
            topic
            for topic in {topic for topic, _ in partitions} - self.load.topics.keys()
            if await view.deleting(topic)
        }
        self._sight = sight = _Sight(
            states={broker.broker_id: broker.state for broker in status.brokers},
            registered=await view.registrations(),
            partitions={key: each for key, each in partitions.items() if key[0] not in deleted},
        )
        self._seen = {}
        for broker in sight.running(sorted(sight.states)):
            wrong = "" if broker in sight.registered else f"broker {broker} runs and is not registered"
            self._saw(Wanted(sign=Sign.REGISTERED, broker=broker), wrong)
        for key in sorted({*sight.partitions, *partitions_of(self.load.topics)}):
            self._look_at(key, sight)

    def _look_at(self, key: TopicPartition, sight: _Sight) -> None:
        (topic, partition), name, view = key, f"{key[0]}-{key[1]}", sight.partitions.get(key)
        led, in_sync = (Wanted(sign=sign, topic=topic, partition=partition) for sign in (Sign.LED, Sign.IN_SYNC))
        if view is None:
            self._saw(led, f"{name} has no state")
        elif view.leader in sight.registered:
            self._saw(led, "")
        else:
            gone = f"the leader {view.leader}, which is not registered" if view.leader >= 0 else "no leader"
            self._saw(led, f"{name} has {gone}; its ISR is {list(view.isr)}")
        if view is not None:
            absent = set(sight.running(view.assignment)) - set(view.isr)
            wrong = f"{name} has the ISR {list(view.isr)} of {list(view.assignment)}" if absent else ""
            self._saw(in_sync, wrong)

    async def _ask(self, progress: ClientProgress) -> None:
        """Request what has not succeeded yet; readers must reach the acknowledged record."""
        ask, everywhere = self.probe.ask, partitions_of(self.load.topics)
        produced = await ask.produce(self._not_had(Sign.PRODUCE, everywhere))
        fetched = await ask.fetch(self._not_had(Sign.FETCH, [key for key in everywhere if key in ask.offsets]))
        groups = [(OFFSETS_TOPIC, number) for number in range(self.terms.offsets_partitions)]
        left = [number for _, number in self._not_had(Sign.COMMIT, groups)]
        committed = await ask.commit(left, self.terms.offsets_partitions, everywhere)
        for sign, answers in ((Sign.PRODUCE, produced), (Sign.FETCH, fetched)):
            for (topic, partition), wrong in answers.items():
                self._saw(
                    Wanted(sign=sign, topic=topic, partition=partition), wrong and f"{topic}-{partition}: {wrong}"
                )
        for number, wrong in committed.items():
            about = wrong and f"a group in {OFFSETS_TOPIC}-{number}: {wrong}"
            self._saw(Wanted(sign=Sign.COMMIT, topic=OFFSETS_TOPIC, partition=number), about)
        progress.look()
        for reader, processes in self.load.readers.items():
            for (topic, partition), offset in ask.offsets.items():
                at = max(progress.read.get((process, topic, partition), -1) for process in processes)
                wrong = f"{reader} has read {topic}-{partition} to offset {at}, and {offset} is acknowledged"
                wanted = Wanted(sign=Sign.READ, topic=topic, partition=partition, process=reader)
                self._saw(wanted, "" if at >= offset else wrong)
        for process in self.load.workers:
            wrong = "" if process in progress.moved else f"{process} has completed nothing"
            self._saw(Wanted(sign=Sign.WORK, process=process), wrong)

    def _not_had(self, sign: Sign, keys: Iterable[TopicPartition]) -> list[TopicPartition]:
        wanted = {key: Wanted(sign=sign, topic=key[0], partition=key[1]) for key in keys}
        return [key for key, each in wanted.items() if self._answered.get(each, "never asked")]

    def _saw(self, wanted: Wanted, wrong: str) -> None:
        (self._seen if wanted.sign in _SEEN_FROM_OUTSIDE else self._answered)[wanted] = wrong
        if not wrong:
            self._since_ns[wanted] = self.probe.clock_ns()

    @property
    def _signs(self) -> dict[Wanted, str]:
        return self._seen | self._answered

    # --- writing down ---

    async def _written(self, progress: ClientProgress) -> list[str]:
        busyness, now_ns = self.probe.machine.busyness(), self.probe.clock_ns()
        offline: set[int] = set()
        if any(self._signs.values()):
            offline = {broker for broker in sorted(self._sight.states) if await self.probe.ask.offline(broker)}
        missing = []
        for wanted, wrong in self._signs.items():
            hindrance = self._hindrance(wanted, offline, progress) if wrong else ""
            missing += [wrong] if wrong and not hindrance else []
            self.probe.write(
                Liveness(
                    time_ns=now_ns,
                    sign=wanted.sign,
                    broker=wanted.broker,
                    topic=wanted.topic,
                    partition=wanted.partition,
                    process=wanted.process,
                    shown=not wrong,
                    since_ns=self._since_ns.get(wanted, self._healed_ns),
                    healed_ns=self._healed_ns,
                    detail=wrong,
                    hindrance=hindrance,
                    cpu_percent=busyness.cpu_percent,
                    load_percent=busyness.load_percent,
                    late_ms=round(self._late_s * 1000),
                )
            )
        return missing

    def _hindrance(self, wanted: Wanted, offline: set[int], progress: ClientProgress) -> str:
        """Return what keeps an intact cluster from showing a sign, given the faults' effects; empty for nothing."""
        if self.in_force or wanted.sign is Sign.REGISTERED:
            return self.in_force
        sight, key = self._sight, (wanted.topic, wanted.partition)
        stopped = [broker for broker in sorted(sight.states) if not sight.running([broker])]
        view = sight.partitions.get(key)
        if wanted.sign is Sign.READ and progress.alive.isdisjoint(self.load.readers[wanted.process]):
            return f"{wanted.process} itself has stopped reading"
        if wanted.sign is Sign.WORK:
            return self._kept_from_work(wanted.process, stopped, offline, progress)
        if view is None:
            return f"brokers {stopped} do not run, and it was never created" if stopped else ""
        able = [broker for broker in sight.running(view.assignment) if broker not in offline]
        if wanted.sign is Sign.IN_SYNC and set(able) <= set(view.isr):
            return f"the log directories of brokers {sorted(offline)} are offline"
        may_lead = (not self.terms.may_be_unclean(wanted.topic) and view.isr) or view.assignment
        if not set(able) & set(may_lead):
            return f"none of {list(may_lead)}, which may lead, runs with its log directory"
        minimum = self.terms.min_isr(wanted.topic)
        if wanted.sign in (Sign.PRODUCE, Sign.COMMIT) and len(able) < minimum:
            return f"min.insync.replicas is {minimum}, and of {list(view.assignment)} {able} run"
        return ""

    def _kept_from_work(self, process: str, stopped: list[int], offline: set[int], progress: ClientProgress) -> str:
        """Return what keeps a client from completing an operation; empty for nothing."""
        if process not in progress.alive:
            return f"{process} itself begins nothing"
        away = sorted({*stopped, *offline})
        return f"brokers {away} do not run with their log directories" if away else ""


def in_force(unhealed: Iterable[Injection], plugins: Mapping[str, Fault]) -> str:
    """Return, as a sentence, a fault that may be in force; empty if the brokers' processes show that none is."""
    lasting = [injection for injection in unhealed if {*plugins[injection.fault].requires} - _OF_PROCESSES]
    return next((f"{brokers_hit(each.fault, each)} could not be healed" for each in lasting), "")


def _now_s() -> float:
    return asyncio.get_running_loop().time()
