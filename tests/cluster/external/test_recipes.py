"""The cluster files of the documentation: each is valid, and Kubernetes' is tried with a `kubectl` that is not one."""

import re
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.driver import ClusterRequest
from harness.cluster.external.driver import ExternalDriver
from harness.cluster.external.place import ExternalCluster
from harness.cluster.processes.driver import ProcessDriver
from harness.cluster.readiness import view_of
from harness.contracts import registry
from harness.contracts.faults import Effect, FaultContext, Injection
from harness.contracts.targets import parse_target
from harness.experiment.cluster_check import scenario_on
from harness.kafka.brokers import described_cluster
from harness.scenario.external import place_of
from harness.verdict import FaultVerdict

CHECKOUT = Path(__file__).resolve().parents[3]
PAGE = CHECKOUT / "docs" / "how-to" / "cluster-recipes.md"
RECIPES = dict(
    re.findall(r"^## ([^\n]+)\n.*?```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
)
STRIMZI = "Strimzi on Kubernetes"
PREFIX = "chaos-0123456789-"
KUBECTL = """\
#!{python}
import os, re, subprocess, sys
words = sys.argv[1:]
assert words[:2] == ["-n", "kafka"], words
pod = next(word for word in words if word.startswith("my-cluster-dual-"))
broker, own = pod[-1], [sys.executable, "-m", "harness", "cluster"]
where = ["--dir", {root!r}]
restarted = {root!r} + "/restarted"
with open({log!r}, "a") as log:
    print(*words[2:], file=log)
match words[2]:
    case "get":
        print("pod/" + pod)
    case "delete":
        assert "--grace-period=0" in words
        subprocess.run([*own, "kill", broker, *where], check=True)
        subprocess.run([*own, "start", broker, *where], check=True)
    case "annotate":
        assert words[-1] == "strimzi.io/manual-rolling-update=true"
        subprocess.run([*own, "stop", broker, *where], check=True)
        subprocess.run([*own, "start", broker, *where], check=True)
        open(restarted, "w").close()
    case "wait":
        sys.exit(not os.path.exists(restarted))
"""


def cluster_of(recipe: str, folder: Path) -> ExternalCluster:
    """Return what a recipe says, as a run has it."""
    file = folder / "cluster.yaml"
    file.write_text(RECIPES[recipe], encoding="utf-8")
    place = place_of(scenario_on(file))
    assert place is not None
    return place


def test_there_is_a_recipe_for_each_platform() -> None:
    assert len(RECIPES) == 5


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_recipe_is_a_cluster_file(recipe: str, tmp_path: Path) -> None:
    cluster = cluster_of(recipe, tmp_path)
    assert cluster.commands
    assert cluster.hosts


@pytest.fixture
async def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProcessDriver]:
    """A cluster of three brokers that stands for the pods."""
    monkeypatch.setenv("PYTHONPATH", f"{CHECKOUT}:{CHECKOUT / 'plugins'}")
    driver = ProcessDriver(tmp_path / "theirs", "theirs")
    await driver.start(ClusterRequest(brokers=3, properties={"zookeeper.session.timeout.ms": "1000"}))
    yield driver
    await driver.stop()


@pytest.fixture
async def ours(theirs: ProcessDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ExternalDriver]:
    """What attaches to it by the recipe's commands, with a `kubectl` that notes what it is asked for."""
    status, bin_folder = await theirs.status(), tmp_path / "bin"
    bin_folder.mkdir()
    kubectl = bin_folder / "kubectl"
    where = {"root": str(status.root), "log": str(tmp_path / "kubectl.log")}
    kubectl.write_text(KUBECTL.format(python=sys.executable, **where), encoding="utf-8")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_folder}:/usr/bin:/bin")
    recipe = cluster_of(STRIMZI, tmp_path)
    cluster_id, _ = await described_cluster(status.bootstrap_servers.split(","), timeout_s=60)
    cluster = replace(
        recipe,
        cluster_id=cluster_id,
        bootstrap_servers=status.bootstrap_servers,
        zookeeper_connect=status.zookeeper_connect,
        controllers={},
        client={},
        configuration={},
        prefix=PREFIX,
        timeout_s=300,  # a pod that comes back is two commands and the start of a broker
    )
    driver = ExternalDriver(tmp_path / "ours", "ours")
    await driver.start(ClusterRequest(brokers=3, properties={}, external=cluster))
    yield driver
    await driver.stop()
    assert await driver.residue() == []


async def carried_out(driver: ExternalDriver, kind: str, **parameters: object) -> tuple[Injection, Effect]:
    """Carry a fault out on broker 1, and heal it."""
    status, plugin = await driver.status(), registry.fault(kind)
    async with view_of(status.zookeeper_connect, status.controllers) as view:
        context = FaultContext(driver=driver, view=view)
        values = plugin.Parameters.model_validate(parameters)
        injection = await plugin.prepare(context, parse_target("1"), (1,), values, duration_s=1)
        injection = await plugin.inject(context, injection)
        effect = await plugin.confirm(context, injection)
        await plugin.heal(context, injection)
    return injection, effect


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("kind", "parameters", "detail", "asked"),
    [
        pytest.param(
            "bounce",
            {},
            "broker 1 is registered again",
            ["delete pod my-cluster-dual-1 --grace-period=0 --force --wait=false"],
            id="a pod that is deleted",
        ),
        pytest.param(
            "custom",
            {"fault": "rolling-update"},
            "the command that confirms rolling-update succeeds",
            [
                "annotate pod my-cluster-dual-1 strimzi.io/manual-rolling-update=true",
                "wait pod my-cluster-dual-1 --for=delete --timeout=1s",
                "wait pod my-cluster-dual-1 --for=condition=Ready --timeout=50s",
            ],
            id="a pod that the operator rolls",
        ),
    ],
)
async def test_the_operator_brings_back_what_was_ended(
    ours: ExternalDriver, tmp_path: Path, kind: str, parameters: dict[str, Any], detail: str, asked: list[str]
) -> None:
    _, effect = await carried_out(ours, kind, **parameters)
    assert effect.verdict is FaultVerdict.CONFIRMED, effect.detail
    assert detail in effect.detail
    assert (tmp_path / "kubectl.log").read_text(encoding="utf-8").splitlines() == asked
    assert [broker.state for broker in (await ours.status()).brokers] == ["running"] * 3


@pytest.mark.cluster
async def test_a_fault_in_force_is_healed_when_the_run_stops(ours: ExternalDriver, tmp_path: Path) -> None:
    await ours.inject_command("rolling-update", 1)
    assert "the fault rolling-update is in force on broker 1" in await ours.residue()
    await ours.stop()
    last = (tmp_path / "kubectl.log").read_text(encoding="utf-8").splitlines()[-1]
    assert last == "wait pod my-cluster-dual-1 --for=condition=Ready --timeout=50s"
