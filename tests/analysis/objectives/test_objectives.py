"""Objectives, measured from facts that are made by hand: what is missed, met, and what nothing shows."""

from pathlib import Path
from typing import Any

import pytest

from harness.analysis.objectives.judge import judge_objectives, not_judged
from harness.contracts.objectives import Objectives
from harness.store.folder import RunFolder
from harness.store.result import ObjectiveResult
from harness.verdict import ObjectiveVerdict
from tests.report.conftest import SECOND, START, send, write_fact

MET, MISSED, UNKNOWN = ObjectiveVerdict.MET, ObjectiveVerdict.MISSED, ObjectiveVerdict.UNKNOWN
Facts = dict[str, list[dict[str, Any]]]


def at(second: float) -> int:
    return START + round(second * SECOND)


def gap(begin: float, end: float, **changes: Any) -> dict[str, Any]:
    times = {"from_ns": at(begin), "to_ns": at(end), "gap_ms": (end - begin) * 1000}
    return {"topic": "orders", "partition": 0, "acks": -1, "open": False, "attempts": 1} | times | changes


def window(begin: float, healed: float | None, fault: str = "kill", **changes: Any) -> dict[str, Any]:
    healed_ns = None if healed is None else at(healed)
    instants = {"intended_ns": at(begin), "injected_ns": at(begin), "healed_ns": healed_ns}
    return {"injection": 0, "fault": fault, "targets": ["1"]} | instants | changes


def state(second: float, isr: list[int], **changes: Any) -> dict[str, Any]:
    row = {"topic": "orders", "partition": 0, "zxid": round(second * 10), "time_ns": at(second), "leader": isr[0]}
    return row | {"isr": isr, "assignment": [0, 1, 2]} | changes


def acknowledged(second: float, offset: int, **changes: Any) -> dict[str, Any]:
    return send(second, 0.0) | {"offset": offset} | changes


def poll(second: float, offset: int, process: str = "consumer-1", **changes: Any) -> dict[str, Any]:
    row = {"process": process, "mode": "assign", "topic": "orders", "partition": 0}
    return row | {"offset": offset, "time_ns": at(second)} | changes


def commit(process: str, group: str) -> dict[str, Any]:
    return {"source": "client", "kind": "commit", "process": process, "group": group}


def judged(tmp_path: Path, facts: Facts, unreliable: str = "", **limits: Any) -> ObjectiveResult:
    folder = RunFolder(tmp_path / "run")
    for name, rows in facts.items():
        write_fact(folder, name, *rows)
    (result,) = judge_objectives(Objectives(**limits), folder, lambda _: unreliable)
    return result


LOAD = [send(second, 10.0) for second in range(21)]
FULL, SHORT = [0, 1, 2], [0, 2]
BACK = [state(0, FULL), state(6, SHORT), state(12, FULL)]
READ = [acknowledged(second, second) for second in range(10)]
TRANSACTION = {"transaction_outcome": "aborted"}


@pytest.mark.parametrize(
    ("limits", "facts", "verdict", "measured"),
    [
        pytest.param({"no_write_s": 1}, {"availability": [gap(2, 5)]}, MISSED, 3, id="a gap that is too long"),
        pytest.param({"no_write_s": 3}, {"availability": [gap(2, 5), gap(7, 8)]}, MET, 3, id="the longest gap counts"),
        pytest.param({"no_write_s": 1}, {}, MET, 0.25, id="no gap is longer than the shortest that is recorded"),
        pytest.param(
            {"no_write_s": 1}, {"availability": [gap(2, 5, acks=0)]}, MET, 0.25, id="a client that waits for no answer"
        ),
        pytest.param(
            {"no_write_s": 8}, {"availability": [gap(2, 5, open=True)]}, UNKNOWN, 3, id="a gap without an end so far"
        ),
        pytest.param(
            {"no_write_s": 2}, {"availability": [gap(2, 5, open=True)]}, MISSED, 3, id="already too long without an end"
        ),
        pytest.param({"no_write_s": 8}, {"sends": []}, UNKNOWN, None, id="no client sent"),
        pytest.param({"available_percent": 80}, {"availability": [gap(0, 5)]}, MISSED, 75.012, id="available for less"),
        pytest.param({"available_percent": 75}, {"availability": [gap(0, 5)]}, MET, 75.012, id="available for enough"),
        pytest.param({"p99_outside_ms": 9}, {}, MISSED, 10, id="slow without any fault"),
        pytest.param({"p99_outside_ms": 10}, {"fault_windows": [window(0, 21)]}, UNKNOWN, None, id="all in a window"),
        pytest.param({"p99_inside_ms": 10}, {}, UNKNOWN, None, id="none in a window"),
        pytest.param(
            {"p99_inside_ms": 50},
            {"sends": [send(1, 10.0), send(4.95, 60.0), send(9, 90.0)], "fault_windows": [window(5, 8)]},
            MISSED,
            60,
            id="a send that a fault overlaps is in its window",
        ),
        pytest.param(
            {"p99_inside_ms": 50},
            {"sends": [*LOAD, send(30, 900.0, "fail")], "fault_windows": [window(5, None)]},
            MET,
            10,
            id="a fault lasts to the end, and a failed send has no latency",
        ),
        pytest.param(
            {"p99_inside_ms": 50},
            {"fault_windows": [window(0, 20, injected_ns=None)]},
            UNKNOWN,
            None,
            id="a fault that was never injected has no window",
        ),
    ],
)
def test_writes(tmp_path: Path, limits: dict[str, Any], facts: Facts, verdict: ObjectiveVerdict, measured: Any) -> None:
    result = judged(tmp_path, {"sends": LOAD} | facts, **limits)
    assert result.verdict is verdict
    assert result.measured == pytest.approx(measured)


@pytest.mark.parametrize(
    ("limit_s", "facts", "verdict", "measured"),
    [
        pytest.param(1.0, {"partition_states": BACK}, MISSED, 2, id="the ISR is full too late"),
        pytest.param(2.0, {"partition_states": BACK}, MET, 2, id="the ISR is full in time"),
        pytest.param(
            1.0,
            {"partition_states": [state(0, FULL)], "availability": [gap(6, 13)]},
            MISSED,
            3,
            id="writes are acknowledged too late",
        ),
        pytest.param(1.0, {"partition_states": [state(0, FULL)]}, MET, 0, id="nothing was lacking"),
        pytest.param(
            1.0, {"partition_states": [*BACK, state(0, SHORT, topic="of-none")]}, MISSED, 2, id="only topics under load"
        ),
        pytest.param(1.0, {}, UNKNOWN, None, id="no evidence of ISRs"),
        pytest.param(
            1.0, {"partition_states": [state(0, SHORT, assignment=None)]}, UNKNOWN, None, id="replicas are unknown"
        ),
        pytest.param(1.0, {"partition_states": BACK, "fault_windows": []}, UNKNOWN, None, id="no fault"),
        pytest.param(
            1.0, {"partition_states": BACK, "fault_windows": [window(5, None)]}, UNKNOWN, None, id="it was never healed"
        ),
        pytest.param(30.0, {"partition_states": BACK[:2]}, UNKNOWN, 10.01, id="the evidence ends before the recovery"),
        pytest.param(5.0, {"partition_states": BACK[:2]}, MISSED, 10.01, id="and it was too late already"),
        pytest.param(
            1.0,
            {"partition_states": BACK, "fault_windows": [window(5, 10), window(10.5, 11.5)]},
            MET,
            0.5,
            id="a heal that the next fault follows before the recovery says nothing",
        ),
        pytest.param(
            0.4,
            {"partition_states": BACK, "fault_windows": [window(5, 10), window(10.5, 30)]},
            MISSED,
            0.5,
            id="unless it took too long even so",
        ),
        pytest.param(
            1.0,
            {"partition_states": [*BACK[:2], state(40, FULL)], "fault_windows": [window(5, 10), window(10.5, 20.01)]},
            UNKNOWN,
            0,
            id="no heal says anything",
        ),
        pytest.param(
            3.0,
            {"partition_states": BACK, "fault_windows": [window(5, 8), window(6, 10)]},
            MET,
            2,
            id="a heal while another fault is in force does not count",
        ),
    ],
)
def test_recovery(tmp_path: Path, limit_s: float, facts: Facts, verdict: ObjectiveVerdict, measured: Any) -> None:
    result = judged(tmp_path, {"sends": LOAD, "fault_windows": [window(5, 10)]} | facts, recovery_s=limit_s)
    assert result.verdict is verdict
    assert result.measured == pytest.approx(measured)


@pytest.mark.parametrize(
    ("facts", "largest", "last"),
    [
        pytest.param({"polls": [poll(4.5, 4), poll(9.5, 9)]}, 5, 0, id="up to date at the end, behind before"),
        pytest.param({"polls": [poll(4.5, 4)]}, 5, 5, id="it stops"),
        pytest.param({"polls": [poll(4.5, 9), poll(5.5, 9, "consumer-2")]}, 6, 0, id="the slowest reader counts"),
        pytest.param(
            {
                "polls": [poll(4.5, 4, "a"), poll(9.5, 9, "b")],
                "committed_offsets": [commit("a", "shop"), commit("b", "shop")],
            },
            5,
            0,
            id="members of a group are one reader",
        ),
        pytest.param(
            {"sends": [*READ, acknowledged(9, 3, partition=1)], "polls": [poll(9.5, 9)]},
            10,
            4,
            id="a partition that it never reads",
        ),
        pytest.param(
            {"sends": [*READ, acknowledged(9, 99, **TRANSACTION)], "polls": [poll(9.5, 9)]},
            10,
            0,
            id="records of an aborted transaction are not for readers",
        ),
        pytest.param({"polls": [poll(9, 9, mode="reread")]}, None, None, id="reading once more is no consumer"),
        pytest.param({}, None, None, id="no consumer"),
    ],
)
def test_lag(tmp_path: Path, facts: Facts, largest: Any, last: Any) -> None:
    facts = {"sends": READ} | facts
    assert judged(tmp_path, facts, lag_records=1000).measured == largest
    assert judged(tmp_path / "again", facts, end_lag_records=0).measured == last


def test_evidence_that_is_unreliable_or_not_judged_yet_never_meets_an_objective(tmp_path: Path) -> None:
    holes = judged(tmp_path, {"sends": LOAD}, "operations/a.jsonl: 2 torn lines", no_write_s=8)
    assert (holes.verdict, holes.reason) == (
        UNKNOWN,
        "evidence that cannot be relied on: operations/a.jsonl: 2 torn lines",
    )
    assert [each.verdict for each in not_judged(Objectives(no_write_s=8, recovery_s=1))] == [UNKNOWN, UNKNOWN]
    assert not_judged(None) == []


def test_a_result_says_limit_and_place(tmp_path: Path) -> None:
    result = judged(tmp_path, {"sends": LOAD, "availability": [gap(2, 5)]}, no_write_s=1)
    assert result.seen == "3 s (at most 1 s): orders-0 from 2.0 s on"
