import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.contracts.faults import Injection
from harness.contracts.registry import fault
from harness.contracts.workloads import ClientPlan
from harness.errors import ClusterError
from harness.experiment.liveness_probe import RETRIES_S, Probe, Terms, Watch, in_force
from harness.experiment.load import Load
from harness.experiment.machine import Busyness, ThisMachine
from harness.experiment.probes import ClientProgress
from harness.scenario.plan import Plan, PlannedClient
from harness.simulation.evidence import now_ns
from harness.simulation.loop import run
from harness.store.history import Liveness, Sign
from harness.system.process_state import ProcessState
from harness.values import OFFSETS_TOPIC, TopicPartition
from tests.fake_cluster import FakeCluster
from tests.simulation.scenarios import scenario
from tests.undisturbed import Undisturbed

ORDERS = ("orders", 0)
S = 1_000_000_000


@dataclass
class FakeAsks:
    """A cluster that does everything at once, but for what is wrong with it."""

    wrong: dict[str, str] = field(default_factory=dict)
    """By sign."""
    after: int = 10**9
    """Questions after which nothing is wrong any more."""
    dark: set[int] = field(default_factory=set)
    """Brokers with a log directory that is offline."""
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)

    def _problem(self, sign: str) -> str:
        self.questions.append(sign)
        return self.wrong.get(sign, "") if self.questions.count(sign) <= self.after else ""

    async def produce(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        problems = {key: self._problem("produce") for key in partitions}
        self.offsets |= {key: 7 for key, problem in problems.items() if not problem}
        return problems

    async def fetch(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, str]:
        return {key: self._problem("fetch") for key in partitions}

    async def commit(self, groups: Sequence[int], of: int, partitions: Sequence[TopicPartition]) -> dict[int, str]:
        return {number: self._problem("commit") for number in groups}

    async def offline(self, broker_id: int) -> bool:
        return broker_id in self.dark


class Busy:
    def busyness(self) -> Busyness:
        return Busyness(cpu_percent=99, load_percent=321)


def probe_of(ask: FakeAsks, written: list[Liveness]) -> Probe:
    return Probe(ask=ask, machine=Busy(), clock_ns=now_ns, write=written.append, patience=1.0)


@dataclass
class Reader(ClientProgress):
    """Has read to one offset, if it lives."""

    offset: int = 7
    lives: bool = True
    works: bool = True

    def look(self) -> None:
        if self.lives:
            self.alive.add("consumer-1")
            self.moved |= {"consumer-1"} if self.works else set()
            self.read["consumer-1", "orders", 0] = self.offset


@dataclass
class Readers(Undisturbed):
    reader: Reader = field(default_factory=Reader)

    async def start(self, plan: ClientPlan) -> None: ...

    async def stop(self, processes: Sequence[str], *, at_once: bool = False) -> dict[str, str]:
        return {}

    def progress(self) -> ClientProgress:
        return self.reader


@dataclass
class Peace:
    """A cluster that is watched since its last heal."""

    cluster: FakeCluster
    ask: FakeAsks = field(default_factory=FakeAsks)
    reader: Reader = field(default_factory=Reader)
    changes: dict[str, Any] = field(default_factory=dict)
    """Of the scenario."""
    in_force: str = ""
    meanwhile: Callable[[FakeCluster], object] = id
    """What happens between the heal and the questions."""
    written: list[Liveness] = field(default_factory=list)
    took_s: float = 0.0

    def watch(self) -> list[str]:
        """Watch it, and return what is missing."""
        made = scenario(**self.changes)
        client = PlannedClient(process="consumer-1", workload="w", role="consumer", seed=1, stop_order=1, parameters={})
        plan = Plan(scenario="x", seed=1, faults=[], clients=[client])
        watch = Watch(
            context=self.cluster.context,
            load=Load(Readers(self.reader), plan, made.topics),
            probe=probe_of(self.ask, self.written),
            terms=Terms.of(made),
            in_force=self.in_force,
        )

        async def timed() -> list[str]:
            start_s = asyncio.get_running_loop().time()
            await watch.begin()
            await asyncio.sleep(1)
            self.meanwhile(self.cluster)
            missing = await watch.finish()
            self.took_s = asyncio.get_running_loop().time() - start_s
            return missing

        return run(timed())

    def missing(self) -> dict[Sign, Liveness]:
        return {each.sign: each for each in self.written if not each.shown}


@pytest.fixture
def peace(tmp_path: Path) -> Peace:
    return Peace(FakeCluster(root=tmp_path))


def test_nobody_is_accused_where_no_server_can_reach_another_one(peace: Peace) -> None:
    peace.cluster.severed = "the relay ended"
    with pytest.raises(ClusterError, match="the relay ended"):
        peace.watch()
    assert peace.written == []


def test_an_intact_cluster_shows_every_sign_at_once(peace: Peace) -> None:
    assert peace.watch() == []
    assert peace.took_s == pytest.approx(1)
    assert {(each.sign, each.broker, each.topic, each.partition, each.process) for each in peace.written} == {
        *((Sign.REGISTERED, broker, "", -1, "") for broker in range(3)),
        *((sign, -1, *ORDERS, "") for sign in (Sign.LED, Sign.IN_SYNC, Sign.PRODUCE, Sign.FETCH)),
        (Sign.READ, -1, *ORDERS, "consumer-1"),
        (Sign.COMMIT, -1, OFFSETS_TOPIC, 0, ""),
        (Sign.WORK, -1, "", -1, "consumer-1"),
    }
    assert all(each.shown and each.since_ns == each.time_ns for each in peace.written)


def test_what_was_had_once_is_not_asked_for_again(peace: Peace) -> None:
    peace.ask = FakeAsks(wrong={"commit": "COORDINATOR_LOAD_IN_PROGRESS"}, after=3)
    assert peace.watch() == []
    assert [peace.ask.questions.count(sign) for sign in ("produce", "fetch", "commit")] == [1, 1, 4]


def leaves(cluster: FakeCluster) -> None:
    del cluster.sessions[2]


def loses_its_leader(cluster: FakeCluster) -> None:
    cluster.leader = -1


def leads_without_session(cluster: FakeCluster) -> None:
    del cluster.sessions[1]


def shrinks(cluster: FakeCluster) -> None:
    cluster.isr = [0, 1]


def loses_its_state(cluster: FakeCluster) -> None:
    cluster.assignments = {}


@pytest.mark.parametrize(
    ("meanwhile", "sign", "detail"),
    [
        pytest.param(leaves, "registered", "broker 2 runs and is not registered", id="a broker does not come back"),
        pytest.param(loses_its_leader, "led", "orders-0 has no leader; its ISR is [0, 1, 2]", id="no leader"),
        pytest.param(
            leads_without_session,
            "led",
            "orders-0 has the leader 1, which is not registered; its ISR is [0, 1, 2]",
            id="a leader without a session",
        ),
        pytest.param(shrinks, "in_sync", "orders-0 has the ISR [0, 1] of [0, 1, 2]", id="a replica out of the ISR"),
        pytest.param(loses_its_state, "led", "orders-0 has no state", id="a partition without a state"),
    ],
)
def test_what_is_missing_in_zookeeper_is_waited_for_and_written_down(
    peace: Peace, meanwhile: Callable[[FakeCluster], object], sign: str, detail: str
) -> None:
    peace.meanwhile = meanwhile
    assert detail in peace.watch()
    line = peace.missing()[Sign(sign)]
    assert (line.detail, line.hindrance) == (detail, "")
    assert peace.took_s == pytest.approx(Terms.of(scenario()).quiet_s, abs=1)
    assert (line.cpu_percent, line.load_percent, line.late_ms) == (99, 321, 0)
    assert line.since_ns == line.healed_ns == line.time_ns - round(peace.took_s * S)


@pytest.mark.parametrize(
    ("wrong", "detail"),
    [
        pytest.param("produce", "orders-0: NOT_ENOUGH_REPLICAS", id="no record is acknowledged"),
        pytest.param("fetch", "orders-0: NOT_ENOUGH_REPLICAS", id="none is served"),
        pytest.param("commit", "a group in __consumer_offsets-0: NOT_ENOUGH_REPLICAS", id="no commit is taken"),
    ],
)
def test_what_clients_do_not_get_is_missing(peace: Peace, wrong: str, detail: str) -> None:
    peace.ask = FakeAsks(wrong={wrong: "NOT_ENOUGH_REPLICAS"})
    assert peace.watch() == [detail]
    assert peace.missing()[Sign(wrong)].detail == detail


def test_a_reader_that_lags_is_missing_and_one_that_is_dead_is_no_sign_of_the_cluster(peace: Peace) -> None:
    peace.reader = Reader(offset=6)
    assert peace.watch() == ["consumer-1 has read orders-0 to offset 6, and 7 is acknowledged"]
    peace.reader = Reader(lives=False)
    assert peace.watch() == []
    assert {each.sign: each.hindrance for each in peace.written if each.hindrance} == {
        Sign.READ: "consumer-1 itself has stopped reading",
        Sign.WORK: "consumer-1 itself begins nothing",
    }


def test_a_client_that_completes_nothing_is_missing_unless_a_broker_does_not_run(peace: Peace) -> None:
    peace.reader = Reader(works=False)
    assert peace.watch() == ["consumer-1 has completed nothing"]
    peace.meanwhile = stops
    assert peace.watch() == []
    assert peace.missing()[Sign.WORK].hindrance == "brokers [2] do not run with their log directories"


def stops(cluster: FakeCluster) -> None:
    cluster.states[2] = ProcessState.STOPPED
    del cluster.sessions[2]
    cluster.isr = [0, 1]


def stop_the_last(cluster: FakeCluster) -> None:
    cluster.states[2] = ProcessState.STOPPED
    del cluster.sessions[2]
    cluster.isr, cluster.leader = [2], -1


def empty_the_isr(cluster: FakeCluster) -> None:
    cluster.isr, cluster.leader = [], -1


UNCLEAN = {"topics": [{"name": "orders", "partitions": 1, "config": {"unclean.leader.election.enable": True}}]}
ALL_IN_SYNC = {"topics": [{"name": "orders", "partitions": 1, "config": {"min.insync.replicas": 3}}]}


@pytest.mark.parametrize(
    ("meanwhile", "wrong", "more", "hindrance"),
    [
        pytest.param(stop_the_last, "led", {}, "none of [2], which may lead, runs", id="the last of the ISR is dead"),
        pytest.param(stop_the_last, "led", {"changes": UNCLEAN}, "", id="it is, and others may lead"),
        pytest.param(empty_the_isr, "led", {}, "", id="an empty ISR is the cluster's own doing"),
        pytest.param(
            shrinks,
            "in_sync",
            {"ask": FakeAsks(dark={2})},
            "the log directories of brokers [2] are offline",
            id="the disk of the missing broker is broken",
        ),
        pytest.param(shrinks, "in_sync", {"ask": FakeAsks(dark={1})}, "", id="another disk is"),
        pytest.param(
            stops,
            "produce",
            {"ask": FakeAsks(wrong={"produce": "NOT_ENOUGH_REPLICAS"}), "changes": ALL_IN_SYNC},
            "min.insync.replicas is 3, and of [0, 1, 2] [0, 1] run",
            id="too few run for acks=all",
        ),
        pytest.param(
            stops, "produce", {"ask": FakeAsks(wrong={"produce": "NOT_ENOUGH_REPLICAS"})}, "", id="enough of them run"
        ),
        pytest.param(
            stops,
            "commit",
            {"ask": FakeAsks(wrong={"commit": "COORDINATOR_NOT_AVAILABLE"})},
            "brokers [2] do not run, and it was never created",
            id="too few run for the offsets topic",
        ),
        pytest.param(leaves, "registered", {"in_force": "isolate broker 2 could not be healed"}, "isolate", id="a cut"),
    ],
)
def test_what_the_faults_have_left_beyond_repair_is_no_fault_of_the_cluster(
    peace: Peace, meanwhile: Callable[[FakeCluster], object], wrong: str, more: dict[str, Any], hindrance: str
) -> None:
    peace.meanwhile = meanwhile
    for name, value in more.items():
        setattr(peace, name, value)
    missing = peace.watch()
    line = peace.missing()[Sign(wrong)]
    assert (line.detail in missing) == (not hindrance)
    assert line.hindrance.startswith(hindrance)
    assert bool(line.hindrance) == bool(hindrance)


def test_a_broker_that_does_not_run_is_missed_nowhere(peace: Peace) -> None:
    peace.meanwhile = stops
    assert peace.watch() == []
    assert {each.broker for each in peace.written if each.sign is Sign.REGISTERED} == {0, 1}


def test_a_topic_that_is_being_deleted_need_not_be_whole(peace: Peace) -> None:
    peace.cluster.assignments["short-lived", 0] = (0, 9)
    peace.cluster.states[9] = ProcessState.RUNNING
    peace.cluster.sessions[9] = 9
    peace.cluster.znodes.add("/admin/delete_topics/short-lived")
    assert peace.watch() == []


def test_zookeeper_may_be_away_for_a_while(peace: Peace) -> None:
    peace.cluster.broken.add("registrations")
    peace.meanwhile = lambda cluster: asyncio.get_running_loop().call_later(5, cluster.broken.clear)
    assert peace.watch() == []
    assert peace.took_s == pytest.approx(6, abs=1)


def test_where_zookeeper_stays_away_nobody_can_tell(peace: Peace) -> None:
    peace.cluster.broken.add("registrations")
    with pytest.raises(ClusterError, match="ZooKeeper does not answer"):
        peace.watch()
    assert peace.written == []


def test_what_began_late_is_asked_for_long_enough(peace: Peace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.experiment.liveness_probe._DELAYS", ())
    peace.ask = FakeAsks(wrong={"produce": "REQUEST_TIMED_OUT"})
    assert peace.watch()
    assert peace.took_s == pytest.approx(1 + RETRIES_S, abs=1)


@pytest.mark.parametrize(
    ("unhealed", "left"),
    [
        pytest.param([], "", id="all is healed"),
        pytest.param(["kill", "bounce", "pause"], "", id="whether a process runs is seen"),
        pytest.param(["disk-damage", "power-loss"], "", id="nor of disks whose brokers do not run"),
        pytest.param(["kill", "isolate"], "isolate broker 1 could not be healed", id="whether a link is cut is not"),
    ],
)
def test_a_fault_that_could_not_be_healed_may_be_in_force(unhealed: list[str], left: str) -> None:
    injections = [Injection(fault=name, targets=(1,)) for name in unhealed]
    assert in_force(injections, {name: fault(name) for name in unhealed}) == left


def test_the_machine_says_how_busy_it_is() -> None:
    busyness = ThisMachine().busyness()
    assert 0 <= busyness.cpu_percent <= 100
    assert busyness.load_percent >= 0
