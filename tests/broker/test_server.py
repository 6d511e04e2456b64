"""What a whole broker does from start to stop, and three of them together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from harness.broker.configs.config import Endpoint
from harness.broker.handlers.apis import APIS
from harness.broker.log.storage import StorageError
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ApiVersionsRequest, LeaderAndIsrRequest
from harness.broker.wire.transport import PeerError
from harness.broker.zookeeper.client import ConnectionLoss, NotEmpty, Op
from harness.broker.zookeeper.registration import BrokerIdTaken
from harness.events import (
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    ControllerElected,
    ControllerResigned,
    CoordinatorLoad,
    CoordinatorUnload,
    Election,
    HighWatermarkCheckpoint,
    IsrPropose,
    Recovery,
    ZkSession,
)
from tests.broker.whole_cluster import HOST, WholeCluster, client_port, listens
from tests.raising import raising

PEER_PORT = Endpoint(name="REPL", host=HOST, port=9101)


@pytest.fixture
async def cluster() -> AsyncIterator[WholeCluster]:
    async with WholeCluster() as cluster:
        yield cluster


async def test_a_broker_starts_in_order(cluster: WholeCluster) -> None:
    await cluster.start(1)
    kinds = [event.ev for event in cluster.logs[1].events]
    in_order = [kind for kind in kinds if kind != "holdings"][:4]
    assert in_order == ["broker_start", "zk_session", "broker_registered", "controller_elected"]
    assert cluster.of(1, BrokerStart)[0].clean_marker is False
    assert cluster.disks[1].exists("meta.properties")
    assert cluster.zookeeper.nodes["/brokers/ids/1"].owner == cluster.sessions[1].session_id


async def test_a_broker_serves_every_api_of_the_table(cluster: WholeCluster) -> None:
    await cluster.start(1)
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = await cluster.ask(1, request, 3)
    assert [api.api_key for api in answer.api_keys] == sorted(APIS), "is its class among the bound ones of server.py?"


async def test_a_port_is_taken_before_the_broker_registers_and_answers_only_afterwards(cluster: WholeCluster) -> None:
    broker = cluster.prepare(1)
    answers: list[asyncio.Task[object]] = []

    def before_write(op: Op) -> None:
        if op.path == "/brokers/ids/1":
            assert listens(cluster, client_port(1))
            answers.append(asyncio.ensure_future(cluster.metadata(1)))

    cluster.zookeeper.before_write = before_write
    await broker.start()
    assert await answers[0]
    await broker.stop()


async def test_a_clean_stop_leaves_nothing_to_recover(cluster: WholeCluster) -> None:
    await cluster.start(1, t=[1])
    assert await cluster.produce(1, "t", "v") == ErrorCode.NONE
    await cluster.stop(1)
    assert "/brokers/ids/1" not in cluster.zookeeper.nodes
    assert isinstance(cluster.logs[1].events[-1], BrokerStop)
    assert cluster.of(1, HighWatermarkCheckpoint)
    cluster.logs[1].events.clear()
    await cluster.start(1)
    assert cluster.of(1, BrokerStart)[0].clean_marker is True
    (recovery,) = cluster.of(1, Recovery)
    assert (recovery.clean, recovery.log_end_offset, recovery.high_watermark) == (True, 1, 1)


async def test_a_stop_hands_the_leads_over(cluster: WholeCluster) -> None:
    await cluster.start(1, 2, 3, t=[2, 3, 1])
    controller_id = await cluster.controller(1)
    await cluster.stop(2)
    assert cluster.of(2, BrokerStop)[-1].controlled
    assert [event.strategy for event in cluster.of(controller_id, Election)][-1] == "controlled_shutdown"
    await cluster.until_led("t", 3)


async def test_a_stop_without_anybody_to_take_over_is_not_controlled() -> None:
    async def leads_alone(cluster: WholeCluster) -> bool:
        topics = (await cluster.metadata(2)).topics
        return [topic.partitions[0].isr_nodes for topic in topics] == [[2]]

    async with WholeCluster({"controlled.shutdown.max.retries": "2"}) as cluster:
        await cluster.start(1, 2, t=[2, 1])
        await cluster.brokers.pop(1).abandon()
        await cluster.until(lambda: leads_alone(cluster), "broker 2 leads alone")
        await cluster.stop(2)
        assert not cluster.of(2, BrokerStop)[-1].controlled


async def test_after_an_expired_session_a_broker_registers_again_and_the_controller_resigns(
    cluster: WholeCluster,
) -> None:
    async def writes(cluster: WholeCluster) -> bool:
        leader = await cluster.leader("t", 1)
        return leader > 0 and await cluster.produce(leader, "t", "v") == ErrorCode.NONE

    await cluster.start(1, 2, 3, t=[1, 2, 3])
    controller_id = await cluster.controller(1)
    first = cluster.of(controller_id, BrokerRegistered)[-1].czxid or 0
    cluster.sessions[controller_id].expire()
    await cluster.until(lambda: len(cluster.of(controller_id, BrokerRegistered)) == 2, "registered again")
    assert (cluster.of(controller_id, BrokerRegistered)[-1].czxid or 0) > first
    assert [event.reason for event in cluster.of(controller_id, ControllerResigned)] == ["session expired"]
    assert [event.state for event in cluster.of(controller_id, ZkSession)][-3:] == ["lost", "connected", "reinit"]
    assert sorted(e.controller_epoch for b in (1, 2, 3) for e in cluster.of(b, ControllerElected)) == [1, 2]
    await cluster.until(lambda: writes(cluster), "a write")


async def test_a_second_broker_of_the_same_id_does_not_start(cluster: WholeCluster) -> None:
    await cluster.start(1)
    twin = cluster.prepare(1, listeners="PLAINTEXT://h:1,REPL://h:2")
    with pytest.raises(BrokerIdTaken):
        await twin.start()
    await twin.abandon()
    assert listens(cluster, 9001)
    assert listens(cluster, 9101)


@pytest.mark.parametrize(
    ("prepare", "error"),
    [
        pytest.param(lambda c: setattr(c.zookeeper, "reachable", False), ConnectionLoss, id="there is no ZooKeeper"),
        pytest.param(
            lambda c: c.network.listen(None, Endpoint(name="REPL", host=HOST, port=9101)), OSError, id="a port is taken"
        ),
        pytest.param(
            lambda c: c.prepare(1) and c.disks[1].replace("meta.properties", b"version=0\nbroker.id=1\ncluster.id=x\n"),
            StorageError,
            id="the data are of another cluster",
        ),
    ],
)
async def test_a_broker_that_cannot_start_leaves_nothing_behind(
    cluster: WholeCluster, prepare: Callable[..., Any], error: type[Exception]
) -> None:
    prepare(cluster)
    broker = cluster.prepare(1)
    with pytest.raises(error):
        await broker.start()
    await broker.abandon()
    assert "/brokers/ids/1" not in cluster.zookeeper.nodes
    assert not listens(cluster, 9001)
    assert not cluster.disks[1].exists(".kafka_cleanshutdown")


async def test_a_committed_offset_survives_its_coordinator(cluster: WholeCluster) -> None:
    async def committed(cluster: WholeCluster, broker_id: int) -> bool:
        return await cluster.coordinator("g", broker_id) in cluster.brokers

    async def committing(cluster: WholeCluster, broker_id: int, offset: int) -> bool:
        return await cluster.commit(broker_id, "g", "t", offset) == ErrorCode.NONE

    async def loaded(cluster: WholeCluster, broker_id: int) -> bool:
        return (await cluster.committed(broker_id, "g", "t"))[0] == ErrorCode.NONE

    await cluster.start(1, 2, 3, t=[1, 2, 3])
    assert await cluster.coordinator("g", 1) == -1, "the topic is only being created"
    await cluster.until(lambda: committed(cluster, 1), "a coordinator")
    first = await cluster.coordinator("g", 1)
    others = sorted(cluster.brokers.keys() - {first})
    await cluster.until(lambda: committing(cluster, first, 7), "a commit")
    assert await cluster.committed(first, "g", "t") == (0, 7)
    assert await cluster.committed(others[0], "g", "t") == (ErrorCode.NOT_COORDINATOR, -1)
    await cluster.stop(first)
    await cluster.until(lambda: committed(cluster, others[0]), "another coordinator")
    second = await cluster.coordinator("g", others[0])
    assert second != first
    await cluster.until(lambda: loaded(cluster, second), "the offsets are loaded")
    assert await cluster.committed(second, "g", "t") == (0, 7)
    (load,) = cluster.of(second, CoordinatorLoad)
    assert (load.groups, load.offsets, load.log_end_offset) == (1, 1, 1)


async def test_a_coordinator_that_loses_its_lead_unloads(cluster: WholeCluster) -> None:
    async def coordinates(cluster: WholeCluster, broker_id: int) -> bool:
        return await cluster.coordinator("g", 1) == broker_id

    await cluster.start(1, 2, 3)
    assert await cluster.controller(1) == 1
    await cluster.create("__consumer_offsets", [2, 3, 1])
    await cluster.until(lambda: coordinates(cluster, 2), "broker 2 coordinates")
    cluster.sessions[2].expire()
    await cluster.until(lambda: coordinates(cluster, 3), "broker 3 coordinates")
    await cluster.until(lambda: bool(cluster.of(2, CoordinatorUnload)), "broker 2 unloads")
    assert (await cluster.committed(2, "g", "t"))[0] == ErrorCode.NOT_COORDINATOR


async def test_a_topics_own_min_insync_replicas_hold_from_its_first_record(cluster: WholeCluster) -> None:
    async def refused(cluster: WholeCluster) -> bool:
        return await cluster.produce(1, "strict", "v") == ErrorCode.NOT_ENOUGH_REPLICAS

    await cluster.start(1, 2)
    assert await cluster.create("strict", [1, 2], min_insync_replicas="2") == ErrorCode.NONE
    assert await cluster.produce(1, "strict", "v") == ErrorCode.NONE
    await cluster.stop(2)
    await cluster.until(lambda: refused(cluster), "too few replicas")


async def test_a_created_topic_is_answered_as_soon_as_it_has_leaders(cluster: WholeCluster) -> None:
    await cluster.start(1, 2)
    began = asyncio.get_running_loop().time()
    assert await cluster.create("t", [2, 1]) == ErrorCode.NONE
    assert asyncio.get_running_loop().time() - began < 1
    assert await cluster.leader("t", 1) == 2


async def test_a_stopped_broker_answers_nobody(cluster: WholeCluster) -> None:
    await cluster.start(1)
    await cluster.stop(1)
    with pytest.raises(PeerError):
        await cluster.metadata(1)


async def test_a_broker_that_stops_does_not_come_back_into_the_isr_it_leaves(cluster: WholeCluster) -> None:
    await cluster.start(1, 2, 3, t=[2, 3, 1])
    await cluster.create("stays", [2, 9])
    assert await cluster.produce(2, "t", "v") == ErrorCode.NONE
    await cluster.stop(2)
    assert await cluster.leader("t", 3) == 3
    assert [event.new for event in cluster.of(3, IsrPropose)] == []


async def test_a_full_disk_at_the_end_does_not_keep_the_session(
    cluster: WholeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.start(1)
    monkeypatch.setattr(cluster.disks[1], "replace", raising(OSError(28, "No space left on device")))
    await cluster.stop(1)
    assert "/brokers/ids/1" not in cluster.zookeeper.nodes
    assert not cluster.disks[1].exists(".kafka_cleanshutdown")


async def test_a_broker_that_cannot_register_again_says_so(cluster: WholeCluster) -> None:
    await cluster.start(1)

    def refuse(op: Op) -> None:
        if op.path == "/brokers/ids/1":
            raise NotEmpty("unexpected")

    cluster.zookeeper.before_write = refuse
    cluster.sessions[1].expire()
    async with asyncio.timeout(30):
        await cluster.brokers[1].failed.wait()


async def test_a_lead_cannot_be_taken_before_the_topics_configuration_can_be_read(cluster: WholeCluster) -> None:
    await cluster.start(1)
    cluster.zookeeper.reachable = False
    cluster.sessions[1].expire()
    topic = LeaderAndIsrRequest.LeaderAndIsrTopicState(topic_name="new", partition_states=[])
    request = LeaderAndIsrRequest(controller_id=1, controller_epoch=1, topic_states=[topic])
    with pytest.raises(PeerError, match="closed before the response"):
        await cluster.ask(1, request, 4)
