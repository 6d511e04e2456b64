"""Faults that ask the controller for something: reassignments, topics that come and go."""

import pytest
from pydantic import ValidationError

from harness.broker.coordinator.placement import partition_of
from harness.errors import ClusterError, DeadlineError
from harness.values import OFFSETS_TOPIC
from harness.verdict import FaultVerdict
from tests.fake_cluster import FakeCluster
from tests.faults.injecting import heal, injected

CONFIRMED, MISMATCH, INCONCLUSIVE = FaultVerdict.CONFIRMED, FaultVerdict.MISMATCH, FaultVerdict.INCONCLUSIVE
ORDERS = ("orders", 0)
SOON = 0.1


class TestReassign:
    async def test_where_all_have_a_replica_one_has_none_until_it_is_healed(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "reassign", 1)
        assert (effect.verdict, effect.detail) == (CONFIRMED, "orders-0 moved from [0, 1, 2] to [0, 2]")
        assert cluster.assignments[ORDERS] == (0, 2)
        await heal(cluster, injection)
        assert cluster.assignments[ORDERS] == (0, 1, 2)

    async def test_a_live_broker_without_a_replica_takes_the_place(self, cluster: FakeCluster) -> None:
        cluster.assignments[ORDERS] = (1, 0)
        injection, _ = await injected(cluster, "reassign", 1)
        assert cluster.assignments[ORDERS] == (2, 0)
        assert injection.targets == (0, 1, 2)

    async def test_a_group_moves_with_its_partition(self, cluster: FakeCluster) -> None:
        cluster.assignments |= {(OFFSETS_TOPIC, 0): (1, 0), (OFFSETS_TOPIC, 1): (1, 0)}
        group = next(name for name in ("a", "b", "c", "d") if partition_of(name, 2) == 1)
        injection, effect = await injected(cluster, "reassign", 1, target=f"coordinator({group})")
        assert (effect.verdict, effect.detail) == (CONFIRMED, "__consumer_offsets-1 moved from [1, 0] to [2, 0]")
        await heal(cluster, injection)
        assert cluster.assignments[OFFSETS_TOPIC, 0] == cluster.assignments[OFFSETS_TOPIC, 1] == (1, 0)

    async def test_a_broker_that_has_no_replica_any_more_cannot_lose_it(self, cluster: FakeCluster) -> None:
        cluster.assignments[ORDERS] = (0, 2)
        with pytest.raises(ClusterError, match="broker 1 has no replica of orders-0 any more"):
            await injected(cluster, "reassign", 1)
        assert cluster.calls == []

    async def test_another_reassignment_is_waited_for(self, cluster: FakeCluster) -> None:
        cluster.znodes = {"/admin/reassign_partitions"}
        with pytest.raises(DeadlineError, match="the reassignment that was asked for before: not within"):
            await injected(cluster, "reassign", 1, done_timeout_s=SOON)

    @pytest.mark.parametrize(
        ("down", "verdict", "detail"),
        [
            pytest.param((), MISMATCH, "orders-0 on [0, 2]: not within", id="no reason is known"),
            pytest.param((2,), INCONCLUSIVE, "not registered: [2]", id="a new replica is down"),
        ],
    )
    async def test_one_that_does_not_end_is_no_pass(
        self, cluster: FakeCluster, down: tuple[int, ...], verdict: FaultVerdict, detail: str
    ) -> None:
        cluster.deaf = {"create /admin/reassign_partitions"}
        for broker in down:
            await cluster.kill_broker(broker)
        _, effect = await injected(cluster, "reassign", 1, done_timeout_s=SOON)
        assert effect.verdict is verdict
        assert detail in effect.detail

    async def test_a_partition_that_does_not_exist_ends_it(self, cluster: FakeCluster) -> None:
        with pytest.raises(ClusterError, match="there is no partition payments-3"):
            await injected(cluster, "reassign", 1, target="leader(payments,3)")


class TestDeleteTopic:
    async def test_a_topic_comes_and_goes_and_nobody_elses(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "delete-topic", 0, 2, target="0,2", partitions=2)
        assert (effect.verdict, effect.detail) == (CONFIRMED, "short-lived, 2 partitions on [0, 2], came and went")
        assert set(cluster.assignments) == {ORDERS}
        await heal(cluster, injection)
        assert [call for call in cluster.calls if "delete_topics" in call] == [
            "create /admin/delete_topics/short-lived"
        ]

    async def test_each_partition_prefers_another_broker(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"create /admin/delete_topics/short-lived"}
        await injected(cluster, "delete-topic", 0, 1, 2, target="all", done_timeout_s=SOON)
        preferred = [replicas[0] for (topic, _), replicas in cluster.assignments.items() if topic == "short-lived"]
        assert preferred == [0, 1, 2]

    async def test_a_topic_of_somebody_else_is_left_alone(self, cluster: FakeCluster) -> None:
        with pytest.raises(ClusterError, match="there is a topic orders already"):
            await injected(cluster, "delete-topic", 0, target="0", topic="orders")
        assert cluster.calls == []

    @pytest.mark.parametrize("topic", ["", "a/b", "x" * 250], ids=["none", "with a slash", "too long"])
    async def test_a_name_that_is_none_for_a_topic_is_refused(self, cluster: FakeCluster, topic: str) -> None:
        with pytest.raises(ValidationError, match="should match pattern"):
            await injected(cluster, "delete-topic", 0, target="0", topic=topic)

    async def test_a_topic_without_leaders_ends_it(self, cluster: FakeCluster) -> None:
        cluster.leader = -1
        with pytest.raises(DeadlineError, match="leaders of all 3 partitions of short-lived"):
            await injected(cluster, "delete-topic", 0, target="0", done_timeout_s=SOON)

    @pytest.mark.parametrize(
        ("down", "verdict"), [((), MISMATCH), ((2,), INCONCLUSIVE)], ids=["no reason is known", "a replica is down"]
    )
    async def test_a_deletion_that_does_not_end_is_no_pass(
        self, cluster: FakeCluster, down: tuple[int, ...], verdict: FaultVerdict
    ) -> None:
        cluster.deaf = {"create /admin/delete_topics/short-lived"}
        for broker in down:
            await cluster.kill_broker(broker)
        _, effect = await injected(cluster, "delete-topic", 1, 2, target="1,2", done_timeout_s=SOON)
        assert effect.verdict is verdict
