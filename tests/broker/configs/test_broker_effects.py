"""What a broker's own properties do, in whole brokers with disk, network and ZooKeeper in memory."""

from tests.broker.whole_cluster import WholeCluster

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
