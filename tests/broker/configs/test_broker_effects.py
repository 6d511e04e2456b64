"""What a broker's own properties do, in whole brokers with disk, network and ZooKeeper in memory."""

import asyncio
from typing import Any

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import (
    DeleteTopicsRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from harness.broker.zookeeper.znodes import decode_config
from harness.events import BrokerRegistered, BrokerStop
from harness.values import OFFSETS_TOPIC
from tests.broker.log.logs import from_producer
from tests.broker.whole_cluster import CLIENT, HOST, PEER, WALL_MS, WholeCluster, listens

T, G = "t", "g"
ALONE = {"offsets.topic.replication.factor": "1", "log.initial.task.delay.ms": "0"}
DAY_MS = 24 * 3_600_000


# --- where a broker is, and how it starts and stops ---


async def test_broker_id_listeners_and_names_are_what_others_are_told() -> None:
    """`broker.id`, `listeners`, `inter.broker.listener.name`; `log.dir` and `zookeeper.connect` are the cluster's."""
    named = {
        "listeners": f"A://{HOST}:9001,B://{HOST}:77",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter.broker.listener.name": "B",
    }
    async with WholeCluster() as cluster:
        broker = cluster.brokers[1] = cluster.prepare(1, **named)
        await broker.start()
        assert [listens(cluster, port) for port in (9001, 77, 9101)] == [True, True, False]
        await cluster.until(lambda: _reached(cluster, 1, [(1, HOST, 9001)]), "it knows itself")


async def _reached(cluster: WholeCluster, broker_id: int, expected: list[tuple[int, str, int]]) -> bool:
    brokers = (await cluster.metadata(broker_id)).brokers
    return [(broker.node_id, broker.host, broker.port) for broker in brokers] == expected


@pytest.mark.parametrize(("enabled", "controlled"), [("true", True), ("false", False)])
async def test_controlled_shutdown_enable(enabled: str, controlled: bool) -> None:
    async with WholeCluster({"controlled.shutdown.enable": enabled}) as cluster:
        await cluster.start(1, 2, t=[2, 1])
        await cluster.until_led(T, 2)
        await cluster.stop(2)
        assert [event.controlled for event in cluster.of(2, BrokerStop)] == [controlled]


async def test_broker_rack_spreads_replicas_over_racks() -> None:
    async with WholeCluster() as cluster:
        for broker_id, rack in ((1, "a"), (2, "a"), (3, "b")):
            cluster.properties["broker.rack"] = rack
            await cluster.start(broker_id)
        racks = {broker.node_id: broker.rack for broker in (await cluster.metadata(1)).brokers}
        assert racks == {1: "a", 2: "a", 3: "b"}
        for number in range(4):
            assert await cluster.create_anywhere(f"{T}{number}", partitions=3, replication_factor=2) == 0
        placed = [set(info.replica_nodes) for topic in (await cluster.metadata(1)).topics for info in topic.partitions]
        assert len(placed) == 12
        assert all(3 in replicas for replicas in placed)


async def test_advertised_listeners_can_be_changed_while_the_broker_runs() -> None:
    """Kafka's `DynamicListenerConfig`: for one broker, and the cluster is told at once."""
    async with WholeCluster() as cluster:
        await cluster.start(1, 2)
        moved = f"{CLIENT}://elsewhere:1,{PEER}://{HOST}:9102"

        async def known_to_other() -> bool:
            brokers = (await cluster.metadata(1)).brokers
            return [(broker.host, broker.port) for broker in brokers if broker.node_id == 2] == [("elsewhere", 1)]

        assert await cluster.configure(2, "", {"advertised.listeners": moved}) == ErrorCode.INVALID_REQUEST
        assert await cluster.configure(2, "2", {"advertised.listeners": f"{PEER}://a:1,X://a:2"}) != 0
        assert not await known_to_other()
        assert await cluster.configure(2, "2", {"advertised.listeners": moved}) == 0
        await cluster.until(known_to_other, "the other broker knows")
        assert len(cluster.of(2, BrokerRegistered)) == 1, "it is the same registration"


# --- topics that say nothing for themselves ---


async def test_num_partitions_and_default_replication_factor_are_those_of_topics_that_do_not_say() -> None:
    async with WholeCluster({"num.partitions": "3", "default.replication.factor": "2"}) as cluster:
        await cluster.start(1, 2)
        assert await cluster.create_anywhere(T) == 0
        [topic] = (await cluster.metadata(1)).topics
        assert [len(info.replica_nodes) for info in topic.partitions] == [2, 2, 2]


@pytest.mark.parametrize(("enabled", "created"), [("true", True), ("false", False)])
async def test_auto_create_topics_enable(enabled: str, created: bool) -> None:
    async with WholeCluster({"auto.create.topics.enable": enabled}) as cluster:
        await cluster.start(1)
        await cluster.ask(1, MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=T)]), 8)
        await asyncio.sleep(1)
        assert bool((await cluster.metadata(1)).topics) == created


# --- committed offsets and groups ---


async def test_offsets_topic_properties_are_those_of_the_topic_when_it_is_made() -> None:
    """`offsets.topic.num.partitions`, `offsets.topic.replication.factor`, `offsets.topic.segment.bytes`."""
    properties = {
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "2",
        "offsets.topic.segment.bytes": "12345",
    }
    async with WholeCluster(properties) as cluster:
        await cluster.start(1, 2)
        await cluster.ask(1, FindCoordinatorRequest(key=G, key_type=0), 2)
        await cluster.until(lambda: _led(cluster, OFFSETS_TOPIC), "the topic is there")
        [topic] = [each for each in (await cluster.metadata(1)).topics if each.name == OFFSETS_TOPIC]
        assert [len(info.replica_nodes) for info in topic.partitions] == [2, 2, 2]
        path = f"/config/topics/{OFFSETS_TOPIC}"
        assert decode_config(path, cluster.zookeeper.nodes[path].data)["segment.bytes"] == "12345"


async def _led(cluster: WholeCluster, topic: str) -> bool:
    return await cluster.leader(topic, 1) > 0


async def coordinated(cluster: WholeCluster) -> None:
    """Start a broker that coordinates the group and leads the topic."""
    await cluster.start(1, t=[1])
    await cluster.until_led(T, 1)

    async def taken() -> bool:
        return await cluster.coordinator(G, 1) == 1 and await cluster.commit(1, G, T, 1) == 0

    await cluster.until(taken, "a first commit")


async def test_offset_metadata_max_bytes() -> None:
    async with WholeCluster(ALONE | {"offset.metadata.max.bytes": "3"}) as cluster:
        await coordinated(cluster)
        of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        for text, error in (("abc", ErrorCode.NONE), ("abcd", ErrorCode.OFFSET_METADATA_TOO_LARGE)):
            partition = of_topic.OffsetCommitRequestPartition(committed_offset=2, committed_metadata=text)
            request = OffsetCommitRequest(group_id=G, topics=[of_topic(name=T, partitions=[partition])])
            assert (await cluster.ask(1, request, 7)).topics[0].partitions[0].error_code == error


@pytest.mark.parametrize(("minutes", "after_s", "retained"), [("1", 3, False), ("1", 1, True), ("5", 3, True)])
async def test_offsets_retention(minutes: str, after_s: float, retained: bool) -> None:
    """`offsets.retention.minutes`, looked at every `offsets.retention.check.interval.ms`."""
    properties = {"offsets.retention.minutes": minutes, "offsets.retention.check.interval.ms": "2000"}
    async with WholeCluster(ALONE | properties) as cluster:
        await coordinated(cluster)
        cluster.wall_ms += 2 * 60_000
        await asyncio.sleep(after_s)
        assert await cluster.committed(1, G, T) == (0, 1 if retained else -1)


async def join(cluster: WholeCluster, session_ms: int, member: str = "") -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id=G,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=session_ms,
        member_id=member,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return await cluster.ask(1, request, 3)


async def test_group_session_timeouts_have_bounds() -> None:
    """`group.min.session.timeout.ms` and `group.max.session.timeout.ms`."""
    properties = {"group.min.session.timeout.ms": "1000", "group.max.session.timeout.ms": "2000"}
    async with WholeCluster(ALONE | properties | {"group.initial.rebalance.delay.ms": "0"}) as cluster:
        await coordinated(cluster)
        for session_ms, error in ((999, 26), (2001, 26), (1000, 0), (2000, 0)):
            assert (await join(cluster, session_ms)).error_code == error


@pytest.mark.parametrize("delay_ms", [0, 3000])
async def test_group_initial_rebalance_delay_ms(delay_ms: int) -> None:
    async with WholeCluster(ALONE | {"group.initial.rebalance.delay.ms": str(delay_ms)}) as cluster:
        await coordinated(cluster)
        began_s = asyncio.get_running_loop().time()
        assert (await join(cluster, 10_000)).error_code == ErrorCode.NONE
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(delay_ms / 1000, abs=0.1)


async def test_group_max_size() -> None:
    async with WholeCluster(ALONE | {"group.max.size": "1", "group.initial.rebalance.delay.ms": "1000"}) as cluster:
        await coordinated(cluster)
        answers = await asyncio.gather(join(cluster, 10_000), join(cluster, 10_000))
        assert sorted(answer.error_code for answer in answers) == [ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]


# --- what a broker does by the clock ---


@pytest.mark.parametrize(("delay_ms", "gone"), [("0", True), ("9000", False)])
async def test_retention_begins_after_a_delay_and_goes_on_at_intervals(delay_ms: str, gone: bool) -> None:
    """`log.initial.task.delay.ms`, `log.retention.check.interval.ms`."""
    properties = {"log.initial.task.delay.ms": delay_ms, "log.retention.check.interval.ms": "1000"}
    async with WholeCluster(ALONE | properties) as cluster:
        await cluster.start(1)
        assert await cluster.create(T, [1], retention_ms="1000", segment_ms="1") == 0
        await cluster.until_led(T, 1)
        for timestamp_ms in (1, WALL_MS):
            assert await cluster.produce(1, T, "a", timestamp_ms=timestamp_ms) == 0
        await asyncio.sleep(2)
        assert cluster.disk(1, "/d").exists(f"{T}-0/{0:020d}.log") != gone


@pytest.mark.parametrize(("interval_ms", "written"), [("1000", True), ("60000", False)])
async def test_log_flush_offset_checkpoint_interval_ms(interval_ms: str, written: bool) -> None:
    async with WholeCluster(ALONE | {"log.flush.offset.checkpoint.interval.ms": interval_ms}) as cluster:
        await cluster.start(1)
        assert await cluster.create(T, [1], segment_ms="1") == 0
        await cluster.until_led(T, 1)
        for number in range(2):
            assert await cluster.produce(1, T, "a", timestamp_ms=WALL_MS + number * DAY_MS) == 0
        await asyncio.sleep(2)
        text = cluster.disk(1, "/d").read("recovery-point-offset-checkpoint").decode()
        assert (f"{T} 0 1" in text) == written


@pytest.mark.parametrize(("expiration_ms", "offset"), [("1000", 1), ("60000", 0)])
async def test_producers_are_forgotten(expiration_ms: str, offset: int) -> None:
    """`producer.id.expiration.ms`, looked at every `producer.id.expiration.check.interval.ms`: a retry is new then."""
    properties = {"producer.id.expiration.ms": expiration_ms, "producer.id.expiration.check.interval.ms": "2000"}
    async with WholeCluster(ALONE | properties) as cluster:
        await cluster.start(1, t=[1])
        await cluster.until_led(T, 1)
        data = ProduceRequest.TopicProduceData
        records = from_producer(0, timestamp_ms=WALL_MS - 10_000)
        sent = data(name=T, partition_data=[data.PartitionProduceData(index=0, records=records)])
        offsets = []
        for _ in range(2):
            answer = await cluster.ask(1, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[sent]), 8)
            offsets.append(answer.responses[0].partition_responses[0].base_offset)
            await asyncio.sleep(3)
        assert offsets == [0, offset]


# --- leads, deletion, time-outs ---


@pytest.mark.parametrize(
    ("properties", "leader"),
    [
        pytest.param({}, 1, id="the lead goes home"),
        pytest.param({"auto.leader.rebalance.enable": "false"}, 2, id="not without a balancer"),
        pytest.param({"leader.imbalance.per.broker.percentage": "100"}, 2, id="nor while it is balanced enough"),
        pytest.param({"leader.imbalance.check.interval.seconds": "300"}, 2, id="nor before the first check"),
    ],
)
async def test_the_balance_of_leads(properties: dict[str, str], leader: int) -> None:
    async with WholeCluster(
        {"leader.imbalance.check.interval.seconds": "10", "min.insync.replicas": "1"} | properties
    ) as cluster:
        await cluster.start(3, 1, 2, t=[1, 2])
        await cluster.until_led(T, 1, by=3)
        await cluster.stop(1)
        await cluster.until_led(T, 2, by=3)
        await cluster.start(1)
        await asyncio.sleep(30)
        assert await cluster.leader(T, 3) == leader


@pytest.mark.parametrize(("delay_ms", "gone"), [("1000", True), ("60000", False)])
async def test_log_segment_delete_delay_ms_keeps_a_deleted_log(delay_ms: str, gone: bool) -> None:
    async with WholeCluster({"log.segment.delete.delay.ms": delay_ms}) as cluster:
        await cluster.start(1, t=[1])
        await cluster.until_led(T, 1)
        await cluster.ask(1, DeleteTopicsRequest(topic_names=[T], timeout_ms=5000), 3)
        await asyncio.sleep(3)
        assert [name for name in cluster.disk(1, "/d").list("") if name.startswith(T)] == (
            [] if gone else [f"{T}-0.0-delete"]
        )


@pytest.mark.parametrize("timeout_ms", [500, 2500])
async def test_offsets_commit_timeout_ms_is_how_long_a_commit_waits_for_replicas(timeout_ms: int) -> None:
    properties = {"offsets.topic.replication.factor": "2", "offsets.commit.timeout.ms": str(timeout_ms)}
    async with WholeCluster(properties) as cluster:
        await cluster.start(1, 2, t=[1])
        await cluster.until_led(T, 1)

        async def taken() -> bool:
            return (
                await cluster.coordinator(G, 1) > 0
                and await cluster.commit(await cluster.coordinator(G, 1), G, T, 1) == 0
            )

        await cluster.until(taken, "a first commit")
        first = await cluster.coordinator(G, 1)
        await cluster.brokers[3 - first].replicas.fetchers.stop()
        began_s = asyncio.get_running_loop().time()
        assert await cluster.commit(first, G, T, 2) == ErrorCode.REQUEST_TIMED_OUT
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(timeout_ms / 1000, abs=0.1)
