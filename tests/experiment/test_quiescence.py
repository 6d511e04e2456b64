from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.cluster.driver import BrokerStatus, ClusterStatus
from harness.cluster.supervision.client import SupervisorGone
from harness.errors import ClusterError
from harness.experiment import quiescence
from harness.experiment.quiescence import dump_settled, end_clients, patience_s
from harness.progress import Silent
from harness.scenario.file import read_scenario
from harness.scenario.plan import PlannedClient
from harness.store.folder import RunFolder
from harness.store.history import ReplicaState
from harness.store.phase_log import PhaseNotes
from harness.system.process_state import ProcessState
from harness.values import TopicPartition
from tests.brief import BRIEF
from tests.fake_cluster import FakeCluster
from tests.raising import raising

pytestmark = pytest.mark.real_time("threads of their own read disks")

ORDERS: TopicPartition = ("orders", 0)
Look = Callable[["Cluster"], None]
Change = Callable[["Cluster", pytest.MonkeyPatch], None]


@dataclass
class Cluster(FakeCluster):
    """A cluster with clients and logs; `looks` change it one after another, whenever its data are copied."""

    ends: dict[int, dict[TopicPartition, int]] = field(
        default_factory=lambda: {broker: {ORDERS: 7} for broker in range(3)}
    )
    running: dict[str, ProcessState] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    after_dump: list[Look] = field(default_factory=list)
    unstoppable: bool = False

    def _status(self, broker: int) -> BrokerStatus:
        return replace(super()._status(broker), log_dir=self.root / str(broker))

    def log_ends(self, log_dir: Path, prefix: str) -> dict[TopicPartition, int]:
        return {key: end for key, end in self.ends[int(log_dir.name)].items() if key[0].startswith(prefix)}

    async def copy_data(self) -> list[str]:
        if self.looks:
            self.looks.pop(0)(self)
        return await super().copy_data()

    def dump(self, status: ClusterStatus) -> list[ReplicaState]:
        self.calls.append("dump")
        if self.after_dump:
            self.after_dump.pop(0)(self)
        return [
            ReplicaState(broker=broker.broker_id, topic=topic, partition=partition, log_start_offset=0,
                         log_end_offset=end, high_watermark=0, recovery_point=0, leader_epochs=(), damage="")
            for broker in status.brokers
            for (topic, partition), end in self.ends[broker.broker_id].items()
        ]  # fmt: skip

    async def client_state(self, process: str) -> ProcessState:
        return self.running.get(process, ProcessState.STOPPED)

    async def stop_client(self, process: str, *, timeout_s: float, at_once: bool = False) -> int | None:
        self.calls.append(f"stop_client {process} when {self.running[process]}")
        if not self.unstoppable:
            del self.running[process]
        return 0

    async def resume_client(self, process: str) -> None:
        self.running[process] = ProcessState.RUNNING

    async def pause_client(self, process: str, *, at_most_s: float) -> None:
        raise AssertionError("nothing pauses a client")

    async def kill_client(self, process: str) -> None:
        raise AssertionError("nothing kills a client")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(root=tmp_path)
    monkeypatch.setattr(quiescence, "view_of_cluster", lambda *_: nullcontext(made))
    monkeypatch.setattr("harness.evidence.replicas.log_ends", made.log_ends)
    monkeypatch.setattr(quiescence, "POLL_S", 0.0)
    return made


def ends_at(broker: int, end: int) -> Look:
    return lambda cluster: cluster.ends[broker].update({ORDERS: end})


def stopped(broker: int) -> Look:
    return lambda cluster: cluster.states.update({broker: ProcessState.STOPPED})


def out_of_the_isr(broker: int) -> Look:
    return lambda cluster: cluster.isr.remove(broker)


def and_(*looks: Look) -> Look:
    def both(cluster: Cluster) -> None:
        for look in looks:
            look(cluster)

    return both


def nothing(_cluster: Cluster) -> None: ...


@pytest.mark.parametrize(
    ("looks", "after_dump", "dumps"),
    [
        pytest.param([], [], 1, id="all are equal at once"),
        pytest.param([ends_at(2, 5), nothing, ends_at(2, 7)], [], 1, id="a follower catches up"),
        pytest.param([], [ends_at(1, 8)], 2, id="the leader writes while they are dumped, which is done again"),
        pytest.param([and_(stopped(2), ends_at(2, 5)), out_of_the_isr(2)], [], 1, id="a dead one leaves the ISR"),
        pytest.param([and_(ends_at(2, 5), out_of_the_isr(2))], [], 1, id="one outside the ISR is not waited for"),
        pytest.param([lambda cluster: cluster.ends[1].clear()], [], 1, id="the leader has deleted it"),
    ],
)
async def test_replicas_are_dumped_once_they_have_caught_up(
    cluster: Cluster, looks: list[Look], after_dump: list[Look], dumps: int
) -> None:
    cluster.looks, cluster.after_dump = looks, after_dump
    if after_dump:
        cluster.looks = [nothing, and_(ends_at(0, 8), ends_at(2, 8))]
    notes = PhaseNotes()
    assert await dump_settled(cluster, cluster.dump, 600, Silent(), notes) == []
    assert (cluster.calls, notes.remarks, cluster.looks) == (["dump"] * dumps, [], [])


LAGS = "not caught up after 0 s: orders-0 ends at 5 on broker 2, at 7 on its leader 1"


@pytest.mark.parametrize(
    ("still_s", "unsettled"),
    [
        pytest.param(0.0, [], id="it stands still, and its leader should have removed it"),
        pytest.param(600.0, ["they were still changing when they were dumped"], id="it moved a moment ago"),
    ],
)
async def test_a_follower_that_does_not_catch_up_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, still_s: float, unsettled: list[str]
) -> None:
    monkeypatch.setattr(quiescence, "STILL_S", still_s)
    cluster.ends[2] = {ORDERS: 5}
    notes = PhaseNotes()
    assert await dump_settled(cluster, cluster.dump, 0, Silent(), notes) == unsettled
    (remark,) = notes.remarks
    assert (remark.text, remark.forbids_pass) == (LAGS, False)
    assert cluster.calls == ["dump"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(
            lambda cluster, _: cluster.states.update(dict.fromkeys(range(3), ProcessState.STOPPED)),
            "no broker ran when they were dumped, so none could catch up",
            id="all brokers are dead, as after their supervisor",
        ),
        pytest.param(
            lambda cluster, patch: patch.setattr(cluster, "partitions", raising(ClusterError("no quorum"))),
            "which of them were in sync is not known: no quorum",
            id="metadata cannot be read",
        ),
        pytest.param(
            lambda _, patch: patch.setattr(quiescence, "view_of_cluster", raising(ClusterError("no session"))),
            "which of them were in sync is not known: no session",
            id="nothing that has metadata can be reached",
        ),
        pytest.param(
            lambda cluster, _: cluster.after_dump.append(ends_at(0, 9)),
            "they were still changing when they were dumped",
            id="one is written while they are dumped",
        ),
    ],
)
async def test_replicas_that_may_lawfully_differ_are_dumped_with_the_reason(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Cluster, pytest.MonkeyPatch], None],
    reason: str,
) -> None:
    change(cluster, monkeypatch)
    assert await dump_settled(cluster, cluster.dump, 0, Silent(), PhaseNotes()) == [reason]
    assert cluster.calls == ["dump"]


async def test_of_what_cannot_be_copied_each_is_remarked_on_once(cluster: Cluster) -> None:
    cluster.out_of_reach = ["the disk of broker 2 is full"]
    cluster.looks = [ends_at(2, 5), ends_at(2, 7)]
    notes = PhaseNotes()
    await dump_settled(cluster, cluster.dump, 600, Silent(), notes)
    assert [(each.text, each.forbids_pass) for each in notes.remarks] == [("the disk of broker 2 is full", True)]


def client(process: str, stop_order: int) -> PlannedClient:
    return PlannedClient(process=process, workload="w", role="producer", seed=5, stop_order=stop_order, parameters={})


CLIENTS = [client("reader", 1), client("writer-1", 0), client("writer-2", 0), client("never-started", 0)]


@pytest.mark.parametrize(
    ("running", "calls"),
    [
        pytest.param({}, [], id="the drive has ended them"),
        pytest.param(
            {"reader": ProcessState.RUNNING, "writer-2": ProcessState.PAUSED},
            ["stop_client writer-2 when running", "stop_client reader when running"],
            id="those that run on are ended in their order, a frozen one too",
        ),
    ],
)
async def test_clients_that_nothing_drives_are_ended(
    cluster: Cluster, running: dict[str, ProcessState], calls: list[str]
) -> None:
    cluster.running = running
    assert await end_clients(RunFolder(cluster.root), CLIENTS, cluster, Silent(), PhaseNotes()) == []
    assert cluster.calls == calls


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(None, ["client reader still runs"], id="one survives"),
        pytest.param(SupervisorGone("no cluster runs"), [], id="the supervisor has ended, and all clients with it"),
        pytest.param(
            ClusterError("no answer"), ["whether the clients have ended is not known: no answer"], id="no answer"
        ),
    ],
)
async def test_clients_that_may_still_run_are_told_of(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, error: ClusterError | None, text: list[str]
) -> None:
    cluster.running, cluster.unstoppable = {"reader": ProcessState.RUNNING}, True
    if error:
        monkeypatch.setattr(cluster, "client_state", raising(error))
    assert await end_clients(RunFolder(cluster.root), CLIENTS, cluster, Silent(), PhaseNotes()) == text


def test_replicas_may_take_longer_than_a_leader_needs_to_shrink_its_isr() -> None:
    scenario = read_scenario(BRIEF + 'cluster: {properties: {replica.lag.time.max.ms: "40000"}}\n', "brief")
    assert patience_s(scenario) > 1.5 * 40
