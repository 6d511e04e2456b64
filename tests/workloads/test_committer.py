import json
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from harness.client_rules.committing import Committing
from harness.client_rules.steps import Restart, carry_out
from harness.contracts.workloads import ClientPlan
from harness.store.history import JsonlWriter, now_ns
from harness.store.recording import Recorder
from kafka_chaos.workloads.clients.group_member import GroupMember
from kafka_chaos.workloads.produce_consume import Parameters, ProduceConsume

PLACE = ("orders", 0)


def plan(**parameters: object) -> ClientPlan:
    load = Parameters.model_validate({"producers": 0, "consumers": 0, "committers": 1, **parameters})
    (made,) = ProduceConsume().clients(load, bootstrap_servers="127.0.0.1:1", topics={"orders": 1}, seed=1)
    return made


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class FakeGroup:
    """A consumer whose group keeps one offset; it may refuse."""

    def __init__(self, stored: int = -1001) -> None:
        self.stored = stored
        self.refusal: KafkaError | None = None
        self.partly = False
        self.closed = 0

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> "list[_Answered]":
        assert not asynchronous
        if self.refusal is not None and not self.partly:
            raise KafkaException(self.refusal)
        if self.refusal is None:
            (self.stored,) = [place.offset for place in offsets]
        return [_Answered(place, self.refusal) for place in offsets]

    def committed(self, places: list[TopicPartition], timeout: float) -> "list[_Answered]":
        if self.refusal is not None and not self.partly:
            raise KafkaException(self.refusal)
        return [_Answered(TopicPartition(place.topic, place.partition, self.stored), self.refusal) for place in places]

    def close(self) -> None:
        self.closed += 1


class _Answered:
    def __init__(self, place: TopicPartition, error: KafkaError | None) -> None:
        self.topic, self.partition, self.offset, self.error = place.topic, place.partition, place.offset, error


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "committer-1.jsonl"


class Committer(GroupMember):
    """A committing process, connected to a fake."""

    def __init__(self, path: Path, group: FakeGroup) -> None:
        recorder = Recorder("committer-1", JsonlWriter(path).write, now_ns)
        self.rules = Committing(plan(), recorder, time.monotonic)
        super().__init__(plan(), self.rules, threading.Event(), lambda _configuration: cast("Consumer", group))
        self.act(Restart())


def test_each_commit_is_one_further_than_the_one_before(path: Path) -> None:
    subject = Committer(path, FakeGroup())
    for _ in range(2):
        subject.act(subject.rules.commit())
    assert [(line["type"], line["offset"], line["group"]) for line in lines(path)] == [
        ("invoke", 1, "committer-1"),
        ("ok", 1, "committer-1"),
        ("invoke", 2, "committer-1"),
        ("ok", 2, "committer-1"),
    ]


@pytest.mark.parametrize("partly", [False, True], ids=["the whole request", "one partition"])
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(KafkaError._TIMED_OUT, "info", id="unknown"),
        pytest.param(KafkaError.INVALID_GROUP_ID, "fail", id="it did certainly not happen"),
    ],
)
def test_a_commit_that_failed_says_how_and_is_not_tried_again(
    path: Path, partly: bool, error: int, outcome: str
) -> None:
    group = FakeGroup()
    group.refusal, group.partly = KafkaError(error), partly
    subject = Committer(path, group)
    subject.act(subject.rules.commit())
    assert [line["type"] for line in lines(path)] == ["invoke", outcome]


def test_a_restart_goes_on_from_what_it_reads_back(path: Path) -> None:
    subject = Committer(path, FakeGroup(stored=41))
    carry_out(subject.rules.read_back(deadline_s=float("inf")), subject.act)
    assert (subject.rules.positions, lines(path)[-1]["kind"], lines(path)[-1]["offset"]) == (
        {PLACE: 41},
        "fetch_committed",
        41,
    )


def test_it_restarts_until_it_is_stopped_and_reads_back_in_the_end(path: Path) -> None:
    group, stop = FakeGroup(), threading.Event()
    closed = group.close

    def close() -> None:
        closed()
        if group.closed == 3:
            stop.set()

    group.close = close  # type: ignore[method-assign]
    operations = JsonlWriter(path)
    made = plan(restart_interval_s=0.001, commit_interval_s=0.001)
    rules = Committing(made, Recorder(made.process, operations.write, now_ns), time.monotonic)
    GroupMember(made, rules, stop, lambda _configuration: cast("Consumer", group)).run()
    read_back = [line["offset"] for line in lines(path) if line["kind"] == "fetch_committed" and line["type"] == "ok"]
    assert len(read_back) == group.closed == 4
    assert (read_back[0], read_back[-1]) == (-1, group.stored)
