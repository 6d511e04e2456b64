import asyncio
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from typer.testing import CliRunner, Result

from harness.cli.cluster import app
from harness.cluster.processes.driver import ProcessDriver
from harness.errors import ClusterError, HarnessError, ScenarioError
from harness.experiment.cluster_check import Tried
from harness.experiment.topics import TopicAdmin
from harness.scenario.model import TopicSpec

Chaos = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cluster folder"


@pytest.fixture
def chaos(folder: Path) -> Iterator[Chaos]:
    """Runs `chaos cluster COMMAND … --dir FOLDER`; what is up at the end goes down."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--dir", str(folder)])

    yield run
    run("down")


def status(chaos: Chaos) -> dict[str, Any]:
    result = chaos("status", "--json")
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


@pytest.mark.cluster
def test_a_cluster_stays_is_disturbed_and_goes_without_a_trace(chaos: Chaos, folder: Path) -> None:
    up = chaos("up", "--brokers", "2", "--property", "zookeeper.session.timeout.ms=1000")
    assert up.exit_code == 0, up.output
    assert f"End it with: chaos cluster down --dir {shlex.quote(str(folder))}" in up.stdout

    before = status(chaos)
    assert before["bootstrap_servers"] in up.stdout
    assert {"zookeeper_connect", "zookeeper_data_dir", "driver"} <= before.keys()
    assert [(broker["broker_id"], broker["state"]) for broker in before["brokers"]] == [(0, "running"), (1, "running")]
    assert before["brokers"][0]["metrics_url"] is None
    assert {"pid", "log_dir", "state_change_log", "client_address", "peer_address"} <= before["brokers"][0].keys()

    for command, state in (("kill", "stopped"), ("start", "running"), ("pause", "paused"), ("resume", "running")):
        result = chaos(command, "1")
        assert result.exit_code == 0, (command, result.exception)
        assert status(chaos)["brokers"][1]["state"] == state
    for command in ("start", "stop", "kill", "pause", "resume"):
        assert isinstance(chaos(command, "9").exception, ScenarioError), "a mistake in the command, not in the cluster"
    assert chaos("stop", "1").exit_code == 0
    assert "stopped" in chaos("status").stdout

    again = chaos("up")
    assert isinstance(again.exception, ScenarioError)
    assert "runs in" in str(again.exception)

    assert chaos("down").exit_code == 0
    assert not folder.exists()


@pytest.mark.cluster
def test_groups_are_shown_with_members_and_lag(chaos: Chaos) -> None:
    up = chaos("up", "--brokers", "1", "--property", "group.initial.rebalance.delay.ms=0", "--json")
    assert up.exit_code == 0, up.output
    servers = {"bootstrap.servers": json.loads(up.stdout)["bootstrap_servers"]}
    assert chaos("groups").stdout == "no groups\n"

    orders = TopicSpec(name="orders", partitions=1, replication_factor=1)
    assert asyncio.run(TopicAdmin(servers["bootstrap.servers"]).create([orders])) == {}
    producer = Producer(servers)
    for value in ("a", "b", "c"):
        producer.produce("orders", value)
    assert producer.flush(120) == 0
    consumer = Consumer(servers | {"group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    message = consumer.poll(60)
    assert message is not None
    consumer.commit(message=message, asynchronous=False)
    (group,) = json.loads(chaos("groups", "--json").stdout)
    text = chaos("groups").stdout
    consumer.close()

    (member,) = group.pop("members")
    position = {"topic": "orders", "partition": 0, "offset": 1, "end": 3, "lag": 2, "member": member}
    assert group.pop("positions") == [position]
    assert group == {"group": "readers", "state": "STABLE", "coordinator": 0, "assignor": "range"}
    assert text.splitlines() == [
        "group readers  STABLE  coordinator 0  1 member  range",
        f"  orders-0  at 1 of 3  lag 2  {member}",
    ]


@pytest.mark.cluster
def test_data_is_kept_when_asked_and_files_of_others_always(chaos: Chaos, folder: Path) -> None:
    folder.mkdir()
    (folder / "mine").touch()
    assert chaos("up", "--brokers", "1", "--json").exit_code == 0
    assert chaos("down", "--keep-data").exit_code == 0
    assert (folder / "cluster" / "brokers" / "0" / "data").is_dir()
    assert isinstance(chaos("status").exception, ScenarioError)
    assert chaos("down").exit_code == 0
    assert [path.name for path in folder.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        pytest.param(["status"], ScenarioError, "no cluster runs in", id="status without a cluster"),
        pytest.param(
            ["kill", "1"], ScenarioError, "start one with: chaos cluster up --dir", id="kill without a cluster"
        ),
        pytest.param(["groups"], ScenarioError, "no cluster runs in", id="groups without a cluster"),
        pytest.param(["down"], ScenarioError, "no cluster was started in", id="down without a cluster"),
        pytest.param(
            ["up", "--property", "nonsense=1"], ScenarioError, "unknown property nonsense", id="an unknown property"
        ),
        pytest.param(
            ["up", "--property", "broker.id=1"],
            ScenarioError,
            "the driver itself sets broker.id",
            id="a fixed property",
        ),
        pytest.param(
            ["up", "--planted-bug", "nonsense"], ScenarioError, "unknown planted bug", id="an unknown planted bug"
        ),
    ],
)
def test_a_mistake_is_a_sentence_and_starts_nothing(
    chaos: Chaos, folder: Path, arguments: list[str], error: type[HarnessError], message: str
) -> None:
    result = chaos(*arguments)
    assert isinstance(result.exception, error)
    assert message in str(result.exception)
    assert not folder.exists()


def test_a_cluster_file_is_tried_and_what_is_judged_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def tried(_place: object) -> list[Tried]:
        return [Tried(what="address", seen="one:9092"), Tried(what="topics", problem="no answer")]

    reasons = {"are judged": ["I1"], "are not judged, as nothing shows it": ["I2", "I3"]}
    monkeypatch.setattr("harness.experiment.cluster_check.tried", tried)
    monkeypatch.setattr("harness.judging.needs.names_by_reason", lambda _scenario: reasons)
    file = tmp_path / "ours.yaml"
    file.write_text("id: j9KTpdNPRMKxMmSK201HcQ\nbootstrap_servers: one:9092\nbrokers: [{id: 1, host: one}]\n")
    result = CliRunner().invoke(app, ["check", str(file)])
    assert result.stdout.splitlines() == [
        "ok      address: one:9092",
        "FAILED  topics: no answer",
        "1 check judged: I1",
        "2 checks not judged, as nothing shows it: I2, I3",
    ]
    assert str(result.exception) == "1 of 2 failed"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["up", "--property", "min.insync.replicas"], id="a property without a value"),
        pytest.param(["up", "--brokers", "0"], id="no brokers"),
        pytest.param(["kill", "first"], id="a broker id that is no number"),
        pytest.param(["kill"], id="no broker id"),
        pytest.param(["dance"], id="an unknown command"),
    ],
)
def test_wrong_usage_exits_with_two(chaos: Chaos, folder: Path, arguments: list[str]) -> None:
    assert chaos(*arguments).exit_code == 2
    assert not folder.exists()


@pytest.mark.parametrize(
    "command", [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: chaos cluster {command}" in result.output


def test_residue_after_down_is_an_error_of_the_environment(
    chaos: Chaos, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cluster").mkdir(parents=True)
    (folder / "cluster" / "cluster.json").write_text(
        '{"run_id": "r", "driver": "process", "system": "python", "zookeeper": {}, "brokers": {}, "planted_bugs": []}'
    )

    async def residue(self: ProcessDriver) -> list[str]:
        return ["something is left"]

    with monkeypatch.context() as patch:
        patch.setattr(ProcessDriver, "residue", residue)
        result = chaos("down")
    assert isinstance(result.exception, ClusterError)
    assert str(result.exception) == "something is left"
    assert folder.exists()
