"""An existing cluster, here started by another driver: what is done to it, refused, and undone."""

import dataclasses
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.cluster.driver import BrokerStatus, ClusterRequest
from harness.cluster.external.driver import ExternalDriver
from harness.cluster.external.place import ExternalCluster, Host
from harness.cluster.processes.driver import ProcessDriver
from harness.cluster.readiness import view_of, view_of_cluster
from harness.cluster.systems.system import system_named
from harness.errors import ClusterError, DeadlineError
from harness.experiment.drive import create_topics
from harness.experiment.topics import TopicAdmin
from harness.kafka.brokers import described_cluster
from harness.scenario.model import TopicSpec
from harness.system.pids import read_pid_file
from harness.system.waiting import until
from harness.zookeeper.view import PartitionView

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(2)]

CHECKOUT = Path(__file__).resolve().parents[3]
KRAFT = "kafka:4.4.0"
QUICK = {"zookeeper.session.timeout.ms": "1000"}
PREFIX = "chaos-0123456789-"


@pytest.fixture
async def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProcessDriver]:
    """An existing cluster of two brokers."""
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT}:{CHECKOUT / 'plugins'}")
    driver = ProcessDriver(tmp_path / "theirs", "theirs")
    await driver.start(ClusterRequest(brokers=2, properties=QUICK))
    yield driver
    await driver.stop()


@pytest.fixture
async def ours(tmp_path: Path) -> AsyncIterator[ExternalDriver]:
    """What attaches to it."""
    driver = ExternalDriver(tmp_path / "ours", "ours")
    yield driver
    await driver.stop()
    assert await driver.residue() == []


@pytest.fixture
async def of_a_quorum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProcessDriver]:
    """Another one, without ZooKeeper: broker 0 is its only controller too."""
    if lacking := system_named(KRAFT).lacks():
        pytest.skip(lacking)
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT}:{CHECKOUT / 'plugins'}")
    driver = ProcessDriver(tmp_path / "theirs", "theirs")
    await driver.start(ClusterRequest(brokers=2, properties={}, system=KRAFT, controllers=1))
    yield driver
    await driver.stop()


async def place(theirs: ProcessDriver, **changes: object) -> ClusterRequest:
    """Return a request that names their cluster, with the commands of its owner."""
    status = await theirs.status()
    cluster_id, _ = await described_cluster(status.bootstrap_servers.split(","), timeout_s=60)
    of_owner = f"{sys.executable} -m harness cluster {{}} {{{{id}}}} --dir {status.root}"
    actions = ("kill", "stop", "start", "pause", "resume")
    cluster = ExternalCluster(
        cluster_id=cluster_id,
        bootstrap_servers=status.bootstrap_servers,
        zookeeper_connect=status.zookeeper_connect,
        controllers=status.controllers,
        hosts={number: Host(host="localhost", name=f"kafka-{number}") for number in range(2)},
        commands={action: of_owner.format(action) for action in actions}
        | {"data": f"cp -r {status.root}/cluster/brokers/{{id}}/data/. {{into}}"},
        timeout_s=120,
        prefix=PREFIX,
    )
    return ClusterRequest(brokers=2, properties={}, external=dataclasses.replace(cluster, **changes))  # type: ignore[arg-type]


async def with_topics(theirs: ProcessDriver, *names: str) -> None:
    specs = [TopicSpec(name=name, partitions=1, replication_factor=2) for name in names]
    await create_topics(TopicAdmin((await theirs.status()).bootstrap_servers).create, specs)


async def topics(theirs: ProcessDriver) -> list[str]:
    status = await theirs.status()
    async with view_of(status.zookeeper_connect, status.controllers) as view:
        return sorted(await view.topics())


async def states(driver: ProcessDriver | ExternalDriver) -> list[str]:
    def state(broker: BrokerStatus) -> str:
        return broker.state

    return list(map(state, (await driver.status()).brokers))


async def test_what_a_run_does_is_undone_and_of_all_topics_only_its_own_go(
    theirs: ProcessDriver, ours: ExternalDriver
) -> None:
    status = await ours.start(await place(theirs))
    assert [broker.state for broker in status.brokers] == ["running", "running"]
    await with_topics(theirs, "theirs", f"{PREFIX}orders")
    await ours.kill_broker(0)
    await ours.pause_broker(1, at_most_s=300)
    assert await states(ours) == await states(theirs) == ["stopped", "paused"]
    await ours.resume_broker(1)
    await ours.start_broker(0)
    assert await states(ours) == await states(theirs) == ["running", "running"]
    assert await ours.copy_data() == []
    assert (status.broker(1).log_dir / "theirs-0").is_dir()
    await ours.stop_broker(1, timeout_s=120)
    assert await states(theirs) == ["running", "stopped"]
    assert len(await ours.residue()) >= 2

    await ours.stop()

    assert await states(theirs) == ["running", "running"]
    assert await topics(theirs) == ["theirs"]
    assert not status.broker(1).log_dir.exists()


async def test_a_cluster_that_is_configured_otherwise_is_not_touched(
    theirs: ProcessDriver, ours: ExternalDriver
) -> None:
    name = "unclean.leader.election.enable"
    with pytest.raises(ClusterError, match=rf"broker [01] has {name}=false, where true is assumed"):
        await ours.start(await place(theirs, configuration={name: "true", **QUICK}))
    assert await topics(theirs) == []
    await ours.start(await place(theirs, configuration={name: "false", **QUICK}))


async def test_without_zookeeper_the_quorum_is_asked_and_all_is_undone_likewise(
    of_a_quorum: ProcessDriver, ours: ExternalDriver
) -> None:
    status = await ours.start(await place(of_a_quorum))
    assert (status.zookeeper, status.controllers) == ((), (await of_a_quorum.status()).controllers)
    assert status.unseen == ("state_changes",), "the metadata log comes with the data"
    await with_topics(of_a_quorum, "theirs", f"{PREFIX}orders")
    await ours.kill_broker(1)
    assert await states(of_a_quorum) == ["running", "stopped"]
    assert await ours.copy_data() == []
    assert (status.broker(0).log_dir / "__cluster_metadata-0").is_dir()

    await ours.stop()

    assert await states(of_a_quorum) == ["running", "running"]
    assert await topics(of_a_quorum) == ["theirs"]
    async with view_of("", status.controllers, cluster_id="another") as view:
        with pytest.raises(ClusterError, match="controller 0 is of another cluster than another"):
            await view.topics()


async def test_where_neither_zookeeper_nor_controllers_are_in_reach_brokers_are_asked(
    theirs: ProcessDriver, ours: ExternalDriver
) -> None:
    status = await ours.start(await place(theirs, zookeeper_connect="", commands={}))
    assert status.unseen == ("state_changes", "replicas", "zookeeper")
    assert status.has_metadata
    await with_topics(theirs, "theirs", f"{PREFIX}orders")
    async with view_of_cluster(status) as view:
        assert sorted(await view.registrations()) == [0, 1]
        assert (await view.controller()).broker_id in (0, 1)

        async def of_theirs() -> list[PartitionView]:
            return [each for each in await view.partitions() if each.topic == "theirs"]

        (partition,) = await until(of_theirs, bool, what="the topic at the broker that is asked", timeout_s=60)
        assert (partition.partition, sorted(partition.assignment), sorted(partition.isr)) == (0, [0, 1], [0, 1])

    await ours.stop()

    what = "the run's topic gone"  # brokers forget a topic before it is gone from ZooKeeper
    await until(lambda: topics(theirs), lambda seen: seen == ["theirs"], what=what, timeout_s=60)


async def test_when_the_supervisor_is_killed_all_is_undone(
    theirs: ProcessDriver, ours: ExternalDriver, tmp_path: Path
) -> None:
    await ours.start(await place(theirs))
    await with_topics(theirs, f"{PREFIX}orders")
    await ours.kill_broker(0)
    supervisor = read_pid_file(tmp_path / "ours" / "cluster" / "pids" / "supervisor.pid")
    assert supervisor is not None
    supervisor.send(signal.SIGKILL)

    async def whole() -> tuple[list[str], list[str]]:
        return await states(theirs), await topics(theirs)

    await until(whole, lambda seen: seen == (["running"] * 2, []), what="all as it was", timeout_s=300)


async def test_a_pause_ends_by_itself(theirs: ProcessDriver, ours: ExternalDriver) -> None:
    await ours.start(await place(theirs))
    await ours.pause_broker(1, at_most_s=0.5)
    await until(lambda: states(theirs), lambda seen: seen == ["running"] * 2, what="all running", timeout_s=120)
    await until(ours.residue, lambda left: not any("paused" in each for each in left), what="no note", timeout_s=120)


async def test_a_command_that_hits_another_broker_is_told_and_that_one_is_started_again(
    theirs: ProcessDriver, ours: ExternalDriver
) -> None:
    request = await place(theirs)
    assert request.external is not None
    commands = {**request.external.commands, "stop": request.external.commands["kill"].replace("{id}", "1")}
    await ours.start(await place(theirs, commands=commands))
    with pytest.raises(DeadlineError, match="end of broker 0"):
        await ours.stop_broker(0, timeout_s=0.5)
    assert await states(theirs) == ["running", "stopped"]
    await ours.stop()
    assert await states(theirs) == ["running", "running"]


async def test_what_a_command_does_after_it_was_given_up_is_undone(theirs: ProcessDriver, ours: ExternalDriver) -> None:
    request = await place(theirs)
    assert request.external is not None
    await ours.start(await place(theirs, commands={**request.external.commands, "kill": "false"}))
    with pytest.raises(ClusterError, match="the command for kill of broker 0 ended with status 1"):
        await ours.kill_broker(0)
    await ours.start_broker(0)
    await theirs.kill_broker(0)
    assert "broker 0 does not answer" in await ours.residue()
    await ours.stop()
    assert await states(theirs) == ["running", "running"]


async def test_clients_have_ended_before_anything_is_undone(
    theirs: ProcessDriver, ours: ExternalDriver, tmp_path: Path
) -> None:
    request = await place(theirs)
    assert request.external is not None
    pid, alive = tmp_path / "pid", tmp_path / "alive"
    begin = f"sh -c 'kill -0 $(cat {pid}) && touch {alive}; exec {request.external.commands['start']}'"
    await ours.start(await place(theirs, commands={**request.external.commands, "start": begin}))
    program = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    await ours.start_client("one", [sys.executable, "-c", program], tmp_path / "one.log")

    async def begun() -> bool:
        return pid.exists() and bool(pid.read_text(encoding="utf-8"))

    await until(begun, bool, what="a client", timeout_s=60)
    await ours.kill_broker(0)
    await ours.stop()
    assert await states(theirs) == ["running", "running"]
    assert not alive.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"cluster_id": "another"}, "and the scenario names 'another'", id="another cluster"),
        pytest.param(
            {"hosts": {0: Host(host="localhost", name="a")}},
            r"names the brokers \[0\]; \[0, 1\] serve",
            id="a broker more",
        ),
        pytest.param({"prefix": "the"}, "topics with the run's prefix exist already: theirs", id="topics"),
        pytest.param({"prefix": ""}, "no external cluster, or no topic prefix, is given", id="no prefix"),
        pytest.param({"bootstrap_servers": "127.0.0.1:1"}, "127.0.0.1:1 does not answer", id="no server there"),
    ],
)
async def test_what_is_not_the_cluster_that_is_meant_is_not_touched(
    theirs: ProcessDriver, ours: ExternalDriver, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    await with_topics(theirs, "theirs")
    with pytest.raises(ClusterError, match=message):
        await ours.start(await place(theirs, **changes))
    assert not (tmp_path / "ours").exists()
    assert (await states(theirs), await topics(theirs)) == (["running"] * 2, ["theirs"])


async def test_what_has_no_command_is_not_done(theirs: ProcessDriver, ours: ExternalDriver) -> None:
    await ours.start(await place(theirs, commands={}))
    with pytest.raises(ClusterError, match="gives no command for kill"):
        await ours.kill_broker(0)
    with pytest.raises(ClusterError, match="no broker 7; there are: 0, 1"):
        await ours.kill_broker(7)
    assert await states(theirs) == ["running", "running"]
