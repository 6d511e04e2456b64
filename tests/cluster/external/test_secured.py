"""A real Kafka behind TLS and SASL, with a quorum and with ZooKeeper: all ways in, all ways to fail, one whole run."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.readiness import view_of
from harness.cluster.systems.system import system_named
from harness.errors import ClusterError
from harness.experiment.drive import create_topics
from harness.experiment.topics import TopicAdmin
from harness.kafka.brokers import described_cluster
from harness.kafka.security.settings import security_of
from harness.scenario.model import TopicSpec
from harness.store.folder import RunFolder
from harness.system.waiting import until
from tests.cluster.external.secured import SECRETS, USER, SecuredKafka

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(2)]

PATIENCE_S = 60.0


@pytest.fixture(scope="module", params=["4.4.0", "3.9.1"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """One of each kind."""
    if lacking := system_named(f"kafka:{request.param}").lacks():
        pytest.skip(lacking)
    started = SecuredKafka(tmp_path_factory.mktemp("secured"), request.param)
    try:
        started.start_quorum() if request.param == "4.4.0" else started.start_with_zookeeper()
        yield started
    finally:
        started.stop()


@pytest.fixture(autouse=True)
def secrets_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the settings refer to."""
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    monkeypatch.setenv("ANOTHER", "another")


def carried_out(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Carry out a command of the harness."""
    argv = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(argv, capture_output=True, env=dict(os.environ), timeout=900, check=False)


async def serving(kafka: SecuredKafka) -> str:
    """Wait until a cluster serves, and return its id."""
    security = security_of(kafka.settings())

    async def seen() -> str:
        try:
            cluster_id, brokers = await described_cluster([f"localhost:{kafka.sasl}"], timeout_s=10, security=security)
        except ClusterError:
            return ""
        return cluster_id if brokers else ""  # one that has just started does not list itself yet

    return await until(seen, bool, what="the secured cluster", timeout_s=240)


def way(kafka: SecuredKafka, name: str) -> tuple[int, dict[str, str]]:
    """Return a port and the client settings for it, each of which is a way to be let in, or not to be."""
    files = kafka.certificates
    ca = {"ssl.ca.location": str(files.ca)}
    user = {"security.protocol": "SASL_SSL", "sasl.username": USER, "sasl.password": "${env:USER_PASSWORD}"}
    jaas = f'org.apache.X required username="{USER}" password="${{env:USER_PASSWORD}}";'
    stores = {
        "ssl.keystore.location": str(files.client_store),
        "ssl.keystore.password": "${env:STORE_PASSWORD}",
        "ssl.truststore.location": str(files.trust_store),
        "ssl.truststore.password": "${env:STORE_PASSWORD}",
    }
    files_of_pem = {"ssl.certificate.location": str(files.client), "ssl.key.location": str(files.client)}
    return {
        "PLAIN": (kafka.sasl, user | ca),
        "its own": (kafka.sasl, kafka.settings()),
        "JAAS": (kafka.sasl, {**kafka.settings(), "sasl.username": "", "sasl.jaas.config": jaas}),
        "OAUTHBEARER": (kafka.sasl, user | ca | {"sasl.mechanism": "OAUTHBEARER"}),
        "stores": (kafka.mutual, {"security.protocol": "SSL"} | stores),
        "PEM": (kafka.mutual, {"security.protocol": "SSL"} | files_of_pem | ca),
        "nothing": (kafka.sasl, {}),
        "nothing, where a certificate is asked for": (kafka.mutual, {}),
        "no SASL": (kafka.sasl, {"security.protocol": "SSL"} | ca),
        "no TLS": (kafka.sasl, user | {"security.protocol": "SASL_PLAINTEXT"}),
        "no certificate": (kafka.mutual, {"security.protocol": "SSL"} | ca),
        "another password": (kafka.sasl, kafka.settings() | {"sasl.password": "${env:ANOTHER}"}),
        "another authority": (kafka.sasl, kafka.settings() | {"ssl.ca.location": str(files.other_ca)}),
    }[name]


@pytest.mark.parametrize("name", ["PLAIN", "its own", "OAUTHBEARER", "stores", "PEM"])
async def test_probes_and_clients_are_let_in(kafka: SecuredKafka, name: str) -> None:
    cluster_id = await serving(kafka)
    port, settings = way(kafka, name)
    seen = await described_cluster([f"localhost:{port}"], timeout_s=PATIENCE_S, security=security_of(settings))
    assert seen == (cluster_id, {1: f"localhost:{port}"})
    topic = TopicSpec(name=f"of-{name.replace(' ', '-')}", partitions=1, replication_factor=1)
    await create_topics(TopicAdmin(f"localhost:{port}", client=settings).create, [topic])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("nothing", "{0} requires SASL_SSL with {1}, and the client settings say PLAINTEXT", id="nothing"),
        pytest.param(
            "nothing, where a certificate is asked for",
            "{0} requires SSL with a client certificate, and the client settings say PLAINTEXT",
            id="nothing, where a certificate is asked for",
        ),
        pytest.param("no SASL", "{0} requires SASL_SSL with {1}, and the client settings say SSL", id="no SASL"),
        pytest.param(
            "no TLS",
            "{0} requires SASL_SSL with {1}, and the client settings say SASL_PLAINTEXT with PLAIN",
            id="no TLS",
        ),
        pytest.param("no certificate", "{0}: it requires a client certificate that it trusts", id="no certificate"),
        pytest.param("another password", "connecting to {0}: it refuses the credentials by", id="another password"),
        pytest.param(
            "another authority", "connecting to {0}: its certificate is not accepted (self-signed", id="authority"
        ),
    ],
)
async def test_a_listener_that_does_not_let_in_is_named_with_what_it_wants(
    kafka: SecuredKafka, name: str, message: str
) -> None:
    await serving(kafka)
    port, settings = way(kafka, name)
    with pytest.raises(ClusterError) as refused:
        await described_cluster([f"localhost:{port}"], timeout_s=PATIENCE_S, security=security_of(settings))
    mechanisms = "OAUTHBEARER or PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512"
    assert message.format(f"localhost:{port}", mechanisms) in str(refused.value)
    assert not [secret for secret in SECRETS.values() if secret in str(refused.value)]


async def test_the_metadata_are_read_with_credentials_of_their_own(kafka: SecuredKafka) -> None:
    await serving(kafka)
    async with view_of(kafka.zookeeper or "", kafka.controllers, client=kafka.settings()) as view:
        assert sorted(await view.registrations()) == [1]
    async with view_of("", {}, client=kafka.settings(), bootstrap_servers=f"localhost:{kafka.sasl}") as view:
        assert sorted(await view.registrations()) == [1], "brokers tell it too"
    own = "zookeeper.sasl.password" if kafka.zookeeper else "controller.sasl.password"
    refused = "with a user" if kafka.zookeeper else "it refuses the credentials by PLAIN"
    wrong = view_of(kafka.zookeeper or "", kafka.controllers, client=kafka.settings() | {own: "${env:ANOTHER}"})

    async def looked() -> None:
        async with wrong as view:
            await view.registrations()

    with pytest.raises(ClusterError, match=refused):
        await looked()


def described(kafka: SecuredKafka, cluster_id: str, folder: Path, **changes: object) -> Path:
    """Write the cluster file of one, with commands that pause it, and return its path."""
    seen, broker = folder / "processes", kafka.pid("broker")
    file = folder / "cluster.yaml"
    cluster = {
        "id": cluster_id,
        "bootstrap_servers": f"localhost:{kafka.sasl}",
        "zookeeper": kafka.zookeeper,
        "controllers": {str(number): address for number, address in kafka.controllers.items()},
        "brokers": [{"id": 1, "host": "localhost"}],
        "client": kafka.settings(),
        "properties": {"zookeeper.session.timeout.ms": 6000} if kafka.zookeeper else {},
        "commands": {
            "check": "true",
            "pause": f"sh -c 'cat /proc/[0-9]*/cmdline >{seen}; kill -STOP {broker}'",
            "resume": f"kill -CONT {broker}",
            "data": f"cp -r {kafka.folder}/data/. {{into}}",
        }
        | ({"zookeeper": f"cp -r {kafka.folder}/zookeeper/. {{into}}"} if kafka.zookeeper else {}),
    }
    file.write_text(json.dumps(cluster | changes), encoding="utf-8")  # which is YAML too
    return file


async def test_a_check_tries_all_and_changes_nothing(kafka: SecuredKafka, tmp_path: Path) -> None:
    file = described(kafka, await serving(kafka), tmp_path)
    done = await asyncio.to_thread(carried_out, "cluster", "check", str(file), "--json")
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    answer = json.loads(done.stdout)
    assert [each["what"] for each in answer["tried"]] == [
        f"bootstrap server localhost:{kafka.sasl}",
        f"broker 1 at localhost:{kafka.sasl}",
        "configuration of broker 1",
        f"ZooKeeper {kafka.zookeeper}" if kafka.zookeeper else "controllers",
        "topics of a run",
        *(f"command {action} of broker 1" for action in ("check", "data", "pause", "resume")),
        *(["command zookeeper"] if kafka.zookeeper else []),
    ]
    assert "lost-write" in answer["judged"]["are judged"]
    assert not (tmp_path / "processes").exists(), "the command for a pause is not carried out"
    async with view_of(kafka.zookeeper or "", kafka.controllers, client=kafka.settings()) as view:
        assert not [topic for topic in await view.topics() if topic.startswith("chaos-")]

    wrong = kafka.settings() | {"sasl.password": "${env:ANOTHER}"}
    file = described(kafka, "another", tmp_path, client=wrong, commands={"check": "false", "kill": "no-such-program"})
    done = await asyncio.to_thread(carried_out, "cluster", "check", str(file))
    out = done.stdout.decode()
    assert done.returncode == 4, out
    for sentence in (
        "it refuses the credentials by",
        "ended with status 1",
        "there is no program no-such-program here",
    ):
        assert sentence in out
    assert not [secret for secret in SECRETS.values() if secret in out]


async def test_no_secret_of_a_run_is_in_its_folder_or_in_a_command_line(kafka: SecuredKafka, tmp_path: Path) -> None:
    described(kafka, await serving(kafka), tmp_path)
    scenario = {
        "name": "secured",
        "description": "A pause of a broker that asks for credentials",
        "cluster": "cluster.yaml",
        "topics": [{"name": "orders", "partitions": 2, "replication_factor": 1}],
        "workloads": [{"kind": "produce-consume"}],
        "faults": [{"kind": "pause", "at_s": 2, "duration_s": 2, "target": 1}],
        "duration_s": 8,
    }
    file, runs = tmp_path / "secured.yaml", tmp_path / "runs"
    file.write_text(json.dumps(scenario), encoding="utf-8")
    done = await asyncio.to_thread(carried_out, "run", str(file), "--runs", str(runs), "--i-own-this-cluster")
    (path,) = (each for each in runs.iterdir() if each.is_dir())
    folder = RunFolder(path)
    result = json.loads(folder.verdict.read_text(encoding="utf-8"))
    assert (result["verdicts"]["fault"], result["verdicts"]["environment"]) == ("CONFIRMED", "CLEAN"), result
    answers = {check["check"]: check["verdict"] for check in result["checks"]}
    assert answers["lost-write"] == "PASS"
    assert "FAIL" not in answers.values()
    seen = (tmp_path / "processes").read_bytes() + done.stdout + done.stderr
    assert b"harness.experiment.client" in seen, "clients run when it is looked"
    for each in path.rglob("*"):
        seen += each.read_bytes() if each.is_file() else b""
    assert b"sasl.password" in seen, "the settings are there, with references"
    assert [name for name, secret in SECRETS.items() if secret.encode() in seen] == []
