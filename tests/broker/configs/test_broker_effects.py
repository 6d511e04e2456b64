"""What a broker's own properties do, in whole brokers with disk, network and ZooKeeper in memory."""

from harness.broker.wire.error_codes import ErrorCode
from harness.events import BrokerRegistered
from tests.broker.whole_cluster import CLIENT, HOST, PEER, WholeCluster

T = "t"


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

        async def told() -> bool:
            brokers = (await cluster.metadata(1)).brokers
            return [(broker.host, broker.port) for broker in brokers if broker.node_id == 2] == [("elsewhere", 1)]

        assert await cluster.configure(2, "", {"advertised.listeners": moved}) == ErrorCode.INVALID_REQUEST
        assert await cluster.configure(2, "2", {"advertised.listeners": f"{PEER}://a:1,X://a:2"}) != 0
        assert not await told()
        assert await cluster.configure(2, "2", {"advertised.listeners": moved}) == 0
        await cluster.until(told, "the other broker knows")
        assert len(cluster.of(2, BrokerRegistered)) == 1, "it is the same registration"
