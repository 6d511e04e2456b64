"""The memory of a broker at rest is what a restart would load; each difference is named."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.controller.context import ControllerContext
from harness.broker.coordinator.store import KnownGroup
from harness.broker.log.epoch_cache import EpochEntry, LeaderEpochCache
from harness.broker.replicas.partition import Partition
from harness.broker.server import Broker
from harness.events import ControllerEvent, Holdings
from harness.scenario.model import Scenario
from harness.simulation import schedule
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.evidence import LoggedEvent, MemoryJournal
from harness.simulation.memory_check import compare
from harness.simulation.schedule import simulate
from harness.store.history import InjectionStep, JournalEntry
from harness.store.phase_log import PhaseNotes
from harness.values import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.simulation.scenarios import scenario

ORDERS = ("orders", 0)
GROUP = "group-1"
SHORT = scenario(duration_s=1.0)
TRANSACTIONS: dict[str, Any] = {
    "workloads": [
        {"kind": "transact", "parameters": {"transactors": 1, "ids": 1, "consumers": 1, "rate_per_s": 20}},
        {"kind": "consume-group", "parameters": {"members": 1}},
    ],
    "cluster": {
        "properties": {
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
    },
}


@dataclass(frozen=True)
class AtRest:
    """A cluster whose load has ended."""

    cluster: SimulatedCluster

    def brokers(self) -> dict[int, Broker]:
        return {key: each.broker for key, each in self.cluster.brokers.items() if each.broker is not None}

    def leader(self, topic: str, number: int) -> tuple[Broker, Partition]:
        for broker in self.brokers().values():
            partition = broker.replicas.replicas.get(topic, number)
            if partition is not None and partition.is_leader:
                return broker, partition
        raise AssertionError(f"no broker leads {topic}-{number}")

    def follower(self, topic: str, number: int) -> tuple[Broker, Partition]:
        for broker in self.brokers().values():
            partition = broker.replicas.replicas.get(topic, number)
            if partition is not None and not partition.is_leader:
                return broker, partition
        raise AssertionError(f"no broker follows {topic}-{number}")

    @property
    def context(self) -> ControllerContext:
        (context,) = [each for broker in self.brokers().values() if (each := broker.controller.settled_context)]
        return context

    @property
    def group(self) -> KnownGroup:
        broker, _ = self.leader(OFFSETS_TOPIC, 0)
        assert broker.coordinator is not None
        known = broker.coordinator.store.group(GROUP)
        assert known is not None
        return known

    def differ(self) -> set[str]:
        return {text for found in (compare._now(self.cluster) or {}).values() for text in found}


def attribute(of: Callable[[AtRest], Any], name: str, value: Callable[[Any], Any]) -> Any:
    """Return what gives one attribute another value for a while."""

    @contextmanager
    def changed(rest: AtRest) -> Iterator[None]:
        owner = of(rest)
        with patch.object(owner, name, value(getattr(owner, name))):
            yield

    return changed


def items(of: Callable[[AtRest], Any], change: Callable[[dict[Any, Any]], Any]) -> Any:
    """Return what changes a dictionary for a while."""

    @contextmanager
    def changed(rest: AtRest) -> Iterator[None]:
        with patch.dict(of(rest)):
            change(of(rest))
            yield

    return changed


def without_first(values: dict[Any, Any]) -> None:
    values.pop(next(iter(values)))


def each_value(change: Callable[[Any], Any]) -> Callable[[dict[Any, Any]], None]:
    return lambda values: values.update({key: change(value) for key, value in values.items()})


def of_leader(rest: AtRest) -> Partition:
    return rest.leader(*ORDERS)[1]


def of_follower(rest: AtRest) -> Partition:
    return rest.follower(*ORDERS)[1]


def without_producer_ids(rest: AtRest) -> ProducerIds:
    return next(each.producer_ids for each in rest.brokers().values() if not each.producer_ids.left)


@contextmanager
def checkpointed_late(rest: AtRest) -> Iterator[None]:
    """The checkpoint says that all is synced, and none is."""
    broker, partition = rest.leader(*ORDERS)
    (disk,) = rest.cluster[broker.config.broker_id].disks.values()
    file = disk.files["recovery-point-offset-checkpoint"]
    text = b"0\n1\norders 0 %d\n" % partition.log.log_end_offset
    with patch.object(file, "data", bytearray(text)), patch.object(file, "synced", text):
        yield


@contextmanager
def holds_a_producer(rest: AtRest) -> Iterator[None]:
    """Offsets wait for a transaction that no log has."""
    known = rest.group
    with patch.dict(known.held, {77: {ORDERS: replace(known.offsets[ORDERS], log_offset=0)}}):
        yield


@dataclass
class Misleading:
    """An index of a segment by which its last batch is found for every offset."""

    index: Any

    def before_offset(self, _offset: int) -> int:
        return int(self.index.before_offset(10**9))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)


def with_epoch(epochs: LeaderEpochCache, start_offset: int) -> LeaderEpochCache:
    return LeaderEpochCache([*epochs.entries, EpochEntry(99, start_offset)])


CHANGES = {
    "the controller misses a broker": (
        items(lambda rest: rest.context.live, without_first),
        {"controller: live brokers"},
    ),
    "the controller misses a topic": (
        items(lambda rest: rest.context.topics, lambda topics: topics.pop("orders")),
        {"controller: topics"},
    ),
    "the controller has another ISR": (
        items(lambda rest: rest.context.leadership, lambda states: states.pop(ORDERS)),
        {"controller: state of orders-0"},
    ),
    "the controller deletes a topic": (
        attribute(lambda rest: rest.context, "deleting", lambda _: {"orders"}),
        {"controller: topics in deletion"},
    ),
    "the controller takes a broker for leaving": (
        attribute(lambda rest: rest.context, "shutting_down", lambda _: {1}),
        {"controller: brokers that are shutting down"},
    ),
    "a broker has another epoch": (
        attribute(lambda rest: rest.leader(*ORDERS)[0], "broker_epoch", lambda epoch: epoch + 1),
        {"broker epoch"},
    ),
    "the metadata name another controller": (
        attribute(lambda rest: rest.leader(*ORDERS)[0].metadata, "controller_id", lambda _: -1),
        {"metadata: controller"},
    ),
    "two brokers have the same producer ids": (
        attribute(without_producer_ids, "left", lambda _: range(1_000_000)),
        {f"producer ids of broker {broker_id}" for broker_id in range(3)},
    ),
    "an ISR is being written": (
        attribute(of_leader, "proposed_isr", lambda _: (1,)),
        {"replica orders-0: the write of its ISR does not end"},
    ),
    "an index finds another batch": (
        attribute(lambda rest: of_leader(rest).log.segments[-1], "_index", lambda index: Misleading(index)),
        {"log orders-0 after a restart: lookups"},
    ),
    "a property of a broker is not in force": (
        items(
            lambda rest: rest.leader(*ORDERS)[0].topic_configs._broker, lambda values: values.update({"log.roll.ms": 5})
        ),
        {"broker property log.roll.ms"},
    ),
    "a property of a topic is not in force": (
        items(
            lambda rest: rest.leader(*ORDERS)[0].topic_configs._known["orders"],
            lambda values: values.update({"min.insync.replicas": 3}),
        ),
        {"properties of orders: min.insync.replicas"},
    ),
    "a leader has another ISR": (
        attribute(of_leader, "isr", lambda isr: isr[:1]),
        {"replica orders-0: ISR"},
    ),
    "a leader has another version": (
        attribute(of_leader, "zk_version", lambda version: version + 1),
        {"replica orders-0: version of its state"},
    ),
    "a follower has another leader": (
        attribute(of_follower, "leader", lambda _: -1),
        {"replica orders-0: leader"},
    ),
    "a follower has an older epoch": (
        attribute(of_follower, "leader_epoch", lambda epoch: epoch - 1),
        {"replica orders-0: leader epoch"},
    ),
    "a broker knows no replica": (
        items(lambda rest: rest.follower(*ORDERS)[0].replicas.replicas._partitions, lambda each: each.pop(ORDERS)),
        {"replica orders-0 is not there"},
    ),
    "the metadata miss a partition": (
        items(lambda rest: rest.leader(*ORDERS)[0].metadata._partitions, lambda each: each.pop("orders")),
        {"metadata: orders-0"},
    ),
    "the metadata miss a broker": (
        items(lambda rest: rest.leader(*ORDERS)[0].metadata._brokers, without_first),
        {"metadata: live brokers"},
    ),
    "a group has a later offset": (
        items(lambda rest: rest.group.offsets, each_value(lambda each: replace(each, log_offset=10**6))),
        {f"group {GROUP}: offsets"},
    ),
    "a group has another offset": (
        items(lambda rest: rest.group.offsets, each_value(lambda each: replace(each, value=None))),
        {f"group {GROUP}: offsets"},
    ),
    "a group waits for a transaction": (holds_a_producer, {f"group {GROUP}: offsets of open transactions"}),
    "a log has an open transaction": (
        attribute(lambda rest: of_leader(rest).log.producers, "_open", lambda _: {0: 77}),
        {"log orders-0 after a restart: open transactions"},
    ),
    "a log has other epochs": (
        attribute(
            lambda rest: of_leader(rest).log,
            "epochs",
            lambda known: with_epoch(known, 2),
        ),
        {"log orders-0 after a restart: leader epochs"},
    ),
    "a follower has an epoch without records": (
        attribute(lambda rest: of_follower(rest).log, "epochs", lambda known: with_epoch(known, 10**6)),
        {f"replica orders-0 on broker {number}: leader epoch without records" for number in range(3)},
    ),
    "the controller takes a disk for failed": (
        items(lambda rest: rest.context.offline_dirs, lambda known: known.update({1: {ORDERS}})),
        {"controller: replicas on failed disks of broker 1"},
    ),
    "a checkpoint says that more is synced": (
        checkpointed_late,
        {"log orders-0 after a loss of power: end before the recovery point"},
    ),
    "a follower starts earlier": (
        attribute(lambda rest: of_leader(rest).log, "log_start_offset", lambda offset: offset + 2),
        {f"replica orders-0 on broker {number}: start" for number in range(3)},
    ),
    "a follower is behind": (
        attribute(of_follower, "high_watermark", lambda offset: offset - 1),
        {f"replica orders-0 on broker {number}: high watermark" for number in range(3)},
    ),
}


def at_rest(monkeypatch: pytest.MonkeyPatch, of: Scenario, look: Callable[[AtRest], None]) -> None:
    looks: list[SimulatedCluster] = []

    async def looked(cluster: SimulatedCluster, _notes: PhaseNotes) -> None:
        looks.append(cluster)
        look(AtRest(cluster))

    monkeypatch.setattr(schedule, "note_differences", looked)
    simulate(of, 3)
    assert len(looks) == 1


def test_each_change_of_memory_or_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, set[str]] = {}

    def look(rest: AtRest) -> None:
        assert rest.differ() == set()
        for name, (changed, _) in CHANGES.items():
            with changed(rest):
                found[name] = rest.differ()
        assert rest.differ() == set()

    at_rest(monkeypatch, scenario(**TRANSACTIONS), look)
    wrong = {
        name: found[name] for name, (_, expected) in CHANGES.items() if not found[name] or not found[name] <= expected
    }
    assert wrong == {}


def test_a_transactional_id_that_is_not_stored_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[set[str]] = []

    def look(rest: AtRest) -> None:
        broker, _ = rest.leader(TRANSACTIONS_TOPIC, 0)
        assert broker.transactions is not None
        (transaction,) = broker.transactions.transactions()
        name = transaction.transactional_id
        with patch.object(transaction, "metadata", replace(transaction.metadata, producer_epoch=9)):
            found.append({text.partition(":")[0] for text in rest.differ()})
        assert found == [{f"transactional id {name}"}]

    at_rest(monkeypatch, scenario(**TRANSACTIONS), look)
    assert found


@pytest.mark.parametrize("lasts", [True, False])
def test_what_lasts_is_written_down(monkeypatch: pytest.MonkeyPatch, lasts: bool) -> None:
    texts = iter([["a", "b"], ["b", "c"]] if lasts else [["a"], ["b"]])
    last: list[str] = ["b"] if lasts else []

    monkeypatch.setattr(compare, "_now", lambda _, before=None: {(1, "logs"): next(texts, last)})
    history = simulate(SHORT, 3)
    lines = [each.event for each in history.logs[1].events if isinstance(each.event, Holdings)]
    assert lines[-1].differences == last
    assert history.remarks == []


def test_a_comparison_that_fails_accuses_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: SimulatedCluster) -> dict[int, list[str]]:
        raise ValueError("no batch")

    monkeypatch.setattr(compare, "_now", fails)
    history = simulate(SHORT, 3)
    (remark,) = history.remarks
    assert remark.forbids_pass
    assert remark.text == "brokers at rest could not be compared: ValueError('no batch')"
    assert not [each for log in history.logs.values() for each in log.events if getattr(each.event, "differences", ())]


def test_nothing_is_compared_after_an_event_of_the_controller_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(rest: AtRest) -> None:
        assert not compare._has_failed(rest.cluster, controller(rest))
        failed = ControllerEvent(name="isr_changed", queued_ms=0.0, duration_ms=0.0, outcome="StateChangeFailed")
        rest.cluster[controller(rest)].log.events.append(replace(last_of(rest), event=failed))
        assert rest.differ() == set()
        assert compare._now(rest.cluster) == {}

    at_rest(monkeypatch, SHORT, look)


def test_nothing_is_compared_while_the_controller_has_events_to_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> None:
        pass

    def look(rest: AtRest) -> None:
        assert compare._now(rest.cluster) is not None
        rest.brokers()[controller(rest)].controller._queue.put("late", nothing)
        assert compare._now(rest.cluster) is None

    at_rest(monkeypatch, SHORT, look)


async def test_looks_at_a_busy_cluster_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {(1, "logs"): ["a", "b"], (2, "logs"): ["c"], (2, "groups"): []}
    looks = iter([None, first, None, {(1, "logs"): ["b"], (2, "logs"): []}])
    compared: list[Any] = []

    def look(_: object, before: Any = None) -> Any:
        compared.append(before)
        return next(looks, {(1, "logs"): ["a", "b"]})

    monkeypatch.setattr(compare, "_now", look)
    cluster: Any = None
    assert await compare.differences_at_rest(cluster) == {1: ["b"], 2: []}
    assert compared[:5] == [None, None, first, first, {(1, "logs"): ["b"], (2, "logs"): [], (2, "groups"): []}]
    monkeypatch.setattr(compare, "_now", lambda _, before=None: None)
    assert await compare.differences_at_rest(cluster) == {}


def test_only_what_differed_is_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(rest: AtRest) -> None:
        first = compare._now(rest.cluster)
        assert first is not None
        assert {name for _, name in first} >= {"logs", "followers", "controller"}
        some = (controller(rest), "logs")
        assert set(compare._now(rest.cluster, {**first, some: ["end"]}) or ()) == {some}

    at_rest(monkeypatch, SHORT, look)


def controller(rest: AtRest) -> int:
    (number,) = [key for key, each in rest.brokers().items() if each.controller.settled_context]
    return number


def last_of(rest: AtRest) -> LoggedEvent:
    return rest.cluster[controller(rest)].log.events[-1]


@pytest.mark.parametrize(("step", "compared"), [(InjectionStep.HEALED, True), (InjectionStep.HEAL_FAILED, False)])
def test_a_fault_in_force_keeps_a_cluster_from_rest(step: InjectionStep, compared: bool) -> None:
    entry = JournalEntry(time_ns=0, injection=0, fault="isolate", step=step)
    assert schedule._Left(journal=MemoryJournal(entries=[entry])).is_at_rest == compared


def test_a_missed_steady_state_keeps_a_cluster_from_rest() -> None:
    left = schedule._Left()
    left.notes.remark("after the last heal: no steady state", forbids_pass=True)
    assert not left.is_at_rest
