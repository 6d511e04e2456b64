"""A view of controllers' answers: the leader, what is committed, and missing answers."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.broker.log.batch import iter_batches
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import FetchResponse
from harness.broker.wire.transport import Message, PeerError
from harness.errors import ClusterError
from harness.kraft import observer, view
from harness.kraft.view import QuorumView
from harness.system.waiting import until

LOG = (Path(__file__).parent / "logs/1/__cluster_metadata-0/00000000000000000000.log").read_bytes()
END = 184


@dataclass
class Quorum:
    """Three controllers in memory, each its own transport's connection by port."""

    leader: int = 1
    epoch: int = 2
    high_watermark: int = END
    log_start: int = 0
    diverging: tuple[int, int] | None = None
    """Epoch and end of what it has of that, where the fetcher has more."""
    away: set[int] = field(default_factory=set)
    requests: list[int] = field(default_factory=list)
    connected: list["Connected"] = field(default_factory=list)

    async def connect(self, host: str, port: int, *, client_id: str, timeout_s: float) -> "Connected":
        if port in self.away:
            raise PeerError(f"connecting to {host}:{port}: refused")
        self.connected.append(Connected(self, port))
        return self.connected[-1]

    @property
    def view(self) -> QuorumView:
        return QuorumView({id_: f"h:{id_}" for id_ in range(3)}, self)


@dataclass
class Connected:
    quorum: Quorum
    controller: int
    ended: bool = False
    """By the controller."""
    dropped: bool = False

    @property
    def closed(self) -> bool:
        return self.ended or self.dropped

    async def request(self, message: Message, version: int, *, timeout_s: float) -> Message:
        if self.controller in self.quorum.away:
            raise PeerError("no response")
        self.quorum.requests.append(self.controller)
        wanted = message.topics[0].partitions[0]
        return _answer(self.quorum, self._code(wanted), wanted.fetch_offset)

    def _code(self, wanted: Any) -> ErrorCode:
        if wanted.current_leader_epoch < self.quorum.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.NONE if self.controller == self.quorum.leader else ErrorCode.NOT_LEADER_FOR_PARTITION

    def close(self) -> None:
        self.dropped = True


def _answer(quorum: Quorum, code: ErrorCode, offset: int) -> Message:
    topic = FetchResponse.FetchableTopicResponse
    ends = topic.PartitionData.EpochEndOffset
    own = quorum.diverging
    partition = topic.PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=quorum.high_watermark,
        log_start_offset=quorum.log_start,
        diverging_epoch=ends(epoch=own[0], end_offset=own[1]) if own else ends(epoch=-1, end_offset=-1),
        current_leader=topic.PartitionData.LeaderIdAndEpoch(leader_id=quorum.leader, leader_epoch=quorum.epoch),
        records=b""
        if code
        else b"".join(bytes(part) for head, part in iter_batches(LOG) if head.last_offset >= offset),
    )
    return FetchResponse(error_code=0, responses=[topic(partitions=[partition])])


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait for a leader."""
    monkeypatch.setattr(view, "READ_TIMEOUT_S", 0.0)


@pytest.mark.parametrize(
    ("quorum", "last"),
    [
        pytest.param(Quorum(), 181, id="all that is committed"),
        pytest.param(Quorum(high_watermark=100), 87, id="not what is beyond the high watermark"),
        pytest.param(Quorum(high_watermark=-1), None, id="nothing while the leader does not know what is"),
        pytest.param(Quorum(leader=2, epoch=7), 181, id="from the current leader"),
        pytest.param(Quorum(away={0, 2}), 181, id="though the others are away"),
    ],
)
async def test_what_is_committed_is_seen(quorum: Quorum, last: int | None) -> None:
    changes = await quorum.view.news()
    brokers = [each.zxid for each in changes if each.path.startswith("/brokers/ids/")]
    assert max(brokers, default=None) == last


async def test_what_was_seen_is_not_seen_again() -> None:
    quorum = Quorum(high_watermark=100)
    seen = quorum.view
    first = await seen.news()
    assert await seen.news() == []
    quorum.high_watermark = END
    rest = await seen.news()
    assert max(each.zxid for each in first) < min(each.zxid for each in rest)
    assert quorum.requests[-1] == 1  # the leader is asked first


@pytest.mark.parametrize(
    ("quorum", "text"),
    [
        pytest.param(Quorum(leader=9), "no controller leads the quorum; controller 2: NOT_LEADER", id="no leader"),
        pytest.param(Quorum(away={0, 1, 2}), "no controller leads the quorum; connecting to h:2", id="no answer"),
        pytest.param(Quorum(log_start=5), "the metadata log begins at 5, after 0", id="its beginning is gone"),
    ],
)
async def test_what_cannot_be_seen_is_said(quorum: Quorum, text: str) -> None:
    with pytest.raises(ClusterError, match=text):
        await quorum.view.partitions()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        pytest.param({"high_watermark": 100}, "committed before 184: its high watermark is 100", id="it falls back"),
        pytest.param({"diverging": (1, 90)}, "committed before 184: epoch 1 of its log ends at 90", id="it diverges"),
    ],
)
async def test_a_quorum_that_loses_what_was_seen_is_not_believed(changed: dict[str, Any], text: str) -> None:
    quorum = Quorum()
    seen = quorum.view
    await seen.news()
    for name, value in changed.items():
        setattr(quorum, name, value)
    with pytest.raises(ClusterError, match=text):
        await seen.news()


async def test_why_a_log_cannot_be_read_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "QuorumView", lambda *_: Quorum(log_start=5).view)
    with pytest.raises(ClusterError, match="the metadata log begins at 5"):
        await Quorum(log_start=5).view.controller()
    seen = observer.QuorumObserver({}, tmp_path / "seen.jsonl")
    await seen.start()

    async def problem() -> str:
        return seen.problem

    assert "begins at 5" in await until(problem, bool, what="a problem", timeout_s=120)
    await seen.stop()


async def test_a_new_leader_that_does_not_know_yet_what_is_committed_is_waited_for() -> None:
    quorum = Quorum()
    seen = quorum.view
    await seen.news()
    quorum.high_watermark = -1
    assert await seen.news() == []


async def test_a_connection_that_its_controller_has_ended_is_dropped_for_another_one() -> None:
    quorum = Quorum()
    seen = quorum.view
    await seen.news()
    before = quorum.connected.copy()
    for each in before:
        each.ended = True
    quorum.leader, quorum.epoch = 0, 3
    await seen.news()
    assert {each.controller for each in before} == {0, 1}
    assert all(each.dropped for each in before)
    assert not any(each.dropped for each in quorum.connected[len(before) :])


async def test_without_a_quorum_nobody_is_controller() -> None:
    quorum = Quorum(epoch=2)
    seen = quorum.view
    assert (await seen.controller()).broker_id == 1
    quorum.away = {0, 1, 2}
    assert (await seen.controller()).broker_id == -1
