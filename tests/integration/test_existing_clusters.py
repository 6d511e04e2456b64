"""A cluster that a script started, which knows nothing of the harness, is disturbed and judged from end to end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.systems.kafka import jars
from harness.cluster.systems.kafka.releases import release_of
from harness.cluster.systems.system import system_named
from tests.cluster.external.secured import free_port

pytestmark = [pytest.mark.cluster, pytest.mark.by_turns(1)]

SCRIPT = Path(__file__).parents[2] / "tools/outside_cluster.sh"
TIMEOUT_S = 900
OF_CLIENTS = {"lost-write", "duplicate", "phantom", "poll-skip", "nonmonotonic-poll"}


class Outside:
    """Three brokers in a folder."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder = folder
        self._environment = os.environ | {"BASE_PORT": str(free_port() // 100 * 100)}
        told = self.carry_out("up", str(jars.folder_of(release_of(release))), "3")
        self.told: dict[str, str] = dict(line.split("=", 1) for line in told.splitlines())

    def carry_out(self, command: str, *arguments: str) -> str:
        """Have the script do something; return what it prints."""
        argv = [str(SCRIPT), command, str(self.folder), *arguments]
        return subprocess.run(
            argv, env=self._environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        ).stdout

    def described(self, **commands: str) -> dict[str, Any]:
        """Return what a cluster file says of it, with commands by the script."""
        place: dict[str, Any] = {"zookeeper": self.told.get("zookeeper")}
        if voters := self.told.get("controllers"):
            place = {"controllers": dict(voter.split("@") for voter in voters.split(","))}
        return {
            "id": self.told["id"],
            "bootstrap_servers": self.told["bootstrap_servers"],
            **place,
            "brokers": [{"id": number, "host": "127.0.0.1"} for number in (1, 2, 3)],
            "properties": {"broker.session.timeout.ms": 6000, "zookeeper.session.timeout.ms": 6000},
            "commands": {
                action: f"env BASE_PORT={self._environment['BASE_PORT']} {SCRIPT} {action} {self.folder} {{id}}"
                for action in ("kill", "start")
            }
            | commands,
        }


@pytest.fixture(scope="module", params=["3.9.1", "4.4.0"])
def outside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """One with ZooKeeper, and one with a quorum."""
    if lacking := system_named(f"kafka:{request.param}").lacks():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("outside")
    try:
        yield Outside(folder, request.param)
    finally:
        subprocess.run([str(SCRIPT), "down", str(folder)], check=True, timeout=TIMEOUT_S)


def judged(outside: Outside, folder: Path, checks: list[str], **commands: str) -> tuple[int, dict[str, Any]]:
    """Run a kill under load; return exit code and verdict."""
    folder.mkdir()
    (folder / "cluster.yaml").write_text(json.dumps(outside.described(**commands)), encoding="utf-8")
    scenario = {
        "name": "outside",
        "description": "A broker of an existing cluster is killed under load",
        "cluster": "cluster.yaml",
        "topics": [{"name": "orders", "partitions": 2, "replication_factor": 3, "config": {"min.insync.replicas": 2}}],
        "workloads": [{"kind": "produce-consume", "parameters": {"committers": 1}}],
        "faults": [{"kind": "kill", "at_s": 3, "duration_s": 4, "target": "leader(orders,0)"}],
        "duration_s": 15,
        "checks": checks,
    }
    (folder / "outside.yaml").write_text(json.dumps(scenario), encoding="utf-8")
    argv = [sys.executable, "-m", "harness", "run", str(folder / "outside.yaml"), "--runs", str(folder / "runs")]
    done = subprocess.run([*argv, "--i-own-this-cluster"], capture_output=True, timeout=TIMEOUT_S, check=False)
    verdicts = list((folder / "runs").glob("*/verdict.json"))
    assert verdicts, done.stdout.decode() + done.stderr.decode()
    result: dict[str, Any] = json.loads(verdicts[0].read_text(encoding="utf-8"))
    return done.returncode, result


def test_with_its_data_a_run_is_judged_whole(outside: Outside, tmp_path: Path) -> None:
    copies = {"data": f"cp -a {outside.folder}/{{id}}.data/. {{into}}"}
    if "zookeeper" in outside.told:
        copies["zookeeper"] = f"cp -a {outside.folder}/zookeeper.data/. {{into}}"
    code, result = judged(outside, tmp_path / "whole", [], **copies)
    answers = {each["check"]: each["verdict"] for each in result["checks"]}
    assert code == 0, [each for each in result["checks"] if each["verdict"] in ("FAIL", "UNKNOWN")] + result["remarks"]
    assert {answers[name] for name in OF_CLIENTS | {"I9", "I10", "unseen"}} == {"PASS"}
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}


def test_without_data_the_clients_checks_judge_and_a_named_check_that_cannot_is_no_pass(
    outside: Outside, tmp_path: Path
) -> None:
    code, result = judged(outside, tmp_path / "clients", ["lost-write", "I9"])
    answers = {each["check"]: each["verdict"] for each in result["checks"]}
    assert answers == {"lost-write": "PASS", "I9": "NOT_JUDGED"}
    assert (code, result["verdicts"]["system"]) == (3, "UNKNOWN")
    assert [each["text"] for each in result["remarks"] if each["forbids_pass"]] == [
        "1 check that the scenario names cannot judge: I9 log-matching"
    ]
