"""Faults of the controller, and those that ask it or brokers for something."""

from typing import ClassVar

import pytest
from pydantic import ValidationError

from harness.contracts import registry
from harness.contracts.administration import ELECTIONS
from harness.contracts.targets import parse_target
from harness.errors import ClusterError, DeadlineError
from harness.kafka.placement import partition_of
from harness.system.process_state import ProcessState
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


class TestController:
    """What is done to the znodes by which a controller is one."""

    @pytest.mark.parametrize(
        ("names", "holds"),
        [
            pytest.param("another", '{"version":1,"brokerid":1,"timestamp":"0"}', id="another broker"),
            pytest.param("no-broker", '{"version":1,"brokerid":999999,"timestamp":"0"}', id="an unknown broker"),
            pytest.param("nonsense", "not a controller", id="no JSON"),
        ],
    )
    async def test_one_that_is_overwritten_is_followed_by_one_that_was_elected(
        self, cluster: FakeCluster, names: str, holds: str
    ) -> None:
        injection, effect = await injected(
            cluster, "overwrite-controller", 0, target="controller", silent_s=SOON, names=names
        )
        detail = f"/controller is {holds}, and no controller acted for 0.1 s"
        assert (effect.verdict, effect.detail) == (CONFIRMED, detail)
        await heal(cluster, injection)
        assert (cluster.written, cluster.controller_id, cluster.controller_epoch) == (b"", 1, 2)
        assert cluster.znodes == set()

    async def test_an_epoch_that_is_deleted_is_followed_by_a_later_one(self, cluster: FakeCluster) -> None:
        cluster.controller_epoch = 7
        injection, effect = await injected(cluster, "delete-controller-epoch", 0, target="controller", silent_s=SOON)
        detail = "/controller_epoch, which was 7, is gone, and the controller wrote nothing for 0.1 s"
        assert (effect.verdict, effect.detail) == (CONFIRMED, detail)
        await heal(cluster, injection)
        assert (cluster.controller_id, cluster.controller_epoch) == (1, 9)
        assert cluster.znodes == {"/controller_epoch"}

    @pytest.mark.parametrize(
        ("name", "deaf", "detail"),
        [
            pytest.param(
                "overwrite-controller",
                "write /controller",
                "/controller does not hold what was written",
                id="an overwriting that leaves no trace",
            ),
            pytest.param(
                "delete-controller-epoch",
                "delete /controller_epoch",
                "there is a /controller_epoch",
                id="an epoch that stays",
            ),
        ],
    )
    async def test_without_an_effect_it_is_a_mismatch(
        self, cluster: FakeCluster, name: str, deaf: str, detail: str
    ) -> None:
        cluster.deaf = {deaf}
        _, effect = await injected(cluster, name, 0, target="controller", silent_s=SOON)
        assert (effect.verdict, effect.detail) == (MISMATCH, detail)

    @pytest.mark.parametrize("name", ["overwrite-controller", "delete-controller-epoch"])
    async def test_a_controller_that_is_elected_meanwhile_leaves_it_open(self, cluster: FakeCluster, name: str) -> None:
        plugin, context = registry.fault(name), cluster.context
        values = plugin.Parameters.model_validate({"silent_s": SOON})
        before = await plugin.prepare(context, parse_target("controller"), (0,), values, duration_s=1)
        injection = await plugin.inject(context, before)
        cluster.epoch_gone, cluster.written, cluster.controller_epoch = False, b"", 4
        effect = await plugin.confirm(context, injection)
        assert (effect.verdict, "elected meanwhile" in effect.detail) == (INCONCLUSIVE, True)

    @pytest.mark.parametrize(("again", "verdict"), [(False, CONFIRMED), (True, MISMATCH)])
    async def test_a_controller_that_is_taking_over_may_carry_out_one_request(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, again: bool, verdict: FaultVerdict
    ) -> None:
        async def gone(_path: str) -> bool:
            return False

        plugin, context = registry.fault("overwrite-controller"), cluster.context
        values = plugin.Parameters.model_validate({"silent_s": SOON})
        before = await plugin.prepare(context, parse_target("controller"), (0,), values, duration_s=1)
        injection = await plugin.inject(context, before)
        cluster.znodes.discard(ELECTIONS)
        if again:
            monkeypatch.setattr(context.zookeeper, "exists", gone)
        assert (await plugin.confirm(context, injection)).verdict is verdict

    async def test_where_nobody_else_lives_nobody_can_be_named(self, cluster: FakeCluster) -> None:
        await cluster.kill_broker(1)
        await cluster.kill_broker(2)
        with pytest.raises(ClusterError, match="no other broker lives that could be named"):
            await injected(cluster, "overwrite-controller", 0, target="controller")


class TestPreferredElection:
    async def test_a_follower_leads_until_it_is_healed(self, cluster: FakeCluster) -> None:
        cluster.leader = 0
        injection, effect = await injected(cluster, "preferred-election", 0)
        assert effect.verdict is CONFIRMED
        assert "broker 1 leads orders-0 in epoch 6, as the preferred replica, after broker 0" in effect.detail
        assert cluster.assignments[ORDERS] == (1, 0, 2)
        await heal(cluster, injection)
        assert (cluster.leader, cluster.assignments[ORDERS]) == (0, (0, 1, 2))

    async def test_replicas_that_came_or_went_meanwhile_stay_so(self, cluster: FakeCluster) -> None:
        cluster.leader = 0
        injection, _ = await injected(cluster, "preferred-election", 0)
        cluster.assignments[ORDERS] = (1, 0)
        await heal(cluster, injection)
        assert cluster.assignments[ORDERS] == (0, 1)

    async def test_an_election_that_nobody_holds_is_a_mismatch(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"create /admin/preferred_replica_election"}
        _, effect = await injected(cluster, "preferred-election", 1, done_timeout_s=SOON)
        assert (effect.verdict, "broker 0 leading orders-0: not within" in effect.detail) == (MISMATCH, True)

    async def test_a_leader_without_followers_in_sync_has_no_successor(self, cluster: FakeCluster) -> None:
        cluster.isr = [1]
        with pytest.raises(ClusterError, match="the ISR of orders-0 has no member but its leader"):
            await injected(cluster, "preferred-election", 1)


class TestCancelReassignment:
    @pytest.fixture(autouse=True)
    def room(self, cluster: FakeCluster) -> None:
        cluster.assignments[ORDERS] = (0, 1)
        cluster.isr = [0, 1]

    async def test_a_move_that_has_begun_is_taken_back(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "cancel-reassignment", 1)
        assert effect.verdict is CONFIRMED
        assert effect.detail == "orders-0 was on its way to [0, 2], and is on [0, 1] again"
        assert (injection.targets, cluster.states[2]) == ((2,), ProcessState.PAUSED)
        await heal(cluster, injection)
        assert (cluster.assignments[ORDERS], cluster.states[2]) == ((0, 1), ProcessState.RUNNING)

    async def test_one_that_is_not_taken_back_is_a_mismatch_and_moved_back(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"cancel"}
        injection, effect = await injected(cluster, "cancel-reassignment", 1, done_timeout_s=SOON)
        assert (effect.verdict, "replicas [0, 1, 2]" in effect.detail) == (MISMATCH, True)
        await heal(cluster, injection)
        assert cluster.assignments[ORDERS] == (0, 1)

    async def test_one_that_was_done_before_leaves_it_open(self, cluster: FakeCluster) -> None:
        cluster.isr = [0, 1, 2]
        _, effect = await injected(cluster, "cancel-reassignment", 1)
        assert (effect.verdict, "had moved" in effect.detail) == (INCONCLUSIVE, True)

    async def test_where_all_have_a_replica_none_can_move(self, cluster: FakeCluster) -> None:
        cluster.assignments[ORDERS] = (0, 1, 2)
        with pytest.raises(ClusterError, match="every live broker has a replica of orders-0, or is controller"):
            await injected(cluster, "cancel-reassignment", 1)


class TestAddPartitions:
    async def test_they_are_spread_and_stay(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "add-partitions", 1, partitions=2)
        assert (effect.verdict, effect.detail) == (CONFIRMED, "orders has 2 more: partitions 1, 2 have leaders")
        await heal(cluster, injection)
        assert [*cluster.assignments.values()] == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]

    @pytest.mark.parametrize(
        ("parameters", "others"),
        [
            pytest.param({}, {"version": 3, "topic_id": "an-id"}, id="the topic keeps its id"),
            pytest.param({"without_topic_id": True}, {"version": 2}, id="an old tool leaves it out"),
        ],
    )
    async def test_what_is_written(
        self, cluster: FakeCluster, parameters: dict[str, bool], others: dict[str, object]
    ) -> None:
        await injected(cluster, "add-partitions", 1, target="1", topic="orders", **parameters)
        assert cluster.last_topic == {"partitions": {"0": [0, 1, 2], "1": [1, 2, 0]}, **others}

    async def test_brokers_that_are_named_take_a_topic(self, cluster: FakeCluster) -> None:
        with pytest.raises(ClusterError, match="there is no topic '' to add partitions to"):
            await injected(cluster, "add-partitions", 1, target="1")

    async def test_those_without_leaders_are_a_mismatch(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"write /brokers/topics/orders"}
        _, effect = await injected(cluster, "add-partitions", 1, done_timeout_s=SOON)
        assert (effect.verdict, "leaders of what orders got" in effect.detail) == (MISMATCH, True)

    async def test_it_takes_a_broker_for_each_replica(self, cluster: FakeCluster) -> None:
        await cluster.kill_broker(2)
        with pytest.raises(ClusterError, match="2 brokers live, and partitions of orders have 3 replicas"):
            await injected(cluster, "add-partitions", 1)


class TestChangeConfig:
    SET: ClassVar[dict[str, str]] = {"log.segment.bytes": "20000"}

    async def test_each_broker_is_changed_and_has_its_own_value_again(self, cluster: FakeCluster) -> None:
        cluster.configs[4, "2"] = {"log.segment.bytes": "7000", "log.roll.ms": "9"}
        injection, effect = await injected(cluster, "change-config", 0, 2, target="0,2", config=self.SET)
        detail = "brokers [0, 2] say that each has log.segment.bytes=20000"
        assert (effect.verdict, effect.detail) == (CONFIRMED, detail)
        await heal(cluster, injection)
        assert cluster.configs == {(4, "0"): {}, (4, "2"): {"log.segment.bytes": "7000", "log.roll.ms": "9"}}

    async def test_one_whose_session_has_just_ended_is_asked_again(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"expired once"}
        _, effect = await injected(cluster, "change-config", 1, target="1", config=self.SET)
        assert (effect.verdict, cluster.deaf) == (CONFIRMED, set())

    async def test_a_topic_is_changed_once(self, cluster: FakeCluster) -> None:
        config = {"min.insync.replicas": "2"}
        injection, effect = await injected(cluster, "change-config", 0, 1, target="0,1", topic="orders", config=config)
        assert effect.verdict is CONFIRMED
        assert cluster.configs == {(2, "orders"): config}
        await heal(cluster, injection)
        assert cluster.configs == {(2, "orders"): {}}

    @pytest.mark.parametrize(
        ("deaf", "error", "message"),
        [
            pytest.param("refuse", ClusterError, "broker 1 refuses .*: invalid", id="it refuses"),
            pytest.param("alter", DeadlineError, "at broker 1: not within", id="it says that it has, and has not"),
        ],
    )
    async def test_a_broker_that_does_not_change_ends_it(
        self, cluster: FakeCluster, deaf: str, error: type[ClusterError], message: str
    ) -> None:
        cluster.deaf = {deaf}
        with pytest.raises(error, match=message):
            await injected(cluster, "change-config", 1, target="1", config=self.SET, done_timeout_s=SOON)
