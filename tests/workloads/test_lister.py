"""A lister on librdkafka, whose leaders change."""

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter
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
    parameters = {"list_interval_s": 1e-6, "request_timeout_ms": 1000, "read_share": 0.0, "delete_records_of": []}
    plan = ClientPlan(
        process="lister-1",
        workload="produce-consume",
        role="lister",
        bootstrap_servers="",
        topics={"orders": 1},
        seed=1,
        parameters=parameters,
    )
    writer = JsonlWriter(tmp_path / "operations.jsonl")
    lister.list_offsets(plan, writer, stop)
    writer.close()
    assert len(made) == clients
