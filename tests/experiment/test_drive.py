import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.contracts.workloads import ClientPlan
from harness.errors import ClusterError, DeadlineError
from harness.experiment.drive import CreateTopics, DriveContext, create_topics, drive, while_in_place
from harness.experiment.load import Load
from harness.experiment.probes import ClientProgress
from harness.experiment.requests import Requests
from harness.progress import Silent
from harness.scenario.model import Scenario, TopicSpec
from harness.scenario.plan import Plan, PlannedClient
from harness.simulation.evidence import MemoryJournal
from harness.simulation.loop import run
from harness.simulation.network import Network
from harness.simulation.transport import MemoryTransport
from harness.store.history import Liveness
from harness.store.phase_log import PhaseNotes
from harness.store.recording import Recorder
from harness.store.result import forbidding
from tests.experiment.test_liveness_probe import FakeAsks, probe_of
from tests.experiment.test_nemesis import FakeFault, planned
from tests.fake_cluster import FakeCluster
from tests.simulation.scenarios import KILL_LEADER, scenario
from tests.undisturbed import Undisturbed


class Moving(ClientProgress):
    """One client that has always just ended something."""

    def look(self) -> None:
        self.moved.add("reader")


async def nothing_wrong(_topics: Sequence[TopicSpec]) -> dict[str, str]:
    return {}


@dataclass
class FakeClients(Undisturbed):
    """Starts and stops as the test says."""

    calls: list[str] = field(default_factory=list)
    start_error: ClusterError | None = None
    problems: dict[str, str] = field(default_factory=dict)

    async def start(self, plan: ClientPlan) -> None:
        self.calls.append(f"start {plan.process}")
        if self.start_error is not None:
            raise self.start_error

    async def stop(self, processes: Sequence[str], *, at_once: bool = False) -> dict[str, str]:
        self.calls.append(f"stop {', '.join(processes)}")
        return self.problems

    def progress(self) -> ClientProgress:
        return Moving()


@dataclass
class Played:
    """A drive over a fake cluster, in virtual time."""

    cluster: FakeCluster
    clients: FakeClients = field(default_factory=FakeClients)
    fault: FakeFault = field(default_factory=FakeFault)
    notes: PhaseNotes = field(default_factory=PhaseNotes)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    liveness: list[Liveness] = field(default_factory=list)
    made: Scenario = field(default_factory=lambda: scenario(KILL_LEADER, recovery_timeout_s=5.0))
    create_topics: CreateTopics = nothing_wrong
    looks_at_the_start: bool = False

    def play(self) -> float:
        """Drive, and return how long it took."""
        client = PlannedClient(process="reader", workload="w", role="r", seed=1, stop_order=0, parameters={})
        plan = Plan(scenario="x", seed=1, faults=[planned(at_s=1.0)], clients=[client])
        drive_context = DriveContext(
            context=self.cluster.context,
            load=Load(self.clients, plan, self.made.topics),
            journal=self.journal,
            faults={"fake": self.fault},
            create_topics=self.create_topics,
            probe=probe_of(FakeAsks(), self.liveness),
            requests=Requests(
                transport=MemoryTransport(Network(), "steps"),
                bootstrap=[],
                recorder=Recorder("steps", lambda _: None, lambda: 0),
            ),
            looks_at_the_start=self.looks_at_the_start,
        )

        async def timed() -> float:
            clock = asyncio.get_running_loop().time
            start_s = clock()
            await drive(drive_context, self.made, plan, Silent(), self.notes)
            return clock() - start_s

        return run(timed())


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(FakeCluster(root=tmp_path))


def test_the_load_is_held_for_as_long_as_the_scenario_says_and_then_ended(played: Played) -> None:
    assert played.play() == pytest.approx(played.made.duration_s, abs=1.0)
    assert played.clients.calls == ["start reader", "stop reader"]
    assert [entry.step for entry in played.journal.entries] == ["intended", "injected", "confirmed", "healed"]
    assert played.notes.remarks == []
    assert played.liveness
    assert all(each.shown for each in played.liveness)


def test_an_error_of_a_fault_is_its_answer_and_ends_nothing(played: Played) -> None:
    played.fault.raises = {"inject": RuntimeError("a bug")}
    assert played.play() == pytest.approx(played.made.duration_s, abs=1.0)
    assert [(entry.step, entry.detail) for entry in played.journal.entries] == [
        ("intended", ""),
        ("failed", "RuntimeError: a bug"),
        ("healed", ""),
    ]
    assert played.notes.remarks == []


def test_a_cluster_that_does_not_recover_is_a_remark_and_forbids_pass(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.fault.raises = {"heal": ClusterError("no")}
    heal = played.fault.heal

    async def leave_it_broken(*arguments: Any) -> None:
        played.cluster.isr = [1]
        await heal(*arguments)

    monkeypatch.setattr(played.fault, "heal", leave_it_broken)
    played.play()
    (remark,) = played.notes.remarks
    assert remark.text.startswith("after the last heal: steady state: not within 5 s")
    assert remark.forbids_pass
    (missing,) = (each for each in played.liveness if not each.shown)
    assert (missing.sign, missing.detail, missing.hindrance) == ("in_sync", "orders-0 has the ISR [1] of [0, 1, 2]", "")
    assert played.clients.calls[-1] == "stop reader"


@pytest.mark.parametrize(
    ("isr", "start_error", "message"),
    [
        pytest.param([1], None, "steady state: not within 60 s", id="no steady state before the first fault"),
        pytest.param([0, 1, 2], ClusterError("no room"), "no room", id="a client cannot be started"),
    ],
)
def test_whatever_ends_the_drive_ends_the_load_and_injects_nothing(
    played: Played, isr: list[int], start_error: ClusterError | None, message: str
) -> None:
    played.cluster.isr, played.clients.start_error = isr, start_error
    played.clients.problems = {"reader": "it failed"}
    with pytest.raises((ClusterError, DeadlineError), match=message):
        played.play()
    assert played.clients.calls[-1] == "stop reader"
    assert list(map(str, forbidding(played.notes.remarks))) == ["client reader: it failed"]
    assert played.journal.entries == []


async def refused(_topics: Sequence[TopicSpec]) -> dict[str, str]:
    return {"orders": "there is no controller"}


@pytest.mark.parametrize(
    ("create", "remark", "calls"),
    [
        pytest.param(refused, "topic orders was not created: there is no controller", [], id="a topic is not created"),
        pytest.param(
            nothing_wrong, "steady state: not within 60 s", ["start reader", "stop reader"], id="no steady state"
        ),
    ],
)
def test_in_virtual_time_a_cluster_that_does_not_serve_at_the_start_is_judged(
    played: Played, create: CreateTopics, remark: str, calls: list[str]
) -> None:
    played.cluster.isr, played.create_topics, played.looks_at_the_start = [1], create, True
    played.play()
    (note,) = played.notes.remarks
    assert note.text.startswith(f"before the first fault: {remark}")
    assert note.forbids_pass
    assert [each.detail for each in played.liveness if not each.shown] == ["orders-0 has the ISR [1] of [0, 1, 2]"]
    assert (played.clients.calls, played.journal.entries) == (calls, [])


@pytest.mark.parametrize(
    ("problems", "tries"),
    [
        pytest.param([{}], [["a", "b"]], id="at once"),
        pytest.param([{"b": "no controller"}, {}], [["a", "b"], ["b"]], id="those that are missing are tried again"),
    ],
)
def test_topics_are_created_until_all_are_there(problems: list[dict[str, str]], tries: list[list[str]]) -> None:
    attempts: list[list[str]] = []

    async def create(topics: Sequence[TopicSpec]) -> dict[str, str]:
        attempts.append([topic.name for topic in topics])
        return problems[len(attempts) - 1]

    run(create_topics(create, [TopicSpec(name=name, partitions=1) for name in "ab"]))
    assert attempts == tries


def test_a_topic_that_cannot_be_created_says_why() -> None:
    async def refuse(topics: Sequence[TopicSpec]) -> dict[str, str]:
        return {topic.name: "INVALID_REPLICATION_FACTOR" for topic in topics}

    with pytest.raises(ClusterError, match="topic a was not created: INVALID_REPLICATION_FACTOR"):
        run(create_topics(refuse, [TopicSpec(name="a", partitions=1)]))


class Work:
    """Goes on until it is cancelled, and cleans up until it is cancelled again."""

    def __init__(self) -> None:
        self.cancelled = 0

    async def __call__(self) -> None:
        for _ in range(2):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        raise ClusterError("the cluster is gone")


@pytest.mark.parametrize("how", [Path.rmdir, lambda folder: folder.rename(folder.with_name("elsewhere"))])
async def test_work_in_a_folder_that_is_moved_or_removed_ends_with_its_clean_up(
    tmp_path: Path, how: Callable[[Path], object]
) -> None:
    folder, work = tmp_path / "run", Work()
    folder.mkdir()
    working = asyncio.create_task(while_in_place(folder, work()))
    asyncio.get_running_loop().call_soon(how, folder)
    with pytest.raises(ClusterError, match=f"{folder} was moved or removed"):
        await working
    assert work.cancelled == 2


async def test_work_in_a_folder_that_stays_ends_as_it_would_alone(tmp_path: Path) -> None:
    async def refused() -> None:
        raise ClusterError("no")

    with pytest.raises(ClusterError, match=r"^no$"):
        await while_in_place(tmp_path, refused())
    working = asyncio.create_task(while_in_place(tmp_path, (work := Work())()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    working.cancel()
    with pytest.raises(ClusterError, match=r"^the cluster is gone$"):
        await working
    assert work.cancelled == 2, "one for the work, one for its clean-up"
