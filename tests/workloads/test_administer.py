"""Administrators: their processes, and what each of their requests is to librdkafka."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.client_rules.administering import IN_TRANSACTIONS, Action
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, OpType, read_jsonl
from kafka_chaos.workloads.administer import PLUGIN
from kafka_chaos.workloads.clients import administrator
from kafka_chaos.workloads.clients.administrator import CALLS, administer


def plans(**parameters: Any) -> list[ClientPlan]:
    workload = PLUGIN()
    made = workload.Parameters.model_validate(parameters)
    return workload.clients(made, bootstrap_servers="b:1", topics={"orders": 2}, seed=5)


def test_each_administrator_is_a_process_with_draws_of_its_own() -> None:
    one, other = plans(administrators=2, configures=["orders"])
    assert (one.process, other.process, one.role) == ("administrator-1", "administrator-2", "administrator")
    assert one.seed != other.seed
    assert one.parameters == {
        "interval_s": 0.2,
        "configures": ["orders"],
        "transacts": False,
        "request_timeout_ms": 2000,
    }


class FakeAdmin:
    """Answers everything with the same, or with an error."""

    def __init__(self, error: KafkaError | None, stop: threading.Event, requests: int) -> None:
        self.error, self.stop, self.left = error, stop, requests
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        def ask(*_positional: object, **_named: object) -> Any:
            if name == "list_topics":
                return SimpleNamespace(brokers={1: "one", 2: "two"})
            self.asked.add(name)
            self.left -= 1
            if self.left <= 0:
                self.stop.set()
            future: Future[Any] = Future()
            if self.error is None:
                future.set_result(None)
            else:
                future.set_exception(KafkaException(self.error))
            return future if name in ("describe_cluster", "elect_leaders", "list_consumer_groups") else {name: future}

        return ask


def ends(
    error: KafkaError | None, requests: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[set[str], set[OpType]]:
    """Return what was asked of librdkafka, and how the operations ended."""
    stop = threading.Event()
    admin = FakeAdmin(error, stop, requests)
    monkeypatch.setattr(administrator, "AdminClient", lambda _configuration: admin)
    (plan,) = plans(interval_s=1e-6, configures=["orders"])
    writer = JsonlWriter(folder / "operations.jsonl")
    administer(plan, writer, stop)
    writer.close()
    return admin.asked, {OpType(each["type"]) for each in read_jsonl(folder / "operations.jsonl")} - {OpType.INVOKE}


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        pytest.param(None, OpType.OK, id="carried out"),
        pytest.param(KafkaError.INVALID_PARTITIONS, OpType.FAIL, id="refused"),
        pytest.param(KafkaError._TIMED_OUT, OpType.INFO, id="not answered, so unknown"),
    ],
)
def test_every_request_ends_as_librdkafka_says(
    error: int | None, ended: OpType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, outcomes = ends(None if error is None else KafkaError(error), 400, tmp_path, monkeypatch)
    assert outcomes == {ended}
    if error is None:
        assert len(asked) == len(CALLS) - 2, "two kinds of resources are changed, and described, by the same call"


def test_what_librdkafka_cannot_ask_for_is_left_out() -> None:
    calls: Mapping[Action, Any] = CALLS
    assert set(Action) - set(calls) == {
        Action.CONFIGURE_BROKERS,
        Action.REPLACE_CONFIG,
        Action.DESCRIBE_LOG_DIRS,
        Action.MOVE_REPLICA,
        Action.REASSIGN,
        Action.CANCEL_REASSIGNMENT,
        Action.LIST_REASSIGNMENTS,
        Action.DELETE_OFFSET,
        Action.FETCH_OFFSETS,
        Action.LIST_TRANSACTIONS,
        Action.DESCRIBE_TRANSACTIONS,
        Action.INIT_PRODUCER,
        *IN_TRANSACTIONS,
    }
