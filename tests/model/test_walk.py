"""What is not known is not judged: gaps, torn lines, other lives of a broker, and events that a system leaves out."""

import json
from typing import Any

import pytest

from harness.model.subjects import broker_walker, znode_walker
from tests.model import logs
from tests.model.logs import Event, lines

BROKEN = [logs.START, logs.follows(1, 0, previous_leader_epoch=-1), logs.assign(1, 0), logs.append("follower", 1, 0)]
MOVED = logs.mark("follower", 1, 7, 8, 9)
"""Breaks `replica.watermark-continues` where the high watermark is known."""

LEADS = [
    logs.START,
    logs.assign(1, 0),
    logs.leads(1, 0, previous_leader_epoch=-1),
    *(logs.append("leader", 1, at) for at in range(9)),
]


def risen(*rises: tuple[int, int]) -> list[bytes]:
    """A leader of Kafka logs rises of its high watermark, which say no cause."""
    return lines([*LEADS, *(logs.mark("leader", 1, old, new, 9, cause="") for old, new in rises)])


def rules(*parts: list[bytes]) -> list[str]:
    walker = broker_walker()
    return [step.rule.id for part in parts for step in walker.walk(part)]


CASES: dict[str, tuple[list[list[bytes]], list[str]]] = {
    "a step is illegal": ([lines([*BROKEN, MOVED])], ["replica.watermark-continues"]),
    "a line between is missing": ([lines(BROKEN), lines([MOVED], first=5)], []),
    "a line between is torn": (
        [lines(BROKEN), [b'{"ev":"hw","broker":1,"inc":"a","se\n'], lines([MOVED], first=5)],
        [],
    ),
    "the start of the log is missing": ([lines([MOVED], first=9)], []),
    "the log does not begin with the start of the broker": ([lines([MOVED])], []),
    "the broker has started again": (
        [lines(BROKEN), lines([logs.START, logs.recovered(9, 7), MOVED], inc="b")],
        ["replica.watermark-in-role"],
    ),
    "another broker has another log": ([lines(BROKEN), lines([logs.START, logs.recovered(9, 7)], broker=2)], []),
    "lines of other kinds are passed over": ([lines([logs.START, {"ev": "new_kind"}])], []),
    "a thread logs a rise late": ([risen((0, 2), (4, 6), (2, 4), (6, 7))], []),
    "two threads log rises late": ([risen((5, 6), (2, 3), (0, 2), (3, 5))], []),
    "rises overlap": ([risen((0, 4), (3, 5))], ["replica.watermark-continues"]),
    "a late rise overlaps another": ([risen((4, 6), (3, 5))], ["replica.watermark-continues"]),
    "a late rise comes twice": ([risen((4, 6), (2, 4), (2, 4))], ["replica.watermark-continues"]),
    "a line is no object": ([[b"[]\n", b"7\n", b"\n", b"\xff\n"]], []),
}


@pytest.mark.parametrize("case", CASES)
def test_only_what_is_known_is_judged(case: str) -> None:
    parts, broken = CASES[case]
    assert rules(*parts)[: len(broken) or None] == broken


def test_an_event_without_its_fields_is_counted_and_makes_its_subject_unknown() -> None:
    walker = broker_walker()
    torn: Event = {**MOVED}
    del torn["new"]
    assert list(walker.walk(lines([*BROKEN, torn, MOVED]))) == []
    unread = {walked.subject: walked.unread for walked in walker.walked}
    assert (unread["replica"], unread["leader"]) == (1, 0)


def test_a_step_names_the_state_before_it_and_the_event() -> None:
    (step,) = broker_walker().walk(lines([*BROKEN, logs.mark("follower", 1, 1, 1, 1)]))
    assert (step.rule.id, step.name, step.partition) == ("replica.watermark-continues", "orders-0", ("orders", 0))
    assert "role=follower leader_epoch=1 log_start=0 log_end=1 high_watermark=0" in step.before
    assert (step.broker, step.incarnation, step.seq, step.event["old"]) == (1, "a", 4, 1)


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        pytest.param({}, ["state.one-leader"], id="another leader in the same epoch"),
        pytest.param({"version": 3}, [], id="a version between is missing"),
        pytest.param({"data": "{"}, [], id="the data are no JSON"),
    ],
)
def test_zookeeper_is_judged_from_version_to_version(change: dict[str, Any], broken: list[str]) -> None:
    changes = [logs.state(1, 0, [1, 2], 0), logs.state(2, 0, [2], 1) | change]
    assert [step.rule.id for step in znode_walker().walk(logs.history(changes))] == broken


def test_a_topic_and_its_configuration_may_be_created_in_one_transaction() -> None:
    topic: dict[str, Any] = {"partitions": {}, "adding_replicas": {}, "removing_replicas": {}}
    changes = [logs.znode("/brokers/topics/t", topic, 0, "create"), logs.znode("/config/topics/t", {}, 0, "create")]
    both, later = (
        [{**change, "zxid": zxid} for change, zxid in zip(changes, pair, strict=True)] for pair in ((5, 5), (5, 6))
    )
    assert list(znode_walker().walk(logs.history(both))) == []
    assert [step.rule.id for step in znode_walker().walk(logs.history(later))] == ["topic.configured-first"]


def test_a_change_that_two_sources_tell_of_is_one_and_transactions_have_an_order() -> None:
    changes = [json.loads(line) for line in logs.history(logs.ZNODES)]
    twice = [json.dumps(change).encode() for change in [*reversed(changes), *changes]]
    walker = znode_walker()
    assert list(walker.walk(twice)) == []
    assert [walked.steps for walked in walker.walked] == [len(changes) + 1]  # the first makes a topic and assigns it
