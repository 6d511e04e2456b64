"""Kafka 4.4.0 in containers, which the repository's compose file starts, by the cluster file of the documentation."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.containers import images
from harness.cluster.systems.kafka import jars
from harness.cluster.systems.kafka.releases import release_of
from harness.cluster.systems.system import system_named
from harness.errors import ClusterError
from harness.kafka.brokers import described_cluster
from harness.system.waiting import until
from tests.cluster.external.test_recipes import CHECKOUT, RECIPES

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(1, of="existing clusters")]

RELEASE = "4.4.0"
COMPOSE = [
    "docker-compose",
    "--project-name",
    "kafka-chaos-recipe",
    "--file",
    str(CHECKOUT / "docker/kafka.compose.yaml"),
]
TIMEOUT_S = 600


@pytest.fixture
def containers(docker_images: object) -> Iterator[None]:
    """The three brokers, which serve."""
    assert docker_images
    if lacking := system_named(f"kafka:{RELEASE}").lacks():
        pytest.skip(lacking)
    if shutil.which("docker-compose") is None:
        pytest.skip("there is no docker-compose")
    places = {"KAFKA_IMAGE": images.java().name, "KAFKA_JARS": str(jars.folder_of(release_of(RELEASE)).resolve())}

    def compose(*arguments: str) -> None:
        subprocess.run([*COMPOSE, *arguments], env=os.environ | places, check=True, timeout=TIMEOUT_S)

    async def brokers() -> list[int]:
        try:
            return sorted((await described_cluster(["localhost:19092"], timeout_s=5))[1])
        except ClusterError:
            return []

    try:
        compose("up", "--detach")
        asyncio.run(until(brokers, lambda seen: seen == [1, 2, 3], what="the three brokers", timeout_s=TIMEOUT_S))
        yield
    finally:
        compose("down", "--volumes")


@pytest.mark.usefixtures("containers")
def test_a_run_by_the_recipe_is_judged_whole(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(RECIPES["Docker Compose"], encoding="utf-8")
    scenario = {
        "name": "compose",
        "description": "A broker in a container is killed under load",
        "cluster": "cluster.yaml",
        "topics": [{"name": "orders", "partitions": 2, "replication_factor": 3, "config": {"min.insync.replicas": 2}}],
        "workloads": [{"kind": "produce-consume", "parameters": {"committers": 1}}],
        "faults": [{"kind": "kill", "at_s": 3, "duration_s": 4, "target": "leader(orders,0)"}],
        "duration_s": 15,
    }
    (tmp_path / "compose.yaml").write_text(json.dumps(scenario), encoding="utf-8")

    def chaos(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "harness", *arguments]
        return subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    checked = chaos("cluster", "check", str(tmp_path / "cluster.yaml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = chaos("run", str(tmp_path / "compose.yaml"), "--runs", str(tmp_path / "runs"), "--i-own-this-cluster")
    assert done.returncode == 0, done.stdout + done.stderr
    (verdict,) = (tmp_path / "runs").glob("*/verdict.json")
    result = json.loads(verdict.read_text(encoding="utf-8"))
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
