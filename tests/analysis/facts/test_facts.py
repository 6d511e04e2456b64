"""Facts from literal lines: every case writes a run folder, all of them are read at once."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from harness.analysis.tables.schemas import DUPLICATED, MISSING
from harness.events import (
    FORGOTTEN,
    Append,
    BatchRefused,
    BecomeFollower,
    BecomeLeader,
    BrokerRegistered,
    BrokerStart,
    Compaction,
    ConfigurationInForce,
    ControlledPartition,
    ControllerElected,
    ControllerEvent,
    ControllerReady,
    ControllerResigned,
    ControlReceive,
    ControlSend,
    Election,
    Event,
    HighWatermark,
    LogDirectoryFailure,
    LogsClose,
    LogStart,
    OffsetForLeaderEpoch,
    PartitionState,
    ProduceResponse,
    ProducersExpired,
    Recovery,
    RegistrationsRead,
    Truncate,
    UnexpectedError,
    ZkWrite,
)
from harness.store.history import (
    DeletedLog,
    InjectionStep,
    JournalEntry,
    OpKind,
    OpType,
    Record,
    ReplicaRecord,
    ReplicaState,
    StoredBatch,
    StoredMarker,
    ZnodeChange,
)
from tests.analysis.model_evidence import MS
from tests.analysis.run_folders import Rows, RunWriter, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

STATE_PATH = "/brokers/topics/orders/partitions/0/state"
CASES: dict[str, Callable[[RunWriter], None]] = {}


def case(write: Callable[[RunWriter], None]) -> Callable[[RunWriter], None]:
    """Add what `write` leaves behind as a run of its own, named as the function."""
    CASES[write.__name__] = write
    return write


@pytest.fixture(scope="module")
def rows(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """All facts of all cases: call with a case and a fact, and perhaps what to order by."""
    return rows_of(spark, tmp_path_factory.mktemp("runs"), CASES)


def send(out: RunWriter, index: int, type_: OpType, value: str = "", **fields: Any) -> None:
    value = value or f"v{index}"
    arguments = {"topic": "orders", "partition": 0, "value": value} | fields
    out.operation("p0", OpKind.SEND, type_, index, **arguments)


def answered(offset: int, epoch: int, *, last: int | None = None, error: int = 0) -> ProduceResponse:
    return ProduceResponse(
        correlation_id=0,
        client="p0",
        topic="orders",
        partition=0,
        acks=-1,
        base_offset=offset,
        last_offset=offset if last is None else last,
        error=error,
        isr_size=3,
        high_watermark=0,
        leader_epoch=epoch,
        duration_ms=1.0,
    )


def state_json(leader: int, epoch: int, isr: list[int], controller_epoch: int = 1) -> str:
    return f'{{"controller_epoch":{controller_epoch},"leader":{leader},"version":1,"leader_epoch":{epoch},"isr":{isr}}}'


def leads(epoch: int, **fields: Any) -> BecomeLeader:
    event = BecomeLeader(
        topic="orders",
        partition=0,
        leader_epoch=epoch,
        previous_leader_epoch=epoch - 1,
        log_start_offset=0,
        high_watermark=3,
        log_end_offset=5,
        isr=[1],
        zk_version=0,
    )
    return replace(event, **fields)


@case
def sends_and_their_ends(out: RunWriter) -> None:
    ends: list[tuple[OpType | None, dict[str, Any]]] = [
        (OpType.OK, {"offset": 2**40}),
        (OpType.FAIL, {"error": "MSG_SIZE"}),
        (OpType.INFO, {"error": "TIMED_OUT"}),
        (None, {}),
    ]
    for index, (type_, fields) in enumerate(ends):
        send(out, index, OpType.INVOKE)
        out.clock.tick()
        if type_ is not None:
            send(out, index, type_, **fields)
    send(out, 4, OpType.INVOKE, acks=0, partition=-1)
    send(out, 4, OpType.OK, acks=0)


def test_a_send_has_one_row_with_its_end(rows: Rows) -> None:
    table = rows(sends_and_their_ends, "sends", "index")
    assert [row["outcome"] for row in table] == ["ok", "fail", "info", "info", "ok"]
    assert [row["offset"] for row in table] == [2**40, None, None, None, None]
    assert [row["error"] for row in table] == ["", "MSG_SIZE", "TIMED_OUT", "", ""]
    assert [row["partition"] for row in table] == [0] * 5
    assert table[0]["complete_ns"] - table[0]["invoke_ns"] == MS
    assert table[3]["complete_ns"] is None
    assert table[4]["acks"] == 0


@case
def acknowledged_without_an_offset(out: RunWriter) -> None:
    out.event(1, answered(5, 3))
    for index in range(5):
        send(out, index, OpType.INVOKE)
    out.clock.tick()
    out.event(1, answered(6, 3))
    out.clock.tick()
    for index in range(4):
        send(out, index, OpType.OK)
    send(out, 4, OpType.OK, offset=9)
    send(out, 5, OpType.INVOKE, acks=0)
    send(out, 5, OpType.OK, acks=0)
    places = [(0, 6, "v0"), (0, 6, "v0"), (0, 7, "v1"), (0, 8, "v1"), (1, 7, "v2"), (0, 10, "v4"), (0, 11, "v5")]
    records = tuple(
        Record(topic="orders", partition=partition, offset=offset, value=value) for partition, offset, value in places
    )
    out.operation("c0", OpKind.POLL, OpType.INVOKE, 0)
    out.operation("c0", OpKind.POLL, OpType.OK, 0, records=records)


def test_a_send_that_was_acknowledged_without_an_offset_stands_where_it_was_read(rows: Rows) -> None:
    table = rows(acknowledged_without_an_offset, "sends", "index")
    assert [(row["offset"], row["leader_epoch"]) for row in table] == [
        (6, 3),
        (None, None),  # at two offsets
        (None, None),  # in another partition
        (None, None),  # nowhere
        (9, None),  # the answer named it
        (None, None),  # no answer was asked for
    ]


@case
def acknowledged_in_an_epoch(out: RunWriter) -> None:
    out.event(1, answered(0, 0))
    for index, epoch in ((0, 1), (1, 1)):
        send(out, index, OpType.INVOKE)
        out.clock.tick()
        if index == 0:
            out.event(2, answered(0, epoch, last=0))
            out.event(2, answered(0, 9, error=6))
        out.clock.tick()
        send(out, index, OpType.OK, offset=index)
        out.clock.tick()
        out.event(3, answered(0, 5))


def test_a_send_was_acknowledged_in_the_epoch_of_the_answer_that_came_between(rows: Rows) -> None:
    table = rows(acknowledged_in_an_epoch, "sends", "index")
    assert [row["leader_epoch"] for row in table] == [1, None]


@case
def transactions(out: RunWriter) -> None:
    ends = {
        "t-ok": [OpType.INFO, OpType.OK],
        "t-info": [OpType.FAIL, OpType.INFO],
        "t-fail": [OpType.FAIL],
        "t-none": [],
    }
    for number, (transactional_id, outcomes) in enumerate(ends.items()):
        begin = number * 10
        names: dict[str, Any] = {"transactional_id": transactional_id, "transaction": begin}
        out.operation("p0", OpKind.BEGIN_TRANSACTION, OpType.INVOKE, begin, **names)
        for type_ in (OpType.INVOKE, OpType.OK):
            send(out, begin + 1, type_, made_from="a", **names)
        for index, outcome in enumerate(outcomes, begin + 2):
            out.operation("p0", OpKind.COMMIT_TRANSACTION, OpType.INVOKE, index, **names)
            out.operation("p0", OpKind.COMMIT_TRANSACTION, outcome, index, **names)
    offsets = {"topic": "orders", "partition": 0, "offset": 1, "group": "g0", "transactional_id": "t-ok"}
    for type_ in (OpType.INVOKE, OpType.OK):
        out.operation("p0", OpKind.SEND_OFFSETS, type_, 9, **offsets, transaction=0)
    out.operation("p0", OpKind.COMMIT_TRANSACTION, OpType.INVOKE, 40, transactional_id="t-end", transaction=39)
    send(out, 50, OpType.INVOKE, transactional_id="t-end", transaction=39)
    send(out, 51, OpType.INVOKE)


def test_a_send_has_the_outcome_of_its_transaction(rows: Rows) -> None:
    table = rows(transactions, "sends", "index")
    assert [(row["transactional_id"], row["transaction"], row["transaction_outcome"]) for row in table] == [
        ("t-ok", 0, "committed"),
        ("t-info", 10, "unknown"),
        ("t-fail", 20, "aborted"),
        ("t-none", 30, "aborted"),
        ("t-end", 39, "unknown"),
        (None, None, None),
    ]
    assert [row["made_from"] for row in table] == ["a"] * 4 + [None] * 2


def test_a_client_transaction_has_a_row_with_what_was_asked_for(rows: Rows) -> None:
    table = rows(transactions, "client_transactions", "transaction")
    assert [(row["transaction"], row["outcome"], row["commit_ns"] is None) for row in table] == [
        (0, "committed", False),
        (10, "unknown", False),
        (20, "aborted", False),
        (30, "aborted", True),
        (39, "unknown", False),
    ]
    assert [row["group"] for row in table] == ["g0", None, None, None, None]
    assert [row["begun_ns"] is None for row in table] == [False] * 4 + [True]
    assert all(row["abort_ns"] is None for row in table)


@case
def ends_of_a_partition(out: RunWriter) -> None:
    for index, isolation in enumerate(("read_committed", "read_uncommitted", "")):
        asked = {"topic": "orders", "partition": 0, "isolation": isolation}
        out.operation("c0", OpKind.END_OFFSET, OpType.INVOKE, index, **asked)
        out.operation("c0", OpKind.END_OFFSET, OpType.OK, index, offset=5, **asked)


def test_a_last_stable_offset_is_no_end_of_a_partition(rows: Rows) -> None:
    assert [row["index"] for row in rows(ends_of_a_partition, "end_offsets", "index")] == [1, 2]


@case
def read_from_offsets_on(out: RunWriter) -> None:
    what = {"topic": "orders", "partition": 1, "offset": 4, "mode": "replica"}
    for index, value in enumerate(("4=a 6=key=b 7=", "", "odd 9=c")):
        out.operation("l0", OpKind.READ, OpType.INVOKE, index, **what)
        out.operation("l0", OpKind.READ, OpType.OK, index, value=value, **what)
    out.operation("l0", OpKind.READ, OpType.INVOKE, 3, **what)
    out.operation("l0", OpKind.READ, OpType.FAIL, 3, error="X", **what)


def test_a_read_from_an_offset_on_has_one_row_a_record_in_its_order(rows: Rows) -> None:
    table = rows(read_from_offsets_on, "offset_reads", "index")
    assert sorted((row["index"], row["position"], row["offset"], row["given"]) for row in table) == [
        (0, 0, 4, "a"),
        (0, 1, 6, "key=b"),
        (0, 2, 7, ""),
        (2, 0, None, ""),
        (2, 1, 9, "c"),
    ]
    assert {(row["partition"], row["begins_at"], row["mode"]) for row in table} == {(1, 4, "replica")}


@case
def polled(out: RunWriter) -> None:
    records = (
        Record(topic="orders", partition=0, offset=5, value="a", leader_epoch=2),
        Record(topic="orders", partition=1, offset=0, value="b"),
    )
    out.operation("c0", OpKind.POLL, OpType.INVOKE, 0, mode="assign")
    out.operation("c0", OpKind.POLL, OpType.OK, 0, mode="assign", isolation="read_committed", records=records)
    out.operation("c0", OpKind.POLL, OpType.FAIL, 1, mode="assign", error="X")


def test_a_poll_has_one_row_a_record_in_its_order(rows: Rows) -> None:
    table = rows(polled, "polls", "position")
    assert [(row["position"], row["partition"], row["offset"], row["value"]) for row in table] == [
        (0, 0, 5, "a"),
        (1, 1, 0, "b"),
    ]
    assert [row["leader_epoch"] for row in table] == [2, None]
    assert [row["isolation"] for row in table] == ["read_committed"] * 2


@case
def broker_that_starts_with_its_clock_an_hour_back(out: RunWriter) -> None:
    started = BrokerStart(config_digest="", clean_marker=True, planted_bugs=[])
    out.event(1, started)
    out.clock.now_ns += MS
    out.event(2, started, clock_ahead_ns=-3_600_000 * MS)
    out.znode(STATE_PATH, state_json(1, 0, [1, 2]))


def test_a_znode_has_its_instant_whatever_the_clock_of_a_later_start_showed(rows: Rows) -> None:
    (row,) = rows(broker_that_starts_with_its_clock_an_hour_back, "partition_states", "zxid")
    assert 0 < row["time_ns"] < 60_000 * MS


@case
def state_of_a_partition(out: RunWriter) -> None:
    out.event(1, BrokerStart(config_digest="", clean_marker=True, planted_bugs=[]))
    out.znode("/brokers/topics/orders", '{"version":2,"partitions":{"0":[1,2,3]}}')
    out.znode(STATE_PATH, state_json(1, 0, [1, 2]))
    out.znode(STATE_PATH, state_json(2, 1, [2]))
    out.event(3, ZkWrite(path=STATE_PATH, op="set", expected_version=0, result="ok", new_version=1, by="controller",
                         controller_epoch=1))  # fmt: skip
    out.event(2, ZkWrite(path=STATE_PATH, op="set", expected_version=0, result="badversion", new_version=-1,
                         by="leader", controller_epoch=1))  # fmt: skip
    out.znode("/brokers/topics/orders", '{"version":2,"partitions":{"0":[2,3]}}')
    out.znode(STATE_PATH, state_json(2, 1, [3, 2]))
    out.event(2, leads(1))
    out.event(3, leads(1))


def test_a_state_znode_has_one_row_a_version_beside_the_one_before(rows: Rows) -> None:
    table = rows(state_of_a_partition, "partition_states", "zxid")
    assert [(row["zk_version"], row["leader"], row["isr"]) for row in table] == [
        (0, 1, [1, 2]),
        (1, 2, [2]),
        (2, 2, [3, 2]),
    ]
    assert [row["previous_zk_version"] for row in table] == [None, 0, 1]
    assert [row["previous_isr"] for row in table] == [None, [1, 2], [2]]
    assert [row["assignment"] for row in table] == [[1, 2, 3], [1, 2, 3], [2, 3]]
    assert [row["once_assigned"] for row in table] == [[1, 2, 3]] * 3
    assert [(row["fewest_replicas"], row["most_replicas"]) for row in table] == [(3, 3), (2, 3), (2, 2)]
    assert [row["writer"] for row in table] == [None, "controller", None]
    assert [row["life"] for row in table] == [1, 1, 1]


def test_a_topic_has_the_replicas_that_its_znode_held_last(rows: Rows) -> None:
    (table,) = rows(state_of_a_partition, "topics")
    assert table["assignment"] == [{"partition": 0, "replicas": [2, 3]}]


@case
def topic_that_was_being_reassigned(out: RunWriter) -> None:
    path = "/brokers/topics/{}"
    moves = '"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1],"1":[2]}'
    for topic in ("moved", "moving", "gone", "old"):
        out.znode(path.format(topic), f'{{"version":3,"partitions":{{"0":[1,2,3],"1":[1,2]}},{moves}}}')
    still = '{"version":3,"partitions":{"0":[2,3],"1":[1]},"adding_replicas":{},"removing_replicas":{}}'
    out.znode(path.format("moved"), still)
    out.znode(path.format("gone"), None)
    out.znode(path.format("old"), '{"version":1,"partitions":{"0":[1]}}')


def test_a_topic_has_the_partitions_whose_reassignment_had_not_ended(rows: Rows) -> None:
    table = rows(topic_that_was_being_reassigned, "topics", "topic")
    assert [(row["topic"], row["present"], row["reassigned"]) for row in table] == [
        ("gone", False, [0, 1]),
        ("moved", True, []),
        ("moving", True, [0, 1]),
        ("old", True, None),
    ]


def test_the_wall_clock_of_zookeeper_becomes_an_instant_of_the_run(rows: Rows) -> None:
    (first, *_) = rows(state_of_a_partition, "partition_states", "zxid")
    assert first["time_ns"] == 1_000 * MS


def test_an_isr_change_is_a_version_with_other_members(rows: Rows) -> None:
    table = rows(state_of_a_partition, "isr_changes", "zxid")
    assert [(row["old_isr"], row["new_isr"]) for row in table] == [([], [1, 2]), ([1, 2], [2]), ([2], [3, 2])]


def test_a_leader_epoch_has_one_row_a_leader_whoever_says_so(rows: Rows) -> None:
    table = sorted(rows(state_of_a_partition, "leader_epochs"), key=lambda row: (row["leader_epoch"], row["leader"]))
    assert [(row["leader_epoch"], row["leader"], row["claimed"], row["zk_version"]) for row in table] == [
        (0, 1, False, 0),
        (1, 2, True, 1),
        (1, 3, True, None),
    ]
    assert [row["start_offset"] for row in table] == [None, 5, 5]
    assert [row["unclean"] for row in table] == [False, False, None]


@case
def replaced_in_one_record(out: RunWriter) -> None:
    out.znode("/brokers/ids/1", "{}")
    out.znode("/brokers/ids/1", None)
    out.znode("/brokers/ids/1", "{}", multi=True)


def test_a_registration_that_replaces_another_at_once_stands(rows: Rows) -> None:
    table = rows(replaced_in_one_record, "registrations", "czxid")
    first, second = ((row["czxid"], row["until_zxid"]) for row in table)
    assert first[1] == second[0]
    assert second[1] is None


@case
def elected_from_who_is_eligible(out: RunWriter) -> None:
    for leader, epoch, isr, eligible in ((1, 0, [1], []), (-1, 1, [], [1]), (1, 2, [1], []), (2, 3, [2], [])):
        state = {"leader": leader, "leader_epoch": epoch, "isr": isr, "eligible": eligible, "controller_epoch": 1}
        out.znode(STATE_PATH, json.dumps(state))


@case
def elected_as_the_last_known(out: RunWriter) -> None:
    for leader, epoch, isr, eligible, last_known in (
        (1, 0, [1], [], []),
        (-1, 1, [], [], [1]),
        (1, 2, [1], [], []),
        (-1, 3, [], [], [1]),
        (2, 4, [2], [], []),
        (-1, 5, [], [3], [2]),
        (2, 6, [2], [], []),
    ):
        state = {"leader": leader, "leader_epoch": epoch, "isr": isr, "eligible": eligible, "last_known": last_known}
        out.znode(STATE_PATH, json.dumps(state | {"controller_epoch": 1}))


def test_who_led_last_is_elected_cleanly_where_nobody_else_may_lead(rows: Rows) -> None:
    table = rows(elected_as_the_last_known, "leader_epochs", "zxid")
    assert [row["unclean"] for row in table] == [False, False, False, False, True, False, True]
    assert [row["may_be_empty"] for row in rows(elected_as_the_last_known, "isr_changes", "zxid")] == [
        False,
        True,
        False,
        True,
        False,
        True,
        False,
    ]


def test_who_is_eligible_beside_the_isr_is_elected_cleanly(rows: Rows) -> None:
    table = rows(elected_from_who_is_eligible, "leader_epochs", "zxid")
    assert [(row["leader"], row["unclean"]) for row in table] == [(1, False), (-1, False), (1, False), (2, True)]


@case
def elected_by_the_end_of_a_reassignment(out: RunWriter) -> None:
    for replicas, leader, epoch, isr in (
        ([2, 1], 2, 0, [1, 2]),
        ([3, 1, 2], 2, 0, [1, 2]),
        ([3, 1], 3, 1, [3, 1]),
        ([3, 1], 4, 2, [4]),
    ):
        out.znode("/brokers/topics/orders", json.dumps({"version": 1, "partitions": {"0": replicas}}))
        state = {"leader": leader, "leader_epoch": epoch, "isr": isr, "eligible": [], "controller_epoch": 1}
        out.znode(STATE_PATH, json.dumps(state), multi=True)


def test_whether_a_quorum_elects_cleanly_is_unknown_when_it_removes_the_leader_before(rows: Rows) -> None:
    table = rows(elected_by_the_end_of_a_reassignment, "leader_epochs", "zxid")
    assert [(row["leader"], row["unclean"]) for row in table] == [(2, False), (3, None), (4, True)]


@case
def uncleanly_elected(out: RunWriter) -> None:
    out.znode(STATE_PATH, state_json(1, 0, [1]))
    out.znode(STATE_PATH, state_json(-1, 1, [1]))
    out.znode(STATE_PATH, state_json(2, 2, [2]))
    state = PartitionState(leader=2, leader_epoch=2, isr=[2], zk_version=2, controller_epoch=1)
    out.event(3, election(state, unclean=True))


@case
def uncleanly_elected_unseen(out: RunWriter) -> None:
    out.znode(STATE_PATH, state_json(1, 0, [1, 2]))
    out.znode(STATE_PATH, "not json")
    out.znode(STATE_PATH, state_json(2, 2, [2]))
    state = PartitionState(leader=2, leader_epoch=2, isr=[2], zk_version=2, controller_epoch=1)
    out.event(3, election(state, unclean=True))


def election(result: PartitionState, *, unclean: bool) -> Election:
    return Election(
        topic="orders",
        partition=0,
        strategy="offline",
        trigger="",
        controller_epoch=1,
        previous=None,
        online=[2],
        shutting_down=[],
        assigned=[1, 2],
        profile="2.5",
        unclean_allowed=True,
        unclean=unclean,
        result=result,
        error="",
    )


@pytest.mark.parametrize("written", [uncleanly_elected, uncleanly_elected_unseen])
def test_an_unclean_election_is_seen_in_zookeeper_or_told_by_the_controller(
    rows: Rows, written: Callable[..., Any]
) -> None:
    table = {row["leader_epoch"]: row for row in rows(written, "leader_epochs")}
    assert table[2]["unclean"] is True
    assert table[2]["unclean_allowed"] is True
    assert table[0]["unclean"] is False


def controller_json(broker: int, **others: int) -> str:
    return json.dumps({"version": 2, "brokerid": broker, "timestamp": "0"} | others)


@case
def seen_twice(out: RunWriter) -> None:
    zookeeper = out.writer(out.folder.zookeeper)
    data = controller_json(1, kraftControllerEpoch=-1)
    for source, session in (("observer", ""), ("transaction_log", "0x1")):
        change = partial(ZnodeChange, zxid=7, time_ms=0, session=session, source=source)
        zookeeper.write(change(type="create", path="/controller", data=data, version=0, ephemeral_owner="0x1"))
        zookeeper.write(change(type="set", path="/controller_epoch", data="4", version=4, ephemeral_owner=""))
    out.event(2, ControllerElected(controller_epoch=4, epoch_zk_version=4))


def test_a_controller_is_who_won_in_the_transaction_that_raised_the_epoch(rows: Rows) -> None:
    table = rows(seen_twice, "controller_epochs", "source")
    assert [(row["source"], row["broker"], row["controller_epoch"], row["zxid"]) for row in table] == [
        ("broker", 2, 4, None),
        ("zookeeper", 1, 4, 7),
    ]


@case
def elected_before_2_2(out: RunWriter) -> None:
    out.znode("/controller", controller_json(1))
    out.znode("/controller_epoch", "1")
    out.znode("/controller", None)
    out.znode("/controller", controller_json(2))
    out.znode("/brokers/topics/t", "{}")
    out.znode("/controller_epoch", "2")
    out.znode("/controller", None)
    out.znode("/controller_epoch", "3")


def test_an_epoch_raised_in_a_transaction_of_its_own_is_of_who_was_controller_then(rows: Rows) -> None:
    table = rows(elected_before_2_2, "controller_epochs", "controller_epoch")
    assert [(row["controller_epoch"], row["broker"]) for row in table] == [(1, 1), (2, 2), (3, None)]


@case
def elected_late(out: RunWriter) -> None:
    zookeeper = out.writer(out.folder.zookeeper)
    changes = [
        ("create", "/controller", controller_json(1), "0x1"),
        ("delete", "/controller", "", "0x9"),
        ("create", "/controller", controller_json(2), "0x2"),
        ("set", "/controller_epoch", "5", "0x1"),
        ("set", "/controller_epoch", "6", "0x2"),
        ("create", "/controller_epoch", "7", "0x9"),
    ]
    for zxid, (type_, path, data, session) in enumerate(changes):
        owner = session if path == "/controller" else ""
        change = ZnodeChange(
            zxid=zxid,
            time_ms=0,
            type=type_,
            path=path,
            data=data,
            version=zxid,
            session=session,
            ephemeral_owner=owner,
            source="transaction_log",
        )
        zookeeper.write(change)


def test_an_epoch_is_whose_session_raised_it_whoever_is_controller_by_then(rows: Rows) -> None:
    table = rows(elected_late, "controller_epochs", "zxid")
    assert [(row["controller_epoch"], row["broker"], row["session"]) for row in table] == [
        (5, 1, "0x1"),
        (6, 2, "0x2"),
        (7, None, None),
    ]


@case
def of_both_kinds(out: RunWriter) -> None:
    zookeeper = out.writer(out.folder.zookeeper)
    elected: tuple[dict[str, int], ...] = ({}, {"kraftControllerEpoch": -1}, {"kraftControllerEpoch": 3})
    for epoch, others in enumerate(elected, 1):
        change = partial(ZnodeChange, zxid=epoch, time_ms=0, session="", source="transaction_log", version=epoch)
        data = controller_json(1, **others)
        zookeeper.write(change(type="create", path="/controller", data=data, ephemeral_owner="0x1"))
        zookeeper.write(change(type="set", path="/controller_epoch", data=str(epoch), ephemeral_owner=""))


def test_a_quorum_elected_who_has_an_epoch_of_it(rows: Rows) -> None:
    table = rows(of_both_kinds, "controller_epochs", "controller_epoch")
    assert [row["source"] for row in table] == ["zookeeper", "zookeeper", "quorum"]


@case
def made_anew(out: RunWriter) -> None:
    out.znode(STATE_PATH, state_json(1, 0, [1]))
    out.znode(STATE_PATH, None)
    out.znode(STATE_PATH, state_json(2, 0, [2]))


def test_a_topic_made_anew_begins_another_life(rows: Rows) -> None:
    table = rows(made_anew, "partition_states", "zxid")
    assert [(row["life"], row["previous_leader"]) for row in table] == [(1, None), (2, None)]


@case
def deletions_of_topics(out: RunWriter) -> None:
    out.event(1, BrokerStart(config_digest="", clean_marker=True, planted_bugs=[]))

    def written(*replicas: list[int], adding: list[int]) -> str:
        parts = {str(number): brokers for number, brokers in enumerate(replicas)}
        return json.dumps(
            {"partitions": parts, "adding_replicas": {"0": adding} if adding else {}, "removing_replicas": {}}
        )

    out.znode("/brokers/topics/orders", written([1, 2], adding=[]))
    out.znode("/admin/delete_topics/orders", "")
    out.znode("/admin/delete_topics/unknown", "")
    out.clock.now_ns += 5 * MS
    out.znode("/brokers/topics/orders", written([1, 2], [2, 3], adding=[2]))
    out.znode("/brokers/topics/orders", None)
    out.znode("/admin/delete_topics/orders", None)
    out.znode("/brokers/topics/orders", written([4], adding=[]))
    out.znode("/admin/delete_topics/orders", "")
    out.clock.now_ns += 7 * MS
    out.znode("/admin/delete_topics/unknown", None)


def test_a_deletion_has_the_replicas_that_its_topic_had(rows: Rows) -> None:
    first, second = rows(deletions_of_topics, "deletions", "zxid")
    assert (sorted(first["replicas"]), first["reassigned"], first["topic"]) == ([1, 2, 3], True, "orders")
    assert (second["replicas"], second["reassigned"], second["until_zxid"]) == ([4], False, None)
    assert [row["until_ns"] - row["time_ns"] for row in (first, second)] == [5 * MS, 7 * MS]
    assert first["until_zxid"] < second["zxid"]
    assert [row["assigned_ns"] - row["time_ns"] for row in (first, second)] == [5 * MS, 0]


@case
def deletion_in_the_old_format(out: RunWriter) -> None:
    for topic, before in (("orders", None), ("events", "/admin/reassign_partitions")):
        out.znode(f"/brokers/topics/{topic}", json.dumps({"partitions": {"0": [1, 2]}}))
        if before is not None:
            out.znode(before, "{}")
        out.znode(f"/admin/delete_topics/{topic}", "")
        out.znode(f"/admin/delete_topics/{topic}", None)


def test_before_kafka_2_4_a_topic_may_be_reassigned_once_that_was_asked_for(rows: Rows) -> None:
    table = rows(deletion_in_the_old_format, "deletions", "zxid")
    assert [(row["topic"], row["reassigned"]) for row in table] == [("orders", False), ("events", True)]


@case
def claimed_ids(out: RunWriter) -> None:
    out.znode("/latest_producer_id_block", "")
    for broker, first in ((1, 0), (2, 1000)):
        block = {"version": 1, "broker": broker, "block_start": str(first), "block_end": str(first + 999)}
        out.znode("/latest_producer_id_block", json.dumps(block))
    out.znode("/latest_producer_id_block", None)


def test_a_block_of_producer_ids_is_whoever_wrote_it(rows: Rows) -> None:
    table = rows(claimed_ids, "producer_id_blocks", "zxid")
    assert [(row["zk_version"], row["broker"], row["first"], row["last"]) for row in table] == [
        (1, 1, 0, 999),
        (2, 2, 1000, 1999),
    ]


def wrote(acks: int | None, *, isr_size: int, role: str = "leader") -> Append:
    return Append(
        topic="orders",
        partition=0,
        role=role,
        leader_epoch=0,
        base_offset=0,
        last_offset=4,
        batch_epoch=0,
        crc=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        isr_size=isr_size,
        acks=acks,
    )


def numbered(base_sequence: int, offset: int, *, records: int = 1, **other: Any) -> Append:
    batch = wrote(-1, isr_size=2)
    numbers = {"producer_id": 7, "producer_epoch": 0, "base_sequence": base_sequence}
    return replace(batch, base_offset=offset, last_offset=offset + records - 1, **(numbers | other))


def refused(base_sequence: int, *, records: int = 1, **other: Any) -> BatchRefused:
    return BatchRefused(
        topic="orders",
        partition=0,
        leader_epoch=3,
        log_start_offset=0,
        producer_id=7,
        producer_epoch=0,
        base_sequence=base_sequence,
        last_sequence=base_sequence + records - 1,
        **({"error": 45} | other),
    )


@case
def retried(out: RunWriter) -> None:
    for sequence in range(3):
        out.event(1, numbered(sequence, sequence))
    out.event(1, leads(3, log_end_offset=3))
    out.event(1, numbered(3, 3, records=2))
    out.event(1, refused(1))
    out.event(1, refused(3, records=2, error=47))
    for other in (refused(3), refused(9), refused(1, error=2)):
        out.event(1, other)
    out.event(1, numbered(1, 1))
    out.event(1, numbered(0, 5, producer_epoch=1))
    out.event(1, refused(0))
    out.event(2, refused(0))


def test_a_refused_retry_has_what_its_leader_wrote_then_and_since(rows: Rows) -> None:
    names = ("base_sequence", "offset", "written_since", "overwritten", "later_batches", "later_epoch", "broker")
    table = [tuple(row[name] for name in names) for row in rows(retried, "refused_retries", "seq")]
    assert table == [
        (1, 1, False, False, 2, False, 1),
        (3, 3, True, False, 0, False, 1),
        (0, 0, False, False, 3, True, 1),
    ]
    assert {row["leader_end_offset"] for row in rows(retried, "refused_retries")} == {3}


@case
def written_over(out: RunWriter) -> None:
    out.event(1, numbered(0, 4))
    out.event(1, numbered(0, 3, producer_id=8, records=2))
    out.event(1, refused(0))


def test_a_refused_retry_may_be_of_what_was_written_over(rows: Rows) -> None:
    (row,) = rows(written_over, "refused_retries")
    assert (row["overwritten"], row["later_batches"]) == (True, 0)
    assert (row["leader_end_offset"], row["written_since"]) == (None, None)


@case
def forgotten(out: RunWriter) -> None:
    out.event(1, numbered(0, 0))
    out.event(1, ProducersExpired(topic="orders", partition=0, producer_ids=[8, 7]))
    out.event(1, refused(0))
    out.event(1, numbered(5, 1))
    out.event(1, ProducersExpired(topic="orders", partition=0, producer_ids=[8]))
    out.event(1, refused(5))


def test_a_producer_that_has_expired_since_sends_no_retry(rows: Rows) -> None:
    (row,) = rows(forgotten, "refused_retries")
    assert (row["base_sequence"], row["offset"]) == (5, 1)


def updated(live: list[int], *leaders: tuple[str, int, int], api: str = "UpdateMetadata") -> ControlReceive:
    partitions = [
        ControlledPartition(
            topic=topic,
            partition=0,
            leader=leader,
            leader_epoch=epoch,
            isr=[1],
            zk_version=0,
            replicas=[1],
            verdict="applied",
        )
        for topic, leader, epoch in leaders
    ]
    return ControlReceive(
        api=api,
        sender=1,
        controller_epoch=1,
        request_broker_epoch=-1,
        verdict="applied",
        partitions=partitions,
        live_brokers=live if api == "UpdateMetadata" else None,
    )


@case
def metadata_updates(out: RunWriter) -> None:
    started = BrokerStart(config_digest="", clean_marker=False, planted_bugs=[])
    out.event(1, started)
    out.event(1, updated([1, 2], ("orders", 1, 0), ("gone", 1, 0), ("kept", 2, 4)))
    out.event(1, updated([], ("orders", 9, 9), api="LeaderAndIsr"))
    out.event(1, updated([1], ("orders", 2, 1), ("gone", FORGOTTEN, 0)))
    out.event(2, started)
    send(out, 0, OpType.INVOKE)
    out.clock.tick()
    out.event(1, updated([1, 2, 3], ("orders", 3, 2)))


def test_a_metadata_cache_holds_what_it_was_told_last_before_the_load_ended(rows: Rows) -> None:
    names = ("broker", "topic", "leader", "leader_epoch", "isr", "live_brokers")
    table = {tuple(str(row[name]) for name in names) for row in rows(metadata_updates, "metadata_caches")}
    assert table == {
        ("1", "orders", "2", "1", "[1]", "[1]"),
        ("1", "kept", "2", "4", "[1]", "[1]"),
        ("2", "None", "None", "None", "None", "None"),
    }


@case
def put_aside(out: RunWriter) -> None:
    for broker in (1, 2):
        out.event(broker, BrokerStart(config_digest="", clean_marker=False, planted_bugs=[]))
        out.clock.tick()
        out.event(broker, BrokerRegistered(czxid=1))
        out.clock.tick()
        out.event(broker, updated([], ("orders", -1, 0), api="StopReplica"))
        out.clock.tick()
        out.event(broker, updated([1, 2]))
    out.event(2, LogDirectoryFailure(error="EIO", replicas=1))
    out.event(1, updated([], ("moved", -1, 0), api="StopReplica"))
    out.clock.tick()
    out.event(1, updated([], ("moved", 1, 1), api="LeaderAndIsr"))
    for broker, topic in ((1, "orders"), (1, "never"), (1, "moved"), (2, "orders")):
        line = DeletedLog(broker=broker, topic=topic, partition=0, folder=f"{topic}-0.0-delete")
        out.writer(out.folder.deleted_logs(broker)).write(line)


def test_a_folder_of_a_deleted_log_has_when_it_could_be_removed(rows: Rows) -> None:
    table = {(row["broker"], row["topic"]): row for row in rows(put_aside, "deleted_logs")}
    ours, unheard, failed = table[1, "orders"], table[1, "never"], table[2, "orders"]
    assert ours["began_ns"] < ours["stopped_ns"] < ours["lived_ns"]
    assert (unheard["began_ns"], unheard["stopped_ns"]) == (ours["began_ns"], None)
    assert table[1, "moved"]["stopped_ns"] is None, "it began again, and a move may have put the folder aside"
    assert [row["disk_failed"] for row in (ours, unheard, failed)] == [False, False, True]
    assert ours["folder"] == "orders-0.0-delete"


@case
def an_unforeseen_error(out: RunWriter) -> None:
    out.event(1, UnexpectedError(operation="election.failed", error="KeyError: 3", at="controller.py:7 _elect"))


def test_an_error_says_where_it_was_raised(rows: Rows) -> None:
    (row,) = rows(an_unforeseen_error, "unexpected_errors")
    said = (row["broker"], row["operation"], row["error"], row["at"])
    assert said == (1, "election.failed", "KeyError: 3", "controller.py:7 _elect")


@case
def where_an_epoch_ends(out: RunWriter) -> None:
    out.event(
        1,
        OffsetForLeaderEpoch(
            topic="orders",
            partition=0,
            sender=2,
            current_leader_epoch=3,
            asked_epoch=0,
            answer_epoch=0,
            end_offset=7,
            error=0,
            leader_epoch=3,
            log_end_offset=9,
            leader_epochs=[(0, 0), (3, 7)],
        ),
    )


def test_an_answer_has_the_epochs_of_its_leader(rows: Rows) -> None:
    (row,) = rows(where_an_epoch_ends, "epoch_answers")
    assert (row["leader_epochs"], row["log_end_offset"], row["error"]) == ([[0, 0], [3, 7]], 9, 0)
    assert (row["broker"], row["sender"], row["leader_epoch"], row["end_offset"]) == (1, 2, 3, 7)


@case
def written_in_sync(out: RunWriter) -> None:
    for acks, isr_size in ((-1, 3), (-1, 2), (1, 1)):
        out.event(1, wrote(acks, isr_size=isr_size))
    out.event(2, wrote(None, isr_size=0, role="follower"))
    out.event(3, wrote(None, isr_size=1))


def test_what_is_written_with_acks_all_has_the_smallest_isr_of_its_leader(rows: Rows) -> None:
    table = rows(written_in_sync, "appends", "broker")
    assert [(row["batches"], row["acks_all"], row["smallest_isr"]) for row in table] == [
        (3, 2, 2),
        (1, None, None),
        (1, None, None),
    ]


def raised(role: str, new: int) -> HighWatermark:
    return HighWatermark(
        topic="orders",
        partition=0,
        role=role,
        leader_epoch=0,
        old=0,
        new=new,
        log_end_offset=5,
        isr=[],
        zk_version=0,
        cause="fetch",
    )


@case
def follower_of_a_leader_that_starts_again(out: RunWriter) -> None:
    for life, known in (("first", 4), ("second", 3)):
        out.event(1, raised("leader", known), life=life)
        out.clock.now_ns += 20 * MS
        out.event(1, wrote(-1, isr_size=2), life=life)
    out.event(2, wrote(None, isr_size=0, role="follower"))
    out.event(2, raised("follower", 3))


def test_a_leader_carries_what_it_knew_in_the_life_in_which_it_wrote(rows: Rows) -> None:
    (row,) = rows(follower_of_a_leader_that_starts_again, "follower_watermarks")
    assert (row["broker"], row["leader"], row["leader_high_watermark"], row["high_watermark"]) == (2, 1, 3, 3)


@case
def follower_that_copies_after_its_leader_has_started_again(out: RunWriter) -> None:
    out.event(1, raised("leader", 4), life="first")
    out.clock.now_ns += 20 * MS
    out.event(1, wrote(-1, isr_size=2), life="first")
    out.clock.now_ns += 20 * MS
    out.event(1, leads(0), life="second")
    out.event(2, wrote(None, isr_size=0, role="follower"))


def test_a_copy_carries_nothing_of_a_life_that_was_over(rows: Rows) -> None:
    assert rows(follower_that_copies_after_its_leader_has_started_again, "follower_watermarks") == []


@case
def follower_of_a_leader_that_deletes(out: RunWriter) -> None:
    def moved(new: int) -> LogStart:
        return LogStart(topic="orders", partition=0, old=0, new=new, high_watermark=5, cause="delete_records")

    out.event(1, moved(5), life="first")  # of an earlier leadership, and of a log that was truncated since
    out.clock.now_ns += 20 * MS
    for line in (leads(0, log_start_offset=1), moved(2)):
        out.event(1, line, life="first")
    out.clock.now_ns += 20 * MS
    out.event(1, moved(3), life="first")  # too late for each answer with the record to carry it
    out.event(1, wrote(-1, isr_size=2), life="first")
    out.event(1, moved(4), life="first")
    followed = {"previous_leader_epoch": -1, "log_start_offset": 0, "high_watermark": 0, "log_end_offset": 0}
    out.event(2, BecomeFollower(topic="orders", partition=0, leader=1, leader_epoch=0, **followed))
    out.event(2, wrote(None, isr_size=0, role="follower"))
    out.event(2, moved(1))
    out.event(2, replace(wrote(None, isr_size=0, role="follower"), leader_epoch=1))
    out.event(2, moved(4))


def test_a_leader_carries_where_its_log_started_when_it_wrote(rows: Rows) -> None:
    (row,) = rows(follower_of_a_leader_that_deletes, "follower_watermarks")
    assert (row["leader_log_start_offset"], row["log_start_offset"], row["disk_failed"]) == (2, 1, False)
    assert (row["leader_high_watermark"], row["high_watermark"]) == (None, 0)


@case
def refused_answers(out: RunWriter) -> None:
    for error in (20, 20, 19, 0):
        out.clock.tick()
        out.event(1, answered(-1, 0, error=error))


def test_refusals_are_counted_by_their_error(rows: Rows) -> None:
    table = rows(refused_answers, "refusals", "error")
    assert [(row["error"], row["isr_size"], row["answers"]) for row in table] == [(19, 3, 1), (20, 3, 2)]
    other, twice = table
    assert other["from_ns"] == other["to_ns"] > twice["to_ns"] > twice["from_ns"]


@case
def a_fault(out: RunWriter) -> None:
    for step, targets, detail in (
        (InjectionStep.POSTPONED, (), "waits"),
        (InjectionStep.INTENDED, (), "will"),
        (InjectionStep.INJECTED, ("1",), "did"),
        (InjectionStep.MISMATCH, ("1",), "not as asked"),
    ):
        out.clock.tick()
        out.writer(out.folder.journal).write(
            JournalEntry(
                time_ns=out.clock.now_ns,
                injection=3,
                fault="kill",
                step=step,
                targets=targets,
                parameters={} if step is InjectionStep.POSTPONED else {"deep": {"er": [1]}},
                detail=detail,
            )
        )


def test_an_injection_has_one_row_with_its_steps(rows: Rows) -> None:
    (row,) = rows(a_fault, "fault_windows")
    assert (row["injection"], row["fault"], row["targets"]) == (3, "kill", ["1"])
    assert row["parameters"] == '{"deep":{"er":[1]}}'
    assert (row["step"], row["detail"]) == ("mismatch", "not as asked")
    assert row["injected_ns"] - row["intended_ns"] == MS
    assert row["healed_ns"] is None


@case
def gaps(out: RunWriter) -> None:
    def attempt(index: int, ms: float, type_: OpType | None) -> None:
        send(out, index, OpType.INVOKE)
        out.clock.tick(ms)
        if type_ is not None:
            send(out, index, type_, offset=index if type_ is OpType.OK else -1)

    attempt(0, 1, OpType.OK)
    out.clock.tick(1000)  # no client tries
    attempt(1, 100, OpType.FAIL)
    attempt(2, 300, OpType.OK)
    attempt(3, 200, OpType.OK)
    attempt(4, 500, None)
    attempt(5, 1, OpType.INFO)


def test_a_gap_is_time_without_success_while_somebody_tries(rows: Rows) -> None:
    table = rows(gaps, "availability", "from_ns")
    assert [(row["gap_ms"], row["open"], row["attempts"]) for row in table] == [(400.0, False, 2), (501.0, True, 2)]


@case
def commits(out: RunWriter) -> None:
    where = {"group": "g0", "topic": "orders", "partition": 0}
    for index, (kind, type_, offset) in enumerate(
        [
            (OpKind.COMMIT, OpType.OK, 10),
            (OpKind.COMMIT, OpType.INFO, 20),
            (OpKind.COMMIT, OpType.INFO, 5),
            (OpKind.COMMIT, OpType.FAIL, 30),
            (OpKind.FETCH_COMMITTED, OpType.OK, 5),
            (OpKind.FETCH_COMMITTED, OpType.OK, 5),
            (OpKind.FETCH_COMMITTED, OpType.OK, -1),
        ]
    ):
        arguments = {"offset": offset} if kind is OpKind.COMMIT else {}
        out.operation("c0", kind, OpType.INVOKE, index, **where, **arguments)
        out.clock.tick()
        out.operation("c0", kind, type_, index, **where, offset=offset)
    for broker in (1, 2):
        for offset, key, value in (
            (7, '{"type":"group","group":"g0"}', '{"protocol_type":"consumer","generation":4}'),
            (8, '{"type":"offset","group":"g0","topic":"orders","partition":0}', '{"offset":10,"leader_epoch":-1}'),
        ):
            out.writer(out.folder.replica_dump(broker, "__consumer_offsets", 3)).write(
                ReplicaRecord(
                    broker=broker,
                    topic="__consumer_offsets",
                    partition=3,
                    offset=offset,
                    leader_epoch=0,
                    timestamp_ms=0,
                    key=key,
                    value=value,
                    digest="",
                    producer_id=-1 if offset == 7 else 2000,
                    producer_epoch=-1 if offset == 7 else 0,
                    sequence=offset,
                )
            )


def test_a_record_that_a_coordinator_wrote_has_no_number_whatever_its_batch_says(rows: Rows) -> None:
    assert {row["sequence"] for row in rows(commits, "replica_records")} == {-1}


def test_commits_and_read_backs_count_where_they_must_not_go_back(rows: Rows) -> None:
    table = [row for row in rows(commits, "committed_offsets") if row["source"] == "client"]
    table.sort(key=lambda row: row["index"])
    assert [row["kind"] for row in table] == ["commit"] * 4 + ["fetch"] * 3
    assert [row["offset"] for row in table] == [10, 20, 5, 30, 5, 5, -1]
    assert table[0]["counts_ns"] == table[0]["complete_ns"]
    assert [row["counts_ns"] for row in (table[1], table[3], table[6])] == [None, None, None]
    assert table[2]["counts_ns"] == table[2]["invoke_ns"]
    assert table[4]["counts_ns"] == table[4]["invoke_ns"]
    assert [row["final"] for row in table] == [False] * 6 + [True]


def test_a_commit_in_the_offsets_topic_counts_once_however_many_replicas_hold_it(rows: Rows) -> None:
    (row,) = [row for row in rows(commits, "committed_offsets") if row["source"] == "log"]
    assert (row["group"], row["topic"], row["partition"], row["offset"]) == ("g0", "orders", 0, 10)
    assert (row["log_partition"], row["log_offset"]) == (3, 8)


@case
def truncation(out: RunWriter) -> None:
    out.event(2, Truncate(topic="orders", partition=0, log_end_offset=9, to=4, high_watermark=6, leader_epoch=3,
                          reason="epoch", asked_epoch=2, answer_epoch=1, answer_end_offset=4,
                          latest_epoch=2, local_epoch=1, local_end_offset=5))  # fmt: skip


def test_a_truncation_keeps_what_was_asked_and_answered(rows: Rows) -> None:
    (row,) = rows(truncation, "truncations")
    assert (row["broker"], row["log_end_offset"], row["to_offset"], row["high_watermark"]) == (2, 9, 4, 6)
    assert (row["asked_epoch"], row["answer_epoch"], row["answer_end_offset"]) == (2, 1, 4)
    assert (row["latest_epoch"], row["local_epoch"], row["local_end_offset"]) == (2, 1, 5)


@case
def a_compacted_topic(out: RunWriter) -> None:
    for policy in ("compact,delete", "delete"):
        out.znode("/config/topics/orders", f'{{"version":1,"config":{{"cleanup.policy":"{policy}"}}}}')
    out.znode("/config/topics/orders", '{"version":1,"config":{}}')
    out.event(2, Compaction(topic="orders", partition=0, from_offset=0, until_offset=5))
    out.event(1, Compaction(topic="orders", partition=0, from_offset=5, until_offset=8))
    sent = ["a", "b", "a", "c", "", "", "b", "c", "a", "c"]
    for index, key in enumerate(sent):
        send(out, index, OpType.INVOKE, key=key)
        send(out, index, OpType.OK, offset=index, key=key)
    send(out, 10, OpType.INVOKE, key="d", partition=1)
    send(out, 10, OpType.OK, offset=0, key="d", partition=1)
    for offset, key, value in ((3, "c", "v3"), (6, "b", ""), (7, "d", "unacknowledged"), (8, "d", "v8")):
        hold(out, offset, key, value)
    out.operation("c0", OpKind.POLL, OpType.INVOKE, 0)
    twice = Record(topic="orders", partition=0, offset=4, value="v1", leader_epoch=0)
    out.operation("c0", OpKind.POLL, OpType.OK, 0, records=(twice,))


def hold(out: RunWriter, offset: int, key: str, value: str, producer_id: int = -1) -> None:
    out.writer(out.folder.replica_dump(1, "orders", 0)).write(
        ReplicaRecord(
            broker=1,
            topic="orders",
            partition=0,
            offset=offset,
            leader_epoch=0,
            timestamp_ms=0,
            key=key,
            value=value,
            digest="",
            producer_id=producer_id,
            producer_epoch=-1,
            sequence=-1,
        )
    )


@case
def a_compacted_topic_with_transactions_of_no_client(out: RunWriter) -> None:
    """Producer 7 aborts offset 0 and commits 2, 8 is open at 4; another partition, with the same, is not cleaned."""
    out.event(1, Compaction(topic="orders", partition=0, from_offset=0, until_offset=9))
    for offset, producer_id in ((0, 7), (2, 7), (4, 8)):
        hold(out, offset, f"k{offset}", f"v{offset}", producer_id)
    for partition in (0, 1):
        place: dict[str, Any] = {
            "broker": 1,
            "topic": "orders",
            "partition": partition,
            "leader_epoch": 0,
            "timestamp_ms": 0,
        }
        dump = out.writer(out.folder.replica_dump(1, "orders", partition))
        for offset, producer_id in ((0, 7), (2, 7), (4, 8)):
            written: dict[str, Any] = {
                "first_offset": offset,
                "last_offset": offset,
                "producer_id": producer_id,
                "first_sequence": 0,
            }
            dump.write(StoredBatch(**place, **written, producer_epoch=0))
        for offset, result in ((1, "abort"), (3, "commit")):
            ended: dict[str, Any] = {"offset": offset, "result": result, "producer_id": 7, "coordinator_epoch": 0}
            dump.write(StoredMarker(**place, **ended, producer_epoch=0))


def test_what_a_marker_aborts_may_be_gone_from_a_cleaned_log(rows: Rows) -> None:
    gone = rows(a_compacted_topic_with_transactions_of_no_client, "superseded", "offset")
    assert [(row["partition"], row["offset"], row["committed"]) for row in gone] == [(0, 0, True)]


def test_what_later_records_replace_below_the_end_of_cleaners_may_be_gone(rows: Rows) -> None:
    ranges = [
        (row["broker"], row["from_offset"], row["until_offset"]) for row in rows(a_compacted_topic, "compactions")
    ]
    assert sorted(ranges) == [(1, 5, 8), (2, 0, 5)]
    assert [row["compacted"] for row in rows(a_compacted_topic, "topic_configs", "zxid")] == [True, False, None]
    gone = rows(a_compacted_topic, "superseded", "offset")
    assert [(row["offset"], row["last_offset"], row["compacted_to"]) for row in gone] == [
        (0, 2, 8),
        (1, 6, 8),
        (3, 7, 8),
        (4, 6, 8),
        (6, 6, 8),
    ]


@case
def a_compacted_topic_that_lost_records_with_a_leader(out: RunWriter) -> None:
    out.event(1, Compaction(topic="orders", partition=0, from_offset=0, until_offset=20))
    keys = {"a": ["v0", "v1"], "b": ["v2", "v3"], "c": ["v4", "v5"], "d": ["v6", "0-null"], "e": ["v8", "v9", "v10"]}
    values = [(key, value) for key, written in keys.items() for value in written]
    for index, (key, value) in enumerate(values):
        first = value == keys[key][0]
        send(out, index, OpType.INVOKE, value, key=key, acks=-1 if first else 1)
        send(out, index, OpType.OK, value, offset=index, key=key, acks=-1 if first else 1)
    hold(out, 1, "a", "v1")
    out.operation("c0", OpKind.POLL, OpType.INVOKE, 0)
    seen = Record(topic="orders", partition=0, offset=3, value="v3", leader_epoch=0)
    out.operation("c0", OpKind.POLL, OpType.OK, 0, records=(seen,))


def test_a_record_that_was_lost_with_its_leader_replaces_none_for_certain(rows: Rows) -> None:
    gone = rows(a_compacted_topic_that_lost_records_with_a_leader, "superseded", "offset")
    assert [(row["offset"], row["last_offset"], row["committed"]) for row in gone] == [
        (0, 1, True),  # the record that replaces it is in a log
        (2, 3, True),  # it was read
        (4, 5, False),  # it is neither, and only its leader had it
        (6, 7, True),  # it is a tombstone, which cleaners remove
        (7, 7, True),  # a tombstone
        (8, 10, False),
        (9, 10, False),
    ]


@case
def damaged_evidence(out: RunWriter) -> None:
    out.event(1, leads(0))
    out.event(1, leads(1))
    out.skip_seq(1)
    out.event(1, leads(2))
    out.raw(out.folder.state_change_log(1), '{"seq":')
    send(out, 0, OpType.INVOKE)
    out.raw(out.folder.operations_of("p0"), "\x00\x00\nrubbish\n")


def test_unreadable_and_missing_lines_are_counted_a_file(rows: Rows) -> None:
    table = rows(damaged_evidence, "evidence")
    assert {(row["subject"], row["problem"].split(",")[0], row["count"]) for row in table} == {
        ("brokers/1/state-change.jsonl", "torn last line", 1),
        ("brokers/1/state-change.jsonl", "missing lines", 1),
        ("operations/p0.jsonl", "unreadable lines", 2),
    }


def test_lines_before_a_bad_one_are_not_lost(rows: Rows) -> None:
    assert [row["leader_epoch"] for row in rows(damaged_evidence, "leadership_claims", "seq")] == [0, 1, 2]
    assert len(rows(damaged_evidence, "sends")) == 1


@case
def duplicated_evidence(out: RunWriter) -> None:
    """Files that hold everything twice, one that is there under two names, a process whose beginnings were lost."""
    out.event(1, leads(0))
    out.event(1, leads(1))
    send(out, 0, OpType.INVOKE)
    send(out, 0, OpType.OK)
    out.operation("c0", OpKind.POLL, OpType.INVOKE, 0)
    out.operation("c0", OpKind.POLL, OpType.OK, 0)
    out.znode("/controller_epoch", "0")
    dump = ReplicaState(broker=1, topic="orders", partition=0, log_start_offset=0, log_end_offset=0, high_watermark=0,
                        recovery_point=0, leader_epochs=(), damage="")  # fmt: skip
    out.writer(out.folder.replica_dump(1, "orders", 0)).write(dump)
    for path in [path for paths in out.folder.evidence().values() for path in paths]:
        path.write_text(path.read_text(encoding="utf-8") * 2, encoding="utf-8")
    out.event(2, leads(0))
    out.event(2, leads(1))
    log = out.folder.state_change_log(2)
    rotated, copied = (log.with_name(f"state-change-{name}.jsonl") for name in ("rotated", "copied"))
    one, two = log.read_text(encoding="utf-8").splitlines(keepends=True)
    log.write_text(one, encoding="utf-8")
    rotated.write_text(two, encoding="utf-8")
    copied.write_text(two, encoding="utf-8")
    with out.folder.operations_of("c1").open("w", encoding="utf-8") as file:
        file.write('{"index":2,"process":"c1","kind":"poll","type":"ok","time_ns":1}\n')


def test_lines_that_are_there_twice_are_noticed_whatever_they_tell_of(rows: Rows) -> None:
    table = {(row["subject"], row["problem"], row["count"]) for row in rows(duplicated_evidence, "evidence")}
    assert table == {
        ("brokers/1/state-change.jsonl", DUPLICATED, 2),
        ("brokers/2/state-change-copied.jsonl", DUPLICATED, 1),
        ("operations of p0", DUPLICATED, 2),
        ("operations/c0.jsonl", DUPLICATED, 2),
        ("operations/c1.jsonl", MISSING, 3),
        ("zookeeper.jsonl", DUPLICATED, 1),
        ("replicas/1/replica-orders-0.jsonl", DUPLICATED, 1),
    }


@case
def values_sent_twice(out: RunWriter) -> None:
    for index, value in enumerate(["b", "a", "a", "b", "c"]):
        send(out, index, OpType.INVOKE, value)


def test_value_ids_that_are_not_unique_are_remarked(rows: Rows) -> None:
    (row,) = rows(values_sent_twice, "evidence")
    assert (row["subject"], row["problem"], row["count"]) == ("value ids", "sent more than once, first a", 2)


REGISTERED = [(1, 11), (2, 12)]


def _decided(online: list[int]) -> Election:
    result = PartitionState(leader=1, leader_epoch=0, isr=[1], zk_version=0, controller_epoch=1)
    return Election(
        topic="orders",
        partition=0,
        strategy="initialize",
        trigger="test",
        controller_epoch=1,
        previous=None,
        online=online,
        shutting_down=[],
        assigned=[1, 2],
        profile="2.5",
        unclean_allowed=False,
        unclean=False,
        result=result,
        error="",
    )


def _sent(live: list[int], queued_ms: float) -> ControlSend:
    return ControlSend(
        api="UpdateMetadata",
        to=2,
        correlation_id=1,
        controller_epoch=1,
        target_broker_epoch=12,
        partitions=[],
        live_brokers=live,
        queued_ms=queued_ms,
        made_seq=0,
    )


@case
def controllers_decide(out: RunWriter) -> None:
    def read(*registrations: tuple[int, int]) -> RegistrationsRead:
        return RegistrationsRead(controller_epoch=1, registrations=[*registrations])

    lines = [
        ControllerElected(controller_epoch=1, epoch_zk_version=1),
        _decided([7]),  # before anything was read
        read(*REGISTERED),
        _decided([1, 2]),
        ControllerReady(controller_epoch=1),
        read((1, 11), (3, 13)),
        _decided([1, 2, 3]),
        ControllerEvent(name="BrokerChange", queued_ms=0.0, duration_ms=3_600_000.0, outcome="ok"),
        _decided([1, 3]),
        _sent([1, 2], queued_ms=3_600_000.0),  # made before anything was read
        _sent([1, 3], queued_ms=0.0),
        read((1, 11)),
        read((3, 14)),
        _decided([3]),  # what was read before may have been used in part
    ]
    for line in lines:
        out.event(1, line)
        out.clock.tick()


def test_a_decision_has_what_its_controller_had_read(rows: Rows) -> None:
    found = sorted(rows(controllers_decide, "beliefs"), key=lambda row: row["seq"])
    assert [(row["alive"], row["certain"], sorted(row["possible"])) for row in found] == [
        ([1, 2], [1, 2], [1, 2]),
        ([1, 2, 3], [1], [1, 2, 3]),
        ([1, 3], [1, 3], [1, 3]),
        ([1, 3], [1, 3], [1, 3]),
    ]


def test_a_pass_has_what_its_controller_found(rows: Rows) -> None:
    table = rows(controllers_decide, "controller_passes")
    assert {(row["name"], *row["brokers"]) for row in table} == {("failover", 1, 2), ("BrokerChange", 1, 3)}
    (failover,) = (row for row in table if row["name"] == "failover")
    assert failover["time_ns"] - failover["began_ns"] == 4 * MS, "it began with the election, four lines before"


def _loaded(start: int, *, clean: bool) -> Recovery:
    return Recovery(
        topic="orders",
        partition=0,
        clean=clean,
        log_start_offset=start,
        log_end_offset=9,
        recovery_point=7,
        high_watermark=8,
        truncated_bytes=0,
    )


@case
def a_broker_starts_again(out: RunWriter) -> None:
    begins = BrokerStart(config_digest="d", clean_marker=False, planted_bugs=[])
    lives: list[list[Event]] = [
        [
            begins,
            _loaded(0, clean=False),
            LogStart(topic="orders", partition=0, old=0, new=3, high_watermark=8, cause="x"),
        ],
        [begins],  # it ends before it has loaded its logs
        [begins, _loaded(2, clean=False), LogsClose()],
        [begins, _loaded(2, clean=True)],
    ]
    for number, life in enumerate(lives):
        for line in life:
            out.event(1, line, life=f"life-{number}")
            out.clock.tick()


def test_a_loaded_log_has_what_the_last_life_with_logs_left(rows: Rows) -> None:
    found = sorted(rows(a_broker_starts_again, "log_loads"), key=lambda row: row["incarnation"])
    assert [(row["previous_incarnation"], row["closed"], row["previous_log_start_offset"]) for row in found] == [
        (None, None, None),
        ("life-0", False, 3),
        ("life-2", True, 2),
    ]


@case
def leaders_of_a_quorum(out: RunWriter) -> None:
    """Broker 1 leads twice and resigns once, as other lines follow; broker 2 says that it was elected by ZooKeeper."""
    for life, line in (
        ("a", ControllerElected(controller_epoch=1, epoch_zk_version=None)),
        ("a", ControllerResigned(controller_epoch=1, reason="")),
        ("a", ControllerElected(controller_epoch=4, epoch_zk_version=None)),
        ("a", LogsClose()),
        ("b", LogsClose()),
    ):
        out.clock.tick()
        out.event(1, line, life=life)
    out.event(2, ControllerElected(controller_epoch=9, epoch_zk_version=9))


def test_a_leader_of_a_quorum_leads_until_it_resigns_or_says_nothing_more(rows: Rows) -> None:
    first, second = rows(leaders_of_a_quorum, "quorum_terms", "controller_epoch")
    tick = second["time_ns"] - first["led_until_ns"]
    assert [(row["broker"], row["controller_epoch"], row["seq"]) for row in (first, second)] == [(1, 1, 0), (1, 4, 2)]
    assert (first["resigned"], second["resigned"]) == (True, False)
    assert first["led_until_ns"] - first["time_ns"] == second["led_until_ns"] - second["time_ns"] == tick > 0


def acts_on(*properties: str, hosted: bool = True) -> ConfigurationInForce:
    return ConfigurationInForce(topic="orders", partition=0, hosted=hosted, properties=[*properties])


@case
def configurations_that_change(out: RunWriter) -> None:
    """Broker 1 acts on three configurations of a topic, and gives it up; broker 2 acts on one until its last line."""
    for broker in (1, 2):
        out.event(broker, BrokerStart(config_digest="d", clean_marker=False, planted_bugs=[]))
    out.znode(
        "/config/topics/orders", '{"version":1,"config":{"cleanup.policy":" delete,compact","retention.ms":"07"}}'
    )
    out.clock.tick()
    out.event(1, acts_on("retention.ms=7", "cleanup.policy=compact,delete"))
    out.event(2, acts_on("retention.ms=8"))
    out.clock.tick()
    out.event(1, acts_on("retention.ms=9"))
    out.znode("/config/topics/orders", '{"version":1,"config":{"compression.type":"gzip"}}')
    out.clock.tick()
    out.znode("/config/changes/config_change_1", '{"version":2,"entity_path":"topics/other"}')
    out.clock.tick()
    out.znode("/config/changes/config_change_2", '{"version":2,"entity_path":"topics/orders"}')
    out.znode("/config/brokers/<default>", '{"version":1,"config":{"log.retention.ms":"many","retention.ms":"5"}}')
    out.clock.tick()
    out.event(1, acts_on(hosted=False))
    out.event(2, LogsClose())
    out.znode("/config/topics/orders", None)


def test_a_configuration_is_in_force_until_the_next_line_or_the_last_one(rows: Rows) -> None:
    began_ns = 1_000 * MS
    table = rows(configurations_that_change, "configurations")
    assert {row["began_ns"] for row in table} == {began_ns}
    assert sorted(
        (
            row["broker"],
            row["property"],
            row["value"],
            *((row[f"{at}_ns"] - began_ns) / MS for at in ("time", "until")),
        )
        for row in table
    ) == [
        (1, "cleanup.policy", "compact,delete", 1, 2),
        (1, "retention.ms", "7", 1, 2),
        (1, "retention.ms", "9", 2, 5),
        (2, "retention.ms", "8", 1, 5),
    ]


def test_versions_of_configurations_end_and_are_told_of(rows: Rows) -> None:
    began_ns = 1_000 * MS

    def since_ms(instant_ns: int | None) -> float | None:
        return None if instant_ns is None else (instant_ns - began_ns) / MS

    def versions(entity: str, name: str) -> list[tuple[object, ...]]:
        table = rows(configurations_that_change, "property_versions")
        of_it = [row for row in table if (row["entity"], row["property"]) == (entity, name)]
        return sorted(
            (
                (row["value"], *(since_ms(row[f"{at}_ns"]) for at in ("time", "until", "noted")), row["ended_by"])
                for row in of_it
            ),
            key=lambda version: -1 if version[1] is None else version[1],
        )

    assert versions("topics/orders", "retention.ms") == [
        (None, None, 0, 4, "create"),
        ("7", 0, 2, 4, "set"),
        (None, 2, 5, None, "delete"),
        (None, 5, None, None, None),
    ]
    assert [value for value, *_ in versions("topics/orders", "cleanup.policy")] == [None, "compact,delete", None, None]
    assert [value for value, *_ in versions("topics/orders", "compression.type")] == [None, None, "gzip", None]
    assert versions("brokers/<default>", "retention.ms") == [
        (None, None, 4, None, "create"),
        (None, 4, None, None, None),
    ]
