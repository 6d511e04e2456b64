import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from harness.cluster.driver import ClusterStatus
from harness.contracts import registry
from harness.contracts.faults import Effect, FaultContext, Injection, confirmed
from harness.contracts.registry import Kind
from harness.contracts.targets import Role, parse_target
from harness.errors import ClusterError, DeadlineError
from harness.system.process_state import ProcessState
from harness.verdict import FaultVerdict
from tests.fake_cluster import FakeCluster
from tests.fake_members import FakeMembers
from tests.faults.injecting import heal, injected
from tests.raising import raising

SOON: dict[str, Any] = {"confirm_timeout_s": 0.1}
CONFIRMED, MISMATCH, INCONCLUSIVE = FaultVerdict.CONFIRMED, FaultVerdict.MISMATCH, FaultVerdict.INCONCLUSIVE


SMALL: dict[str, dict[str, object]] = {
    "unclean-election": {"lag_records": 1, "step_timeout_s": 0.05},
    "lose-zookeeper-reply": {"wait_s": 0.1},
    "clock": {"step_s": 60},
    "change-config": {"config": {"log.segment.bytes": "20000"}},
    "delete-controller-epoch": {"silent_s": 0.1},
    "overwrite-controller": {"silent_s": 0.1},
    "custom": {"fault": "slow-network"},
    "intercept": {"apis": ["Produce"], "action": "lose-answer"},
    "upgrade": {"to": "3.9.1"},
}
TARGETS = {
    "change-config": "all",
    "isolate-zookeeper": "zookeeper(1)",
    "kill-zookeeper": "zookeeper(1,2)",
    "leave": "member(group-1,2)",
    "delete-controller-epoch": "controller",
    "move-controller": "controller",
    "overwrite-controller": "controller",
    "pause-zookeeper": "zookeeper(1)",
}


async def in_force(cluster: FakeCluster, name: str) -> Injection:
    """Return an injection of a fault; an unclean election is only prepared, as nothing is written."""
    plugin = registry.fault(name)
    if name == "cancel-reassignment":
        cluster.assignments = {("orders", 0): (0, 1)}  # so that one broker has no replica
    if name == "upgrade":
        cluster.system = "kafka:3.3.2"  # ours has one release
    values = plugin.Parameters.model_validate(SMALL.get(name, {}))
    target = parse_target(TARGETS.get(name, "leader(orders,0)"))
    brokers = {Role.ZOOKEEPER: (), Role.MEMBER: (), Role.CONTROLLER: (0,)}.get(target.role, (1,))
    context = replace(cluster.context, members=FakeMembers(cluster)) if target.role is Role.MEMBER else cluster.context
    injection = await plugin.prepare(context, target, brokers, values, duration_s=0.5)
    return injection if name == "unclean-election" else await plugin.inject(context, injection)


@pytest.mark.parametrize("name", registry.names(Kind.FAULT))
async def test_healing_twice_is_as_good_as_once(cluster: FakeCluster, name: str) -> None:
    injection = await in_force(cluster, name)
    await heal(cluster, injection)
    calls = list(cluster.calls)
    await heal(cluster, injection)
    assert cluster.calls == calls
    assert set(cluster.states.values()) == {ProcessState.RUNNING}
    assert not any((cluster.isolated, cluster.separated, cluster.slow, cluster.full, cluster.losing, cluster.clocks))
    assert (cluster.limits, cluster.slow_disks, cluster.filtered) == ({}, {}, set())
    assert set(cluster.servers.values()) == {ProcessState.RUNNING}
    assert (cluster.servers_apart, cluster.commanded) == (set(), set())


@pytest.mark.parametrize("name", registry.names(Kind.FAULT))
async def test_an_injection_in_force_is_plain_data(cluster: FakeCluster, name: str) -> None:
    injection = await in_force(cluster, name)
    assert json.loads(json.dumps(asdict(injection))) == {**asdict(injection), "targets": list(injection.targets)}


class TestKill:
    async def test_it_is_confirmed_by_the_end_of_process_and_registration(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "kill", 1)
        assert effect == Effect(verdict=CONFIRMED, detail="process gone, registration of session 0x65 gone")
        assert cluster.states[1] == ProcessState.STOPPED
        await heal(cluster, injection)
        assert cluster.calls == ["kill_broker 1", "start_broker 1"]

    async def test_a_registration_that_stays_is_a_mismatch(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def kill_broker(broker: int) -> None:
            cluster.states[broker] = ProcessState.STOPPED

        monkeypatch.setattr(cluster, "kill_broker", kill_broker)
        _, effect = await injected(cluster, "kill", 1, **SOON)
        assert effect.verdict is MISMATCH
        assert "process gone, still registered by session 0x65" in effect.detail

    @pytest.mark.parametrize(
        ("stopped", "verdict"),
        [
            pytest.param({0}, CONFIRMED, id="one of three is left"),
            pytest.param(set(), MISMATCH, id="two of three are left"),
        ],
    )
    async def test_without_a_majority_of_controllers_the_end_of_its_process_is_enough(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, stopped: set[int], verdict: FaultVerdict
    ) -> None:
        async def kill_broker(broker: int) -> None:
            cluster.states |= dict.fromkeys((broker, *stopped), ProcessState.STOPPED)

        async def status() -> ClusterStatus:
            return replace(await as_it_is(), controllers=dict.fromkeys((0, 1, 2), "127.0.0.1:3"))

        as_it_is = cluster.status
        monkeypatch.setattr(cluster, "status", status)
        monkeypatch.setattr(cluster, "kill_broker", kill_broker)
        _, effect = await injected(cluster, "kill", 1, **SOON)
        assert effect.verdict is verdict

    @pytest.mark.parametrize("ends", [True, False])
    async def test_the_session_is_ended_for_it_if_that_is_asked_for(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, ends: bool
    ) -> None:
        async def kill_broker(broker: int) -> None:
            cluster.states[broker] = ProcessState.STOPPED

        monkeypatch.setattr(cluster, "kill_broker", kill_broker)
        _, effect = await injected(cluster, "kill", 1, **SOON, end_session=ends)
        assert effect.verdict is (CONFIRMED if ends else MISMATCH)

    async def test_a_broker_that_is_paused_can_be_killed(self, cluster: FakeCluster) -> None:
        await cluster.pause_broker(1, at_most_s=9)
        _, effect = await injected(cluster, "kill", 1)
        assert effect.verdict is CONFIRMED

    async def test_a_start_line_proves_it_too(self, cluster: FakeCluster) -> None:
        cluster.deaf = {"kill_broker"}
        cluster.say(1, ev="broker_start")
        plugin = registry.fault("kill")
        values = plugin.Parameters.model_validate(SOON)
        injection = await plugin.prepare(cluster.context, parse_target("1"), (1,), values, duration_s=1)
        assert (await plugin.confirm(cluster.context, injection)).verdict is MISMATCH
        cluster.say(1, ev="broker_start")
        assert (await plugin.confirm(cluster.context, injection)).detail == "a new process has started"

    async def test_a_broker_that_did_not_run_is_inconclusive(self, cluster: FakeCluster) -> None:
        await cluster.kill_broker(1)
        _, effect = await injected(cluster, "kill", 1, 2)
        assert effect == Effect(verdict=INCONCLUSIVE, detail="broker [1] did not run, nothing to kill")


async def test_a_pause_is_confirmed_by_the_state_of_every_process(cluster: FakeCluster) -> None:
    injection, effect = await injected(cluster, "pause", 0, 2)
    assert effect.verdict is CONFIRMED
    assert cluster.states == {0: ProcessState.PAUSED, 1: ProcessState.RUNNING, 2: ProcessState.PAUSED}
    assert injection.state == {"at_most_s": 1.5}
    await heal(cluster, injection)
    assert cluster.states[0] == ProcessState.RUNNING


MEMBER = "group-1-member-2"
OF_MEMBERS: dict[str, dict[str, Any]] = {"kill": SOON, "leave": {"step_timeout_s": 0.1}, "pause": {}}


@pytest.mark.parametrize(
    ("name", "client", "target", "calls"),
    [
        pytest.param("kill", MEMBER, "member(group-1,2)", ["kill {}", "start {}"], id="a member, killed and started"),
        pytest.param("leave", MEMBER, "member(group-1,2)", ["leave {}", "start {}"], id="a member, closed and started"),
        pytest.param(
            "pause", MEMBER, "member(group-1,2)", ["pause {} for 0.5", "resume {}"], id="a member, frozen and thawed"
        ),
        pytest.param("kill", "producer-1", "producer(1)", ["kill {}", "start {}"], id="a producer, killed and started"),
        pytest.param(
            "pause", "consumer-2", "consumer(2)", ["pause {} for 0.5", "resume {}"], id="a consumer, frozen and thawed"
        ),
    ],
)
@pytest.mark.parametrize("deaf", [False, True], ids=["it obeys", "nothing happens"])
async def test_clients(cluster: FakeCluster, name: str, client: str, target: str, calls: list[str], deaf: bool) -> None:
    plugin, members = registry.fault(name), FakeMembers(cluster, deaf=deaf)
    context = replace(cluster.context, members=members)
    values = plugin.Parameters.model_validate(OF_MEMBERS[name])
    injection = await plugin.inject(
        context, await plugin.prepare(context, parse_target(target), (), values, duration_s=0.5)
    )
    assert (await plugin.confirm(context, injection)).verdict is (MISMATCH if deaf else CONFIRMED)
    await plugin.heal(context, injection)
    await plugin.heal(context, injection)
    assert members.calls == [call.format(client) for call in (calls[:1] if deaf else calls)]
    assert not cluster.calls


class TestLeave:
    async def prepared(
        self, cluster: FakeCluster, members: FakeMembers, **parameters: object
    ) -> tuple[FaultContext, Injection]:
        plugin, context = registry.fault("leave"), replace(cluster.context, members=members)
        values = plugin.Parameters.model_validate({"step_timeout_s": 0.1, **parameters})
        target = parse_target("member(group-1,2)")
        return context, await plugin.prepare(context, target, (), values, duration_s=0.5)

    async def test_its_coordinator_tells_why_it_is_out_and_of_the_next_generation(self, cluster: FakeCluster) -> None:
        context, injection = await self.prepared(cluster, FakeMembers(cluster))
        effect = await registry.fault("leave").confirm(
            context, await registry.fault("leave").inject(context, injection)
        )
        assert effect == confirmed("client group-1-member-2 is out (left); then came generation 5")

    async def test_a_storm_is_so_many_ends_of_a_membership(self, cluster: FakeCluster) -> None:
        members = FakeMembers(cluster)
        context, injection = await self.prepared(cluster, members, times=3)
        effect = await registry.fault("leave").confirm(
            context, await registry.fault("leave").inject(context, injection)
        )
        assert effect == confirmed("client group-1-member-2 is out (left, left, left); then came generation 9")
        assert [call.split()[0] for call in members.calls] == ["leave", "start", "leave", "start", "leave"]

    async def test_others_that_leave_and_what_was_before_prove_nothing(self, cluster: FakeCluster) -> None:
        members = FakeMembers(cluster)
        await members.leave("group-1-member-2")
        await members.start_again("group-1-member-2")
        context, injection = await self.prepared(cluster, members)
        members.silent = True
        injection = await registry.fault("leave").inject(context, injection)
        members.silent = False
        await members.leave("group-1-member-3")
        effect = await registry.fault("leave").confirm(context, injection)
        assert effect.verdict is MISMATCH
        assert "1 ends and 0 beginnings of a membership of client group-1-member-2" in effect.detail

    @pytest.mark.parametrize(
        ("instance", "member", "reason", "verdict"),
        [
            pytest.param("", "group-1-member-2-1f", "left", CONFIRMED, id="it leaves"),
            pytest.param("", "group-1-member-2-1f", "session expired", MISMATCH, id="its session ends"),
            pytest.param("", "group-1-member-2-0f", "left", MISMATCH, id="another life of it leaves"),
            pytest.param("i2", "i2-1f", "session expired", CONFIRMED, id="an instance's session ends"),
            pytest.param("i2", "i2-0f", "session expired", MISMATCH, id="that of its life before ends"),
        ],
    )
    async def test_which_end_of_a_membership_counts(
        self, cluster: FakeCluster, instance: str, member: str, reason: str, verdict: FaultVerdict
    ) -> None:
        line = {"group": "group-1", "generation": 3, "change": "joined", "reason": ""}
        cluster.say(2, ev="group_member", member=f"{instance or 'group-1-member-2'}-0f", **line)
        cluster.say(1, ev="group_member", member=f"{instance or 'group-1-member-2'}-0f", **line | {"change": "removed"})
        context, injection = await self.prepared(cluster, FakeMembers(cluster, silent=True, instance=instance))
        injection = await registry.fault("leave").inject(context, injection)
        removed = {"group": "group-1", "generation": 4, "change": "removed", "reason": reason}
        cluster.say(0, ev="group_member", member=member, **removed)
        cluster.say(0, ev="group_state", group="group-1", generation=5)
        assert (await registry.fault("leave").confirm(context, injection)).verdict is verdict

    async def test_a_generation_must_follow(self, cluster: FakeCluster) -> None:
        context, injection = await self.prepared(cluster, FakeMembers(cluster, silent=True))
        line = {"group": "group-1", "generation": 4, "member": "group-1-member-2-1f", "reason": "left"}
        cluster.say(1, ev="group_member", change="removed", **line)
        cluster.say(2, ev="group_state", group="group-2", generation=5)
        injection = await registry.fault("leave").inject(context, injection)
        assert (await registry.fault("leave").confirm(context, injection)).verdict is MISMATCH
        cluster.say(2, ev="group_state", group="group-1", generation=5)
        assert (await registry.fault("leave").confirm(context, injection)).verdict is CONFIRMED

    async def test_a_member_that_does_not_come_back_cannot_leave_again(self, cluster: FakeCluster) -> None:
        context, injection = await self.prepared(cluster, FakeMembers(cluster, silent=True), times=2)
        with pytest.raises(DeadlineError, match="0 ends and 1 beginnings"):
            await registry.fault("leave").inject(context, injection)


@pytest.mark.parametrize("name", ["kill", "leave", "pause"])
async def test_a_member_that_does_not_run_is_left_alone(cluster: FakeCluster, name: str) -> None:
    plugin, members = registry.fault(name), FakeMembers(cluster)
    members.now = ProcessState.STOPPED
    target = parse_target("member(group-1,2)")
    for out_of_reach in (None, members):
        with pytest.raises(ClusterError, match="nothing was injected"):
            await plugin.prepare(
                replace(cluster.context, members=out_of_reach), target, (), plugin.Parameters(), duration_s=1
            )


class TestExpireSession:
    async def test_it_is_confirmed_by_a_new_owner_of_the_registration(self, cluster: FakeCluster) -> None:
        _, effect = await injected(cluster, "expire-session", 1)
        assert effect == Effect(verdict=CONFIRMED, detail="session 0x65 became 0xc8, czxid 200")

    async def test_of_the_controller_its_epoch_grows_too(self, cluster: FakeCluster) -> None:
        _, effect = await injected(cluster, "expire-session", 0)
        assert effect.verdict is CONFIRMED
        assert effect.detail.endswith("; broker 1 is controller in epoch 2, after 1")

    async def test_a_controller_without_a_successor_is_a_mismatch(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cluster, "elect", lambda: None)
        _, effect = await injected(cluster, "expire-session", 0, **SOON)
        assert effect.verdict is MISMATCH
        assert "a controller epoch above 1" in effect.detail

    async def test_a_broker_without_a_session_is_inconclusive(self, cluster: FakeCluster) -> None:
        await cluster.kill_broker(1)
        _, effect = await injected(cluster, "expire-session", 1)
        assert effect.verdict is INCONCLUSIVE


class TestControlledShutdown:
    async def test_it_is_confirmed_by_a_clean_stop_and_leaders_from_the_isr(self, cluster: FakeCluster) -> None:
        injection, effect = await injected(cluster, "controlled-shutdown", 1)
        assert effect == Effect(verdict=CONFIRMED, detail="clean stop after 1 partitions changed their leader")
        await heal(cluster, injection)
        assert cluster.states[1] == ProcessState.RUNNING

    @pytest.mark.parametrize(
        ("states", "why"),
        [
            pytest.param({}, "", id="nothing was in its way"),
            pytest.param({0: ProcessState.PAUSED}, "; the controller that it had to ask, broker 0, was away or deposed",
                         id="no controller to ask"),
            pytest.param({2: ProcessState.STOPPED}, "", id="a broker that is not needed is away"),
            pytest.param({0: ProcessState.STOPPED, 2: ProcessState.STOPPED},
                         "; no other broker ran all the time that it could hand over to",
                         id="no replica to hand over to"),
        ],
    )  # fmt: skip
    async def test_a_stop_that_was_not_controlled_is_a_mismatch_if_nothing_was_in_its_way(
        self, cluster: FakeCluster, states: dict[int, ProcessState], why: str
    ) -> None:
        cluster.controlled = False
        cluster.states |= states
        _, effect = await injected(cluster, "controlled-shutdown", 1)
        detail = f"broker 1 logged a stop that was not controlled{why}"
        assert effect == Effect(verdict=INCONCLUSIVE if why else MISMATCH, detail=detail)

    async def test_a_member_of_the_isr_that_was_away_for_a_while_explains_it_too(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster.controlled, cluster.isr = False, [1, 2]
        stop = cluster.stop_broker

        async def stopped(broker_id: int, *, timeout_s: float) -> None:
            await cluster.kill_broker(2)
            await cluster.start_broker(2)
            await stop(broker_id, timeout_s=timeout_s)

        monkeypatch.setattr(cluster, "stop_broker", stopped)
        _, effect = await injected(cluster, "controlled-shutdown", 1)
        assert effect.verdict is INCONCLUSIVE
        assert effect.detail.endswith("; no other member of the ISR of orders-0 ran all the time")

    @pytest.mark.parametrize(("tries_left", "verdict"), [(0, INCONCLUSIVE), (1, MISMATCH)])
    async def test_a_controller_that_does_not_let_it_go_explains_it(
        self, cluster: FakeCluster, tries_left: int, verdict: FaultVerdict, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster.controlled = False
        stop = cluster.stop_broker

        async def stopped(broker_id: int, *, timeout_s: float) -> None:
            for left in (2, tries_left):
                cluster.say(1, ev="leave_request", tries_left=left)
            await stop(broker_id, timeout_s=timeout_s)

        monkeypatch.setattr(cluster, "stop_broker", stopped)
        _, effect = await injected(cluster, "controlled-shutdown", 1)
        why = "" if tries_left else "; the controller did not let it go in 2 tries"
        assert effect == Effect(verdict=verdict, detail=f"broker 1 logged a stop that was not controlled{why}")

    async def test_a_controller_that_is_deposed_meanwhile_explains_a_stop_that_was_not_controlled(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster.controlled = False
        monkeypatch.setattr(cluster, "elect", lambda: setattr(cluster, "controller_id", 2))
        _, effect = await injected(cluster, "controlled-shutdown", 1)
        assert effect.detail.endswith("; the controller that it had to ask, broker 0, was away or deposed")

    async def test_a_broker_that_stops_late_is_a_mismatch_and_comes_back_once_it_has_ended(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = 0
        stop, status = cluster.stop_broker, cluster.status
        late = raising(DeadlineError("broker 1 did not stop within 0.1 s"))

        async def looked_at() -> ClusterStatus:
            nonlocal looks
            looks += 1
            if looks == 3:  # the heal's third look
                await stop(1, timeout_s=1)
            return await status()

        monkeypatch.setattr(cluster, "stop_broker", late)
        injection, effect = await injected(cluster, "controlled-shutdown", 1, stop_timeout_s=0.1)
        assert effect == Effect(verdict=MISMATCH, detail="broker 1 did not stop within 0.1 s")
        monkeypatch.setattr(cluster, "status", looked_at)
        await heal(cluster, injection)
        assert cluster.calls == ["stop_broker 1", "start_broker 1"]
        await heal(cluster, injection)
        assert cluster.states[1] == ProcessState.RUNNING

    async def test_a_broker_that_is_late_after_it_has_asked_is_inconclusive(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def late(broker_id: int, *, timeout_s: float) -> None:
            cluster.say(broker_id, ev="leave_request", tries_left=1)
            raise DeadlineError(f"broker {broker_id} did not stop within {timeout_s:g} s")

        monkeypatch.setattr(cluster, "stop_broker", late)
        _, effect = await injected(cluster, "controlled-shutdown", 1, stop_timeout_s=0.1)
        detail = "broker 1 did not stop within 0.1 s; it had asked the controller to let it go"
        assert effect == Effect(verdict=INCONCLUSIVE, detail=detail)

    async def test_an_older_stop_in_the_log_proves_nothing(self, cluster: FakeCluster) -> None:
        cluster.say(1, ev="broker_stop", controlled=True)
        cluster.deaf = {"stop_broker"}
        _, effect = await injected(cluster, "controlled-shutdown", 1, stop_timeout_s=0.1)
        assert effect == Effect(verdict=MISMATCH, detail="broker 1 logged no clean stop")

    @pytest.mark.parametrize(
        ("isr", "seen"),
        [
            pytest.param([0], "; the ISR of orders-0 has no member from before", id="alone, which I4 may forbid"),
            pytest.param([0, 2], "", id="it joined the ISR since"),
        ],
    )
    async def test_a_leader_that_was_outside_the_isr(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, isr: list[int], seen: str
    ) -> None:
        def elect() -> None:
            cluster.leader, cluster.isr = 0, isr

        cluster.isr = [1, 2]
        monkeypatch.setattr(cluster, "elect", elect)
        _, effect = await injected(cluster, "controlled-shutdown", 1)
        assert effect == confirmed(f"clean stop after 1 partitions changed their leader{seen}")

    async def test_a_partition_that_no_other_replica_can_lead_is_left_out(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def elect() -> None:
            cluster.leader, cluster.isr = -1, [1]

        monkeypatch.setattr(cluster, "elect", elect)
        _, effect = await injected(cluster, "controlled-shutdown", 1, stop_timeout_s=0.1)
        assert (effect.verdict, effect.detail) == (CONFIRMED, "clean stop after 0 partitions changed their leader")

    async def test_a_partition_that_keeps_its_leader_is_a_mismatch(
        self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cluster, "elect", lambda: None)
        _, effect = await injected(cluster, "controlled-shutdown", 1, stop_timeout_s=0.1)
        assert effect.verdict is MISMATCH
        assert "other leaders for the partitions it led" in effect.detail


class TestUncleanElection:
    @pytest.fixture
    def appending(self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
        """A cluster whose leader takes records alone, and where any replica may become leader."""
        real = cluster.status

        async def status() -> object:
            if cluster.isr == [1] and cluster.states[1] == ProcessState.RUNNING:
                append = {"ev": "append", "role": "leader", "isr_size": 1, "partition": 0}
                cluster.say(1, **append, topic="orders", base_offset=5, last_offset=10)
                cluster.say(1, **{**append, "isr_size": 3}, topic="orders", base_offset=0, last_offset=99)
                cluster.say(1, **append, topic="other", base_offset=0, last_offset=99)
            return await real()

        def elect() -> None:
            if cluster.leader not in cluster.sessions:
                cluster.leader = min(cluster.sessions, default=-1)
                cluster.leader_epoch += 1

        monkeypatch.setattr(cluster, "status", status)
        monkeypatch.setattr(cluster, "elect", elect)
        return cluster

    async def test_it_is_confirmed_by_a_leader_from_outside_the_isr(self, appending: FakeCluster) -> None:
        injection, effect = await injected(appending, "unclean-election", 1, lag_records=4, step_timeout_s=60)
        assert injection.targets == (1, 0, 2)
        assert effect.verdict is CONFIRMED
        assert effect.detail.startswith("broker 0, outside the ISR [1], leads in epoch 7 after 5")
        assert injection.state["lag_records"] == 6
        assert appending.calls == [
            "kill_broker 0", "kill_broker 2", "kill_broker 1", "start_broker 0", "start_broker 2",
        ]  # fmt: skip
        await heal(appending, injection)
        assert appending.calls[-1] == "start_broker 1"

    async def test_an_isr_that_does_not_shrink_ends_it(self, appending: FakeCluster) -> None:
        appending.deaf = {"kill_broker"}
        with pytest.raises(ClusterError, match="an ISR of the leader alone: not within"):
            await injected(appending, "unclean-election", 1, step_timeout_s=0.05)

    async def test_a_leader_that_takes_nothing_alone_ends_it(self, cluster: FakeCluster) -> None:
        with pytest.raises(ClusterError, match="10 records at the leader alone: not within"):
            await injected(cluster, "unclean-election", 1, step_timeout_s=0.05)

    async def test_no_new_leader_is_a_mismatch(self, appending: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(appending, "elect", lambda: None)
        _, effect = await injected(appending, "unclean-election", 1, lag_records=1, step_timeout_s=0.1)
        assert effect.verdict is MISMATCH
        assert "a leader from outside the ISR" in effect.detail
