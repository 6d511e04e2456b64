from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.driver import ClusterStatus
from harness.contracts.faults import Injection
from harness.errors import ClusterError, EvidenceError
from harness.experiment import collect as collecting
from harness.experiment.journal import Journal, read_journal
from harness.progress import Silent
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep
from harness.store.phase_log import PhaseNotes
from harness.store.result import forbidding
from tests.fake_cluster import FakeCluster
from tests.raising import raising


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    cluster = FakeCluster(root=tmp_path)
    for broker in range(3):
        cluster.say(broker, ev="broker_start")
    (tmp_path / "broker.log").write_text("hello\n")
    return cluster


async def collect(folder: RunFolder, cluster: FakeCluster) -> PhaseNotes:
    notes = PhaseNotes()
    await collecting.collect(folder, cluster, Silent(), notes)
    return notes


async def test_logs_are_copied_to_where_the_judges_look(folder: RunFolder, cluster: FakeCluster) -> None:
    await collect(folder, cluster)
    for broker in range(3):
        assert (folder.broker(broker) / cluster.log_of(broker).name).read_text() == '{"ev": "broker_start"}\n'
        assert (folder.broker(broker) / "broker.log").read_text() == "hello\n"


async def test_a_copy_of_an_earlier_attempt_is_replaced(folder: RunFolder, cluster: FakeCluster) -> None:
    await collect(folder, cluster)
    (cluster.root / "broker.log").write_text("hello again\n")
    await collect(folder, cluster)
    assert (folder.broker(0) / "broker.log").read_text() == "hello again\n"


async def test_a_log_that_is_where_it_belongs_stays(cluster: FakeCluster, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.broker(0).parent.mkdir(parents=True)
    for broker in range(3):
        folder.broker(broker).symlink_to(tmp_path)
    assert not forbidding((await collect(folder, cluster)).remarks)
    assert (tmp_path / "broker.log").read_text() == "hello\n"


async def test_a_missing_log_damages_the_evidence(folder: RunFolder, cluster: FakeCluster) -> None:
    cluster.log_of(2).unlink()
    notes = await collect(folder, cluster)
    assert any(
        str(doubt).startswith("broker 2: state-change-2.jsonl is missing") for doubt in forbidding(notes.remarks)
    )


async def test_data_that_the_driver_cannot_bring_out_damage_the_evidence(
    folder: RunFolder, cluster: FakeCluster
) -> None:
    cluster.out_of_reach = ["the data of broker-1 could not be brought out: the disk is full"]
    assert cluster.out_of_reach[0] in map(str, forbidding((await collect(folder, cluster)).remarks))


async def test_no_cluster_at_all_is_a_remark(
    folder: RunFolder, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "status", raising(ClusterError("no cluster was started")))
    with pytest.raises(EvidenceError, match="there is no cluster to collect evidence from: no cluster was started"):
        await collect(folder, cluster)


async def test_of_a_cluster_that_is_gone_nothing_is_healed_and_its_history_is_whole(
    folder: RunFolder, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = await cluster.status()
    brokers = tuple(replace(broker, human_log=None) for broker in status.brokers)

    async def gone() -> ClusterStatus:
        return replace(status, zookeeper=(), brokers=brokers)

    monkeypatch.setattr(cluster, "status", gone)
    journal = Journal(folder.journal)
    journal.note(0, "kill", InjectionStep.INTENDED, injection=Injection(fault="kill", targets=(1,)))
    journal.close()
    assert (await collect(folder, cluster)).remarks == []
    assert not folder.zookeeper.exists()
    assert read_journal(folder.journal)[-1].step is InjectionStep.INTENDED


async def test_servers_of_zookeeper_are_healed_without_a_session_which_only_they_could_give(
    folder: RunFolder, cluster: FakeCluster
) -> None:
    cluster.servers |= {1: "stopped", 2: "stopped"}
    journal = Journal(folder.journal)
    injection = Injection(fault="kill-zookeeper", targets=(), state={"servers": [1, 2]})
    journal.note(0, "kill-zookeeper", InjectionStep.INTENDED, injection=injection)
    journal.close()
    await collect(folder, cluster)
    assert set(cluster.servers.values()) == {"running"}
    assert read_journal(folder.journal)[-1].step is InjectionStep.HEALED


async def test_one_source_that_cannot_be_read_hides_no_other(
    folder: RunFolder, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.zookeeper.merged_history.merge_history", raising(EvidenceError("half a file")))
    notes = await collect(folder, cluster)
    assert str(notes.remarks[-1]) == "the ZooKeeper history is incomplete: half a file"
    assert (folder.broker(0) / "broker.log").exists()
