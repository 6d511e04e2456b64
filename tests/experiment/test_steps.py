"""Steps in virtual time, on simulated brokers: what is done, in which order, and what becomes of the rest."""

from collections.abc import Mapping

import pytest

from harness.scenario.file import load_scenario
from harness.scenario.model import Scenario
from harness.scenario.source import set_option
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.history import OpKind, OpType

SEED = 3


def stepped(*steps: dict[str, object], **others: object) -> SimulatedHistory:
    """Return what comes of steps with brokers B, the controller, A, the leader of orders-0, and C."""
    data = {
        "name": "steps",
        "description": "One thing after the other",
        "driver": "simulated",
        "roles": {"B": "controller", "A": "one", "C": "one"},
        "topics": [{"name": "orders", "partitions": 1, "replicas": ["A", "C", "B"]}],
        "workloads": [{"kind": "produce-consume", "parameters": {"producers": 0}}],
        "duration_s": 10,
        "steps": list(steps),
        **others,
    }
    return simulate(Scenario.model_validate(data), SEED)


def journaled(history: SimulatedHistory) -> list[str]:
    """Return the actions and their targets: each broker by the order of its first hit."""
    brokers: list[str] = []
    lines = []
    for entry in history.journal:
        brokers += [target for target in entry.targets if target not in brokers]
        lines.append(f"{entry.step} {entry.fault} {','.join(str(brokers.index(target)) for target in entry.targets)}")
    return lines


def test_what_is_injected_stays_in_force_until_it_is_healed_or_the_steps_end() -> None:
    history = stepped(
        {"inject": "pause", "target": "C"},
        {"inject": "kill", "target": "C", "parameters": {"end_session": True}},
        {"inject": "kill", "target": "A", "parameters": {"end_session": True}},
        {"when": "B leads orders-0"},
        {"heal": "C"},
    )
    assert history.remarks == []
    assert journaled(history) == [
        "intended pause 0", "injected pause 0", "confirmed pause 0",
        "intended kill 0", "injected kill 0", "confirmed kill 0",
        "intended kill 1", "injected kill 1", "confirmed kill 1",
        "healed kill 0", "healed pause 0",
        "healed kill 1",
    ]  # fmt: skip


def test_a_writer_sends_what_its_step_says_and_all_is_acknowledged_before_the_next() -> None:
    history = stepped({"write": 30, "parameters": {"acks": 1}}, {"write": 20})
    sends = {
        process: [each for each in operations if each.kind is OpKind.SEND]
        for process, operations in history.operations.items()
        if process.startswith("step-")
    }
    ends = {process: [each for each in each_sends if each.type is OpType.OK] for process, each_sends in sends.items()}
    assert {process: len(each) for process, each in ends.items()} == {"step-1-producer-1": 30, "step-2-producer-1": 20}
    assert max(each.time_ns for each in sends["step-1-producer-1"]) < sends["step-2-producer-1"][0].time_ns
    assert {each.acks for each in sends["step-1-producer-1"] if each.type is OpType.INVOKE} == {1}


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        pytest.param(
            [{"when": "C leads orders-0", "within_s": 2}],
            "step 1 of 2 could not be taken: C leads orders-0: not within 2 s",
            id="a condition does not come true",
        ),
        pytest.param(
            [{"hold": "M", "target": "A", "parameters": {"apis": ["EndTxn"]}, "within_s": 3}, {"release": "M"}],
            "step 2 of 3 could not be taken: no message M was caught",
            id="nothing to release",
        ),
        pytest.param(
            [
                {
                    "ask": "Heartbeat",
                    "version": 3,
                    "target": "A",
                    "parameters": {"group_id": "g", "member_id": "m"},
                    "expect": {"error_code": "NONE"},
                    "within_s": 3,
                }
            ],
            "step 1 of 2 could not be taken: the answer to Heartbeat is not as expected: error_code is",
            id="another answer",
        ),
        pytest.param(
            [{"ask": "DescribeQuorum", "version": 0, "target": "A", "expect": {}, "within_s": 3}],
            "step 1 of 2 could not be taken: DescribeQuorum could not be sent: broker",
            id="a controller of a quorum where there is none",
        ),
        pytest.param(
            [{"inject": "kill", "target": "A"}, {"inject": "kill", "target": "A"}],
            "step 2 of 3 could not be taken: kill A: broker",
            id="a fault without targets",
        ),
        pytest.param(
            [{"inject": "kill", "target": "A, B, C"}, {"write": 5, "within_s": 3}],
            "step 2 of 3 could not be taken: 5 records acknowledged: not within 3 s; last saw 0",
            id="no acknowledgement",
        ),
    ],
)
def test_a_step_that_cannot_be_taken_is_the_last(steps: list[dict[str, object]], why: str) -> None:
    history = stepped(*steps, {"inject": "pause", "target": "B"})
    assert any(str(remark.text).startswith(why) and remark.forbids_pass for remark in history.remarks), history.remarks
    assert all(entry.fault != "pause" for entry in history.journal)
    healed = [entry.injection for entry in history.journal if entry.step == "healed"]
    assert sorted(healed) == sorted({entry.injection for entry in history.journal})


def test_messages_are_held_until_a_step_releases_them() -> None:
    history = stepped(
        {"hold": "M", "target": "B", "parameters": {"apis": ["LeaderAndIsr"], "topic": "orders", "sides": ["peers"],
                                                    "direction": "outbound", "count": 2}},
        {"inject": "kill", "target": "A", "parameters": {"end_session": True}},
        {"when": "M is on its way"},
        {"when": "leader epoch of orders-0 is 1"},
        {"release": "M"},
        {"when": "C logs become_leader of orders-0"},
        {"write": 5},
    )  # fmt: skip
    assert history.remarks == []
    (held,) = [entry for entry in history.journal if (entry.fault, entry.step) == ("intercept", "confirmed")]
    (message,) = held.state["messages"]
    assert (message["api"], message["let_go_s"], message["answered_s"]) == ("LeaderAndIsr", None, None)
    (let_go,) = [entry for entry in history.journal if (entry.fault, entry.step) == ("intercept", "healed")]
    assert "let go at" in let_go.detail
    assert "answered at" in let_go.detail


def test_an_answer_is_lost_and_its_effect_is_there() -> None:
    history = stepped(
        {"lose_answer": "M", "target": "A", "parameters": {"apis": ["Produce"], "sides": ["clients"]}},
        {"write": 5, "parameters": {"request_timeout_ms": 1000}, "within_s": 30},
    )
    assert history.remarks == []
    (lost,) = [entry for entry in history.journal if (entry.fault, entry.step) == ("intercept", "confirmed")]
    assert "lose-answer of Produce" in lost.detail
    assert "answered at" in lost.detail


JOIN = {"group_id": "g", "session_timeout_ms": 6000, "rebalance_timeout_ms": 6000, "protocol_type": "consumer"}
RANGE = [{"name": "range", "metadata": ""}]


def asked(api: str, version: int, fields: Mapping[str, object], **others: object) -> dict[str, object]:
    """Return the step that sends a request about the group g."""
    return {"ask": api, "version": version, "target": "coordinator(g)", "parameters": fields, **others}


def requests_in(history: SimulatedHistory) -> list[str]:
    """Return the requests of the steps, in the order in which they were sent."""
    sent = history.operations.get("steps", [])
    return [each.mode.split()[0] for each in sent if each.type is OpType.INVOKE]


def test_requests_make_a_member_of_a_group_call_by_call() -> None:
    member = {"group_id": "g", "generation_id": "$G", "member_id": "$M"}
    history = stepped(
        asked("JoinGroup", 5, {**JOIN, "protocols": RANGE}, expect={"error_code": "MEMBER_ID_REQUIRED"},
              keep={"M": "member_id"}),
        asked("JoinGroup", 5, {**JOIN, "protocols": RANGE, "member_id": "$M"}, later="J"),
        {"when": "group g is PreparingRebalance"},
        {"answer": "J", "expect": {"error_code": 0, "leader": "$M", "members": [{"member_id": "$M"}]},
         "keep": {"G": "generation_id"}},
        asked("SyncGroup", 3, {**member, "assignments": [{"member_id": "$M", "assignment": "mine"}]},
              expect={"error_code": "NONE", "assignment": "mine"}),
        {"when": "group g is Stable"},
        asked("Heartbeat", 3, member, expect={"error_code": 0}, times=3, every_s=1),
        asked("LeaveGroup", 3, {"group_id": "g", "members": [{"member_id": "$M"}]}, expect={"error_code": 0}),
        asked("Heartbeat", 3, member, expect={"error_code": "UNKNOWN_MEMBER_ID"}),
    )  # fmt: skip
    assert history.remarks == []
    assert requests_in(history)[-8:] == ["JoinGroup", "JoinGroup", "SyncGroup", *["Heartbeat"] * 3, "LeaveGroup",
                                         "Heartbeat"]  # fmt: skip


def test_an_answer_that_breaks_a_promise_is_recorded_and_the_steps_go_on() -> None:
    of_nobody = {"group_id": "g", "generation_id": 1, "member_id": "gone"}
    allowed = {"error_code": ["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"]}
    history = stepped(
        asked("Heartbeat", 3, of_nobody, promised=allowed),
        asked("Heartbeat", 3, of_nobody, promised={"error_code": ["NONE", "REBALANCE_IN_PROGRESS"]}, times=2),
        asked("Heartbeat", 3, of_nobody, expect={}),
    )
    assert history.remarks == []
    ends = [each for each in history.operations["steps"] if each.type is OpType.OK and each.mode.startswith("Heart")]
    served = [(each.key != "", each.value) for each in ends if '"error_code": 25' in each.error]
    wrong = "error_code is UNKNOWN_MEMBER_ID, not NONE and error_code is UNKNOWN_MEMBER_ID, not REBALANCE_IN_PROGRESS"
    assert served == [(True, ""), (True, wrong), (True, wrong), (False, "")]


def test_a_promise_is_broken_when_the_broker_cannot_serve_within_the_time_limit() -> None:
    heartbeat = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    history = stepped(
        {"hold": "M", "target": "A, B, C", "parameters": {"apis": ["Heartbeat"], "sides": ["clients"], "count": 100,
                                                          "action": "error", "error": "NOT_COORDINATOR"}},
        asked("Heartbeat", 3, heartbeat, promised={"error_code": "NONE"}, within_s=2),
        {"release": "M"},
    )  # fmt: skip
    assert history.remarks == []
    ends = [each for each in history.operations["steps"] if each.type is OpType.OK]
    assert len(ends) > 2
    assert {each.value for each in ends[:-1]} == {""}
    assert ends[-1].value == "error_code is NOT_COORDINATOR, not NONE"


def test_a_transaction_is_begun_by_requests_and_awaited() -> None:
    producer = {"transactional_id": "t", "producer_id": "$P", "producer_epoch": "$E"}
    batch = {"producer": "$P", "epoch": "$E", "sequence": 0, "attributes": 16, "records": [["k", "v", 0]]}
    partitions = [{"name": "orders", "partitions": [0]}]
    history = stepped(
        {"ask": "InitProducerId", "version": 1, "target": "transaction-coordinator(t)",
         "parameters": {"transactional_id": "t", "transaction_timeout_ms": 60000}, "expect": {"error_code": 0},
         "keep": {"P": "producer_id", "E": "producer_epoch"}},
        {"ask": "AddPartitionsToTxn", "version": 1, "target": "transaction-coordinator(t)",
         "parameters": {f"v3_and_below_{name}": value for name, value in producer.items()}
         | {"v3_and_below_topics": partitions}, "expect": {}},
        {"when": "transaction t is Ongoing"},
        {"ask": "Produce", "version": 7, "target": "leader(orders,0)",
         "parameters": {"transactional_id": "t", "acks": -1, "timeout_ms": 5000, "topic_data": [
             {"name": "orders", "partition_data": [{"index": 0, "records": [batch]}]}]},
         "expect": {"responses": [{"partition_responses": [{"error_code": 0}]}]}},
        {"ask": "EndTxn", "version": 1, "target": "transaction-coordinator(t)",
         "parameters": {**producer, "committed": True}, "expect": {"error_code": 0}},
        {"when": "transaction t is CompleteCommit"},
    )  # fmt: skip
    assert history.remarks == []


def test_a_group_is_awaited() -> None:
    loads = [{"kind": "produce-consume", "parameters": {"producers": 1}}, {"kind": "consume-group"}]
    history = stepped({"when": "group group-1 is Stable", "within_s": 60}, workloads=loads)
    assert history.remarks == []


def test_roles_wait_for_the_first_controller() -> None:
    without_controller_at_first = 5
    history = simulate(load_scenario("kafka-7164", [set_option("driver=simulated")]), without_controller_at_first)
    assert history.remarks == []


def test_replicas_are_where_the_roles_are() -> None:
    history = stepped(
        {"inject": "kill", "target": "A", "parameters": {"end_session": True}}, {"when": "C leads orders-0"}
    )
    assert history.remarks == []


@pytest.mark.whole
@pytest.mark.rotating(6)
@pytest.mark.parametrize(
    "name",
    [
        "kafka-10101",
        "kafka-10284",
        "kafka-10706",
        "kafka-12890",
        "kafka-13091",
        "kafka-13141",
        "kafka-13194",
        "kafka-13727",
        "kafka-14055",
        "kafka-14190",
        "kafka-16541",
        "kafka-17754",
        "kafka-20734",
        "kafka-6082",
        "kafka-6119",
        "kafka-7128",
        "kafka-7164",
        "kafka-9144",
        "kafka-9600",
        "kip-101",
        "kip-279",
        "kip-380",
        "kip-890",
        "markers-before-metadata",
    ],
)
def test_the_steps_of_a_published_bug_are_taken_to_their_end(name: str) -> None:
    history = simulate(load_scenario(name, [set_option("driver=simulated")]), SEED)
    assert history.remarks == []
    assert {entry.step for entry in history.journal} == {"intended", "injected", "confirmed", "healed"}
