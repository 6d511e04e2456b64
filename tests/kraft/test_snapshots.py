"""A metadata log that begins with a snapshot, as a real Kafka 4.4.0 left one that was told to trim its log early."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.broker.log.batch import iter_batches
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import FetchResponse
from harness.broker.wire.transport import Message
from harness.errors import ClusterError, EvidenceError
from harness.kraft import observer, view
from harness.kraft.metadata_log import FOLDER, read_quorum_log
from harness.kraft.observer import QuorumObserver
from harness.kraft.records import SNAPSHOT_RESPONSE, FetchSnapshotRequest
from harness.kraft.view import NoLeaderError, QuorumView
from harness.run.early_metadata import begun_late
from harness.store.folder import RunFolder
from harness.store.history import SNAPSHOT, ChainedWriter, ZnodeChange, read_jsonl
from harness.system.waiting import until
from harness.zookeeper.merged_history import merge_changes

TRIMMED = Path(__file__).parent / "trimmed"
BEGINS, EPOCH = 566, 1
STORED = (TRIMMED / FOLDER / f"{BEGINS:020}-{EPOCH:010}.checkpoint").read_bytes()
LOG = b"".join(path.read_bytes() for path in sorted((TRIMMED / FOLDER).glob("*.log")))
END = 594
STATE = "/brokers/topics/orders/partitions/0/state"


@dataclass
class Controller:
    """The leader of a quorum in memory, which is its own transport and connection."""

    epoch: int = EPOCH
    snapshot: bytes = STORED
    code: ErrorCode = ErrorCode.NONE
    """Its answer to a request for the snapshot."""
    closed: bool = False

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "Controller":
        return self

    def close(self) -> None:
        """Stay open."""

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        wanted = message.topics[0].partitions[0]
        return self._part(wanted) if isinstance(message, FetchSnapshotRequest) else self._log(wanted)

    def _part(self, wanted: Any) -> Message:
        """Answer with no more than 400 bytes."""
        topic = SNAPSHOT_RESPONSE.TopicSnapshot
        partition = topic.PartitionSnapshot(
            index=0,
            error_code=self.code,
            snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=BEGINS, epoch=EPOCH),
            size=len(STORED),
            position=wanted.position,
            unaligned_records=self.snapshot[wanted.position : wanted.position + 400],
        )
        return SNAPSHOT_RESPONSE(error_code=0, topics=[topic(name="__cluster_metadata", partitions=[partition])])

    def _log(self, wanted: Any) -> Message:
        topic = FetchResponse.FetchableTopicResponse
        data = topic.PartitionData
        offset, early = wanted.fetch_offset, wanted.fetch_offset < BEGINS
        code = ErrorCode.FENCED_LEADER_EPOCH if wanted.current_leader_epoch < self.epoch else ErrorCode.NONE
        snapshot: dict[str, Any] = {"snapshot_id": data.SnapshotId(end_offset=BEGINS, epoch=EPOCH)} if early else {}
        partition = data(
            partition_index=0,
            error_code=code,
            high_watermark=END,
            log_start_offset=BEGINS,
            current_leader=data.LeaderIdAndEpoch(leader_id=1, leader_epoch=self.epoch),
            records=b""
            if early
            else b"".join(bytes(part) for head, part in iter_batches(LOG) if head.last_offset >= offset),
            **snapshot,
        )
        return FetchResponse(error_code=0, responses=[topic(partitions=[partition])])

    @property
    def view(self) -> QuorumView:
        return QuorumView({1: "h:1"}, self)


async def test_a_cluster_whose_log_was_trimmed_is_seen_as_it_is() -> None:
    seen = Controller().view
    changes = await seen.news()
    assert {(each.zxid, each.path, each.type) for each in changes if each.path != "/brokers/topics/orders"} == {
        (25, "/brokers/ids/1", "create"),
        (BEGINS - 1, "/controller", "create"),
        (BEGINS - 1, "/controller_epoch", "create"),
        (BEGINS - 1, "/config/topics/orders", "create"),
        (BEGINS - 1, STATE, "create"),
        (BEGINS - 1, STATE.replace("0", "1"), "create"),
    }
    assert {each.source for each in changes} == {SNAPSHOT}
    assert (await seen.controller()).broker_id == 1
    assert [(each.partition, each.isr) for each in await seen.partitions()] == [(0, (1,)), (1, (1,))]
    assert (await seen.registrations())[1].czxid == 25
    assert seen.gap == ""


async def test_who_led_when_the_snapshot_was_made_is_not_told_by_a_later_leader() -> None:
    assert (await Controller(epoch=2).view.controller()).broker_id == -1


@pytest.mark.parametrize(
    ("controller", "error", "text"),
    [
        pytest.param(Controller(snapshot=STORED[:-60]), ClusterError, "is cut short", id="cut short"),
        pytest.param(
            Controller(snapshot=STORED[:200] + b"?" + STORED[201:]), ClusterError, "cannot be read", id="damaged"
        ),
        pytest.param(
            Controller(code=ErrorCode.NOT_LEADER_FOR_PARTITION), NoLeaderError, "has no snapshot", id="it leads no more"
        ),
    ],
)
async def test_a_snapshot_that_cannot_be_had_is_said(
    controller: Controller, error: type[ClusterError], text: str
) -> None:
    with pytest.raises(error, match=text):
        await controller.view.news()


async def test_what_was_trimmed_before_it_was_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Controller().view
    late._next = 40
    monkeypatch.setattr(observer, "QuorumView", lambda *_: late)
    monkeypatch.setattr(view, "READ_TIMEOUT_S", 0.0)
    following = QuorumObserver({}, tmp_path / "seen.jsonl")
    await following.start()

    async def problem() -> str:
        return following.problem

    told = await until(problem, bool, what="a problem", timeout_s=120)
    assert told == "the log was trimmed before its records 40 to 565 were read: they are not known"
    await following.stop()
    assert {line["source"] for line in read_jsonl(tmp_path / "seen.jsonl")} == {SNAPSHOT}


@pytest.fixture
def voter(tmp_path: Path) -> Path:
    """The data directory of the only controller."""
    shutil.copytree(TRIMMED, tmp_path / "1/data")
    return tmp_path / "1/data"


def test_from_a_disk_the_history_begins_with_the_earliest_snapshot(voter: Path) -> None:
    log = read_quorum_log([voter])
    assert (log.begins, log.damage) == (BEGINS, [])
    assert [each.zxid for each in log.changes if each.path == STATE] == [BEGINS - 1]


@pytest.mark.parametrize(
    ("damaged", "text"),
    [
        pytest.param(lambda data: data[:-10], "is cut short", id="cut short"),
        pytest.param(lambda data: b"", "is cut short", id="empty"),
        pytest.param(None, "begins at 543, and no snapshot stands for what was before", id="not there"),
    ],
)
def test_without_its_snapshot_a_trimmed_log_is_not_believed(
    voter: Path, damaged: Callable[[bytes], bytes] | None, text: str
) -> None:
    (snapshot,) = (voter / FOLDER).glob("*.checkpoint")
    snapshot.unlink()
    if damaged:
        snapshot.write_bytes(damaged(STORED))
    with pytest.raises(EvidenceError, match=text):
        read_quorum_log([voter])


def test_a_controller_that_has_trimmed_more_agrees_with_one_that_has_trimmed_less(voter: Path, tmp_path: Path) -> None:
    whole = read_quorum_log([voter])
    others = [tmp_path / "2/data", tmp_path / "3/data"]
    for other in others:
        shutil.copytree(voter, other)
    (others[0] / FOLDER / f"{573:020}.log").unlink()
    assert read_quorum_log([voter, *others]) == whole


# --- with what the observer saw ---


def change(zxid: int, source: str, path: str = STATE) -> ZnodeChange:
    return ZnodeChange(
        zxid=zxid,
        time_ms=0,
        type="set",
        path=path,
        data="",
        version=zxid,
        session="",
        ephemeral_owner="",
        source=source,
    )


LOGGED = [change(BEGINS - 1, SNAPSHOT), change(600, "transaction_log")]
SAW_ALL = [change(7, "observer"), change(600, "observer")]
SAW_FROM_A_SNAPSHOT = [change(25, SNAPSHOT, "/brokers/ids/1"), change(500, SNAPSHOT), change(520, "observer")]
SAW_LESS = [change(700, SNAPSHOT), change(710, "observer")]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(SAW_ALL, [(7, "observer"), (600, "observer")], id="the observer saw all before the snapshot"),
        pytest.param(
            SAW_FROM_A_SNAPSHOT,
            [(25, SNAPSHOT), (500, SNAPSHOT), (520, "observer"), (600, "transaction_log")],
            id="it began with an earlier snapshot",
        ),
        pytest.param([], [(565, SNAPSHOT), (600, "transaction_log")], id="nothing was seen"),
        pytest.param(
            SAW_LESS,
            [(565, SNAPSHOT), (600, "transaction_log"), (710, "observer")],
            id="it began with a later snapshot",
        ),
    ],
)
def test_what_was_seen_before_a_snapshot_takes_its_place(
    seen: list[ZnodeChange], expected: list[tuple[int, str]], tmp_path: Path
) -> None:
    path = tmp_path / "zookeeper.jsonl"
    with ChainedWriter(path) as writer:
        for each in seen:
            writer.write(each)
    merge_changes(path, LOGGED, exact=True, begins=BEGINS)
    assert [(line["zxid"], line["source"]) for line in read_jsonl(path)] == expected


@pytest.mark.parametrize(
    ("paths", "holes"),
    [
        pytest.param(["/brokers/topics/orders", STATE], ["orders"], id="a topic of the run"),
        pytest.param(["/brokers/ids/1", "/controller_epoch"], [], id="brokers, whose registrations say when they were"),
        pytest.param(["/brokers/topics/__consumer_offsets"], [], id="one of Kafka's own topics"),
    ],
)
def test_a_topic_that_was_there_before_the_history_began_leaves_a_hole(
    paths: list[str], holes: list[str], tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path)
    assert begun_late(folder) == []
    folder.zookeeper.parent.mkdir(parents=True, exist_ok=True)
    with ChainedWriter(folder.zookeeper) as writer:
        for path in paths:
            writer.write(change(565, SNAPSHOT, path))
    found = begun_late(folder)
    assert [hole.kind for hole in found] == ["zookeeper"] * len(holes)
    assert all(f"what became of {name} before" in hole.text for name, hole in zip(holes, found, strict=True))
