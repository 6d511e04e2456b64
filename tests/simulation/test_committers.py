"""Committers: whatever befalls the coordinator, what was acknowledged is read back, and a restart goes on from it."""

import asyncio
from itertools import pairwise

import pytest

from harness.simulation.cluster import SimulatedCluster
from harness.store.history import Operation, OpKind, OpType
from tests.simulation.test_clients import Story, ends, every_operation_ended, operations_of

LOAD = {"producers": 1, "consumers": 0, "committers": 1, "commit_interval_s": 0.1, "restart_interval_s": 1.0}
OFFSETS = "/brokers/topics/__consumer_offsets/partitions/0/state"


async def _nothing(cluster: SimulatedCluster) -> None:
    """An undisturbed cluster."""


def _coordinator(cluster: SimulatedCluster) -> int:
    data = cluster.ensemble.data(OFFSETS)
    return int(data.split(b'"leader":')[1].split(b",")[0])


async def _kill_the_coordinator(cluster: SimulatedCluster) -> None:
    killed = _coordinator(cluster)
    cluster[killed].kill()
    await asyncio.sleep(8)
    assert _coordinator(cluster) != killed
    assert await cluster[killed].start()


async def _pause_the_coordinator(cluster: SimulatedCluster) -> None:
    cluster[_coordinator(cluster)].pause(9.0)
    await asyncio.sleep(12)


async def _stop_the_coordinator(cluster: SimulatedCluster) -> None:
    stopped = _coordinator(cluster)
    assert await cluster[stopped].stop(30)
    assert await cluster[stopped].start()


STORIES = pytest.mark.parametrize(
    "story",
    [
        pytest.param(_nothing, id="undisturbed"),
        pytest.param(_kill_the_coordinator, id="the coordinator is killed"),
        pytest.param(_pause_the_coordinator, id="the coordinator is paused for longer than its session"),
        pytest.param(_stop_the_coordinator, id="the coordinator is shut down"),
    ],
)


def acknowledged_before(operations: list[Operation], read: Operation) -> int:
    """Return the highest position that was acknowledged before a read-back was asked for; -1 for none."""
    begun_ns = next(each.time_ns for each in operations if each.index == read.index)
    done = [each for each in operations if each.kind is OpKind.COMMIT and each.type is OpType.OK]
    return max((each.offset for each in done if each.time_ns <= begun_ns), default=-1)


@STORIES
def test_a_restart_reads_back_what_was_acknowledged_and_goes_on(story: Story) -> None:
    operations = operations_of(story, load=LOAD)
    assert every_operation_ended(operations)
    recorded = operations["committer-1"]
    read_back = [each for each in ends(operations, OpKind.FETCH_COMMITTED) if each.type is OpType.OK]
    assert len(read_back) > 4
    assert all(each.offset >= acknowledged_before(recorded, each) for each in read_back)
    offsets = [each.offset for each in recorded if each.kind is OpKind.COMMIT and each.type is OpType.INVOKE]
    assert all(later == earlier + 1 for earlier, later in pairwise(offsets))
    assert read_back[-1].offset == max(acknowledged_before(recorded, read_back[-1]), read_back[-1].offset) > 20
    assert {(each.group, each.topic, each.partition) for each in recorded} == {("committer-1", "orders", 0)}


def test_undisturbed_every_commit_is_acknowledged() -> None:
    operations = operations_of(_nothing, load=LOAD)
    assert {each.type for each in ends(operations, OpKind.COMMIT)} == {OpType.OK}
    assert ends(operations, OpKind.FETCH_COMMITTED)[0].offset == -1


def test_a_coordinator_that_moves_is_found_again() -> None:
    operations = operations_of(_kill_the_coordinator, load=LOAD)
    commits = [each for each in operations["committer-1"] if each.kind is OpKind.COMMIT]
    waited = [
        (end.time_ns - invoked.time_ns) / 1e9
        for invoked in commits
        for end in commits
        if invoked.type is OpType.INVOKE and end.index == invoked.index and end.type is OpType.OK
    ]
    assert max(waited) > 1, "some commit was under way when the coordinator died, and was acknowledged by the next one"
