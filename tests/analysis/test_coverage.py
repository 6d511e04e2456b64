"""What a run tried and saw, counted from lines that are made by hand."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.coverage.count import coverage_of, record
from harness.analysis.coverage.transitions import POSSIBLE
from harness.contracts.faults import Injection
from harness.contracts.members import CLIENT
from harness.events import (
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    ControllerElected,
    Election,
    Event,
    Fenced,
    IsrResult,
    OffsetFetch,
    PartitionState,
    PartitionStateChange,
    ZkSession,
)
from harness.run.journal import entry_of
from harness.store.coverage import Coverage, Played, When
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep, OpKind, OpType
from harness.values import OFFSETS_TOPIC
from tests.analysis.run_folders import RunWriter, write_intact_run

START = BrokerStart(config_digest="", clean_marker=False, planted_bugs=[])
REGISTERED = BrokerRegistered(czxid=7)
STOP = BrokerStop(controlled=True)
SESSION = [ZkSession(state=state) for state in ("connected", "suspended", "lost", "connected", "reinit")]


def leads(topic: str = "orders", partition: int = 0, epoch: int = 0) -> BecomeLeader:
    return BecomeLeader(
        topic=topic,
        partition=partition,
        leader_epoch=epoch,
        previous_leader_epoch=-1,
        log_start_offset=0,
        high_watermark=0,
        log_end_offset=0,
        isr=[0, 1],
        zk_version=0,
    )


def follows(leader: int, topic: str = "orders", partition: int = 0) -> BecomeFollower:
    return BecomeFollower(
        topic=topic,
        partition=partition,
        leader=leader,
        leader_epoch=0,
        previous_leader_epoch=-1,
        log_start_offset=0,
        high_watermark=0,
        log_end_offset=0,
    )


def moved(before: str, after: str) -> PartitionStateChange:
    return PartitionStateChange(topic="orders", partition=0, from_state=before, to_state=after, controller_epoch=1)


def isr(*members: int, result: str = "ok") -> IsrResult:
    return IsrResult(
        topic="orders",
        partition=0,
        kind="shrink",
        leader_epoch=0,
        old=[0, 1],
        new=list(members),
        zk_version=1,
        result=result,
        new_zk_version=2,
    )


def elected(*members: int) -> Election:
    state = PartitionState(leader=0, leader_epoch=0, isr=list(members), zk_version=0, controller_epoch=1)
    return Election(
        topic="orders",
        partition=0,
        strategy="offline",
        trigger="",
        controller_epoch=1,
        previous=None,
        online=[0],
        shutting_down=[],
        assigned=[0, 1],
        profile="2.5",
        unclean_allowed=False,
        unclean=False,
        result=state,
        error="",
    )


def fenced(api: str, error: int) -> Fenced:
    return Fenced(what="leader_epoch", api=api, topic="orders", partition=0, got=1, have=2, sender=1, error=error)


@dataclass
class RunEvidence:
    """A run folder, a line after the other."""

    writer: RunWriter

    def events(self, broker: int, *events: Event) -> None:
        for event in events:
            self.writer.clock.tick()
            self.writer.event(broker, event)

    def journal(self, number: int, step: InjectionStep, *brokers: int, **state: Any) -> None:
        injection = Injection(fault="kill", targets=brokers, parameters={}, state=state)
        entry = entry_of(self.writer.clock.tick(), number, "kill", step, injection, "")
        self.writer.writer(self.writer.folder.journal).write(entry)

    def confirmed(self, number: int, *brokers: int, **state: Any) -> None:
        for step in (InjectionStep.INTENDED, InjectionStep.INJECTED, InjectionStep.CONFIRMED):
            self.journal(number, step, *brokers, **state)

    def coverage(self) -> Coverage:
        self.writer.close()
        return coverage_of(self.writer.folder)

    def injected(self) -> dict[tuple[Played, When], tuple[int, int]]:
        return {(each.role, each.when): (each.tried, each.confirmed) for each in self.coverage().injected}


@pytest.fixture
def evidence(tmp_path: Path) -> RunEvidence:
    return RunEvidence(RunWriter(RunFolder(tmp_path)))


@pytest.mark.parametrize(
    ("events", "transitions"),
    [
        pytest.param([START, REGISTERED, STOP], {"Started → Registered": 1, "Registered → Stopped": 1}, id="stopped"),
        pytest.param(
            [START, REGISTERED, START, REGISTERED], {"Started → Registered": 2, "Registered → Dead": 1}, id="killed"
        ),
        pytest.param(
            [START, SESSION[0], REGISTERED, *SESSION[1:], REGISTERED],
            {"Started → Registered": 1, "Registered → Unregistered": 1, "Unregistered → Registered": 1},
            id="its session ended",
        ),
    ],
)
def test_a_broker_lives_and_dies(evidence: RunEvidence, events: list[Event], transitions: dict[str, int]) -> None:
    evidence.events(1, *events)
    assert evidence.coverage().transitions["broker"] == transitions


def test_a_state_machine_is_written_without_its_name(evidence: RunEvidence) -> None:
    evidence.events(1, moved("NewPartition", "OnlinePartition"), isr(0), isr(0, result="badversion"), *SESSION)
    transitions = evidence.coverage().transitions
    assert transitions["partition"] == {"New → Online": 1}
    assert transitions["ISR"] == {"shrink: ok": 1, "shrink: badversion": 1}
    assert transitions["ZooKeeper session"].keys() <= POSSIBLE["ZooKeeper session"]
    assert sum(transitions["ZooKeeper session"].values()) == 4


def test_errors_have_names_and_an_answer_counts_once(evidence: RunEvidence) -> None:
    evidence.events(
        1,
        OffsetFetch(group="g", topic="orders", partition=0, offset=-1, error=16),
        OffsetFetch(group="g", topic="orders", partition=0, offset=3, error=0),
        fenced("Fetch", 74),
        fenced("OffsetForLeaderEpoch", 74),
        fenced("Fetch", 999),
    )
    evidence.writer.operation("p0", OpKind.SEND, OpType.INFO, 0, error="_MSG_TIMED_OUT: Local: Message timed out")
    evidence.writer.operation("p0", OpKind.COMMIT, OpType.OK, 1)
    assert evidence.coverage().errors == {
        "OffsetFetch": {"NOT_COORDINATOR": 1},
        "Fetch": {"FENCED_LEADER_EPOCH": 1, "999": 1},
        "client's send": {"_MSG_TIMED_OUT": 1},
    }


@pytest.mark.parametrize(
    ("events", "roles"),
    [
        pytest.param([], {Played.NONE}, id="a broker of which nothing is known has no role"),
        pytest.param([(0, leads())], {Played.LEADER}, id="a leader leads"),
        pytest.param([(1, leads()), (0, follows(1))], {Played.FOLLOWER}, id="a follower follows"),
        pytest.param(
            [(0, leads()), (0, leads(partition=1)), (1, leads(epoch=1))],
            {Played.LEADER, Played.FOLLOWER},
            id="a broker that leads one and lost another is both",
        ),
        pytest.param(
            [(0, ControllerElected(controller_epoch=1, epoch_zk_version=1))], {Played.CONTROLLER}, id="a controller"
        ),
        pytest.param(
            [(0, leads(OFFSETS_TOPIC)), (0, OffsetFetch(group="g", topic="o", partition=0, offset=0, error=0))],
            {Played.NONE},
            id="an offsets topic without groups makes no coordinator",
        ),
        pytest.param([(0, leads()), (0, STOP)], {Played.NONE}, id="a broker that is down has no part"),
        pytest.param(
            [(0, leads()), (1, moved("OfflinePartition", "NonExistentPartition"))],
            {Played.NONE},
            id="a deleted topic has no leader",
        ),
    ],
)
def test_a_target_is_what_it_is_when_the_fault_begins(
    evidence: RunEvidence, events: list[tuple[int, Event]], roles: set[Played]
) -> None:
    for broker, event in events:
        evidence.events(broker, event)
    evidence.confirmed(0, 0)
    evidence.events(0, leads(partition=5), ControllerElected(controller_epoch=9, epoch_zk_version=9))
    assert {role for role, _ in evidence.injected()} == roles


@pytest.mark.parametrize(
    ("state", "role"),
    [
        pytest.param({"servers": [2, 3]}, Played.ZOOKEEPER, id="servers of ZooKeeper"),
        pytest.param({CLIENT: "member-1"}, Played.CLIENT, id="a client"),
    ],
)
def test_who_is_no_broker_is_known_by_the_journal(evidence: RunEvidence, state: dict[str, Any], role: Played) -> None:
    evidence.confirmed(0, **state)
    assert evidence.injected() == {(role, When.QUIET): (1, 1)}


def test_a_fault_counts_in_the_roles_that_it_was_aimed_at(evidence: RunEvidence) -> None:
    evidence.events(0, leads())
    evidence.events(1, follows(0))
    evidence.events(2, ControllerElected(controller_epoch=1, epoch_zk_version=1))
    evidence.confirmed(0, 0, 1, 2, aimed_at=[1])
    assert evidence.injected() == {(Played.FOLLOWER, When.QUIET): (1, 1)}


class TestWhen:
    """What else was the matter."""

    def test_a_fault_under_another_is_told_from_one_after_it(self, evidence: RunEvidence) -> None:
        evidence.events(0, leads())
        evidence.confirmed(0, 0)
        evidence.journal(1, InjectionStep.INTENDED, 0)
        evidence.journal(0, InjectionStep.HEALED, 0)
        evidence.journal(1, InjectionStep.HEALED, 0)
        evidence.confirmed(2, 0)
        assert evidence.injected() == {(Played.LEADER, When.QUIET): (2, 2), (Played.LEADER, When.ANOTHER): (1, 0)}

    @pytest.mark.parametrize(
        ("events", "when"),
        [
            pytest.param([elected(0, 1)], When.QUIET, id="every replica is in sync"),
            pytest.param([elected(0, 1), isr(0)], When.RECOVERING, id="one is not"),
            pytest.param([elected(0, 1), isr(0, result="badversion")], When.QUIET, id="it was not taken out after all"),
            pytest.param([elected(0, 1), isr(0), isr(0, 1)], When.QUIET, id="it has come back"),
            pytest.param([elected(0)], When.RECOVERING, id="a leader was elected alone"),
            pytest.param([isr(0)], When.QUIET, id="how many there should be was not told"),
        ],
    )
    def test_replicas_that_are_behind_are_seen(self, evidence: RunEvidence, events: list[Event], when: When) -> None:
        evidence.events(0, leads(), *events)
        evidence.confirmed(0, 0)
        assert evidence.injected() == {(Played.LEADER, when): (1, 1)}


TORN = (
    '{"ev":"broker_stop"',
    '{"ev":"become_leader","broker":1,"mono":3}',
    '{"ev":"election","broker":1}',
    '"ev":"hw"',
)
TORN_STEPS = ('{"injection":0}', "[1]", '{"injection":1,"step":"intended","time_ns":5,"targets":5,"state":{}}', "{torn")


def test_lines_that_nobody_can_read_count_for_nothing(evidence: RunEvidence) -> None:
    evidence.events(1, START, REGISTERED)
    evidence.confirmed(7, 1)
    evidence.writer.close()
    folder = evidence.writer.folder
    for path, lines in ((folder.state_change_log(1), TORN), (folder.journal, TORN_STEPS)):
        evidence.writer.raw(path, "\n".join(lines))
    coverage = coverage_of(folder)
    assert [(each.role, each.confirmed) for each in coverage.injected] == [(Played.NONE, 1)]
    assert coverage.transitions == {"broker": {"Started → Registered": 1}}


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    folder = write_intact_run(tmp_path)
    assert Coverage.load(folder.coverage) is None
    record(folder)
    assert Coverage.load(folder.coverage) == coverage_of(folder)
