"""Idempotent producers: what they send is written once and in order, or given up."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from harness.events import Append
from harness.experiment.service_probe import PROCESS
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.history import Operation, OpKind, OpType
from tests.simulation.scenarios import KILL_LEADER, PAUSE_LEADER, scenario

LATE_ANSWERS = {
    "kind": "delay",
    "at_s": 1.0,
    "duration_s": 2.0,
    "target": "leader(orders,0)",
    "parameters": {"sides": ["clients"], "direction": "outbound", "extra_ms": 5000},
}
LOAD = {"rate_per_s": 50, "linger_ms": 0, "request_timeout_ms": 500, "reread": True}


def played(*faults: dict[str, Any], idempotence: bool = True, **load: Any) -> SimulatedHistory:
    made = scenario(*faults, load={**LOAD, "idempotence": idempotence, **load})
    history = simulate(made, 5)
    assert history.remarks == []
    return history


def sent(history: SimulatedHistory) -> list[Operation]:
    """The sends that ended, in the order in which they were begun."""
    ended = [each for each in history.operations["producer-1"] if each.kind is OpKind.SEND]
    return sorted((each for each in ended if each.type is not OpType.INVOKE), key=lambda each: each.index)


def written_twice(history: SimulatedHistory) -> list[str]:
    """Values that reading everything once more gave more than once."""
    polls = [each for each in history.operations["consumer-1"] if each.kind is OpKind.POLL and each.mode == "reread"]
    read = Counter(record.value for poll in polls for record in poll.records)
    assert read
    return [value for value, times in read.items() if times > 1]


def producer_ids(history: SimulatedHistory) -> set[int | None]:
    """Return those of all batches but the harness's own, which have none."""
    probed = {each.offset for each in history.operations[PROCESS] if each.kind is OpKind.SEND}
    appended = [
        logged.event for log in history.logs.values() for logged in log.events if isinstance(logged.event, Append)
    ]
    return {event.producer_id for event in appended if event.topic == "orders" and event.base_offset not in probed}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(KILL_LEADER, id="the leader is killed"),
        pytest.param(PAUSE_LEADER, id="the leader stands still"),
        pytest.param(LATE_ANSWERS, id="answers come too late"),
    ],
)
def test_a_record_is_written_once_and_in_its_order(fault: dict[str, Any]) -> None:
    history = played(fault, message_timeout_ms=20_000)
    assert {each.type for each in sent(history)} == {OpType.OK}
    assert all(one.offset < other.offset for one, other in pairwise(sent(history)))
    assert written_twice(history) == []
    assert len(producer_ids(history)) == 1


def test_without_idempotence_late_answers_make_records_come_twice() -> None:
    history = played(LATE_ANSWERS, idempotence=False, message_timeout_ms=20_000)
    assert written_twice(history) != []
    assert producer_ids(history) == {-1}


def test_what_is_given_up_is_unknown_and_the_rest_goes_on_under_another_id() -> None:
    history = played(PAUSE_LEADER, message_timeout_ms=1000)
    assert {each.type for each in sent(history)} == {OpType.OK, OpType.INFO}
    assert sent(history)[-1].type is OpType.OK
    acknowledged = [each.offset for each in sent(history) if each.type is OpType.OK]
    assert acknowledged == sorted(set(acknowledged))
    assert written_twice(history) == []
    assert len(producer_ids(history)) > 1
