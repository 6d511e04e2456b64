from pathlib import Path

import pytest

from harness.errors import ClusterError
from harness.experiment.client import client_argv, next_index_in, read_client_plan, run_client
from harness.experiment.load import ClientProcesses, Load
from harness.scenario.model import TopicSpec
from harness.scenario.plan import Plan, PlannedClient
from harness.store.folder import RunFolder
from harness.store.history import read_jsonl
from harness.store.phase_log import PhaseNotes
from harness.store.result import forbidding
from tests.fake_cluster import FakeCluster


def client(process: str, stop_order: int) -> PlannedClient:
    return PlannedClient(
        process=process,
        workload="produce-consume",
        role="producer",
        seed=5,
        stop_order=stop_order,
        parameters={"acks": 1},
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    return FakeCluster(root=tmp_path)


@pytest.fixture
def load(folder: RunFolder, cluster: FakeCluster) -> Load:
    clients = [client("reader", 1), client("writer-1", 0), client("writer-2", 0)]
    plan = Plan(scenario="x", seed=1, faults=[], clients=clients)
    topics = [TopicSpec(name="orders", partitions=3)]
    return Load(ClientProcesses(cluster, folder), plan, topics, bootstrap_servers="127.0.0.1:9")


async def test_every_client_gets_its_plan_and_its_operations_file(
    load: Load, folder: RunFolder, cluster: FakeCluster
) -> None:
    await load.start()
    plan = read_client_plan(folder.client_plan("writer-1"))
    assert (plan.process, plan.bootstrap_servers, plan.topics) == ("writer-1", "127.0.0.1:9", {"orders": 3})
    assert (plan.seed, plan.parameters, plan.stop_order) == (5, {"acks": 1}, 0)
    assert cluster.clients["writer-1"] == client_argv(folder.client_plan("writer-1"), folder.operations_of("writer-1"))


@pytest.mark.parametrize(
    ("group", "number", "process"),
    [
        pytest.param("group-1", 2, "b", id="a member by its number"),
        pytest.param("group-1", 3, None, id="a number too high"),
        pytest.param("reader", 1, "reader", id="a reader is a group of its own"),
        pytest.param("group-2", 1, None, id="no such group"),
    ],
)
def test_who_is_a_member(folder: RunFolder, cluster: FakeCluster, group: str, number: int, process: str | None) -> None:
    of_group = {"parameters": {"group": "group-1"}, "role": "member"}
    clients = [client(name, 1).model_copy(update=of_group) for name in ("a", "b")]
    clients.append(client("reader", 1).model_copy(update={"role": "consumer"}))
    clients.append(client("player", 1).model_copy(update={"role": "script-player"}))
    load = Load(ClientProcesses(cluster, folder), Plan(scenario="x", seed=1, faults=[], clients=clients), [])
    assert load.readers == {"group-1": ["a", "b"], "reader": ["reader"]}
    assert load.workers == ["a", "b", "reader"]
    if process is None:
        with pytest.raises(ClusterError, match="nothing was injected"):
            load.member(group, number)
    else:
        assert load.member(group, number) == process


async def test_a_client_is_found_by_its_role_and_number(folder: RunFolder, cluster: FakeCluster) -> None:
    clients = [client("a", 1), client("b", 1).model_copy(update={"role": "consumer"})]
    load = Load(ClientProcesses(cluster, folder), Plan(scenario="x", seed=1, faults=[], clients=clients), [])
    assert (load.client("producer", 1), load.client("consumer", 1)) == ("a", "b")
    with pytest.raises(ClusterError, match="the load has 1 of the role consumer: nothing was injected"):
        load.client("consumer", 2)


@pytest.mark.parametrize(("instance", "known_as"), [("", "a"), ("group-1-instance-1", "group-1-instance-1")])
async def test_a_member_leaves_and_comes_back(
    folder: RunFolder, cluster: FakeCluster, instance: str, known_as: str
) -> None:
    of_group = {"parameters": {"group": "group-1", "instance": instance}, "role": "member"}
    plan = Plan(scenario="x", seed=1, faults=[], clients=[client("a", 1).model_copy(update=of_group)])
    load = Load(ClientProcesses(cluster, folder), plan, [])
    assert load.known_as("a") == known_as
    await load.leave("a")
    await load.start_again("a")
    assert cluster.calls == ["stop_client a at once", "start_client a"]


@pytest.mark.parametrize(
    ("written", "index", "left"),
    [
        pytest.param(None, 0, "", id="a new client begins"),
        pytest.param('{"index":0}\n{"index":1}\n{"index":0}\n', 2, '{"index":0}\n{"index":1}\n{"index":0}\n',
                     id="one that was killed goes on"),
        pytest.param('{"index":0}\n{"ind', 1, '{"index":0}\n', id="without the half line that it left"),
    ],
)  # fmt: skip
def test_where_a_client_goes_on(tmp_path: Path, written: str | None, index: int, left: str) -> None:
    path = tmp_path / "client.jsonl"
    if written is not None:
        path.write_text(written)
    assert next_index_in(path) == index
    assert (path.read_text() if path.exists() else "") == left


async def test_those_of_a_lower_stop_order_are_stopped_first(load: Load, cluster: FakeCluster) -> None:
    await load.stop(PhaseNotes())
    assert cluster.calls == ["stop_client writer-1", "stop_client writer-2", "stop_client reader"]


@pytest.mark.parametrize(
    ("status", "remark"),
    [
        pytest.param(0, "", id="a good end"),
        pytest.param(None, "client reader: it did not finish within 90 s and was killed", id="too slow"),
        pytest.param(1, "client reader: it ended with status 1; the end of its log: last words", id="it broke"),
    ],
)
async def test_an_end_that_was_not_good_damages_the_evidence(
    load: Load,
    folder: RunFolder,
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    status: int | None,
    remark: str,
) -> None:
    async def stop_client(process: str, *, timeout_s: float, at_once: bool = False) -> int | None:
        return status if process == "reader" else 0

    monkeypatch.setattr(cluster, "stop_client", stop_client)
    folder.clients.mkdir()
    folder.client_log("reader").write_text("last words\n")
    notes = PhaseNotes()
    await load.stop(notes)
    assert [str(doubt) for doubt in forbidding(notes.remarks)] == ([remark] if remark else [])


async def test_a_driver_that_cannot_stop_a_client_is_a_remark(load: Load, cluster: FakeCluster) -> None:
    cluster.broken = {"stop_client"}
    notes = PhaseNotes()
    await load.stop(notes)
    assert str(forbidding(notes.remarks)[0]) == "client writer-1: it could not be stopped: stop_client is broken"


def test_a_client_runs_its_workload_until_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Load, folder: RunFolder
) -> None:
    import threading
    from typing import Any

    from harness.contracts import registry
    from harness.contracts.workloads import ClientPlan, Stop

    class Counting:
        def run(self, plan: ClientPlan, operations: Any, stop: threading.Event) -> None:
            while not stop.is_set():
                operations.write({"process": plan.process})
                stop.set()

    monkeypatch.setattr(registry, "workload", lambda _name: Counting())
    plan = ClientPlan(
        process="p", workload="w", role="r", bootstrap_servers="", topics={}, seed=1, parameters={}, stop_order=0
    )
    run_client(plan, tmp_path / "operations" / "p.jsonl", Stop())
    assert list(read_jsonl(tmp_path / "operations" / "p.jsonl")) == [{"process": "p"}]
