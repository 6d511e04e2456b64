"""The images themselves, on an engine: built if they are missing, and run as the driver runs them."""

from collections.abc import Iterator
from typing import Any

import pytest

from harness.cluster.containers import building, images
from harness.cluster.containers.engine import Engine, EngineUnavailable

pytestmark = pytest.mark.docker

JAVA = ["java", "-XX:-UsePerfData", "-cp", "/opt/zookeeper/lib/*"]
AS_THE_DRIVER_RUNS_THEM: dict[str, Any] = {
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges:true"],
    "network_mode": "none",
    "tmpfs": {"/tmp": "size=64m"},
    "labels": {images.LABEL: "test"},
}


class Quiet:
    """Drops the progress of a build."""

    def started(self, step: str, doing: str) -> None: ...
    def line(self, text: str) -> None: ...
    def finished(self, step: str, came_to: str) -> None: ...


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine that has the images."""
    try:
        engine = Engine.connect()
    except EngineUnavailable as error:
        pytest.skip(str(error))
    with engine:
        building.build(engine, Quiet())
        yield engine


def run(engine: Engine, image: str, command: list[str], *, user: str, **options: Any) -> str:
    """Return what a container prints, as an unprivileged user on a read-only root."""
    container = engine.client.containers.create(image, command, user=user, **AS_THE_DRIVER_RUNS_THEM, **options)
    try:
        container.start()
        status = container.wait(timeout=300)["StatusCode"]
        output: str = container.logs().decode()
    finally:
        container.remove(force=True, v=True)
    assert status == 0, output
    return output


USERS = [
    pytest.param("", id="the image's own user"),
    pytest.param("12345:54321", id="a user that the image does not know"),
    pytest.param("0:0", id="root without capabilities"),
]


@pytest.mark.parametrize("user", USERS)
def test_the_broker_starts(engine: Engine, user: str) -> None:
    assert "usage: python -m harness.broker" in run(engine, images.broker().name, ["--help"], user=user)


@pytest.mark.parametrize("user", USERS)
def test_zookeeper_starts(engine: Engine, user: str) -> None:
    command = [*JAVA, "org.apache.zookeeper.Version"]
    assert run(engine, images.java().name, command, user=user).startswith("3.9.")


@pytest.mark.parametrize(
    ("image", "folder"),
    [
        pytest.param(images.broker().name, "/var/lib/kafka", id="a broker's"),
        pytest.param(images.java().name, "/var/lib/zookeeper", id="ZooKeeper's"),
        pytest.param(images.java().name, "/var/lib/kafka", id="one of a broker of Apache Kafka"),
    ],
)
def test_a_fresh_data_volume_is_writable_by_any_user(engine: Engine, image: str, folder: str) -> None:
    volume = engine.client.volumes.create(labels={images.LABEL: "test"})
    try:
        options = {"volumes": {volume.name: {"bind": folder, "mode": "rw"}}, "entrypoint": ["touch"]}
        run(engine, image, [f"{folder}/file"], user="12345:54321", **options)
    finally:
        volume.remove(force=True)


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(images.broker().name, id="the brokers'"),
        pytest.param(images.java().name, id="that of what runs on Java"),
        pytest.param(images.relay().name, id="the relay's"),
    ],
)
def test_an_image_starts_as_nobody_and_declares_no_volume_of_its_own(engine: Engine, image: str) -> None:
    config = engine.client.images.get(image).attrs["Config"]
    assert config["User"] == "65534:65534"
    assert not config["Volumes"]
    assert config["Labels"][images.LABEL] == "1"


def test_the_image_has_what_the_checkout_has(engine: Engine) -> None:
    command = ["-c", "import harness.events, kafka, sys; print(open(harness.events.__file__).read(), end='')"]
    output = run(engine, images.broker().name, command, user="", entrypoint=["python3"])
    assert output.encode() == (images.CHECKOUT / "harness" / "events.py").read_bytes()


def test_unchanged_images_are_found_up_to_date(engine: Engine) -> None:
    assert [one.rebuilt for one in building.build(engine, Quiet())] == [False, False, False]
    assert images.missing(engine) == []


BUSY = """
import os
for _ in range(60):
    if os.fork() == 0:
        while True:
            os.stat("/")
print("all run", flush=True)
os.wait()
"""


def test_a_container_freezes_whose_processes_hardly_get_any_cpu(engine: Engine) -> None:
    """At the first request the runtime often gives up."""
    command = ["-c", BUSY]
    container = engine.client.containers.create(
        images.broker().name, command, entrypoint=["python3"], cpu_period=100_000, **AS_THE_DRIVER_RUNS_THEM
    )
    name = str(container.name)
    try:
        container.start()
        next(container.logs(stream=True))
        engine.limit_cpus(name, 0.1)
        for _ in range(6):
            engine.pause(name)
            state = engine.state(name)
            assert state is not None
            assert state.state == "paused"
            engine.unpause(name)
    finally:
        container.remove(force=True, v=True)
