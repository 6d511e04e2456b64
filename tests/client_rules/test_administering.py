"""What administrators ask for: topics of their own that they know of, and nothing that takes records of the load."""

import re
from collections.abc import Collection

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.client_rules.administering import (
    AT_ONCE,
    IN_TRANSACTIONS,
    OF_OWN_TOPICS,
    OWN_TOPICS,
    TIMEOUTS_MS,
    Action,
    Administering,
    Request,
)
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpType
from harness.store.recording import Recorder


def administering(
    *,
    configures: Collection[str] = (),
    actions: Collection[Action] = frozenset(Action),
    seed: int = 3,
    transacts: bool = True,
) -> tuple[Administering, list[Operation]]:
    written: list[Operation] = []
    plan = ClientPlan(
        process="administrator-1",
        workload="administer",
        role="administrator",
        bootstrap_servers="",
        topics={"orders": 2},
        seed=seed,
        parameters={"interval_s": 0.1, "configures": [*configures], "transacts": transacts},
    )
    return Administering(plan, Recorder(plan.process, written.append, lambda: 0), actions), written


def carried_out(rules: Administering, count: int) -> list[Request]:
    made = []
    for _ in range(count):
        request = rules.next()
        rules.done(request)
        made.append(request)
    return made


def test_every_action_is_asked_for_and_topics_of_its_own_alone_change_their_partitions() -> None:
    rules, written = administering(configures=["orders"])
    requests = carried_out(rules, 600)
    assert {request.action for request in requests} == set(Action)
    changed = {request.topic for request in requests if request.action in OF_OWN_TOPICS}
    assert all(re.fullmatch(r"administrator-1([-._])topic\1\d+", topic) for topic in changed)
    assert "orders" in {request.topic for request in requests if request.action is Action.CONFIGURE_TOPIC}
    assert [each.mode for each in written[::2]] == [request.action for request in requests]
    assert {each.type for each in written[1::2]} == {OpType.OK}


def test_nothing_is_asked_for_in_transactions_unless_the_scenario_says_so() -> None:
    asked = {request.action for request in carried_out(administering(transacts=False)[0], 600)}
    assert asked == set(Action) - IN_TRANSACTIONS


def test_some_requests_leave_the_cluster_less_time_than_it_may_need() -> None:
    requests = carried_out(administering()[0], 600)
    assert {request.timeout_ms for request in requests} == {None, *TIMEOUTS_MS}


def test_a_topic_that_moves_is_asked_about_again_at_once() -> None:
    rules, _ = administering()
    followed = []
    for _ in range(2000):
        request = rules.next()
        rules.done(request)
        if rules.pause_s == 0.0:
            assert request.action is Action.REASSIGN
            following = rules.next()
            rules.done(following)
            assert following.topic == request.topic
            followed.append(following.action)
        else:
            assert rules.pause_s == 0.1
    assert set(followed) == set(AT_ONCE)


def test_some_names_differ_from_another_one_by_dots_and_underscores_and_each_is_asked_for_once() -> None:
    rules, _ = administering()
    known: set[str] = set()
    collisions = []
    for _ in range(2000):
        request = rules.next()
        if request.action is not Action.CREATE_TOPIC:
            rules.done(request)
            continue
        assert request.topic not in known
        if request.topic.translate(str.maketrans("._", "_.")) in known - {request.topic}:
            collisions.append(request.topic)
            rules.refused(request, "INVALID_TOPIC_EXCEPTION", ErrorCode.INVALID_TOPIC_EXCEPTION)
        else:
            rules.done(request)
        known.add(request.topic)
    assert {"." in name for name in collisions} == {True, False}


def test_a_policy_is_appended_to_topics_of_its_own_and_only_tried_for_brokers() -> None:
    rules, _ = administering(configures=["orders"])
    appended = [request for request in carried_out(rules, 1500) if request.appends]
    of_topics = {request.topic for request in appended if request.action is Action.CONFIGURE_TOPIC}
    assert of_topics
    assert "orders" not in of_topics
    of_brokers = [request for request in appended if request.action is not Action.CONFIGURE_TOPIC]
    assert of_brokers
    assert all(request.tried for request in of_brokers)


def test_one_seed_makes_the_same_requests() -> None:
    one, other, third = (carried_out(administering(seed=seed)[0], 50) for seed in (3, 3, 4))
    assert one == other != third


def test_a_topic_is_created_once_and_grows_until_it_is_deleted() -> None:
    rules, _ = administering()
    partitions: dict[str, int] = {}
    names = set()
    for request in carried_out(rules, 600):
        if request.tried:
            continue
        if request.action is Action.CREATE_TOPIC:
            assert request.topic not in names
            assert len(partitions) < OWN_TOPICS
            names.add(request.topic)
            partitions[request.topic] = request.partitions
        elif request.action is Action.ADD_PARTITIONS:
            assert request.partitions == partitions[request.topic] + 1
            partitions[request.topic] += 1
        elif request.action is Action.DELETE_TOPIC:
            del partitions[request.topic]
        elif request.action in (Action.REASSIGN, Action.CANCEL_REASSIGNMENT, Action.WRITE):
            assert 0 <= request.partition < partitions[request.topic]


@pytest.mark.parametrize(
    ("action", "code", "exists"),
    [
        pytest.param(Action.CREATE_TOPIC, 36, True, id="a topic that is there is its own"),
        pytest.param(Action.CREATE_TOPIC, 41, False, id="a refused topic is not there"),
        pytest.param(Action.DELETE_TOPIC, 3, False, id="a topic that is gone is forgotten"),
        pytest.param(Action.DELETE_TOPIC, 41, True, id="a topic that is not deleted stays, as another broker controls"),
    ],
)
def test_errors_say_which_topics_there_are(action: Action, code: int, exists: bool) -> None:
    rules, written = administering(actions=[Action.CREATE_TOPIC, Action.DELETE_TOPIC])
    request = rules.next()
    while request.action is not action or request.tried:
        rules.done(request)
        request = rules.next()
    rules.refused(request, "refused", code)
    assert (written[-1].type, written[-1].error) == (OpType.FAIL, "refused")
    assert (request.topic in rules.own) == exists


def test_what_is_not_answered_is_unknown() -> None:
    rules, written = administering()
    rules.unanswered(rules.next(), "timed out")
    assert (written[-1].type, written[-1].error) == (OpType.INFO, "timed out")


def test_a_topic_may_be_there_whose_creation_is_not_answered() -> None:
    rules, _ = administering(actions=[Action.CREATE_TOPIC])
    request = rules.next()
    while request.tried:
        request = rules.next()
    rules.unanswered(request, "timed out")
    assert rules.own == {request.topic: request.partitions}


def test_partitions_that_were_added_without_an_answer_are_counted_when_adding_them_again_is_refused() -> None:
    rules, _ = administering(actions=[Action.CREATE_TOPIC, Action.ADD_PARTITIONS])
    request = rules.next()
    while request.action is not Action.ADD_PARTITIONS:
        rules.done(request)
        request = rules.next()
    had = rules.own[request.topic]
    rules.unanswered(request, "timed out")
    assert rules.own[request.topic] == had
    rules.refused(request, "Topic already has so many.", ErrorCode.INVALID_PARTITIONS)
    assert rules.own[request.topic] == had + 1
