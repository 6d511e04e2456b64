"""Clients as careful as librdkafka: they retry, keep their limits, and never claim to know what they cannot."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness.broker.wire.messages import ProduceRequest
from harness.client_rules.administering import Action
from harness.experiment.drive import create_topics
from harness.experiment.load import Load
from harness.scenario.plan import make_plan
from harness.simulation.clients.metadata import ClusterClient
from harness.simulation.cluster import SimulatedCluster
from harness.simulation.load import SimulatedClients
from harness.simulation.loop import run
from harness.simulation.topics import SimulatedTopicAdmin
from harness.simulation.transport import MemoryConnection, MemoryTransport
from harness.store.history import Operation, OpKind, OpType
from harness.store.phase_log import PhaseNotes
from tests.simulation.scenarios import scenario

Story = Callable[[SimulatedCluster], Awaitable[None]]


def operations_of(story: Story, load_s: float = 6.0, **changed: Any) -> dict[str, list[Operation]]:
    """Return what the clients recorded while the story was played; the load goes on for `load_s` after it."""
    made = scenario(**changed)

    async def play() -> dict[str, list[Operation]]:
        cluster = SimulatedCluster([0, 1, 2], seed=1, properties=made.cluster.properties)
        assert all(await asyncio.gather(*(broker.start() for broker in cluster.brokers.values())))
        await create_topics(SimulatedTopicAdmin(cluster).create, made.topics)
        plan, notes = make_plan(made, 1), PhaseNotes()
        clients = SimulatedClients(cluster, [client.process for client in plan.clients])
        load = Load(clients, plan, made.topics)
        await load.start()
        await asyncio.sleep(2)
        await story(cluster)
        await asyncio.sleep(load_s)
        await load.stop(notes)
        assert notes.remarks == []
        return clients.operations

    return run(play())


def ends(operations: dict[str, list[Operation]], kind: OpKind) -> list[Operation]:
    return [
        each
        for recorded in operations.values()
        for each in recorded
        if each.kind is kind and each.type is not OpType.INVOKE
    ]


def outcomes(operations: dict[str, list[Operation]], kind: OpKind) -> set[str]:
    return {each.type for each in ends(operations, kind)}


def every_operation_ended(operations: dict[str, list[Operation]]) -> bool:
    recorded = [each for every in operations.values() for each in every]
    invoked = {(each.process, each.index) for each in recorded if each.type is OpType.INVOKE}
    return invoked == {(each.process, each.index) for each in recorded if each.type is not OpType.INVOKE}


def test_a_client_begins_nothing_more_when_its_run_ends_while_it_connects() -> None:
    clients: list[ClusterClient] = []
    begun: list[str] = []

    async def play() -> None:
        cluster = SimulatedCluster([0], seed=1)
        clients.append(
            ClusterClient(
                MemoryTransport(cluster.network, "c0"),
                cluster.bootstrap,
                [],
                client_id="c0",
                timeout_s=1,
                changed=lambda: begun.append("a connection"),
            )
        )
        await asyncio.sleep(0)  # it has asked for its first connection, and there is no answer yet
        raise KeyError("the run ends")

    with pytest.raises(KeyError):
        run(play())
    assert begun == []


def test_who_gives_up_waiting_for_a_connection_takes_it_from_nobody_else() -> None:
    async def play() -> list[Any]:
        cluster = SimulatedCluster([0, 1], seed=1)
        await asyncio.gather(*(broker.start() for broker in cluster.brokers.values()))
        client = ClusterClient(
            MemoryTransport(cluster.network, "c0"),
            cluster.bootstrap,
            [],
            client_id="c0",
            timeout_s=1,
            changed=lambda: None,
        )
        await asyncio.sleep(3)  # one broker has told it of the other
        assert client.connection(1) is None, "it has none yet, and opens one"
        waiters = [asyncio.ensure_future(client.connected(1)) for _ in range(2)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        return await asyncio.gather(*waiters, return_exceptions=True)

    gave_up, waited = run(play())
    assert isinstance(gave_up, asyncio.CancelledError)
    assert isinstance(waited, MemoryConnection)


async def _nothing(cluster: SimulatedCluster) -> None:
    """An undisturbed cluster."""


async def _kill_one(cluster: SimulatedCluster) -> None:
    cluster[1].kill()


async def _pause_all(cluster: SimulatedCluster) -> None:
    for broker in cluster.brokers.values():
        broker.pause(10.0)


async def _kill_two(cluster: SimulatedCluster) -> None:
    cluster[0].kill()
    cluster[1].kill()
    await asyncio.sleep(8)


@pytest.mark.parametrize(
    ("story", "load", "expected"),
    [
        pytest.param(_nothing, {}, {"ok"}, id="undisturbed, everything is acknowledged"),
        pytest.param(_kill_one, {"message_timeout_ms": 20_000}, {"ok"}, id="retries carry it over a dead leader"),
        pytest.param(
            _pause_all, {"message_timeout_ms": 2000}, {"ok", "info"}, id="what times out is unknown, not failed"
        ),
        pytest.param(_kill_two, {"message_timeout_ms": 2000}, {"ok", "info"}, id="a refusal after retries is unknown"),
    ],
)
def test_what_becomes_of_a_send(story: Story, load: dict[str, Any], expected: set[str]) -> None:
    operations = operations_of(story, load={"consumers": 0, **load})
    assert outcomes(operations, OpKind.SEND) == expected
    assert every_operation_ended(operations)


def test_a_refusal_before_the_append_is_a_fail_for_a_client_that_does_not_retry() -> None:
    operations = operations_of(_kill_two, load={"consumers": 0, "retries": 0})
    refused = [end for end in ends(operations, OpKind.SEND) if end.type is OpType.FAIL]
    assert {end.error for end in refused} == {"NOT_ENOUGH_REPLICAS"}


def test_without_acks_nothing_is_known_and_nothing_is_waited_for() -> None:
    operations = operations_of(_nothing, load={"consumers": 0, "acks": 0})
    assert {(end.type, end.offset) for end in ends(operations, OpKind.SEND)} == {(OpType.OK, -1)}


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_requests_are_in_flight_than_allowed(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    most = 0
    send = MemoryConnection.send

    def watched(self: MemoryConnection, message: Any, version: int, *, answered: bool = True) -> Any:
        nonlocal most
        future = send(self, message, version, answered=answered)
        if isinstance(message, ProduceRequest):
            most = max(most, sum(isinstance(pending[1], ProduceRequest) for pending in self._pending))
        return future

    monkeypatch.setattr(MemoryConnection, "send", watched)
    load = {"consumers": 0, "rate_per_s": 2000, "linger_ms": 0, "batch_records": 1, "max_in_flight": limit}
    operations_of(_nothing, load_s=0.5, load=load)
    assert most == limit


def test_records_wait_for_each_other_and_share_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = 0
    send = MemoryConnection.send

    def counted(self: MemoryConnection, message: Any, version: int, *, answered: bool = True) -> Any:
        nonlocal batches
        batches += isinstance(message, ProduceRequest)
        return send(self, message, version, answered=answered)

    monkeypatch.setattr(MemoryConnection, "send", counted)
    operations = operations_of(_nothing, load_s=1.0, load={"consumers": 0, "rate_per_s": 200, "linger_ms": 100})
    assert 0 < batches < len(ends(operations, OpKind.SEND)) / 3


@pytest.mark.parametrize("story", [_nothing, _kill_one], ids=["undisturbed", "over a dead broker"])
def test_a_consumer_reads_all_that_was_acknowledged_and_reads_its_commits_back(story: Story) -> None:
    operations = operations_of(story, load={"message_timeout_ms": 20_000})
    acknowledged = {end.offset: end.value for end in ends(operations, OpKind.SEND) if end.type is OpType.OK}
    read = [record for end in ends(operations, OpKind.POLL) for record in end.records]
    assert [record.offset for record in read] == list(range(len(read)))
    assert {record.offset: record.value for record in read}.items() >= acknowledged.items()
    (committed,) = ends(operations, OpKind.FETCH_COMMITTED)[-1:]
    assert (committed.type, committed.offset) == (OpType.OK, len(read))
    assert ends(operations, OpKind.END_OFFSET)[-1].offset == len(read)
    assert every_operation_ended(operations)


def test_in_the_end_everything_is_read_once_more_when_that_is_asked_for() -> None:
    operations = operations_of(_nothing, load={"reread": True})
    again = [record.offset for end in ends(operations, OpKind.POLL) if end.mode == "reread" for record in end.records]
    live = [record.offset for end in ends(operations, OpKind.POLL) if end.mode == "assign" for record in end.records]
    assert again[: len(live)] == live
    assert again == list(range(len(again)))


def test_what_piles_up_while_there_is_no_leader_goes_in_batches_that_brokers_take() -> None:
    async def nobody_leads(cluster: SimulatedCluster) -> None:
        for broker in cluster.brokers.values():
            broker.kill()
        await asyncio.sleep(8)  # longer than a session
        assert all(await asyncio.gather(*(broker.start() for broker in cluster.brokers.values())))

    load = {"value_bytes": 100_000, "message_timeout_ms": 30_000, "batch_records": 1000}
    operations = operations_of(nobody_leads, 14.0, load=load)
    assert outcomes(operations, OpKind.SEND) == {OpType.OK}


def test_administrators_have_every_kind_of_request_answered_and_offsets_of_their_group_expire() -> None:
    parameters = {"interval_s": 0.02, "configures": ["orders"], "transacts": True}
    administrators = {"kind": "administer", "parameters": parameters}
    producing = {"kind": "produce-consume", "parameters": {"producers": 1, "consumers": 0, "rate_per_s": 5}}
    made = scenario(workloads=[producing, administrators]).workloads
    directories = {"properties": {"log.dirs": "one,two", "offsets.topic.num.partitions": 1}}
    load = [each.model_dump() for each in made]
    operations = operations_of(_nothing, load_s=12.0, workloads=load, cluster=directories)
    answered = {each.mode for each in ends(operations, OpKind.ADMINISTER) if each.type is OpType.OK}
    assert answered >= set(Action) - {Action.CANCEL_REASSIGNMENT}
    assert every_operation_ended(operations)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read_as_they_were_sent(codec: str) -> None:
    operations = operations_of(_nothing, load_s=1.0, load={"compression": codec})
    sent = {each.value for each in ends(operations, OpKind.SEND) if each.type is OpType.OK}
    read = {record.value for each in ends(operations, OpKind.POLL) for record in each.records}
    assert len(sent) > 10
    assert sent == read
