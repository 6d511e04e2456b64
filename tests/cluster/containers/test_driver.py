# ruff: noqa: ASYNC220, ASYNC240 - small local files and short-lived processes are what is tested
"""What the docker driver does beside what every driver must (`test_conformance.py`)."""

import asyncio
import dataclasses
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from harness.cli.cluster import app
from harness.cluster.capabilities import Direction, Side
from harness.cluster.containers import images, plans
from harness.cluster.containers.driver import DockerDriver
from harness.cluster.containers.engine import (
    HOST_LABEL,
    ROOT_LABEL,
    RUN_LABEL,
    Engine,
    EngineUnavailable,
    Owner,
    Resource,
)
from harness.cluster.driver import DRIVER, OVER_LINKS, ClusterRequest
from harness.cluster.limits import resources
from harness.cluster.systems.system import system_named
from harness.errors import ClusterError, Refused
from harness.experiment.drive import create_topics
from harness.experiment.topics import TopicAdmin
from harness.scenario.model import TopicSpec
from harness.system.waiting import until
from harness.values import PYTHON
from tests.cluster.containers.engine_proxy import EngineProxy

REQUEST = ClusterRequest(brokers=1, properties={"zookeeper.session.timeout.ms": "1000"})
GUARD_S = 240.0
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]

WRITABLE = {
    "broker": {"/var/lib/kafka", "/var/log/kafka"},
    "relay": {"/var/lib/relay"},
    "zookeeper": {"/var/lib/zookeeper", "/var/log/zookeeper"},
}
"""Folders of a container, by a part of its name."""

docker = pytest.mark.docker
pytestmark = pytest.mark.rotating(12)


@pytest.fixture
async def alone(docker_images: Engine, tmp_path: Path) -> AsyncIterator[DockerDriver]:
    """The driver of a cluster of this test's own, not started."""
    driver = DockerDriver(tmp_path, "alone")
    yield driver
    await driver.stop()
    assert await driver.residue() == []
    assert docker_images.resources(tmp_path) == []


def containers(engine: Engine, root: Path) -> dict[str, Any]:
    """Return what the engine says about the containers of a run, by name."""
    inspected = [
        engine.client.api.inspect_container(made.id) for made in engine.resources(root) if made.kind == "container"
    ]
    return {container["Name"].removeprefix("/"): container for container in inspected}


@docker
@pytest.mark.parametrize("system", [PYTHON, "kafka:3.9.1"])
async def test_containers_are_named_confined_limited_and_reached_over_loopback_only(
    alone: DockerDriver, docker_images: Engine, tmp_path: Path, system: str
) -> None:
    if lacking := system_named(system).lacks():
        pytest.skip(lacking)
    status = await alone.start(dataclasses.replace(REQUEST, needs=OVER_LINKS, system=system, properties={}))
    by_name = containers(docker_images, tmp_path)
    names = plans.Names(tmp_path)
    assert set(by_name) == {names.of("broker-0"), names.of("relay"), names.of("zookeeper-1")}
    assert status.broker(0).container == names.of("broker-0")
    for name, container in by_name.items():
        host = container["HostConfig"]
        user, group = (number or plans.UNPRIVILEGED for number in (os.getuid(), os.getgid()))
        assert container["Config"]["User"] == f"{user}:{group}", name
        assert host["CapDrop"] == ["ALL"], name
        assert host["CapAdd"] is None, name
        assert host["Privileged"] is False, name
        assert host["ReadonlyRootfs"] is True, name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        assert host["Memory"] == host["MemorySwap"] == plans.LIMITS.memory_bytes, name
        assert host["CpuQuota"] == host["CpuPeriod"], name
        assert host["PidsLimit"] == plans.LIMITS.processes, name
        assert host["RestartPolicy"]["Name"] in ("", "no"), name
        assert host["LogConfig"]["Config"]["max-size"] == "8m", name
        published = [own["HostIp"] for ports in container["NetworkSettings"]["Ports"].values() for own in ports or []]
        assert published == ["127.0.0.1"], name
        writable = {mount["Destination"] for mount in container["Mounts"] if mount["RW"]}
        assert writable == WRITABLE[next(kind for kind in WRITABLE if kind in name)], name
        assert Path(f"/proc/{container['State']['Pid']}").stat().st_uid != 0, name


@docker
async def test_the_relay_sees_no_more_of_the_cluster_than_its_own_folder_and_says_why_it_ended(
    alone: DockerDriver, docker_images: Engine, tmp_path: Path
) -> None:
    assert (await alone.start(dataclasses.replace(REQUEST, needs=OVER_LINKS))).severed == ""
    name = plans.Names(tmp_path).of("relay")
    mounts = containers(docker_images, tmp_path)[name]["Mounts"]
    assert [mount["Source"] for mount in mounts] == [str(tmp_path / "cluster" / "relay")]
    docker_images.signal(name, "KILL")

    async def severed() -> str:
        return (await alone.status()).severed

    await until(severed, lambda seen: "the relay ended" in seen, what="word of its end", timeout_s=120)
    with pytest.raises(ClusterError, match=r"no process answers at relay\.sock"):
        await alone.isolate(0, (Side.ZOOKEEPER,), Direction.BOTH, at_most_s=60)


@docker
async def test_everything_has_the_labels_of_the_run(alone: DockerDriver, docker_images: Engine, tmp_path: Path) -> None:
    await alone.start(REQUEST)
    made = docker_images.resources(tmp_path)
    assert sorted(it.kind for it in made) == ["container", "container", "network", "volume", "volume"]
    assert {(it.run_id, it.root, it.host) for it in made} == {("alone", tmp_path, socket.gethostname())}
    assert all(it in docker_images.resources() for it in made)
    labels = Owner(run_id="alone", root=tmp_path).labels
    assert set(labels) == {RUN_LABEL, ROOT_LABEL, HOST_LABEL}
    assert all(
        labels.items() <= container["Config"]["Labels"].items()
        for container in containers(docker_images, tmp_path).values()
    )


@docker
async def test_stopping_one_cluster_leaves_another_alone(
    alone: DockerDriver, docker_images: Engine, tmp_path: Path
) -> None:
    strangers = Owner(run_id="another", root=tmp_path / "another")
    name = plans.Names(strangers.root).of("volume")
    docker_images.create_volume(name, strangers)
    try:
        await alone.start(REQUEST)
        await alone.stop()
        assert [made.name for made in docker_images.resources(strangers.root)] == [name]
    finally:
        docker_images.remove_run(strangers.root)


@docker
async def test_starting_leaves_alone_what_another_machine_made_for_a_folder_of_the_same_path(
    alone: DockerDriver, docker_images: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as far:
        far.setattr(socket, "gethostname", lambda: "far-away")
        docker_images.create_volume("chaos-test-of-far-away", Owner(run_id="alone", root=tmp_path))
    (strangers,) = [made for made in docker_images.resources() if made.host == "far-away"]
    try:
        await alone.start(REQUEST)
        await alone.stop()
        assert strangers in docker_images.resources()
    finally:
        docker_images.remove(strangers)


@docker
async def test_a_container_that_somebody_removes_is_a_stopped_broker_and_its_data_is_reported_missing(
    alone: DockerDriver, docker_images: Engine, tmp_path: Path
) -> None:
    await alone.start(REQUEST)
    docker_images.client.api.remove_container(plans.Names(tmp_path).of("broker-0"), force=True)
    assert (await alone.status()).broker(0).state == "stopped"
    with pytest.raises(ClusterError, match="broker-0 does not run"):
        await alone.kill_broker(0)
    with pytest.raises(ClusterError, match="No such container"):
        await alone.start_broker(0)
    sentences = await alone.copy_data()
    assert len(sentences) == 1, sentences
    assert sentences[0].startswith("the data of broker-0 could not be brought out: the container")


@docker
async def test_a_server_that_gets_too_little_memory_is_reported_as_killed_for_it(
    alone: DockerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "LIMITS", dataclasses.replace(plans.LIMITS, memory_bytes=12 * plans.MIB))
    with pytest.raises(ClusterError, match="killed because it wanted more than 12 MiB of memory"):
        await alone.start(REQUEST)


@docker
async def test_what_an_earlier_cluster_left_in_the_folder_makes_room(
    alone: DockerDriver, docker_images: Engine, tmp_path: Path
) -> None:
    await alone.start(REQUEST)
    first = containers(docker_images, tmp_path)
    await alone.stop()
    docker_images.create_volume(plans.Names(tmp_path).of("broker-0"), Owner(run_id="alone", root=tmp_path))
    await alone.start(REQUEST)
    assert set(containers(docker_images, tmp_path)) == set(first)


@docker
async def test_an_image_that_is_missing_is_named_with_the_command_that_makes_it(
    alone: DockerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = dataclasses.replace(images.broker(), digest="none")
    monkeypatch.setattr(images, "broker", lambda: absent)
    sentence = "the Docker engine has no kafka-chaos-broker:none; run: chaos images build"
    assert DockerDriver.lacks() == {DRIVER: sentence}
    with pytest.raises(ClusterError, match=sentence):
        await alone.start(REQUEST)
    assert await alone.residue() == []


def test_without_an_engine_the_driver_lacks_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(EngineUnavailable, match=r"answers at unix:///nowhere/docker\.sock: No such file or directory$"):
        Engine.connect()
    assert "no Docker engine answers" in DockerDriver.lacks()[DRIVER]


def test_an_engine_on_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    assert "on another machine" in DockerDriver.lacks()[DRIVER]


async def test_without_an_engine_nothing_is_left_of_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    driver = DockerDriver(tmp_path, "none")
    with pytest.raises(ClusterError, match="no Docker engine answers"):
        await driver.start(REQUEST)
    assert await driver.residue() == []


@docker
async def test_an_engine_that_goes_away_is_an_error_of_the_environment_and_stop_works_when_it_is_back(
    alone: DockerDriver, engine_proxy: EngineProxy
) -> None:
    await alone.start(REQUEST)
    engine_proxy.close()
    for act in (alone.status(), alone.kill_broker(0), alone.stop_broker(0, timeout_s=1)):
        with pytest.raises(EngineUnavailable, match="no Docker engine answers"):
            await act
    (sentence,) = await alone.copy_data()
    assert "no data could be brought out of the containers" in sentence

    with pytest.raises(EngineUnavailable):
        await alone.stop()

    (left,) = await alone.residue()
    assert left.startswith("containers of run alone may be left: no Docker engine answers")
    engine_proxy.open()
    assert "still exists" in " ".join(await alone.residue())
    await alone.stop()
    assert await alone.residue() == []


@docker
async def test_the_guard_waits_for_an_engine_that_is_away_when_the_owner_dies(
    alone: DockerDriver, engine_proxy: EngineProxy, tmp_path: Path
) -> None:
    owner = subprocess.Popen(SLEEP)
    try:
        await alone.start(ClusterRequest(brokers=1, properties=REQUEST.properties, owner_pid=owner.pid))
    finally:
        engine_proxy.close()
        owner.kill()
        owner.wait()
    log = tmp_path / "cluster" / "guard.log"

    async def guard_log() -> str:
        return log.read_text()

    await until(guard_log, lambda text: "no Docker engine answers" in text, what="a first try", timeout_s=120)
    engine_proxy.open()

    async def left() -> list[str]:
        return await alone.residue()

    await until(left, lambda sentences: not sentences, what="nothing left", timeout_s=GUARD_S)
    assert (tmp_path / "cluster" / "brokers" / "0" / "data" / "meta.properties").exists()


@docker
@pytest.mark.parametrize("link", [pytest.param(False, id="moved"), pytest.param(True, id="moved, with a link to it")])
async def test_containers_go_when_their_folder_is_not_where_it_was(
    link: bool, docker_images: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "cluster"
    await DockerDriver(folder, "moved").start(REQUEST)
    folder.rename(tmp_path / "elsewhere")
    if link:
        folder.symlink_to(tmp_path / "elsewhere")

    async def made() -> list[Resource]:
        return docker_images.resources(folder)

    try:
        await until(made, lambda left: not left, what="nothing left", timeout_s=GUARD_S)
    finally:
        docker_images.remove_run(folder)


@docker
async def test_a_pause_for_no_time_is_refused(alone: DockerDriver) -> None:
    await alone.start(REQUEST)
    with pytest.raises(ClusterError, match="at_most_s must be positive, not 0"):
        await alone.pause_broker(0, at_most_s=0)


@docker
def test_a_cluster_of_containers_from_the_command_line(docker_images: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "cluster"

    def chaos(*arguments: str) -> Any:
        return CliRunner().invoke(app, [*arguments, "--dir", str(folder)])

    try:
        up = chaos("up", "--driver", "docker", "--brokers", "3", "--property", "zookeeper.session.timeout.ms=1000")
        assert up.exit_code == 0, up.exception
        for command in ("kill", "start", "pause", "resume", "stop"):
            result = chaos(command, "1")
            assert result.exit_code == 0, (command, result.exception)
        assert plans.Names(folder).of("broker-2") in chaos("status", "--json").stdout
    finally:
        down = chaos("down", "--keep-data")
    assert down.exit_code == 0, down.exception
    assert (folder / "cluster" / "brokers" / "0" / "data" / "meta.properties").exists()
    assert docker_images.resources(folder) == []
    assert chaos("down").exit_code == 0
    assert not folder.exists()


def test_up_is_refused_where_the_driver_cannot_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    result = CliRunner().invoke(app, ["up", "--driver", "docker", "--dir", str(tmp_path / "cluster")])
    assert isinstance(result.exception, Refused)
    assert "no Docker engine answers" in str(result.exception)
    assert "drivers that can: process" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@docker
async def test_a_broker_of_apache_kafka_has_its_native_compression(alone: DockerDriver) -> None:
    system = "kafka:3.9.1"
    if lacking := system_named(system).lacks():
        pytest.skip(lacking)
    status = await alone.start(dataclasses.replace(REQUEST, system=system, properties={}))
    codecs = ["gzip", "lz4", "snappy", "zstd"]
    specs = [
        TopicSpec(name=codec, partitions=1, replication_factor=1, config={"compression.type": codec})
        for codec in codecs
    ]
    await create_topics(TopicAdmin(status.bootstrap_servers).create, specs)
    outcomes: dict[str | None, str] = {}
    producer = Producer({"bootstrap.servers": status.bootstrap_servers, "acks": "all"})
    for codec in codecs:
        producer.produce(codec, b"x" * 100, on_delivery=lambda error, it: outcomes.update({it.topic(): str(error)}))
    await asyncio.to_thread(producer.flush, 60)
    assert outcomes == dict.fromkeys(codecs, "None")


@docker
@pytest.mark.parametrize(
    ("resource", "amount"),
    [
        pytest.param(resources.Resource.CPU, 0.5, id="CPU time"),
        pytest.param(resources.Resource.MEMORY, 512.0 * plans.MIB, id="memory"),
    ],
)
async def test_a_limit_that_came_after_the_end_of_its_watchdog_is_lifted(
    alone: DockerDriver, docker_images: Engine, tmp_path: Path, resource: resources.Resource, amount: float
) -> None:
    await alone.start(REQUEST)
    before = (await alone.usage(0, resource)).limit
    name = plans.Names(tmp_path).of("broker-0")
    if resource is resources.Resource.CPU:
        docker_images.limit_cpus(name, amount)
    else:
        docker_images.limit_memory(name, round(amount))
    assert (await alone.usage(0, resource)).limit == amount != before
    await alone.lift(0, resource)
    assert (await alone.usage(0, resource)).limit == before
