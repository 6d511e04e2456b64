"""What leads to a finding, from facts that are written by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.report.evidence import RunEvidence
from harness.report.story import SHOWN_MOMENTS, Story, story_of
from harness.store.folder import RunFolder
from tests.report.conftest import SECOND, START, write_fact

PLACE = {"topic": "orders", "partition": 0}
FINDING: dict[str, Any] = {"check": "I10", "message": "lost", "leader_epoch": None, **PLACE, "offset": 7}


def at(second: float) -> int:
    """Return an instant of the run."""
    return START + int(second * SECOND)


def leads(second: float, broker: int, epoch: int, end: int) -> dict[str, Any]:
    return {
        **PLACE,
        "time_ns": at(second),
        "broker": broker,
        "role": "leader",
        "leader_epoch": epoch,
        "log_end_offset": end,
    }


def test_a_step_stands_beside_the_rule_that_it_breaks(folder: RunFolder) -> None:
    step = {"broker": 2, "incarnation": "a", "seq": 9, "rule": "replica.leader-keeps-log"}
    told = {"subject": "replica", "name": "orders-0", "before": "role=leader", "step": "{}", "source": "KIP-101"}
    write_fact(folder, "steps", {**step, **told, "sentence": "A leader truncates nothing.", "time_ns": at(5)})
    shown = json.dumps({"fact": "steps", **step})
    finding = FINDING | {"check": "step-by-step", "offset": None, "evidence": [shown]}
    moments = story_of(RunEvidence(folder), finding).moments
    assert [(moment.lane, moment.text) for moment in moments if moment.matters] == [
        ("broker 2", "{}, which breaks a rule: A leader truncates nothing. (KIP-101)"),
    ]


@pytest.fixture
def lost(folder: RunFolder) -> RunFolder:
    """The record of value v stood at offset 7 in epoch 0 on broker 2, which is killed; broker 3 leads without it."""
    sent = {**PLACE, "process": "producer-1", "value": "v", "acks": -1, "outcome": "ok", "offset": 7, "leader_epoch": 0}
    path = folder.facts / "sends.parquet"
    (path / "part-0.parquet").unlink()
    path.rmdir()
    write_fact(folder, "sends", {**sent, "invoke_ns": at(1), "complete_ns": at(2)})
    write_fact(folder, "leadership_claims", leads(0, 2, 0, 0), leads(9.7, 3, 2, 7), leads(20, 3, 3, 7))
    write_fact(
        folder,
        "truncations",
        {
            **PLACE,
            "time_ns": at(13),
            "broker": 2,
            "log_end_offset": 8,
            "to_offset": 7,
            "reason": "epoch",
            "leader_epoch": 2,
        },
        {
            **PLACE,
            "time_ns": at(14),
            "broker": 1,
            "log_end_offset": 7,
            "to_offset": 7,
            "reason": "epoch",
            "leader_epoch": 2,
        },
    )
    write_fact(
        folder,
        "high_watermarks",
        {**PLACE, "time_ns": at(1.5), "broker": 2, "old": 7, "new": 8},
        {**PLACE, "time_ns": at(13), "broker": 2, "old": 8, "new": 7},
        {**PLACE, "time_ns": at(0.5), "broker": 2, "old": 3, "new": 5},
    )
    replica = {**PLACE, "log_start_offset": 0}
    write_fact(folder, "replicas", {**replica, "broker": 2}, {**replica, "broker": 3}, {**replica, "broker": 1})
    write_fact(folder, "replica_records", {**PLACE, "offset": 7, "broker": 3, "value": "w", "leader_epoch": 2})
    write_fact(
        folder,
        "controller_epochs",
        *(
            {"controller_epoch": 1, "broker": 1, "source": source, "time_ns": at(-1)}
            for source in ("zookeeper", "broker")
        ),
    )
    return folder


def story(folder: RunFolder, **changes: Any) -> Story:
    return story_of(RunEvidence(folder), FINDING | changes)


def test_a_fault_of_a_client_is_named_after_the_client(lost: RunFolder) -> None:
    windows = lost.facts / "fault_windows.parquet" / "part-0.parquet"
    rows = pq.read_table(windows)
    of_client = pa.array([["pipeline-1-member-2"]], rows.schema.field("targets").type)
    pq.write_table(
        rows.set_column(rows.schema.get_field_index("targets"), rows.schema.field("targets"), of_client), windows
    )
    (told,) = [moment for moment in story(lost).moments if moment.text.startswith("fault")]
    assert (told.lane, told.text) == ("clients", "fault: kill pipeline-1-member-2")


def test_what_matters_is_told_in_order(lost: RunFolder) -> None:
    assert story(lost).sentence.split("; ") == [
        "producer-1's record v is acknowledged by the leader of epoch 0 at offset 7 (acks=all)",
        "fault: kill broker 2",
        "broker 3 is elected in epoch 2, though it was outside the ISR (ISR unknown)",
        "broker 3 leads in epoch 2, its log ends at 7",
        "broker 2 truncates its log from 8 to 7 (reason: epoch, in leader epoch 2)",
        "the high watermark of broker 2 falls behind offset 7: 8 to 7",
        "at the end broker 1, broker 2 have nothing at offset 7",
        "at the end broker 3 has w of epoch 2 at offset 7",
    ]


@pytest.mark.parametrize(
    ("text", "times"),
    [
        pytest.param("broker 2 leads in epoch 0, its log ends at 0", 1, id="the leader when it was written"),
        pytest.param("the high watermark of broker 2 passes offset 7: 7 to 8", 1, id="its commit"),
        pytest.param("the high watermark of broker 2 passes offset 7: 3 to 5", 0, id="no other commit"),
        pytest.param("broker 1 is controller in epoch 1", 1, id="a controller once, by whomever it is known"),
        pytest.param("healed: kill broker 2", 1, id="the end of a fault"),
        pytest.param("ISR 1, 2, 3 becomes 1, 3", 0, id="no change of the ISR without what was before"),
        pytest.param("consumer-1 reads", 0, id="no read of another record"),
    ],
)
def test_the_rest_is_told_too(lost: RunFolder, text: str, times: int) -> None:
    assert [moment.text for moment in story(lost).moments if not moment.matters].count(text) == times


def test_lanes_show_who_and_under_which_fault(lost: RunFolder) -> None:
    shown = story(lost)
    assert shown.lanes == ["clients", "controller", "ZooKeeper", "broker 1", "broker 2", "broker 3"]
    claim = next(moment for moment in shown.moments if moment.text.startswith("broker 3 leads in epoch 2"))
    assert shown.cells(claim) == ["", "", "", "", "fault", "here"]
    healed = next(moment for moment in shown.moments if moment.text.startswith("at the end broker 3"))
    assert "fault" not in " ".join(shown.cells(healed)), "it was healed before"


def test_a_finding_of_no_partition_has_controllers_and_faults(lost: RunFolder) -> None:
    shown = story(lost, topic=None, partition=None, offset=None)
    assert shown.lanes == ["controller", "broker 2"]


def test_a_finding_of_no_record_is_about_its_epoch(lost: RunFolder) -> None:
    shown = story(lost, offset=None, leader_epoch=2)
    assert "broker 3 leads in epoch 2, its log ends at 7" in shown.sentence
    assert "epoch 3" not in shown.sentence


def test_a_long_story_keeps_what_matters_and_says_how_much_it_leaves_out(
    lost: RunFolder, add_findings: Callable[..., None]
) -> None:
    whole = story(lost)
    (lost.facts / "leadership_claims.parquet" / "part-0.parquet").unlink()
    (lost.facts / "leadership_claims.parquet").rmdir()
    write_fact(lost, "leadership_claims", leads(9.7, 3, 2, 7), *(leads(20 + n, 3, 3 + n, 7) for n in range(60)))
    long = story(lost)
    assert (len(long.moments), long.left_out) == (SHOWN_MOMENTS, len(whole.moments) + 58 - SHOWN_MOMENTS)
    assert long.sentence == whole.sentence


def test_a_run_without_facts_has_no_story(tmp_path: Path) -> None:
    nothing = story(RunFolder(tmp_path))
    assert (nothing.moments, nothing.left_out, nothing.sentence) == ([], 0, "")


def test_what_a_system_does_not_tell_is_left_out(lost: RunFolder) -> None:
    for name in ("truncations", "leadership_claims"):
        (lost.facts / f"{name}.parquet" / "part-0.parquet").unlink()
        (lost.facts / f"{name}.parquet").rmdir()
    write_fact(lost, "truncations", {**PLACE, "time_ns": at(13), "broker": 2, "to_offset": 7})
    missing_events = {"log_end_offset": None}
    write_fact(lost, "leadership_claims", leads(9.7, 3, 2, 7) | missing_events, leads(9.8, 3, 2, 7) | {"time_ns": None})
    claims = [moment.text for moment in story(lost).moments if moment.text.startswith("broker 3 leads")]
    assert claims == ["broker 3 leads in epoch 2"]


def test_a_transaction_has_its_client_coordinator_markers_and_readers(folder: RunFolder) -> None:
    named = {"process": "p0", "transactional_id": "t", "transaction": 4}
    begun = {"begun_ns": at(1), "commit_ns": at(2), "ended_ns": at(4), "outcome": "committed"}
    write_fact(folder, "client_transactions", named | begun)
    of_producer = {"producer_id": 7, "producer_epoch": 2}
    decided = {"partition": 0, "offset": 3, "transactional_id": "t", "state": "PrepareCommit", "told_ns": at(3)}
    later = decided | {"offset": 9, "state": "Ongoing", "told_ns": at(99)}
    write_fact(folder, "transactions", decided | of_producer | {"partitions": ["orders-0"]}, later | of_producer)
    marker = {"broker": 2, "topic": "orders", "partition": 0, "time_ns": at(3.5), "offset": 8, "result": "commit"}
    write_fact(folder, "marker_writes", marker | of_producer | {"coordinator_epoch": 1})
    evidence = ['{"fact":"sends","process":"p0","transactional_id":"t","transaction":4}']
    told = story(folder, evidence=evidence, topic=None, partition=None, offset=None)
    assert [(moment.lane, moment.text) for moment in told.moments if moment.matters] == [
        ("clients", "transaction 4 of p0 (t) begins"),
        ("clients", "p0 asks to commit it"),
        ("coordinator", "t becomes PrepareCommit with orders-0 (producer 7, epoch 2)"),
        ("broker 2", "broker 2 writes the commit marker of producer 7 at orders-0 offset 8 (coordinator epoch 1)"),
        ("clients", "p0 is told that it is committed"),
    ]


def test_a_broker_that_answers_too_early_is_told_in_words(folder: RunFolder) -> None:
    step = {"broker": 2, "incarnation": "a", "seq": 9, "rule": "replica.acknowledged"}
    logged = {"ev": "produce_resp", "acks": -1, "last_offset": 7, "high_watermark": 5, "line": 3, "chain": "x"}
    told = {"subject": "replica", "name": "orders-0", "before": "", "step": json.dumps(logged), "source": "Partition"}
    write_fact(folder, "steps", {**step, **told, "sentence": "It waits.", "time_ns": at(5)})
    finding = FINDING | {"check": "step-by-step", "offset": None, "evidence": [json.dumps({"fact": "steps", **step})]}
    assert (
        "acks=all is answered for offset 7 while the high watermark is 5"
        in story_of(RunEvidence(folder), finding).sentence
    )


@pytest.mark.parametrize(
    ("leaders", "acknowledged"),
    [
        pytest.param([(2, 0)], "by broker 2, leader of epoch 0, with 1 replica in its ISR, at", id="its only leader"),
        pytest.param(
            [(2, 0), (3, 2)],
            "by broker 2, leader of epoch 0, with 1 replica in its ISR, at",
            id="of two leaders that one whose epoch left no other record there",
        ),
        pytest.param([(2, 0), (1, 1)], "at", id="two that could have"),
        pytest.param([(3, 2)], "by the leader of epoch 0 at", id="the system logs no append of that leader"),
    ],
)
def test_the_leader_that_acknowledged_a_lost_record_is_named(
    lost: RunFolder, leaders: list[tuple[int, int]], acknowledged: str
) -> None:
    wrote = {**PLACE, "role": "leader", "first_offset": 5, "last_offset": 9}
    write_fact(lost, "appends", *({**wrote, "broker": broker, "leader_epoch": epoch} for broker, epoch in leaders))
    answered = {**PLACE, "broker": 2, "leader_epoch": 0, "acks": -1, "first_offset": 5, "offset": 9}
    write_fact(lost, "acknowledgements", {**answered, "isr_size": 1})
    (text,) = [moment.text for moment in story(lost).moments if "is acknowledged" in moment.text]
    assert text == f"producer-1's record v is acknowledged {acknowledged} offset 7 (acks=all)"


def test_a_record_that_a_cleaner_or_retention_removed_has_that_and_the_record_that_replaced_it(
    folder: RunFolder,
) -> None:
    path = folder.facts / "sends.parquet"
    (path / "part-0.parquet").unlink()
    path.rmdir()
    sent = {**PLACE, "process": "p", "acks": 1, "outcome": "ok", "key": "k", "leader_epoch": 0}
    later = sent | {"transactional_id": "t", "transaction": 4, "transaction_outcome": "aborted"}
    write_fact(
        folder,
        "sends",
        sent | {"value": "old", "offset": 7, "invoke_ns": at(1), "complete_ns": at(2)},
        later | {"value": "new", "offset": 9, "invoke_ns": at(3), "complete_ns": at(4)},
        sent | {"value": "newest", "offset": 11, "invoke_ns": at(3), "complete_ns": at(5)},
    )
    write_fact(folder, "replica_records", {**PLACE, "offset": 7, "broker": 1, "value": "old", "leader_epoch": 0})
    cleaned = {**PLACE, "from_offset": 0, "until_offset": 10}
    write_fact(
        folder,
        "compactions",
        *(cleaned | {"broker": broker, "time_ns": at(second)} for broker, second in ((2, 8), (2, 6), (1, 5))),
        cleaned | {"broker": 3, "time_ns": at(5), "until_offset": 7},
    )
    deleted = {"broker": 3, "time_ns": at(7), "base_offset": 4, "end_offset": 8, "reason": "retention.ms"}
    write_fact(folder, "segment_deletions", PLACE | deleted)
    assert story(folder).sentence.split("; ") == [
        "p's record old is acknowledged by the leader of epoch 0 at offset 7 (acks=1)",
        "the next record of its key, new, is acknowledged at offset 9, in transaction 4 of t (aborted)",
        "the cleaner of broker 2 goes over offsets 0 to 9, and removes records that later ones of their keys replace",
        "fault: kill broker 2",
        "broker 3 deletes the segment of offsets 4 to 7 (reason: retention.ms)",
    ]
