"""What a broker says of itself in numbers, against what it was made to do."""

from harness.broker.controller.statistics import ControllerStatistics
from harness.broker.metrics.metrics import BrokerMetrics
from tests.broker.whole_cluster import WholeCluster

QUICK = {"replica.lag.time.max.ms": "500", "default.replication.factor": "3", "log.initial.task.delay.ms": "0"}


def led_by(cluster: WholeCluster, broker_id: int) -> BrokerMetrics:
    return cluster.brokers[broker_id].metrics()


async def test_a_leader_counts_what_comes_in_and_its_followers_what_they_copy() -> None:
    async with WholeCluster(QUICK) as cluster:
        await cluster.start(1, 2, 3)
        assert await cluster.create("orders", [2, 1, 3]) == 0
        await cluster.until_led("orders", 2)
        before = led_by(cluster, 2).counters.bytes_in
        assert before == 0
        for number in range(5):
            assert await cluster.produce(2, "orders", f"value-{number}") == 0
        leader, follower = led_by(cluster, 2), led_by(cluster, 1)
        assert leader.counters.messages_in == 5
        assert leader.counters.bytes_in == leader.log_bytes == follower.log_bytes
        assert leader.counters.replication_bytes_out == 2 * leader.log_bytes
        assert follower.counters.replication_bytes_in == follower.log_bytes
        assert (leader.partitions, leader.leaders, follower.partitions, follower.leaders) == (1, 1, 1, 0)
        assert leader.delayed_fetches == 2


async def test_a_partition_counts_as_under_replicated_from_the_shrink_to_the_expansion() -> None:
    async with WholeCluster(QUICK) as cluster:
        await cluster.start(1, 2, 3)
        assert await cluster.create("orders", [2, 1, 3], min_insync_replicas="3") == 0
        await cluster.until_led("orders", 2)
        assert under(cluster) == (0, 0)
        await cluster.brokers.pop(3).stop()
        await cluster.until(lambda: under(cluster) == (1, 1), "the ISR without broker 3")
        await cluster.start(3)
        await cluster.until(lambda: under(cluster) == (0, 0), "the ISR with broker 3")
        assert led_by(cluster, 2).counters.isr_expands == 1


async def test_only_the_controller_counts_the_cluster() -> None:
    async with WholeCluster(QUICK) as cluster:
        await cluster.start(1, 2)
        assert await cluster.create("orders", [2, 1]) == 0
        await cluster.until_led("orders", 2)
        controller_id = await cluster.controller(1)
        other = led_by(cluster, 3 - controller_id)
        assert led_by(cluster, controller_id).is_controller
        assert led_by(cluster, controller_id).controller == ControllerStatistics(
            active_controller_id=controller_id, global_topic_count=1, global_partition_count=1
        )
        assert not other.is_controller
        assert other.controller == ControllerStatistics(active_controller_id=controller_id)
        assert led_by(cluster, controller_id).event_times.queued.count > other.event_times.queued.count


async def test_replicas_on_a_failed_disk_count_as_offline() -> None:
    async with WholeCluster(QUICK) as cluster:
        await cluster.start(1)
        assert await cluster.create("orders", [1]) == 0
        await cluster.until_led("orders", 1)
        cluster.disks[1].space_left = 0
        assert await cluster.produce(1, "orders", "lost") != 0
        await cluster.until(lambda: led_by(cluster, 1).offline_replicas == 1, "the replica offline")
        assert led_by(cluster, 1).partitions == 0


def under(cluster: WholeCluster) -> tuple[int, int]:
    leader = led_by(cluster, 2)
    return leader.under_replicated, leader.under_min_isr
