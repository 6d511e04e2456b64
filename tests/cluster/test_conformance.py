# ruff: noqa: ASYNC220, ASYNC240 - small local files and short-lived processes are what is tested
"""What every cluster driver must do with every system that it starts: the same tests for each, on real clusters."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from harness.cluster.capabilities import (
    CanIsolate,
    CanIsolateZookeeper,
    CanKillZookeeper,
    CanLimit,
    CanPartition,
    CanPauseZookeeper,
    CanProbe,
    CanReset,
    CanStartEarly,
    Direction,
    Side,
)
from harness.cluster.driver import (
    CAPABILITIES,
    CLOCK,
    COMMANDS,
    CPU_LIMIT,
    DISK_ERRORS,
    DISK_SPACE,
    MEMORY_LIMIT,
    OVER_LINKS,
    PACKETS,
    SLOW_SYNCS,
    UPGRADE,
    BrokerStatus,
    CanKill,
    CanPause,
    CanRunClients,
    ClusterDriver,
    ClusterRequest,
    ClusterStatus,
)
from harness.cluster.embedded_zookeeper import serves
from harness.cluster.layout import ClusterLayout
from harness.cluster.limits.control_groups import lacking
from harness.cluster.limits.resources import Resource
from harness.cluster.readiness import view_of
from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.errors import ClusterError, ScenarioError
from harness.evidence.segments import ReplicaLog
from harness.experiment.drive import create_topics
from harness.experiment.topics import TopicAdmin
from harness.kafka.brokers import listed_brokers
from harness.kraft.metadata_log import read_quorum_log
from harness.scenario.model import TopicSpec
from harness.scenario.rules import starts
from harness.store.history import read_jsonl
from harness.system.pids import read_pid_file, state_of
from harness.system.process_state import ProcessState
from harness.system.waiting import until
from harness.values import PYTHON
from harness.zookeeper.kazoo_view import KazooView
from harness.zookeeper.merged_history import merge_history
from kafka_chaos.conformance.test_drivers import (
    state_is,
    test_a_client_that_does_not_end_is_killed,
    test_a_client_that_ends_when_asked_has_its_exit_status,
    test_a_pause_ends_by_itself,
    test_a_paused_broker_stands_still_and_hears_nothing_until_it_is_resumed,
    test_a_paused_broker_that_is_killed_is_gone,
    test_a_second_cluster_in_the_same_folder_is_refused_and_the_first_stays,
    test_a_second_pause_counts_from_its_own_beginning,
    test_a_stopped_broker_starts_again_with_its_data_and_address,
    test_an_unknown_broker_is_named_with_those_there_are,
)

__all__ = [
    "test_a_client_that_does_not_end_is_killed",
    "test_a_client_that_ends_when_asked_has_its_exit_status",
    "test_a_pause_ends_by_itself",
    "test_a_paused_broker_stands_still_and_hears_nothing_until_it_is_resumed",
    "test_a_paused_broker_that_is_killed_is_gone",
    "test_a_second_cluster_in_the_same_folder_is_refused_and_the_first_stays",
    "test_a_second_pause_counts_from_its_own_beginning",
    "test_a_stopped_broker_starts_again_with_its_data_and_address",
    "test_an_unknown_broker_is_named_with_those_there_are",
]
"""Tests that every driver must pass, on each driver and system of this project."""

pytestmark = pytest.mark.rotating(20)

RUNNING, PAUSED, STOPPED = ProcessState
SESSION = "zookeeper.session.timeout.ms"
QUICK = {SESSION: "1000"}
ONE_BROKER = ClusterRequest(brokers=1, properties=QUICK)
GUARD_S = 240.0
"""For what outlives a supervisor to have brought everything out and removed it."""
needs_control_groups = pytest.mark.skipif(bool(lacking(Resource.CPU)), reason=lacking(Resource.CPU))
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
"""Longer than a start of JVMs may take, which ends with its owner."""


class Driver(
    ClusterDriver,
    CanIsolate,
    CanIsolateZookeeper,
    CanKill,
    CanKillZookeeper,
    CanLimit,
    CanPartition,
    CanPause,
    CanPauseZookeeper,
    CanProbe,
    CanReset,
    CanRunClients,
    CanStartEarly,
    Protocol,
):
    """All capabilities that are tested here."""


@dataclass(frozen=True)
class Kind:
    """What is started, and where."""

    driver: str
    system: str


QUORUM = "kafka:4.4.0"
STARTED = {PYTHON: "startup.complete", "kafka:3.9.1": "] started", QUORUM: "Kafka Server started"}
"""What a broker of each system logs once it has started."""
SESSION_MS = {PYTHON: QUICK[SESSION], "kafka:3.9.1": "6000", QUORUM: "6000"}
"""A JVM that begins beside others on two cores does not answer for seconds."""
MARKS = {"process": pytest.mark.cluster, "docker": pytest.mark.docker}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Kind(driver, system), marks=MARKS[driver], id=f"{system} on {driver}")
        for system, driver in product(STARTED, MARKS)
        if starts(driver, system_named(system))
    ],
)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Driver and system; what they need is there, or the test is skipped with the reason."""
    kind: Kind = request.param
    if lacking := system_named(kind.system).lacks():
        pytest.skip(lacking)
    if kind.driver == "docker":
        request.getfixturevalue("docker_images")
    return kind


@pytest.fixture
def zookeeper(kind: Kind) -> None:
    """The system has ZooKeeper, or the test of it is skipped."""
    if not system_named(kind.system).zookeeper:
        pytest.skip(f"{kind.system} has no ZooKeeper")


def made(kind: Kind, root: Path, run_id: str = "run") -> Driver:
    """Return a driver that starts this system, whatever is to be started."""
    cls = registry.driver_class(kind.driver)

    async def start(self: Any, request: ClusterRequest) -> Any:
        slower = {SESSION: SESSION_MS[kind.system]} if SESSION in request.properties else {}
        properties = {**request.properties, **slower}
        return await cls.start(self, replace(request, system=kind.system, properties=properties))

    driver: Driver = type(cls.__name__, (cls,), {"start": start})(root, run_id)
    return driver


@pytest.fixture(scope="module")
def root(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The run folder of a cluster that tests share; each leaves all three brokers running."""
    root = tmp_path_factory.mktemp("run")
    driver = made(kind, root)
    asyncio.run(driver.start(ClusterRequest(brokers=3, properties=QUICK)))
    yield root
    asyncio.run(driver.stop())
    assert asyncio.run(driver.residue()) == []


@pytest.fixture
def driver(kind: Kind, root: Path) -> Driver:
    """A driver that knows the folder of the shared cluster and nothing else."""
    return made(kind, root)


@pytest.fixture
async def alone(kind: Kind, tmp_path: Path) -> AsyncIterator[Driver]:
    """The driver of a cluster of this test's own, not started."""
    driver = made(kind, tmp_path)
    yield driver
    await driver.stop()
    assert await driver.residue() == []


async def all_gone(driver: Driver) -> None:
    """Wait until a cluster that is not stopped is gone, but for the socket that a killed supervisor leaves."""

    async def left() -> list[str]:
        return [sentence for sentence in await driver.residue() if "socket" not in sentence]

    await until(left, lambda sentences: not sentences, what="nothing left", timeout_s=GUARD_S, every_s=0.05)


async def produce(driver: Driver, topic: str) -> None:
    """Create a topic of one partition and write a record to all its replicas."""
    status = await driver.status()
    spec = TopicSpec(name=topic, partitions=1, replication_factor=len(status.brokers))
    await create_topics(TopicAdmin(status.bootstrap_servers).create, [spec])
    await written(status.bootstrap_servers, topic)


async def written(bootstrap_servers: str, topic: str) -> None:
    """Write a record to all replicas in sync."""
    outcomes: list[str] = []

    def write() -> None:
        producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all"})
        producer.produce(topic, b"kept", on_delivery=lambda error, _: outcomes.append(str(error)))
        producer.flush(120)

    await asyncio.to_thread(write)
    assert outcomes == ["None"]


def values(broker: BrokerStatus, topic: str) -> list[bytes | None]:
    """Return what a broker's replica holds, from where `status` says that the data lies."""
    return [record.value for record in ReplicaLog(broker.log_dir / f"{topic}-0")]


def events_of(status: ClusterStatus, broker_id: int) -> list[dict[str, Any]]:
    """Return the lines of a broker's state-change log, made of what it told if it wrote none itself."""
    broker = status.broker(broker_id)
    assert system_named(status.system).gather(broker) == []
    return list(read_jsonl(broker.state_change_log))


NOT_ON_PROCESSES = {COMMANDS, PACKETS}
NOT_IN_CONTAINERS = {COMMANDS, UPGRADE}


def test_it_has_the_capabilities_of_real_machines_and_this_one_lacks_none(driver: Driver) -> None:
    assert isinstance(driver, ClusterDriver)
    missing = NOT_IN_CONTAINERS if driver.name == "docker" else NOT_ON_PROCESSES
    assert {name for name, protocol in CAPABILITIES.items() if not isinstance(driver, protocol)} == missing
    optional = {CLOCK, CPU_LIMIT, DISK_ERRORS, DISK_SPACE, MEMORY_LIMIT, PACKETS, SLOW_SYNCS}
    assert registry.driver_class(driver.name).lacks().keys() <= optional, "those take a package, or root"


async def test_a_started_cluster_is_registered_has_a_controller_and_says_where_everything_is(driver: Driver) -> None:
    status = await driver.status()
    assert status.driver == driver.name
    assert [(broker.broker_id, broker.state) for broker in status.brokers] == [(id_, RUNNING) for id_ in range(3)]
    assert len(status.bootstrap_servers.split(",")) == 3
    keepers = [(server.server_id, server.state, server.client_address) for server in status.zookeeper]
    assert keepers == ([] if status.controllers else [(1, RUNNING, status.zookeeper_connect)])
    assert set(status.controllers) == (set() if status.zookeeper else {0, 1, 2})
    for broker in status.brokers:
        assert events_of(status, broker.broker_id)[0]["ev"] == "broker_start"
        assert broker.human_log is not None
        assert STARTED[status.system] in broker.human_log.read_text()
        assert state_of(broker.pid or 0) is not None
    async with view_of(status.zookeeper_connect, status.controllers) as view:
        # what an earlier test paused may have lost its session, and may have been the controller
        await until(view.registrations, lambda seen: set(seen) == {0, 1, 2}, what="all registered", timeout_s=120)
        await until(view.controller, lambda seen: seen.broker_id in {0, 1, 2}, what="a controller", timeout_s=120)
    as_dict = status.as_dict()
    assert as_dict["brokers"][1]["pid"] == status.broker(1).pid
    assert as_dict["zookeeper_data_dir"] == (str(status.zookeeper[0].data_dir) if status.zookeeper else None)


async def test_a_killed_broker_is_gone_at_once_and_comes_back_with_its_data(driver: Driver) -> None:
    await produce(driver, "killed")
    before = (await driver.status()).broker(1)

    await driver.kill_broker(1)

    dead = (await driver.status()).broker(1)
    assert (dead.state, dead.pid) == (STOPPED, None)
    with pytest.raises(ClusterError, match="does not run"):
        await driver.kill_broker(1)
    await driver.start_broker(1)
    after = (await driver.status()).broker(1)
    assert (after.state, after.starts) == (RUNNING, before.starts + 1)
    assert after.client_address == before.client_address
    recovered = [line for line in events_of(await driver.status(), 1) if line["ev"] == "recovery"]
    assert [line["log_end_offset"] for line in recovered if line["topic"] == "killed"] == [1]
    with pytest.raises(ClusterError, match="broker 1 runs already"):
        await driver.start_broker(1)


@pytest.mark.usefixtures("zookeeper")
async def test_a_broker_that_is_started_while_its_id_is_taken_ends(driver: Driver) -> None:
    status = await driver.status()
    client = KazooClient(hosts=status.zookeeper_connect)
    await asyncio.to_thread(client.start, 120)
    try:
        registration, _ = await asyncio.to_thread(client.get, "/brokers/ids/1")
        await driver.kill_broker(1)
        async with KazooView(status.zookeeper_connect) as view:
            await until(view.registrations, lambda seen: 1 not in seen, what="the end of its session", timeout_s=120)
        await asyncio.to_thread(client.create, "/brokers/ids/1", registration, ephemeral=True)
        await driver.start_early(1)
        await state_is(driver, 1, STOPPED)
    finally:
        await asyncio.to_thread(client.stop)
    after = (await driver.status()).broker(1)
    assert after.starts == status.broker(1).starts + 1
    with pytest.raises(ClusterError, match="broker 0 runs already"):
        await driver.start_early(0)
    await driver.start_broker(1)


async def test_a_stopped_broker_says_that_it_stopped_cleanly(driver: Driver) -> None:
    await driver.stop_broker(2, timeout_s=120)
    status = await driver.status()
    assert status.broker(2).state == STOPPED
    assert events_of(status, 2)[-1]["ev"] == "broker_stop"
    await driver.start_broker(2)


LIMITS = [
    pytest.param(Resource.CPU, 0.5, id="CPU time", marks=needs_control_groups),
    pytest.param(Resource.FILES, 1_000.0, id="open files"),
]
"""With none to spare, a broker that writes a checkpoint meanwhile loses its disk, and ends."""


async def limited(driver: Driver, resource: Resource) -> float | None:
    return (await driver.usage(0, resource)).limit


@pytest.mark.parametrize(("resource", "amount"), LIMITS)
async def test_a_limit_is_lifted_and_ends_by_itself(driver: Driver, resource: Resource, amount: float) -> None:
    before = await limited(driver, resource)

    async def becomes(wanted: bool) -> None:
        what = f"a limit of {resource}: {wanted}"
        await until(lambda: limited(driver, resource), lambda it: (it != before) is wanted, what=what, timeout_s=120)

    await driver.limit(0, resource, amount, at_most_s=120)
    await becomes(wanted=True)
    await driver.lift(0, resource)
    assert await limited(driver, resource) == before
    await driver.lift(0, resource)
    await driver.limit(0, resource, amount, at_most_s=15)
    await becomes(wanted=True)
    await becomes(wanted=False)
    assert (await driver.status()).broker(0).state == RUNNING


@pytest.mark.parametrize(("resource", "amount"), LIMITS)
async def test_a_limit_whose_watchdog_was_killed_is_lifted_all_the_same(
    driver: Driver, root: Path, resource: Resource, amount: float
) -> None:
    before = await limited(driver, resource)
    await driver.limit(0, resource, amount, at_most_s=120)
    await until(lambda: limited(driver, resource), lambda it: it != before, what="a limit", timeout_s=120)
    watchdog = read_pid_file(root / "cluster" / "pids" / f"limit-{resource}-0.pid")
    assert watchdog is not None
    watchdog.send(signal.SIGKILL)
    await driver.lift(0, resource)
    after = await limited(driver, resource)
    assert after == before if before is None or after is None else after >= before


async def test_a_port_that_was_taken_meanwhile_is_named(driver: Driver) -> None:
    await driver.kill_broker(1)
    host, port = (await driver.status()).broker(1).client_address.split(":")
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind((host, int(port)))
        stranger.listen()
        with pytest.raises(ClusterError, match=f"port {port} of broker 1 is taken"):
            await driver.start_broker(1)
    await driver.start_broker(1)


async def test_data_is_copied_from_running_paused_killed_and_stopped_brokers(alone: Driver) -> None:
    await alone.start(ClusterRequest(brokers=4, properties=QUICK))
    await produce(alone, "evidence")
    await alone.kill_broker(1)
    await alone.stop_broker(2, timeout_s=120)
    await alone.pause_broker(3, at_most_s=300)

    assert await alone.copy_data() == []

    status = await alone.status()
    assert [broker.state for broker in status.brokers] == [RUNNING, STOPPED, STOPPED, PAUSED]
    assert [values(broker, "evidence") for broker in status.brokers] == [[b"kept"]] * 4
    assert "/brokers/topics/evidence" in history_of(status)
    await alone.stop()
    assert values((await alone.status()).broker(1), "evidence") == [b"kept"], "it stays when the cluster is gone"


def history_of(status: ClusterStatus) -> set[str]:
    """Return the paths that ever changed, by the disks of the metadata's servers."""
    if status.controllers:
        log = read_quorum_log([status.broker(id_).log_dir for id_ in status.controllers])
        return {change.path for change in log.changes}
    history = status.zookeeper[0].data_dir.with_name("history.jsonl")
    assert merge_history(history, status.zookeeper[0].data_dir)[1:] == []
    return {line["path"] for line in read_jsonl(history)}


@pytest.mark.parametrize(
    "victim", [pytest.param("supervisor", id="the supervisor"), pytest.param("owner", id="the owner")]
)
async def test_when_client_is_killed_everything_goes_and_the_evidence_stays(
    alone: Driver, tmp_path: Path, victim: str
) -> None:
    owner = subprocess.Popen(SLEEP)
    try:
        await alone.start(ClusterRequest(brokers=1, properties=QUICK, owner_pid=owner.pid))
        await produce(alone, "evidence")
        await alone.start_client("client", SLEEP, tmp_path / "client.log")
        if CPU_LIMIT not in registry.driver_class(alone.name).lacks():
            await alone.limit(0, Resource.CPU, 0.5, at_most_s=60)
        await alone.pause_broker(0, at_most_s=60)
        if victim == "supervisor":
            supervisor = read_pid_file(tmp_path / "cluster" / "pids" / "supervisor.pid")
            assert supervisor is not None
            supervisor.send(signal.SIGKILL)
        else:
            owner.kill()
        await all_gone(alone)
    finally:
        owner.kill()
        owner.wait()
    assert await alone.copy_data() == []
    status = await alone.status()
    assert status.broker(0).state == STOPPED
    assert values(status.broker(0), "evidence") == [b"kept"]
    assert events_of(status, 0)[0]["ev"] == "broker_start"


async def test_a_cluster_that_is_to_stay_goes_when_its_starter_is_killed_before_it_is_up(
    kind: Kind, alone: Driver, tmp_path: Path
) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; from harness.contracts import registry\n"
        "from harness.cluster.driver import ClusterRequest\n"
        "request = ClusterRequest(brokers=1, properties={}, system=sys.argv[3])\n"
        "asyncio.run(registry.driver_class(sys.argv[2])(Path(sys.argv[1]), 'run').start(request))"
    )
    starter = subprocess.Popen([sys.executable, "-c", program, str(tmp_path), kind.driver, kind.system])
    await begun(alone)
    starter.kill()
    starter.wait()
    await all_gone(alone)


async def test_a_start_that_is_interrupted_leaves_nothing(alone: Driver) -> None:
    starting = asyncio.create_task(alone.start(ClusterRequest(brokers=3, properties=QUICK)))
    await begun(alone)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await alone.residue() == []


async def begun(driver: Driver) -> None:
    """Wait until more of a cluster is there than its supervisor, but not yet all."""

    async def several() -> bool:
        try:
            await driver.status()
        except ClusterError:
            return False
        return len(await driver.residue()) > 3

    await until(several, bool, what="a first server", timeout_s=120, every_s=0.01)


async def test_a_cluster_that_nobody_owns_ends_itself_when_it_has_lived_long_enough(alone: Driver) -> None:
    await alone.start(ClusterRequest(brokers=1, properties=QUICK, expires_after_s=0.1))
    await all_gone(alone)


async def test_stopping_ends_a_supervisor_that_answers_nobody(alone: Driver, tmp_path: Path) -> None:
    await alone.start(ONE_BROKER)
    supervisor = read_pid_file(tmp_path / "cluster" / "pids" / "supervisor.pid")
    assert supervisor is not None
    supervisor.send(signal.SIGSTOP)
    await alone.stop()
    assert await alone.residue() == []


async def test_stopping_leaves_only_files_though_a_broker_is_frozen(alone: Driver, tmp_path: Path) -> None:
    await alone.start(ClusterRequest(brokers=3, properties=QUICK))
    await alone.start_client("client", SLEEP, tmp_path / "client.log")
    await alone.pause_broker(1, at_most_s=60)
    assert len(await alone.residue()) > 5

    await alone.stop()

    assert await alone.residue() == []
    status = await alone.status()
    assert {broker.state for broker in status.brokers} == {STOPPED}
    assert {server.pid for server in status.zookeeper} <= {None}
    await alone.stop()


@pytest.mark.usefixtures("zookeeper")
async def test_an_ensemble_of_three_serves_and_its_logs_make_one_history(alone: Driver, tmp_path: Path) -> None:
    status = await alone.start(ClusterRequest(brokers=1, properties=QUICK, zookeeper_servers=3))
    assert [(server.server_id, server.state) for server in status.zookeeper] == [(id_, RUNNING) for id_ in (1, 2, 3)]
    assert [server.client_address for server in status.zookeeper] == status.zookeeper_connect.split(",")
    for server in status.zookeeper:
        assert await serves(int(server.client_address.split(":")[1]))
    await produce(alone, "evidence")
    assert await alone.copy_data() == []
    history = tmp_path / "zookeeper.jsonl"
    remarks = merge_history(history, *(server.data_dir for server in status.zookeeper))
    assert [remark for remark in remarks if "disagree" in remark] == []
    lines = list(read_jsonl(history))
    assert {"/brokers/ids/0", "/controller", "/brokers/topics/evidence"} <= {line["path"] for line in lines}
    written = [(line["zxid"], line["path"], line["version"], line["type"]) for line in lines]
    assert len(set(written)) == len(written), "three servers' equal entries make one change"


async def modes_are(driver: Driver, wanted: list[str], *, alone: int | None = None) -> dict[int, str]:
    """Wait until the servers of ZooKeeper are this to each other, in whatever order, and one, if any, is nothing."""

    def as_wanted(modes: dict[int, str]) -> bool:
        return sorted(modes.values()) == wanted and not (alone and modes[alone])

    what = f"servers of ZooKeeper {wanted}"
    return await until(driver.zookeeper_modes, as_wanted, what=what, timeout_s=120, every_s=0.02)


WHOLE = ["follower", "follower", "leader"]


@pytest.mark.usefixtures("zookeeper")
async def test_an_ensemble_outlives_its_leader_and_the_loss_of_its_quorum(alone: Driver) -> None:
    status = await alone.start(ClusterRequest(brokers=1, properties={}, zookeeper_servers=3))
    leader = next(number for number, mode in (await modes_are(alone, WHOLE)).items() if mode == "leader")
    await produce(alone, "kept")

    await alone.kill_zookeeper(leader)
    with pytest.raises(ClusterError, match="does not run"):
        await alone.kill_zookeeper(leader)
    modes = await modes_are(alone, ["", "follower", "leader"])
    follower = next(number for number, mode in modes.items() if mode == "follower")
    await alone.pause_zookeeper(follower, at_most_s=60)
    await alone.kill_zookeeper(follower)
    await modes_are(alone, ["", "", ""])
    assert [it.state for it in (await alone.status()).zookeeper].count(STOPPED) == 2

    await alone.start_zookeeper(follower)
    await alone.start_zookeeper(leader)
    await modes_are(alone, WHOLE)
    with pytest.raises(ClusterError, match=f"ZooKeeper server {leader} runs already"):
        await alone.start_zookeeper(leader)
    assert {it.state for it in (await alone.status()).zookeeper} == {RUNNING}
    async with KazooView(status.zookeeper_connect) as view:
        assert await view.exists("/brokers/topics/kept"), "they came back with their data"


@pytest.mark.usefixtures("zookeeper")
@pytest.mark.parametrize("mode", ["follower", "leader"])
async def test_behind_a_relay_a_server_of_an_ensemble_can_be_cut_off_and_the_others_serve(
    alone: Driver, mode: str
) -> None:
    request = ClusterRequest(brokers=1, properties={}, zookeeper_servers=3, needs=OVER_LINKS)
    status = await alone.start(request)
    server = next(number for number, seen in (await modes_are(alone, WHOLE)).items() if seen == mode)
    await alone.isolate_zookeeper([server], at_most_s=120)
    assert await alone.probe_servers(server, server % 3 + 1, timeout_s=0.2) is None
    await modes_are(
        alone, ["", "follower", "leader"], alone=server
    )  # the old leader says so a while, beside servers in an election
    await produce(alone, "meanwhile")
    await alone.rejoin_zookeeper([server])
    await modes_are(alone, WHOLE)
    async with KazooView(status.zookeeper[server - 1].client_address) as view:
        assert await view.exists("/brokers/topics/meanwhile")
    with pytest.raises(ClusterError, match="no ZooKeeper server 7; there are: 1, 2, 3"):
        await alone.isolate_zookeeper([7], at_most_s=1)


@pytest.mark.usefixtures("zookeeper")
async def test_a_pause_of_a_zookeeper_server_ends_by_itself(driver: Driver) -> None:
    await driver.pause_zookeeper(1, at_most_s=0.5)
    await modes_are(driver, ["standalone"])


@pytest.mark.usefixtures("zookeeper")
async def test_an_unknown_zookeeper_server_is_named_with_those_there_are(driver: Driver) -> None:
    with pytest.raises(ClusterError, match="no ZooKeeper server 7; there are: 1"):
        await driver.kill_zookeeper(7)


async def test_behind_a_relay_a_cut_link_is_cut_for_those_at_its_ends_and_nobody_else(alone: Driver) -> None:
    quick = {**QUICK, "replica.lag.time.max.ms": "1000"}
    status = await alone.start(ClusterRequest(brokers=3, properties=quick, needs=OVER_LINKS))
    await produce(alone, "kept")
    async with view_of(status.zookeeper_connect, status.controllers) as view:

        async def isr() -> set[int]:
            return {broker for each in await view.partitions() for broker in each.isr}

        async def becomes(wanted: set[int]) -> None:
            await until(isr, lambda seen: seen == wanted, what=f"an ISR of {sorted(wanted)}", timeout_s=120)

        async def listed(broker_id: int) -> list[int]:
            host, port = status.broker(broker_id).client_address.split(":")
            return sorted(await listed_brokers(host, int(port), timeout_s=0.5))

        async def lists_all(broker_id: int) -> None:
            await until(lambda: listed(broker_id), lambda seen: seen == [0, 1, 2], what="an answer", timeout_s=120)

        (leader,) = {each.leader for each in await view.partitions()}
        controller = (await view.controller()).broker_id
        other = min({0, 1, 2} - {leader, controller})  # a leader that does not reach the controller is deposed
        (one,) = {0, 1, 2} - {leader, other}
        await alone.isolate(leader, (Side.CLIENTS,), Direction.OUTBOUND, at_most_s=300)
        with pytest.raises(ClusterError, match="does not answer a Metadata request"):
            await listed(leader)
        await lists_all(one)
        assert await alone.probe(leader, Side.CLIENTS, Direction.OUTBOUND, timeout_s=0.2) == {"clients": None}
        await becomes({0, 1, 2})
        await alone.rejoin(leader)
        await lists_all(leader)

        await alone.kill_broker(other)
        await becomes({leader, one})
        await alone.start_broker(other)
        await becomes({0, 1, 2})
        await alone.separate([(leader, other)], at_most_s=120)
        assert await alone.probe_peer(other, leader, timeout_s=0.2) is None
        await written(status.bootstrap_servers, "kept")
        await becomes({leader, one})
        await alone.reunite()
        await becomes({0, 1, 2})
        assert await alone.strangers() == set()

        away_from = Side.ZOOKEEPER if status.zookeeper else Side.PEERS
        await alone.isolate(other, (away_from,), Direction.BOTH, at_most_s=120)
        await until(view.registrations, lambda seen: other not in seen, what="end of its session", timeout_s=120)
        await alone.rejoin(other)
        await becomes({0, 1, 2})


async def test_controllers_may_be_servers_of_their_own_and_come_back_with_the_log(kind: Kind, alone: Driver) -> None:
    if system_named(kind.system).zookeeper:
        pytest.skip(f"{kind.system} has no controllers but its brokers")
    status = await alone.start(ClusterRequest(brokers=1, properties=QUICK, controllers=3, separate_controllers=True))
    assert [(each.broker_id, each.state) for each in status.quorum] == [(id_, RUNNING) for id_ in (101, 102, 103)]
    await produce(alone, "kept")
    async with view_of(status.zookeeper_connect, status.controllers) as view:
        leader = (await view.controller()).broker_id
        assert leader in {101, 102, 103}
        await alone.kill_broker(leader)
        assert (await alone.status()).broker(leader).state == STOPPED

        async def leads() -> int:
            return (await view.controller()).broker_id

        await until(leads, lambda seen: seen not in {leader, -1}, what="another leader", timeout_s=120)
        await alone.start_broker(leader)
        await alone.pause_broker(101, at_most_s=60)
        assert (await alone.status()).broker(101).state == PAUSED
        await alone.resume_broker(101)
    with pytest.raises(ClusterError, match="no broker 7; there are: 0, 101, 102, 103"):
        await alone.kill_broker(7)
    assert await alone.copy_data() == []
    assert "/brokers/topics/kept" in history_of(await alone.status())


async def test_behind_a_relay_links_to_controllers_that_are_no_brokers_are_cut(kind: Kind, alone: Driver) -> None:
    if system_named(kind.system).zookeeper:
        pytest.skip(f"{kind.system} has no controllers but its brokers")
    status = await alone.start(
        ClusterRequest(brokers=1, properties=QUICK, controllers=3, separate_controllers=True, needs=OVER_LINKS)
    )
    async with view_of(status.zookeeper_connect, status.controllers) as view:
        await alone.isolate(0, (Side.CONTROLLERS,), Direction.BOTH, at_most_s=120)
        probed = await alone.probe(0, Side.CONTROLLERS, Direction.OUTBOUND, timeout_s=0.2)
        assert probed == {"broker-101": None, "broker-102": None, "broker-103": None}
        await until(view.registrations, lambda seen: 0 not in seen, what="end of its registration", timeout_s=120)
        await alone.rejoin(0)
        await until(view.registrations, lambda seen: 0 in seen, what="its registration", timeout_s=120)

        async def leads() -> int:
            return (await view.controller()).broker_id

        leader = await leads()
        assert await alone.connections(leader, (Side.CONTROLLERS,))
        await alone.isolate(leader, (Side.CONTROLLERS,), Direction.BOTH, at_most_s=120)
        assert await alone.probe(leader, Side.CLIENTS, Direction.INBOUND, timeout_s=0.2) == {}
        await until(leads, lambda seen: seen not in {leader, -1}, what="another leader", timeout_s=120)
        await alone.rejoin(leader)
        assert await alone.strangers() == set()


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(ClusterRequest(brokers=0, properties={}), "at least one broker", id="no brokers"),
        pytest.param(
            ClusterRequest(brokers=1, properties={"zookeeper.session.timeout": "1"}),
            "did you mean zookeeper.session.timeout.ms",
            id="an unknown property",
        ),
        pytest.param(
            ClusterRequest(brokers=1, properties={}, planted_bugs=("no-such-bug",)),
            "unknown planted bug no-such-bug",
            id="an unknown planted bug",
        ),
        pytest.param(
            ClusterRequest(brokers=1, properties={}, zookeeper_servers=2),
            "ZooKeeper has 1 or 3 servers, not 2",
            id="an ensemble without a majority",
        ),
    ],
)
async def test_a_wrong_request_starts_nothing(
    kind: Kind, tmp_path: Path, request_: ClusterRequest, message: str
) -> None:
    with pytest.raises(ScenarioError, match=message):
        await made(Kind(kind.driver, PYTHON), tmp_path).start(request_)
    assert list(tmp_path.iterdir()) == []


DIES_AT_START = {QUORUM: ({"num.io.threads": "0"}, "num.io.threads")}
"""Where there is no ZooKeeper that could be too slow: what no broker takes, and what it says of it."""


async def test_a_broker_that_dies_at_its_start_shows_the_end_of_its_log_and_nothing_is_left(
    kind: Kind, alone: Driver
) -> None:
    wrong, why = DIES_AT_START.get(kind.system, ({"zookeeper.connection.timeout.ms": "1"}, "startup"))
    with pytest.raises(ClusterError, match=rf"(?s)broker-0 ended with status 1; the end of .*broker\.log.*:\n.*{why}"):
        await alone.start(ClusterRequest(brokers=1, properties=wrong))
    assert await alone.residue() == []


async def test_where_no_cluster_was_ever_started_the_status_says_so(kind: Kind, tmp_path: Path) -> None:
    driver = made(kind, tmp_path)
    with pytest.raises(ClusterError, match="no cluster was started in"):
        await driver.status()
    await driver.stop()
    assert await driver.residue() == []


def test_what_attaches_later_finds_driver_and_system_in_the_folder(kind: Kind, root: Path) -> None:
    layout = ClusterLayout.load(root)
    assert (layout.driver, layout.system) == (kind.driver, kind.system)
