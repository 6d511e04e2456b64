import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.clocks import SET
from harness.cluster.driver import ClusterStatus
from harness.contracts.faults import Injection
from harness.errors import ClusterError, EvidenceError
from harness.experiment import collect as collecting
from harness.experiment import quiescence
from harness.kraft.metadata_log import read_quorum_log
from harness.progress import Silent
from harness.run.journal import Journal, read_journal
from harness.run.run import Run
from harness.scenario.file import read_scenario
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.history import ChainedWriter, InjectionStep, ZnodeChange, read_jsonl
from harness.store.phase_log import PhaseNotes
from harness.store.result import forbidding
from harness.system.process_state import ProcessState
from tests.brief import BRIEF
from tests.fake_cluster import FakeCluster
from tests.raising import raising

pytestmark = pytest.mark.real_time("threads of their own wait for disks")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    cluster = FakeCluster(root=tmp_path)
    for broker in range(3):
        cluster.say(broker, ev="broker_start")
        cluster.printed_by(broker).write_text("hello\n")
    return cluster


@pytest.fixture(autouse=True)
def _view(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster is its own view."""
    monkeypatch.setattr(quiescence, "view_of_cluster", lambda *_: nullcontext(cluster))


async def collect(folder: RunFolder, cluster: FakeCluster) -> PhaseNotes:
    notes, scenario = PhaseNotes(), read_scenario(BRIEF, "brief")
    await collecting.collect(
        Run(folder=folder, scenario=scenario, plan=make_plan(scenario, 1)), cluster, Silent(), notes
    )
    return notes


async def test_logs_are_copied_to_where_the_judges_look(folder: RunFolder, cluster: FakeCluster) -> None:
    await collect(folder, cluster)
    for broker in range(3):
        assert (folder.broker(broker) / cluster.log_of(broker).name).read_text() == '{"ev": "broker_start"}\n'
        assert (folder.broker(broker) / cluster.printed_by(broker).name).read_text() == "hello\n"


async def test_a_copy_of_an_earlier_attempt_is_replaced(folder: RunFolder, cluster: FakeCluster) -> None:
    await collect(folder, cluster)
    cluster.printed_by(0).write_text("hello again\n")
    await collect(folder, cluster)
    assert (folder.broker(0) / cluster.printed_by(0).name).read_text() == "hello again\n"


async def test_a_log_that_is_where_it_belongs_stays(cluster: FakeCluster, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.broker(0).parent.mkdir(parents=True)
    for broker in range(3):
        folder.broker(broker).symlink_to(tmp_path)
    assert not forbidding((await collect(folder, cluster)).remarks)
    assert cluster.printed_by(0).read_text() == "hello\n"


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
    cluster.servers |= {1: ProcessState.STOPPED, 2: ProcessState.STOPPED}
    journal = Journal(folder.journal)
    injection = Injection(fault="kill-zookeeper", targets=(), state={"servers": [1, 2]})
    journal.note(0, "kill-zookeeper", InjectionStep.INTENDED, injection=injection)
    journal.close()
    await collect(folder, cluster)
    assert set(cluster.servers.values()) == {ProcessState.RUNNING}
    assert read_journal(folder.journal)[-1].step is InjectionStep.HEALED


async def test_one_source_that_cannot_be_read_hides_no_other(
    folder: RunFolder, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.zookeeper.merged_history.merge_history", raising(EvidenceError("half a file")))
    notes = await collect(folder, cluster)
    assert str(notes.remarks[-1]) == "the ZooKeeper history is incomplete: half a file"
    assert (folder.broker(0) / cluster.printed_by(0).name).exists()


LOGS = Path(__file__).parents[1] / "kraft/logs"
SEEN: dict[str, Any] = {"time_ms": 1, "data": "", "session": "", "ephemeral_owner": "", "source": "observer"}
AHEAD_S = 60


@pytest.fixture
async def quorum(cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The metadata logs of three controllers, left by a run of Kafka 4.4.0; the clock of the leader was wrong."""
    shutil.copytree(LOGS, tmp_path / "quorum")
    status = await cluster.status()
    events = tmp_path / "events.jsonl"
    wrong = {"event": SET, "name": "broker-0", "since_ns": -(10**19), "step_s": AHEAD_S, "rate": 1}
    events.write_text(json.dumps(wrong) + "\n")
    brokers = tuple(
        replace(each, log_dir=tmp_path / f"quorum/{each.broker_id}", human_log=None, clock_log=events)
        for each in status.brokers
    )

    async def held_back() -> ClusterStatus:
        return replace(status, zookeeper=(), controllers=dict.fromkeys(range(3), "127.0.0.1:1"), brokers=brokers)

    monkeypatch.setattr(cluster, "status", held_back)
    return sorted((tmp_path / "quorum").glob("*/*/*.log"))


async def collected(folder: RunFolder, cluster: FakeCluster, *seen: dict[str, Any]) -> tuple[list[str], set[int]]:
    """Return which remarks forbid PASS, and where in the log the history's changes come from."""
    with ChainedWriter(folder.zookeeper) as writer:
        for each in seen:
            writer.write(ZnodeChange(**(SEEN | each)))
    notes = await collect(folder, cluster)
    return [str(each) for each in forbidding(notes.remarks)], {line["zxid"] for line in read_jsonl(folder.zookeeper)}


async def test_what_a_quorum_decided_is_the_history(
    folder: RunFolder, cluster: FakeCluster, quorum: list[Path]
) -> None:
    remarks, zxids = await collected(folder, cluster)
    assert remarks == []
    assert max(zxids) == 181
    own = read_quorum_log([log.parents[1] for log in quorum]).changes
    times = [line["time_ms"] for line in read_jsonl(folder.zookeeper)]
    assert times == [change.time_ms - AHEAD_S * 1000 for change in own]


@pytest.mark.parametrize(
    ("lost", "text", "zxids"),
    [
        pytest.param([2], "its log has no record", 181, id="one log is lost, and two have all of it"),
        pytest.param([1, 2], "the metadata history is incomplete: no majority", 9, id="two are, and a witness is left"),
    ],
)
async def test_metadata_logs_that_are_lost_forbid_pass(
    folder: RunFolder, cluster: FakeCluster, quorum: list[Path], lost: list[int], text: str, zxids: int
) -> None:
    for number in lost:
        quorum[number].unlink()
    seen: list[dict[str, Any]] = [
        {"zxid": 0, "type": "create", "path": "/controller_epoch", "version": 0, "data": "1"},
        {"zxid": 9, "type": "delete", "path": "/x", "version": -1},
    ]
    (remark, *_), history = await collected(folder, cluster, *seen)
    assert text in remark
    assert {9, zxids} <= history


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        pytest.param({"type": "set", "version": 7}, "version 7 of /x at zxid 500: seen by", id="a write"),
        pytest.param({"type": "delete", "version": -1}, "the delete of /x at zxid 500: seen by", id="a delete"),
    ],
)
async def test_what_was_committed_and_is_not_in_the_logs_forbids_pass(
    folder: RunFolder, cluster: FakeCluster, quorum: list[Path], seen: dict[str, object], text: str
) -> None:
    (remark,), zxids = await collected(folder, cluster, {"zxid": 500, "path": "/x"} | seen)
    assert text in remark
    assert {500, 181} <= zxids
