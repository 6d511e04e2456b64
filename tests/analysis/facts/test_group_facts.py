"""Facts about consumer groups from literal lines: what coordinators tell, and what members say."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from harness.events import CoordinatorLoad, CoordinatorUnload, Event, OffsetRetired
from harness.store.history import OpKind, OpType
from tests.analysis.group_lines import assigns, becomes, commits, member
from tests.analysis.model_evidence import MS
from tests.analysis.run_folders import Rows, RunWriter, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES: dict[str, Callable[[RunWriter], None]] = {}
STABLE, PREPARING = "Stable", "PreparingRebalance"


def case(write: Callable[[RunWriter], None]) -> Callable[[RunWriter], None]:
    """Add what `write` leaves behind as a run of its own, named as the function."""
    CASES[write.__name__] = write
    return write


@pytest.fixture(scope="module")
def rows(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return rows_of(spark, tmp_path_factory.mktemp("runs"), CASES)


def log(out: RunWriter, *events: Event, broker: int = 1) -> None:
    for event in events:
        out.event(broker, event)
        out.clock.tick()


@case
def two_terms(out: RunWriter) -> None:
    log(out, becomes(PREPARING, 0, "a"), becomes(STABLE, 1, "a"))
    log(out, becomes(STABLE, 1, "a", epoch=4, since=""), broker=2)
    log(out, becomes("Dead", 1, epoch=4), commits("a", 1, decided=0, epoch=4, error=16), broker=2)


def test_a_state_lasts_until_the_next_one_or_until_its_broker_logs_no_more(rows: Rows) -> None:
    table = rows(two_terms, "group_states", "time_ns")
    lasted = [(row["state"], (row["until_ns"] - row["time_ns"]) // MS, row["ended"]) for row in table]
    assert lasted == [(PREPARING, 1, True), (STABLE, 0, False), (STABLE, 1, True), ("Dead", 1, True)]
    assert table[1]["members"] == [{"member": "a", "instance": None}]


@case
def assigned(out: RunWriter) -> None:
    log(out, assigns(1, a=[0, 1], b=[], c=None), assigns(2))
    where = {"group": "g", "topic": "orders", "partition": 1, "member": "a", "instance": "i", "generation": 1}
    out.operation("m1", OpKind.ASSIGNED, OpType.INVOKE, 4, mode="eager", **where)
    out.operation("m1", OpKind.ASSIGNED, OpType.OK, 4, mode="eager", offset=5, **where)


def test_a_generation_has_a_row_a_partition_and_one_for_who_has_none(rows: Rows) -> None:
    table = rows(assigned, "group_generations")
    coordinators = [row for row in table if row["source"] == "coordinator" and row["generation"] == 1]
    assert sorted(((row["member"], row["partition"] or 0, row["topic"]) for row in coordinators), key=str) == [
        ("a", 0, "orders"),
        ("a", 1, "orders"),
        ("b", 0, None),
        ("c", 0, None),
    ]
    assert {(row["broker"], row["coordinator_epoch"], row["generation"], row["reason"]) for row in coordinators} == {
        (1, 3, 1, "stored")
    }
    (empty,) = (row for row in table if row["generation"] == 2)
    assert (empty["group"], empty["member"], empty["partition"]) == ("g", None, None)
    (own,) = (row for row in table if row["source"] == "member")
    assert (own["process"], own["index"], own["member"], own["owner"]) == ("m1", 4, "a", "i")
    assert (own["generation"], own["partition"], own["broker"], own["coordinator_epoch"]) == (1, 1, None, None)


@case
def ended(out: RunWriter) -> None:
    log(out, assigns(5, a=[0]), becomes("Dead", 6), assigns(1, b=[0]), assigns(1, c=[0], epoch=4))


def test_a_group_that_ended_begins_another_life(rows: Rows) -> None:
    generations = rows(ended, "group_generations", "seq")
    assert [(row["owner"], row["generation"], row["life"]) for row in generations] == [
        ("a", 5, 0),
        ("b", 1, 1),
        ("c", 1, 0),
    ]


@case
def rebalanced(out: RunWriter) -> None:
    log(out, becomes(STABLE, 1, "a"), assigns(1, a=[0]), becomes(PREPARING, 1, "a"), assigns(2, a=[0]))
    log(out, becomes(PREPARING, 2, "a"), becomes(PREPARING, 3, "a"), becomes(STABLE, 3, "a"), assigns(3, a=[0]))
    log(out, assigns(3, a=[0], epoch=4), becomes("Dead", 3, "a", epoch=4), becomes(PREPARING, 0, "b", epoch=5))


def test_an_assignment_says_when_its_coordinator_begins_the_next_rebalance(rows: Rows) -> None:
    began_ns = [row["time_ns"] for row in rows(rebalanced, "group_states", "seq") if row["state"] == PREPARING]
    generations = rows(rebalanced, "group_generations", "seq")
    assert [row["rebalance_ns"] for row in generations] == [*began_ns[:2], None, None]


@case
def told_before_and_after(out: RunWriter) -> None:
    for index, end in enumerate(("the coordinator moved", "nothing is left of it", None)):
        where = {"group": "g", "topic": "orders", "partition": 1, "member": "a", "generation": 1, "mode": "eager"}
        out.operation("m1", OpKind.ASSIGNED, OpType.INVOKE, index, **where)
        out.operation("m1", OpKind.ASSIGNED, OpType.OK, index, **where)
        out.clock.tick()
        if end:
            log(out, becomes("Dead", 1, reason=end))


def test_members_are_told_in_another_life_once_nothing_was_left_of_the_group(rows: Rows) -> None:
    assert [row["life"] for row in rows(told_before_and_after, "group_generations", "index")] == [0, 0, 1]


@case
def told_late(out: RunWriter) -> None:
    log(out, assigns(1, a=[1]), becomes("Dead", 1, reason="nothing is left of it"))
    where = {"group": "g", "topic": "orders", "partition": 1, "member": "a", "generation": 1, "mode": "eager"}
    out.operation("m1", OpKind.ASSIGNED, OpType.INVOKE, 0, **where)
    out.operation("m1", OpKind.ASSIGNED, OpType.OK, 0, **where)


def test_a_member_that_hears_late_has_the_life_in_which_it_was_assigned(rows: Rows) -> None:
    assert [row["life"] for row in rows(told_late, "group_generations") if row["source"] == "member"] == [0]


SEEN: dict[str, tuple[list[Event], tuple[Any, ...]]] = {
    "a member of the generation": ([becomes(STABLE, 1, "a"), commits("a", 1, decided=1)], (STABLE, 1, True)),
    "one that was listed and is gone": (
        [becomes(STABLE, 1, "a"), member("a", "removed", 1), commits("a", 1, decided=2)],
        (STABLE, 1, False),
    ),
    "one that goes after the decision": (
        [becomes(STABLE, 1, "a"), member("a", "removed", 1), commits("a", 1, decided=1)],
        (STABLE, 1, True),
    ),
    "one that was gone and is listed again": (
        [member("a", "removed", 1), becomes(STABLE, 2, "a"), commits("a", 2, decided=2)],
        (STABLE, 2, True),
    ),
    "one that has just come": (
        [becomes(STABLE, 1, "a"), member("b", "joined", 1), commits("b", 1, decided=2)],
        (STABLE, 1, True),
    ),
    "one that came before any state": ([member("b", "joined", 0), commits("b", 0, decided=1)], (None, None, True)),
    "a stranger": ([becomes(STABLE, 1, "a"), commits("b", 1, decided=1)], (STABLE, 1, False)),
    "an instance under its id": ([becomes(STABLE, 1, "a/i"), commits("a/i", 1, decided=1)], (STABLE, 1, True)),
    "an id that does not name its instance": (
        [becomes(STABLE, 1, "a/i"), commits("a", 1, decided=1)],
        (STABLE, 1, True),
    ),
    "an id under another instance": ([becomes(STABLE, 1, "a/i"), commits("a/j", 1, decided=1)], (STABLE, 1, False)),
    "an instance that came, under its id": (
        [member("a/i", "joined", 0), commits("a/i", 0, decided=1)],
        (None, None, True),
    ),
    "an instance that came, under another": (
        [member("a/i", "joined", 0), commits("a/j", 0, decided=1)],
        (None, None, False),
    ),
    "an id that was replaced": (
        [becomes(STABLE, 1, "a/i"), member("b/i", "replaced", 1, old="a"), commits("a/i", 1, decided=2)],
        (STABLE, 1, False),
    ),
    "the id that replaced it": (
        [becomes(STABLE, 1, "a/i"), member("b/i", "replaced", 1, old="a"), commits("b/i", 1, decided=2)],
        (STABLE, 1, True),
    ),
    "a non-member, of an unknown group": ([commits("", -1, decided=0)], (None, None, False)),
    "a member of another term": ([becomes(STABLE, 1, "a"), commits("a", 1, decided=1, epoch=4)], (None, None, False)),
}


def _seen(events: list[Event]) -> Callable[[RunWriter], None]:
    return lambda out: log(out, *events)


CASES.update({name: _seen(events) for name, (events, _) in SEEN.items()})


@pytest.mark.parametrize("name", SEEN)
def test_a_commit_has_what_its_group_was_when_it_was_decided(name: str, rows: Rows) -> None:
    def of_case() -> None: ...

    of_case.__name__ = name
    (row,) = rows(of_case, "group_commits")
    assert (row["group_state"], row["group_generation"], row["known"]) == SEEN[name][1]


@case
def answered(out: RunWriter) -> None:
    log(out, commits("a", 1, decided=0, offset=9), commits("a", 1, decided=0, error=22))


def test_a_commit_has_how_it_was_answered(rows: Rows) -> None:
    table = rows(answered, "group_commits", "seq")
    assert [(row["error"], row["offset"], row["log_offset"]) for row in table] == [(0, 9, 9), (22, 7, -1)]


@case
def moved(out: RunWriter) -> None:
    log(
        out,
        CoordinatorLoad(partition=5, leader_epoch=3, groups=2, offsets=7, log_end_offset=40, disk_error="no"),
        CoordinatorUnload(partition=5, leader_epoch=4, groups=2),
    )


def test_a_load_and_an_unload_have_a_row_each(rows: Rows) -> None:
    table = rows(moved, "group_loads", "seq")
    names = ("kind", "topic", "partition", "leader_epoch", "groups", "offsets", "log_end_offset", "disk_error")
    assert [tuple(row[name] for name in names) for row in table] == [
        ("load", "__consumer_offsets", 5, 3, 2, 7, 40, "no"),
        ("unload", "__consumer_offsets", 5, 4, 2, None, None, None),
    ]


@case
def retired(out: RunWriter) -> None:
    for log_offset in (-1, 41):
        log(out, OffsetRetired(group="g", coordinator_epoch=3, topic="orders", partition=1, log_offset=log_offset))


def test_an_offset_that_is_no_more_has_a_row_until_that_is_stored_and_one_then(rows: Rows) -> None:
    names = ("broker", "group", "topic", "partition", "coordinator_epoch", "log_offset")
    table = rows(retired, "group_retirements", "seq")
    assert [tuple(row[name] for name in names) for row in table] == [
        (1, "g", "orders", 1, 3, -1),
        (1, "g", "orders", 1, 3, 41),
    ]


@case
def owned(out: RunWriter) -> None:
    index = 0

    def does(process: str, kind: OpKind, *partition: int, end: OpType | None = OpType.OK, offset: int = -1) -> None:
        nonlocal index
        where: dict[str, Any] = {"topic": "orders", "partition": partition[0]} if partition else {}
        named = {"group": "g", "member": process, "generation": 2, "mode": "eager"} | where
        out.operation(process, kind, OpType.INVOKE, index, **named)
        out.clock.tick()
        if end is not None:
            out.operation(process, kind, end, index, offset=offset, **named)
        index += 1

    does("m1", OpKind.ASSIGNED, 0, offset=5)  # 0
    does("m1", OpKind.ASSIGNED, 1, end=OpType.INFO)  # 1
    does("m1", OpKind.REVOKED, 0, offset=9)  # 2
    does("m1", OpKind.LOST, 1)  # 3
    does("m1", OpKind.ASSIGNED, 0)  # 4
    does("m1", OpKind.LEAVE)  # 5
    does("m2", OpKind.ASSIGNED, 2, end=None)  # 6
    does("m3", OpKind.ASSIGNED, 3, offset=1)  # 7
    does("m3", OpKind.LEAVE, end=None)  # 8
    does("m4", OpKind.LEAVE)  # 9
    does("m4", OpKind.ASSIGNED, 4, offset=1)  # 10
    does("m4", OpKind.SUBSCRIBE)  # 11
    does("m4", OpKind.ASSIGNED, 4, offset=1)  # 12
    does("m4", OpKind.REVOKED, 4)  # 13


def test_an_ownership_lasts_until_it_is_taken_back_or_its_member_has_closed_or_begun_anew(rows: Rows) -> None:
    table = rows(owned, "ownerships", "index")
    ownerships = [
        (row["process"], row["partition"], row["offset"], row["until_index"], row["ended_by"]) for row in table
    ]
    assert ownerships == [
        ("m1", 0, 5, 2, "revoked"),
        ("m1", 1, None, 3, "lost"),
        ("m1", 0, -1, 5, "leave"),
        ("m2", 2, None, None, None),
        ("m3", 3, 1, None, None),
        ("m4", 4, 1, 11, "subscribe"),
        ("m4", 4, 1, 13, "revoked"),
    ]
    assert [row["assigned_ns"] is None for row in table] == [False, True, False, True, False, False, False]
    lasted = [row["until_ns"] and (row["until_ns"] - row["invoke_ns"]) // MS for row in table]
    assert lasted == [2, 2, 2, None, None, 1, 1]
    assert {
        (row["group"], row["member"], row["generation"], row["mode"]) for row in table if row["process"] == "m1"
    } == {("g", "m1", 2, "eager")}
