"""A simulated lister reads from offsets on, within a fetch session, over brokers that answer as they are told to."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import FetchRequest
from harness.broker.wire.transport import PeerError
from harness.client_rules.listing import LEADER, REPLICA, Inquiry
from harness.simulation.clients import lister as module
from harness.simulation.clients.lister import SimulatedLister
from harness.simulation.clients.metadata import Leader
from harness.simulation.clients.refusals import Refused
from harness.store.history import OpKind
from tests.client_rules.test_contents import plan, recorder

PLACE = ("orders", 0)
PARAMETERS = {"list_interval_s": 0.1, "read_share": 1.0, "delete_records_of": [], "request_timeout_ms": 1000}
BATCH = build_batch(
    [Record(timestamp_ms=1, key=None, value=value.encode(), offset=offset) for offset, value in enumerate("abc", 3)],
    base_offset=3,
    leader_epoch=0,
)


class Brokers:
    """Broker 0 leads; each fetch is answered with the next of these."""

    def __init__(self, *answers: Any, brokers: tuple[int, ...] = (0, 1)) -> None:
        self.leaders = {PLACE: Leader(broker_id=0, leader_epoch=7)}
        self.broker_ids = list(brokers)
        self.answers = list(answers)
        self.asked: list[tuple[int, FetchRequest]] = []

    async def ask(self, broker_id: int, message: Any, _version: int) -> Any:
        self.asked.append((broker_id, message))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(records: bytes | None = None, *, partition: int = 0, error: int = 0, refusal: int = 0) -> Any:
    there = SimpleNamespace(partition_index=partition, error_code=error, records=records)
    responses = [SimpleNamespace(topic="orders", partitions=[there])]
    return SimpleNamespace(error_code=refusal, session_id=5, responses=[] if refusal or records is None else responses)


def lister(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> SimulatedLister:
    monkeypatch.setattr(module, "ClusterClient", lambda *_args, **_named: brokers)
    return SimulatedLister(plan(**PARAMETERS), recorder(), None, [])  # type: ignore[arg-type]


async def read(lister: SimulatedLister, brokers: Brokers, offset: int = 4, mode: str = LEADER) -> list[tuple[int, str]]:
    invoked = recorder().invoke(OpKind.READ, topic="orders", partition=0, offset=offset, mode=mode)
    return await lister._read(brokers.leaders[PLACE], Inquiry(invoked=invoked, partition=PLACE, max_bytes=9))


async def test_an_answer_gives_the_records_from_the_offset_on(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(answer(BATCH))
    assert await read(lister(brokers, monkeypatch), brokers) == [(4, "b"), (5, "c")]
    ((broker_id, request),) = brokers.asked
    (asked,) = request.topics[0].partitions
    assert (broker_id, asked.fetch_offset, asked.current_leader_epoch, request.max_bytes) == (0, 4, 7, 9)


async def test_the_next_fetch_from_a_broker_has_what_changed_in_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(answer(BATCH), answer(), answer(BATCH), PeerError("away"), answer(BATCH))
    reader = lister(brokers, monkeypatch)
    assert await read(reader, brokers) == [(4, "b"), (5, "c")]
    assert await read(reader, brokers) == [], "nothing changed, and nothing is new"
    assert await read(reader, brokers, offset=5) == [(5, "c")]
    with pytest.raises(PeerError, match="away"):
        await read(reader, brokers)
    assert await read(reader, brokers) == [(4, "b"), (5, "c")]
    sessions = [(request.session_id, request.session_epoch, len(request.topics)) for _, request in brokers.asked]
    assert sessions == [(0, 0, 1), (5, 1, 0), (5, 2, 1), (5, 3, 1), (5, 0, 1)], "after a failure it begins again"


@pytest.mark.parametrize(
    ("told", "brokers", "mode", "error"),
    [
        pytest.param(
            answer(refusal=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), (0,), LEADER, "FETCH_SESSION_ID", id="session"
        ),
        pytest.param(answer(b"", error=ErrorCode.OFFSET_OUT_OF_RANGE), (0,), LEADER, "OFFSET_OUT_OF", id="partition"),
        pytest.param(answer(b"", partition=1), (0,), LEADER, "other partitions", id="it answers for another one"),
        pytest.param(None, (), REPLICA, "REPLICA_NOT_AVAILABLE", id="no broker lives"),
    ],
)
async def test_a_read_that_gives_no_records_says_why(
    told: Any, brokers: tuple[int, ...], mode: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Brokers(told, brokers=brokers)
    with pytest.raises((Refused, PeerError), match=error):
        await read(lister(cluster, monkeypatch), cluster, mode=mode)


async def test_any_broker_may_be_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(*(answer(BATCH) for _ in range(20)))
    reader = lister(brokers, monkeypatch)
    for offset in range(20):
        await read(reader, brokers, offset=offset, mode=REPLICA)
    assert {broker_id for broker_id, _ in brokers.asked} == {0, 1}
