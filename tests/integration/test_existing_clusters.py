"""A cluster that a script started, which knows nothing of the harness, is disturbed and judged from end to end.

A commit has one of these tests by turns, a night all of them.
"""

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.systems.kafka import jars
from harness.cluster.systems.kafka.log4j import LEVELS
from harness.cluster.systems.kafka.releases import release_of
from harness.cluster.systems.system import system_named
from harness.judging.needs import answerable
from harness.scenario.file import read_scenario
from tests.cluster.external.secured import ADMIN_PASSWORD, Certificates

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(1, of="existing clusters")]

SCRIPT = Path(__file__).parents[2] / "tools/outside_cluster.sh"
TIMEOUT_S = 900
OF_CLIENTS = {"lost-write", "duplicate", "phantom", "poll-skip", "nonmonotonic-poll"}
OF_ONE_CLOCK = {"quorum-leader-resigns"}
"""Checks that compare the clocks of brokers, which may differ in an existing cluster."""
PLAIN, SECURED, MUTUAL = "PLAINTEXT", "SASL_SSL", "SSL"
USER, PASSWORD, VARIABLE = "chaos", "secret-of-the-user", "OUTSIDE_PASSWORD"
_LOGIN = (
    f'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="{ADMIN_PASSWORD}"'
    f' user_admin="{ADMIN_PASSWORD}" user_{USER}="{PASSWORD}";'
)


def base_port() -> int:
    """Return the first of 24 ports that are free, below those that the system gives to clients."""
    while True:
        first = random.randrange(12_000, 32_000, 50)
        try:
            for port in range(first, first + 24):
                with socket.socket() as listening:
                    listening.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


class Outside:
    """Three brokers in a folder."""

    def __init__(self, folder: Path, release: str, protocol: str, *, relayed: bool = False) -> None:
        self.folder, self.release, self.protocol = folder, release, protocol
        self._settings = {"LISTENER_PROTOCOL": protocol, "CONTROLLER_PROTOCOL": protocol}
        if relayed:
            self._settings["RELAYED"] = "yes"
        self._environment = os.environ | {"BASE_PORT": str(base_port())}
        (folder / "loggers").write_text(
            "".join(f"{name} {level}\n" for name, level in LEVELS.items()), encoding="ascii"
        )
        self._certificates = None if protocol == PLAIN else self._secure()
        settings = "".join(f"{name}={value}\n" for name, value in self._settings.items())
        (folder / "environment").write_text(settings, encoding="ascii")
        told = self.carry_out("up", str(jars.folder_of(release_of(release))), "3")
        self.told: dict[str, str] = dict(line.split("=", 1) for line in told.splitlines())

    def _secure(self) -> Certificates:
        """Have brokers ask for TLS and a user, or a certificate; return the files."""
        certificates = Certificates(self.folder)
        logins = "".join(
            f"listener.name.{name}.plain.sasl.jaas.config={_LOGIN}\n" for name in ("clients", "relayed", "controller")
        )
        (self.folder / "extra.properties").write_text(
            f"""\
{logins}sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
ssl.keystore.type=PEM
ssl.keystore.location={certificates.server}
ssl.truststore.type=PEM
ssl.truststore.location={certificates.ca}
ssl.client.auth={"required" if self.protocol == MUTUAL else "none"}
""",
            encoding="ascii",
        )
        return certificates

    def client(self) -> dict[str, str]:
        """Return the settings with which clients connect."""
        if self._certificates is None:
            return {}
        ca = {"ssl.ca.location": str(self._certificates.ca)}
        if self.protocol == MUTUAL:
            return ca | {"security.protocol": MUTUAL, "ssl.keystore.location": str(self._certificates.client)}
        return ca | {
            "security.protocol": SECURED,
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": f"${{env:{VARIABLE}}}",
        }

    def copies(self) -> dict[str, str]:
        """Return the commands that copy evidence."""
        commands = {kind: f"{SCRIPT} {kind} {self.folder} {{id}} {{into}}" for kind in ("data", "logs")}
        if "zookeeper" in self.told:
            commands["zookeeper"] = f"{SCRIPT} data {self.folder} zookeeper {{into}}"
        return commands

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
        servers = self.told["bootstrap_servers"]
        if forwards := self.told.get("relay"):
            parts = [each.split("@") for each in forwards.rstrip(",").split(",")]
            place["relay"] = {"clients": {id_: {"listen": listen, "target": target} for id_, listen, target in parts}}
            servers = ",".join(listen for _, listen, _ in parts)
        return {
            "id": self.told["id"],
            "bootstrap_servers": servers,
            "client": self.client(),
            "release": self.release,
            **place,
            "brokers": [{"id": number, "host": "127.0.0.1"} for number in (1, 2, 3)],
            "properties": {"broker.session.timeout.ms": 6000, "zookeeper.session.timeout.ms": 6000},
            "commands": {
                action: f"env BASE_PORT={self._environment['BASE_PORT']} {SCRIPT} {action} {self.folder} {{id}}"
                for action in ("kill", "start")
            }
            | commands,
        }


@pytest.fixture(scope="module")
def outside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Start one, and end it."""
    release, protocol, *relayed = request.param
    if lacking := system_named(f"kafka:{release}").lacks():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("outside")
    try:
        yield Outside(folder, release, protocol, relayed=bool(relayed))
    finally:
        subprocess.run([str(SCRIPT), "down", str(folder)], check=True, timeout=TIMEOUT_S)


EACH = pytest.mark.parametrize(
    "outside",
    [
        pytest.param(("3.9.1", PLAIN), id="3.9.1 with ZooKeeper"),
        pytest.param(("3.9.1", SECURED), id="3.9.1 with ZooKeeper, secured"),
        pytest.param(("4.4.0", PLAIN), id="4.4.0"),
        pytest.param(("4.4.0", SECURED), id="4.4.0, secured"),
        pytest.param(("4.4.0", MUTUAL), id="4.4.0, secured by certificates of both sides"),
    ],
    indirect=True,
)
RELAYED = pytest.mark.parametrize(
    "outside",
    [
        pytest.param(("3.9.1", PLAIN, "relayed"), id="3.9.1 with ZooKeeper"),
        pytest.param(("4.4.0", SECURED, "relayed"), id="4.4.0, secured"),
    ],
    indirect=True,
)
ONE = pytest.mark.parametrize("outside", [pytest.param(("4.4.0", PLAIN), id="4.4.0")], indirect=True)


KILL = {"kind": "kill", "at_s": 3, "duration_s": 4, "target": "leader(orders,0)"}


def judged(
    outside: Outside,
    folder: Path,
    checks: list[str],
    commands: Mapping[str, str],
    faults: Sequence[Mapping[str, Any]] = (KILL,),
) -> tuple[int, dict[str, Any]]:
    """Run faults under load; return exit code and verdict."""
    folder.mkdir()
    (folder / "cluster.yaml").write_text(json.dumps(outside.described(**commands)), encoding="utf-8")
    scenario = {
        "name": "outside",
        "description": "An existing cluster is disturbed under load",
        "cluster": "cluster.yaml",
        "topics": [{"name": "orders", "partitions": 2, "replication_factor": 3, "config": {"min.insync.replicas": 2}}],
        "workloads": [{"kind": "produce-consume", "parameters": {"committers": 1}}],
        "faults": faults,
        "duration_s": 15,
        "checks": checks,
    }
    (folder / "outside.yaml").write_text(json.dumps(scenario), encoding="utf-8")
    argv = [sys.executable, "-m", "harness", "run", str(folder / "outside.yaml"), "--runs", str(folder / "runs")]
    environment = os.environ | {VARIABLE: PASSWORD}
    done = subprocess.run(
        [*argv, "--i-own-this-cluster"], env=environment, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    verdicts = list((folder / "runs").glob("*/verdict.json"))
    assert verdicts, done.stdout.decode() + done.stderr.decode()
    result: dict[str, Any] = json.loads(verdicts[0].read_text(encoding="utf-8"))
    return done.returncode, result


def of_our_own(release: str) -> set[str]:
    """Return the checks that a cluster of this release, started by the harness, leaves no evidence for."""
    text = f"""\
name: own
description: What its log shows
system: kafka:{release}
topics: [{{name: orders, partitions: 1, replication_factor: 1}}]
workloads: [{{kind: produce-consume}}]
"""
    return {answer.check for answer in answerable(read_scenario(text, "own.yaml")).without_evidence}


@EACH
def test_with_its_data_and_logs_a_run_is_judged_as_far_as_on_a_cluster_of_our_own(
    outside: Outside, tmp_path: Path
) -> None:
    code, result = judged(outside, tmp_path / "whole", [], outside.copies())
    answers = {each["check"]: each["verdict"] for each in result["checks"]}
    assert code == 0, [each for each in result["checks"] if each["verdict"] in ("FAIL", "UNKNOWN")] + result["remarks"]
    assert {answers[name] for name in OF_CLIENTS | {"I9", "I10", "I12", "step-by-step", "unseen"}} == {"PASS"}
    not_judged = {name for name, verdict in answers.items() if verdict == "NOT_JUDGED"}
    assert not_judged == of_our_own(outside.release) | OF_ONE_CLOCK
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
    written = [path for path in (tmp_path / "whole/runs").rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if PASSWORD.encode() in path.read_bytes()] == []


@ONE
def test_without_data_the_clients_checks_judge_and_a_named_check_that_cannot_is_no_pass(
    outside: Outside, tmp_path: Path
) -> None:
    code, result = judged(outside, tmp_path / "clients", ["lost-write", "I9"], {})
    answers = {each["check"]: each["verdict"] for each in result["checks"]}
    assert answers == {"lost-write": "PASS", "I9": "NOT_JUDGED"}
    assert (code, result["verdicts"]["system"]) == (3, "UNKNOWN")
    assert [each["text"] for each in result["remarks"] if each["forbids_pass"]] == [
        "1 check that the scenario names cannot judge: I9 log-matching"
    ]


@RELAYED
def test_links_to_clients_that_lead_through_the_relay_are_cut_slowed_and_reset(
    outside: Outside, tmp_path: Path
) -> None:
    links = {"target": "leader(orders,0)", "parameters": {"sides": ["clients"]}}
    faults = [
        {"kind": "isolate", "at_s": 1, "duration_s": 3, **links},
        {"kind": "delay", "at_s": 6, "duration_s": 3, **links},
        {"kind": "reset-connections", "at_s": 11, "duration_s": 1, **links},
    ]
    code, result = judged(outside, tmp_path / "links", [], outside.copies(), faults)
    assert code == 0, [each for each in result["checks"] if each["verdict"] in ("FAIL", "UNKNOWN")] + result["remarks"]
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
    check = [sys.executable, "-m", "harness", "cluster", "check", str(tmp_path / "links/cluster.yaml")]
    done = subprocess.run(
        check, env=os.environ | {VARIABLE: PASSWORD}, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, "its clients are sent to" in done.stdout) == (0, True), done.stdout + done.stderr
