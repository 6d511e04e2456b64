"""Faults of processes and of the links between them: each is confirmed and healed on real brokers and ZooKeeper."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from harness.cluster import faketime
from harness.cluster.containers import filters
from harness.cluster.containers.driver import DockerDriver
from harness.cluster.containers.engine import Engine
from harness.cluster.disks import disk_errors, small_disks, tracer
from harness.cluster.driver import CLOCK, DISK_ERRORS, DISK_SPACE, POWER, ClusterRequest
from harness.cluster.driver import OVER_LINKS as LINKS
from harness.cluster.processes.driver import ProcessDriver
from harness.contracts import registry
from harness.contracts.faults import FaultContext
from harness.contracts.targets import Role, Target, parse_target, resolve
from harness.experiment.drive import create_topics
from harness.experiment.topics import TopicAdmin
from harness.scenario.model import TopicSpec
from harness.system.waiting import until
from harness.values import NO_BROKER
from harness.verdict import FaultVerdict
from harness.zookeeper.kazoo_view import KazooView
from harness.zookeeper.view import ClusterView, PartitionView
from tests.cluster.test_faketime import needs_faketime

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(34)]

QUICK = {"zookeeper.session.timeout.ms": "1500"}
ALL: dict[str, Any] = {"brokers": 3, "properties": QUICK}
needs_libfiu = pytest.mark.skipif(bool(disk_errors.lacking()), reason=disk_errors.lacking())
needs_strace = pytest.mark.skipif(bool(tracer.lacking()), reason=tracer.lacking())
needs_disks = pytest.mark.skipif(bool(small_disks.lacking()), reason=small_disks.lacking())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The run folder of a cluster that tests share; each leaves all brokers running and all replicas in sync."""
    root = tmp_path_factory.mktemp("run")
    driver = ProcessDriver(root, "run")
    clocks, disks, fiu = (not there.lacking() for there in (faketime, small_disks, disk_errors))
    needs = {*LINKS, POWER, *[CLOCK] * clocks, *[DISK_SPACE] * disks, *[DISK_ERRORS] * fiu}
    asyncio.run(started(driver, ClusterRequest(**ALL, needs=frozenset(needs))))
    yield root
    asyncio.run(driver.stop())


@pytest.fixture(scope="module")
def contained(docker_images: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same in containers."""
    root = tmp_path_factory.mktemp("contained")
    driver = DockerDriver(root, "run")
    asyncio.run(started(driver, ClusterRequest(**ALL, needs=LINKS | {POWER, DISK_SPACE})))
    yield root
    asyncio.run(driver.stop())
    assert docker_images.resources(root) == []


async def started(driver: ProcessDriver | DockerDriver, request: ClusterRequest) -> None:
    """Start three brokers with a topic that two of them have, so that there is room to move to."""
    status = await driver.start(request)
    spec = TopicSpec(name="moved", partitions=1, replication_factor=2)
    await create_topics(TopicAdmin(status.bootstrap_servers).create, [spec])


async def all_in_sync(view: ClusterView) -> None:
    """Wait until every partition has a leader, and all its replicas are in its ISR."""

    def whole(partitions: list[PartitionView]) -> bool:
        return bool(partitions) and all(
            each.leader != NO_BROKER and set(each.isr) == set(each.assignment) for each in partitions
        )

    await until(view.partitions, whole, what="all replicas in sync", timeout_s=120)


async def hit_by(target: Target, view: ClusterView) -> tuple[int, ...]:
    """Return the brokers of a target, once there are any: an earlier test may have left no controller yet."""
    return await until(lambda: resolve(target, view), bool, what=f"a broker that is {target}", timeout_s=120)


FILES = [
    pytest.param("disk-damage", "1", {"what": "disk"}, "it opened no log", id="a disk is replaced by an empty one"),
    pytest.param("disk-damage", "controller", {"what": "checkpoint"}, "now gone; it opened", id="no checkpoint"),
    pytest.param("power-loss", "0", {}, "unsynced bytes", id="a power loss"),
]
FULL: tuple[str, str, dict[str, object], str] = ("disk-full", "1", {}, "nothing more fits")
LIMITS = [
    pytest.param("cpu-limit", "leader(moved,0)", {"cpus": 0.02}, "0.02 CPUs, and was held back", id="little CPU time"),
    pytest.param("memory-limit", "0,1", {}, "broker [0, 1] killed by the kernel", id="no memory left"),
    pytest.param("file-limit", "controller", {}, "files open, and left a client waiting", id="no file more"),
]
PACKETS = [
    pytest.param(
        "drop-packets",
        target,
        {"direction": direction},
        "were dropped, and a client was left waiting",
        marks=pytest.mark.skipif(bool(filters.lacking()), reason=filters.lacking()),
        id=f"packets, {direction}, of {target}",
    )
    for direction, target in (("both", "leader(moved,0)"), ("inbound", "controller"), ("outbound", "1"))
]
ASKED = [
    pytest.param("overwrite-controller", "controller", {}, "no controller acted for 1 s", id="another broker is named"),
    pytest.param(
        "overwrite-controller",
        "controller",
        {"names": "nonsense"},
        "no controller acted for 1 s",
        id="invalid content names no broker",
    ),
    pytest.param(
        "delete-controller-epoch", "controller", {}, "the controller wrote nothing for 1 s", id="no controller epoch"
    ),
    pytest.param("preferred-election", "leader(moved,0)", {}, "as the preferred replica", id="a lead changes hands"),
    pytest.param("rolling-restart", "0,1", {"hard": True}, "broker 1 ended without a word", id="killed one by one"),
    pytest.param(
        "change-config",
        "all",
        {"config": {"log.segment.bytes": "20000"}},
        "each has log.segment.bytes=20000",
        id="each broker is configured otherwise",
    ),
    pytest.param(
        "change-config",
        "0,1",
        {"config": {"max.message.bytes": "900000"}, "topic": "moved"},
        "moved has max.message",
        id="a topic is configured otherwise",
    ),
    pytest.param("connection-storm", "all", {"connections": 50}, "150 connections are open", id="a connection storm"),
    pytest.param("hostile-client", "all", {"times": 2}, "the same processes answer others", id="a hostile client"),
]
"""What nothing but a broker's listener and ZooKeeper takes."""
OVER_LINKS = [
    pytest.param("isolate", "leader(moved,0)", {}, "no probe came through over 8 links", id="a leader is cut off"),
    pytest.param(
        "isolate",
        "controller",
        {"sides": ["peers"], "direction": "inbound", "reset": True},
        "no probe came through over 2 links",
        id="the controller does not hear its peers",
    ),
    pytest.param("partition", "controller", {}, "no probe came through over 2 links", id="a controller is a bridge"),
    pytest.param(
        "isolate",
        "controller",
        {"sides": ["peers"], "cut_s": 0.4, "whole_s": 0.4},
        "each of 4 links held probes",
        id="the links of the controller flap",
    ),
    pytest.param("delay", "0,1", {"extra_ms": 50}, "the quickest of 16 probes took", id="two brokers are slow"),
    pytest.param(
        "delay",
        "0",
        {"extra_ms": 10, "jitter_ms": 100, "bytes_per_s": 20000},
        "16 more were up to",
        id="one broker is slow by chance, and has little room",
    ),
    pytest.param("reset-connections", "controller", {}, "connections are gone", id="all connections break"),
    pytest.param(
        "lose-zookeeper-reply",
        "1",
        {"carried_out": True},
        "got no answer to create /brokers/ids/",
        id="the reply to a registration is lost",
    ),
    pytest.param(
        "lose-zookeeper-reply",
        "1",
        {"carried_out": False},
        "(not carried out)",
        id="a registration is lost",
    ),
]


@pytest.mark.parametrize(
    ("name", "target", "parameters", "detail"),
    [
        pytest.param("bounce", "0,2", {}, "broker 0 is registered again", id="two brokers bounce"),
        pytest.param("kill", "0,1,2", {}, "process gone", id="all brokers are killed at once"),
        pytest.param(
            "expire-session", "controller", {"times": 2}, "is controller in epoch", id="two expiries in a row"
        ),
        pytest.param(
            "move-controller", "controller", {"times": 3}, "is controller in epoch", id="the controller moves"
        ),
        pytest.param("reassign", "leader(moved,0)", {}, "moved-0 moved from", id="a leader's replica moves away"),
        pytest.param("reassign", "followers(moved,0)", {}, "moved-0 moved from", id="a follower's replica moves away"),
        pytest.param("delete-topic", "0,1,2", {}, "came and went", id="a topic comes and goes"),
        pytest.param("add-partitions", "leader(moved,0)", {}, "moved has 1 more", id="a topic gets a partition"),
        *ASKED,
        pytest.param("pause-zookeeper", "zookeeper(1)", {}, "server 1 paused", id="ZooKeeper stands still"),
        pytest.param(
            "kill-zookeeper",
            "zookeeper(leader)",
            {},
            "server 1 gone, no quorum left",
            id="ZooKeeper dies and comes back",
        ),
        pytest.param(*FULL, marks=needs_disks, id="a full disk"),
        *FILES,
        *LIMITS,
        *OVER_LINKS,
    ],
)
async def test_a_fault_is_confirmed_and_healed_on_processes(
    root: Path, name: str, target: str, parameters: dict[str, object], detail: str
) -> None:
    await confirmed_and_healed(ProcessDriver(root, "run"), name, target, parameters, detail)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("name", "target", "parameters", "detail"),
    [*FILES, pytest.param(*FULL, id="a full disk"), *LIMITS, *PACKETS, *OVER_LINKS, *ASKED],
)
async def test_a_fault_is_confirmed_and_healed_in_containers(
    contained: Path, name: str, target: str, parameters: dict[str, object], detail: str
) -> None:
    await confirmed_and_healed(DockerDriver(contained, "run"), name, target, parameters, detail)


async def confirmed_and_healed(
    driver: ProcessDriver | DockerDriver, name: str, target: str, parameters: dict[str, object], detail: str
) -> None:
    plugin, aimed = registry.fault(name), parse_target(target)
    async with KazooView((await driver.status()).zookeeper_connect) as view:
        await all_in_sync(view)
        context = FaultContext(driver=driver, view=view)
        all_of = {Role.ZOOKEEPER: (), Role.ALL: (0, 1, 2)}
        brokers = all_of[aimed.role] if aimed.role in all_of else await hit_by(aimed, view)
        values = plugin.Parameters.model_validate(parameters)
        injection = await plugin.prepare(context, aimed, brokers, values, duration_s=60)
        injection = await plugin.inject(context, injection)
        effect = await plugin.confirm(context, injection)
        await plugin.heal(context, injection)
        assert (effect.verdict, detail in effect.detail) == (FaultVerdict.CONFIRMED, True), effect.detail
        status = await driver.status()
        assert {broker.state for broker in status.brokers} | {server.state for server in status.zookeeper} == {
            "running"
        }
        # a short session may have expired: a healed broker registers again in its own time
        await until(view.registrations, lambda seen: set(seen) == {0, 1, 2}, what="all registered", timeout_s=120)
        await all_in_sync(view)


@contextlib.asynccontextmanager
async def written_to(topic: str, bootstrap_servers: str) -> AsyncIterator[None]:
    """Keep a producer writing to a topic."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})

    async def write() -> None:
        while True:
            producer.produce(topic, b"value")
            producer.poll(0)
            await asyncio.sleep(0.05)

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        writing.cancel()
        producer.flush(120)


@pytest.mark.parametrize(
    ("name", "parameters", "detail"),
    [
        pytest.param("clock", {"step_s": 3600}, "line was dated +3", marks=needs_faketime, id="an hour ahead"),
        pytest.param(
            "clock",
            {"step_s": -3600, "drift": 0.8},
            "line was dated -3",
            marks=needs_faketime,
            id="an hour back, and too slow",
        ),
        pytest.param("clock", {"drift": 1.2}, "line was dated +", marks=needs_faketime, id="too fast"),
        pytest.param("slow-sync", {"extra_ms": 300}, "took 0.3 s or more", marks=needs_strace, id="slow syncs"),
        pytest.param("disk-error", {}, "Input/output error", marks=needs_libfiu, id="a disk that fails"),
        pytest.param(
            "disk-error", {"error": "read-only"}, "Read-only file system", marks=needs_libfiu, id="a read-only disk"
        ),
    ],
)
async def test_a_fault_is_confirmed_by_what_the_leader_logs_meanwhile(
    root: Path, name: str, parameters: dict[str, object], detail: str
) -> None:
    plugin, driver, aimed = registry.fault(name), ProcessDriver(root, "run"), parse_target("leader(moved,0)")
    status = await driver.status()
    async with KazooView(status.zookeeper_connect) as view, written_to("moved", status.bootstrap_servers):
        await all_in_sync(view)
        context = FaultContext(driver=driver, view=view)
        values = plugin.Parameters.model_validate(parameters)
        injection = await plugin.prepare(context, aimed, await resolve(aimed, view), values, duration_s=60)
        injection = await plugin.inject(context, injection)
        effect = await plugin.confirm(context, injection)
        await plugin.heal(context, injection)
        assert (effect.verdict, detail in effect.detail) == (FaultVerdict.CONFIRMED, True), effect.detail
