"""A lister on librdkafka, whose leaders change."""

import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from harness.client_rules.listing import READ_RECORDS
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, read_jsonl
from kafka_chaos.workloads.clients import lister


class FakeAdmin:
    """Answers each question with an error, and ends the client after two."""

    asked = 0

    def __init__(self, code: int, stop: threading.Event) -> None:
        self.code, self.stop = code, stop

    def list_offsets(self, wanted: dict[Any, Any], *, request_timeout: float) -> dict[Any, Any]:
        FakeAdmin.asked += 1
        if FakeAdmin.asked == 2:
            self.stop.set()
        answer: Future[Any] = Future()
        answer.set_exception(KafkaException(KafkaError(self.code)))
        return dict.fromkeys(wanted, answer)


def run(folder: Path, stop: threading.Event, read_share: float) -> list[dict[str, Any]]:
    """Let a lister ask until `stop` is set; return its lines."""
    parameters = {
        "list_interval_s": 1e-6,
        "request_timeout_ms": 1000,
        "read_share": read_share,
        "delete_records_of": [],
    }
    plan = ClientPlan(
        process="lister-1",
        workload="produce-consume",
        role="lister",
        bootstrap_servers="",
        topics={"orders": 1},
        seed=1,
        parameters=parameters,
    )
    writer = JsonlWriter(folder / "operations.jsonl")
    lister.list_offsets(plan, writer, stop)
    writer.close()
    return list(read_jsonl(folder / "operations.jsonl"))


@pytest.mark.parametrize(
    ("code", "renewed_every_s", "clients"),
    [
        pytest.param(KafkaError.FENCED_LEADER_EPOCH, -1, 3, id="its leader epoch is old"),
        pytest.param(KafkaError.NOT_LEADER_FOR_PARTITION, -1, 3, id="its leader is another one"),
        pytest.param(KafkaError._NOENT, -1, 3, id="it has forgotten all brokers"),
        pytest.param(KafkaError._NOENT, 60, 1, id="it is new, and may find brokers yet"),
        pytest.param(KafkaError._TIMED_OUT, -1, 1, id="there is no answer"),
    ],
)
def test_a_client_that_will_not_recover_is_replaced(
    code: int, renewed_every_s: float, clients: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, made = threading.Event(), list[FakeAdmin]()

    def admin(_configuration: object) -> FakeAdmin:
        made.append(FakeAdmin(code, stop))
        return made[-1]

    monkeypatch.setattr(FakeAdmin, "asked", 0)
    monkeypatch.setattr(lister, "AdminClient", admin)
    monkeypatch.setattr(lister, "RENEWED_EVERY_S", renewed_every_s)
    monkeypatch.setattr(lister, "connection", lambda _plan: {})
    run(tmp_path, stop, read_share=0.0)
    assert len(made) == clients


class FakeMessage:
    """A record, or why there is none."""

    def __init__(self, offset: int = 0, code: int | None = None) -> None:
        self._offset, self._code = offset, code

    def error(self) -> KafkaError | None:
        return None if self._code is None else KafkaError(self._code)

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return f"v{self._offset}".encode()

    def headers(self) -> None:
        return None

    def leader_epoch(self) -> int:
        return 0


class FakeReader:
    """Answers reads with these polls in turn, and two records after each; then the lister is stopped."""

    def __init__(self, polls: list[FakeMessage | None], stop: threading.Event) -> None:
        self.polls, self.stop = polls, stop

    def assign(self, partitions: list[TopicPartition]) -> None:
        (self.position,) = partitions

    def unassign(self) -> None:
        pass

    def poll(self, _timeout_s: float) -> FakeMessage | None:
        answer = self.polls.pop(0)
        if not self.polls:
            self.stop.set()
        return answer

    def consume(self, most: int, timeout: float) -> list[FakeMessage]:
        assert (most, timeout) == (READ_RECORDS - 1, 0)
        return [FakeMessage(6), FakeMessage(code=KafkaError._PARTITION_EOF)]

    def close(self) -> None:
        pass


class AdminThatKnows:
    def list_offsets(self, wanted: dict[Any, Any], *, request_timeout: float) -> dict[Any, Any]:
        answer: Future[Any] = Future()
        answer.set_result(SimpleNamespace(offset=9))
        return dict.fromkeys(wanted, answer)


def test_reads_have_the_records_that_came_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    polls = [FakeMessage(5), None, FakeMessage(code=KafkaError._PARTITION_EOF), FakeMessage(code=KafkaError._TRANSPORT)]
    reader = FakeReader(polls, stop)
    monkeypatch.setattr(lister, "AdminClient", lambda _configuration: AdminThatKnows())
    monkeypatch.setattr(lister, "Consumer", lambda configuration: reader)
    monkeypatch.setattr(lister, "connection", lambda _plan: {})
    lines = [
        line for line in run(tmp_path, stop, read_share=1.0) if line["kind"] == "read" and line["type"] != "invoke"
    ]
    assert [(line["type"], line["value"], line["error"].partition(":")[0]) for line in lines] == [
        ("ok", "5=v5 6=v6", ""),
        ("fail", "", "_TIMED_OUT"),
        ("ok", "6=v6", ""),
        ("fail", "", "_TRANSPORT"),
    ]
    assert all(line["mode"] == "leader" and 0 <= line["offset"] <= 9 for line in lines)
    assert reader.position.offset == lines[-1]["offset"]
