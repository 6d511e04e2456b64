"""Members of groups in virtual time: they share partitions, survive what is done to them, and miss nothing."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.events import Compaction, GroupStateChange, OffsetCommit
from harness.scenario.file import load_scenario
from harness.scenario.source import options
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.history import Operation, OpKind, OpType
from harness.values import OFFSETS_TOPIC

ZOMBIE, KILLED = "w1-group-1-member-2", "w1-group-2-member-2"
SEEDS = range(1, 4)


@cache
def history(seed: int) -> SimulatedHistory:
    return simulate(load_scenario("groups"), seed)


def of_members(seed: int) -> Iterator[Operation]:
    for process, operations in history(seed).operations.items():
        if "member" in process:
            yield from operations


def test_one_seed_is_one_history() -> None:
    assert simulate(load_scenario("groups"), 1).digest() == history(1).digest() != history(2).digest()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_acknowledged_record_is_read_by_both_groups(seed: int) -> None:
    sent = {
        (each.topic, each.partition, each.offset)
        for operations in history(seed).operations.values()
        for each in operations
        if each.kind is OpKind.SEND and each.type is OpType.OK
    }
    read: defaultdict[str, set[tuple[str, int, int]]] = defaultdict(set)
    for each in of_members(seed):
        read[each.group] |= {(record.topic, record.partition, record.offset) for record in each.records}
    assert len(sent) > 500
    assert not [group for group in ("group-1", "group-2") if sent - read[group]]
    assert history(seed).remarks == []


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_is_given_what_another_one_has_in_that_generation(seed: int) -> None:
    owners = defaultdict(set)
    for each in of_members(seed):
        if each.kind is OpKind.ASSIGNED:
            owners[each.group, each.generation, each.topic, each.partition].add(each.member)
    assert len(owners) > 20
    assert {len(members) for members in owners.values()} == {1}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_process_numbers_its_operations_over_all_its_lives(seed: int) -> None:
    operations = history(seed).operations[KILLED]
    invoked = [each.index for each in operations if each.type is OpType.INVOKE]
    assert invoked == list(range(len(invoked)))
    assert len([each for each in operations if each.kind is OpKind.SUBSCRIBE and each.type is OpType.INVOKE]) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_member_that_was_frozen_for_longer_than_its_session_loses_what_it_owned(seed: int) -> None:
    operations = history(seed).operations[ZOMBIE]
    assert any(each.kind is OpKind.LOST for each in operations)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["manual", "automatic"])
def test_what_is_committed_was_handed_out_before(seed: int, mode: str) -> None:
    handed_out: defaultdict[str, set[tuple[str, int, int]]] = defaultdict(set)
    commits = 0
    for each in of_members(seed):
        handed_out[each.process] |= {(record.topic, record.partition, record.offset) for record in each.records}
        if each.kind is OpKind.COMMIT and each.type is OpType.INVOKE and each.mode == mode:
            commits += 1
            assert (each.topic, each.partition, each.offset - 1) in handed_out[each.process]
    assert commits > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_automatic_commits_go_on_beside_the_polls_and_are_made_of_what_is_given_back(seed: int) -> None:
    open_polls: defaultdict[str, bool] = defaultdict(bool)
    committed: dict[tuple[str, str, int], int] = {}
    beside = given_back = 0
    for each in of_members(seed):
        key = (each.process, each.topic, each.partition)
        if each.kind is OpKind.POLL:
            open_polls[each.process] = each.type is OpType.INVOKE
        elif each.kind is OpKind.COMMIT and each.mode == "automatic" and each.type is OpType.OK:
            committed[key] = each.offset
            beside += open_polls[each.process]
        elif each.kind is OpKind.REVOKED and each.type is OpType.OK and key in committed:
            given_back += committed[key] == each.offset
    assert beside > 20
    assert given_back > 0


def test_no_callback_comes_within_a_poll() -> None:
    open_polls = defaultdict(bool)
    for each in of_members(1):
        if each.kind is OpKind.POLL:
            open_polls[each.process] = each.type is OpType.INVOKE
        elif each.kind is OpKind.SUBSCRIBE:
            open_polls[each.process] = False  # of an earlier life, which ended within it
        elif each.kind in (OpKind.ASSIGNED, OpKind.REVOKED, OpKind.LOST):
            assert not open_polls[each.process]


def test_cleaners_take_what_groups_have_committed_before() -> None:
    light = simulate(load_scenario("tools/groups-light.yaml"), 1)
    events = [each.event for log in light.logs.values() for each in log.events]
    cleaned = [each for each in events if isinstance(each, Compaction) and each.topic == OFFSETS_TOPIC]
    assert len(cleaned) > 20
    assert light.remarks == []


def test_two_lives_of_an_instance_fence_each_other_again_and_again() -> None:
    doubled = simulate(load_scenario("tests/sweep/planted/static-member-not-fenced.yaml"), 1)
    fenced: defaultdict[str, list[Operation]] = defaultdict(list)
    for process, operations in doubled.operations.items():
        fenced[process] += [each for each in operations if each.error.startswith(ErrorCode.FENCED_INSTANCE_ID.name)]
    often = {process for process, errors in fenced.items() if len(errors) > 2}
    assert often == {"w1-group-1-member-1", "w1-group-1-member-3"}
    assert doubled.remarks == []


def test_a_member_that_leads_commits_what_it_keeps_before_it_has_assigned() -> None:
    source = "tests/sweep/planted/commits-while-completing.yaml"
    hasty = simulate(load_scenario(source, options("simulated", [], ["planted_bugs=[]"])), 1)
    events = [each.event for log in hasty.logs.values() for each in log.events]
    leaders = {(each.generation, each.group_leader) for each in events if isinstance(each, GroupStateChange)}
    commits = [each for each in events if isinstance(each, OffsetCommit)]
    hasty_ones = [each for each in commits if each.error == ErrorCode.REBALANCE_IN_PROGRESS]
    assert any((each.generation, each.member) in leaders for each in hasty_ones)
    assert any(each.error == ErrorCode.NONE for each in commits)
    assert hasty.remarks == []
