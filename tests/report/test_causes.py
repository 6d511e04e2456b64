"""Violations of several checks with one cause have one story, which names the change of leader and the faults."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.report.causes import causes_of, worth_telling
from harness.report.evidence import RunEvidence
from harness.report.step_story import message_of
from harness.report.story import stories_of
from harness.store.folder import RunFolder
from tests.report.conftest import SECOND, START, write_fact

Row = dict[str, Any]
PLACE = {"topic": "orders", "partition": 0}


def at(second: float) -> int:
    """Return an instant of the run."""
    return START + int(second * SECOND)


def violation(check: str, offset: int | None, epoch: int | None = None, **more: Any) -> Row:
    row = {"severity": "violation", "check": check, "message": check, **PLACE, "offset": offset, "leader_epoch": epoch}
    return row | more


def step(epoch: int, **more: Any) -> Row:
    logged = {"ev": "produce_resp", "acks": -1, "high_watermark": 5, "leader_epoch": epoch, **more}
    shown = {"fact": "steps", "broker": 2, "step": json.dumps(logged), "sentence": "It waits."}
    return violation("step-by-step", None, evidence=[json.dumps(shown)])


@pytest.fixture
def two_losses(folder: RunFolder) -> RunFolder:
    """Epoch 0 writes up to 9, epoch 1 starts at 5 and writes up to 20, epoch 2 at 15; a fault before each election."""
    leads = {**PLACE, "role": "leader"}
    claims = [(1, 0, 0, 0.1), (2, 1, 5, 10), (3, 2, 15, 30)]
    columns = ("broker", "leader_epoch", "log_end_offset")
    write_fact(
        folder,
        "leadership_claims",
        *({**leads, **dict(zip(columns, row, strict=True)), "time_ns": at(second)} for *row, second in claims),
    )
    written = [(0, 0, 9), (1, 5, 20), (2, 15, 40)]
    columns = ("leader_epoch", "first_offset", "last_offset")
    write_fact(folder, "appends", *({**leads, **dict(zip(columns, row, strict=True))} for row in written))
    windows = folder.facts / "fault_windows.parquet"
    (windows / "part-0.parquet").unlink()
    windows.rmdir()
    faults = [("isolate", ["1"], 4, 12), ("pause", ["3"], 1, 2), ("kill", ["2"], 25, None)]
    write_fact(
        folder,
        "fault_windows",
        *(
            {"injection": n, "fault": fault, "targets": targets, "injected_ns": at(since)}
            | {"intended_ns": at(since), "healed_ns": None if until is None else at(until)}
            for n, (fault, targets, since, until) in enumerate(faults)
        ),
    )
    return folder


@pytest.mark.parametrize(
    ("rows", "causes"),
    [
        pytest.param(
            [violation("I10", 7, 0), violation("lost-write", 7, 1), violation("I8", 10, 0), violation("I6", 5)],
            [["I10", "I6", "I8", "lost-write"]],
            id="offsets that one change of leader lost, and the end of the lost log",
        ),
        pytest.param(
            [violation("I10", 17, 1), violation("I10", 7, 0), violation("nonmonotonic-send", 16, 2)],
            [["I10"], ["I10", "nonmonotonic-send"]],
            id="two changes of leader under two faults are two causes, in order of time",
        ),
        pytest.param(
            [violation("I10", 17, 1), step(1), step(2, last_offset=39), step(1, last_offset=16)],
            [["I10", "step-by-step"]],
            id="illegal steps before and after a loss",
        ),
        pytest.param(
            [violation("I10", 3, 0), violation("I10", 7, 0), violation("I27", 3, 0)],
            [["I10"], ["I10", "I27"]],
            id="an offset before the end of the new leader's log has another cause",
        ),
        pytest.param(
            [violation("unseen", 3, 0), violation("unseen", 4, 0), violation("unseen", 3, 1), violation("I1", 4)],
            [["I1", "unseen"]],
            id="lost records of one leader epoch, and what shares an offset with one of them",
        ),
        pytest.param(
            [
                violation("torn-transaction", None, evidence=['{"process": "p", "transaction": 3}'], partition=None),
                violation("aborted-transaction-read", 4, evidence=['{"process": "p", "transaction": 3}']),
                violation("duplicate", 4),
                violation("duplicate", 9, partition=5),
            ],
            [["aborted-transaction-read", "duplicate", "torn-transaction"]],
            id="one transaction; a check that is told already needs no story of its own",
        ),
        pytest.param(
            [violation("I10", 17, 1), violation("markers-decided", 7), violation("I27", 8)],
            [["I10"], ["I27"], ["markers-decided"]],
            id="a change of leader that lost no record of a promise is no cause",
        ),
        pytest.param(
            [*(violation(check, 4, partition=5) for check in ("I1", "I6", "I9")), violation("lost-write", 30)],
            [["lost-write"], ["I1", "I6", "I9"]],
            id="losses come first",
        ),
    ],
)
def test_violations_with_one_cause(
    two_losses: RunFolder, add_findings: Callable[..., None], rows: list[Row], causes: list[list[str]]
) -> None:
    add_findings(*rows)
    told = worth_telling(causes_of(RunEvidence(two_losses)))
    assert [sorted(row["check"] for row, _ in cause.sights) for cause in told] == causes


def test_a_story_names_the_loss_and_the_faults_since_the_record(
    two_losses: RunFolder, add_findings: Callable[..., None]
) -> None:
    add_findings(
        violation("I10", 7, 0, at_ns=at(3)),
        violation("I10", 8, 0, at_ns=at(3)),
        violation("lost-write", 8, 0),
        violation("I10", 17, 1),
    )
    first, second = stories_of(RunEvidence(two_losses))
    assert first.place == "orders-0, offset 8", "most checks name it"
    assert [(row["check"], count) for row, count in first.sights] == [
        ("I10", "2 of 3 violations"),
        ("lost-write", "1 violation"),
    ]
    assert first.cause == [
        "broker 2 became leader of orders-0 in epoch 1 with a log that ended at 5: "
        "the records that earlier leaders had written at offsets 5 to 9 were lost",
        "faults in force: isolate broker 1 (4.0 s to 12.0 s)",
    ]
    assert second.cause[-1] == "faults in force: kill broker 2 (25.0 s to the end)"


def test_without_a_fault_in_force_the_last_one_before_is_named(
    two_losses: RunFolder, add_findings: Callable[..., None]
) -> None:
    path = two_losses.facts / "fault_windows.parquet"
    (path / "part-0.parquet").unlink()
    path.rmdir()
    window = {"injection": 0, "fault": "pause", "targets": ["3"]}
    write_fact(two_losses, "fault_windows", window | {"injected_ns": at(1), "intended_ns": at(1), "healed_ns": at(2)})
    add_findings(violation("I10", 17, 1))
    (story,) = stories_of(RunEvidence(two_losses))
    assert story.cause[-1] == "the last fault before: pause broker 3 (1.0 s to 2.0 s)"


@pytest.mark.parametrize(
    ("logged", "said"),
    [
        pytest.param(
            {"ev": "hw", "old": 4, "new": 6, "isr": [2], "zk_version": 0},
            "the high watermark goes from 4 to 6 with ISR 2 of version 0",
            id="a high watermark",
        ),
        pytest.param(
            {"ev": "isr_propose", "old": [1], "new": [1, 3], "ends": [9, -1], "epoch_start_offset": 9},
            "it proposes ISR 1, 3 instead of 1 while their logs are known to end at 9, -1 and its epoch starts at 9",
            id="an ISR that is proposed",
        ),
        pytest.param({"ev": "append", "line": 3, "isr_size": 1}, "append (isr_size=1)", id="anything else as logged"),
    ],
)
def test_an_illegal_step_is_said_in_words(logged: Row, said: str) -> None:
    shown = {"fact": "steps", "broker": 2, "step": json.dumps(logged), "sentence": "It waits."}
    assert message_of({"message": "…", "evidence": [json.dumps(shown)]}) == f"It waits. Broker 2 broke it: {said}."


def test_a_long_value_is_cut() -> None:
    value = "v" * 900
    assert (
        message_of({"message": f"{value} is lost at orders-0.", "evidence": []}) == f"{'v' * 60}… is lost at orders-0."
    )
