"""A coordinator needs memory for what its groups hold: not for their past, nor for the length of their log."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator

import pytest

from harness.broker.coordinator.coordinator import GroupCoordinator
from harness.broker.coordinator.records import CommittedOffset, OffsetKey, encode_batch
from harness.broker.coordinator.requests import Join
from tests.broker.coordinator.coordinators import RETENTION_MS, FakeTopic, leading
from tests.broker.coordinator.planted_bugs import a_stable_group, commits
from tests.broker.recording_state_log import RecordingStateLog

A_LITTLE = 50_000
"""Bytes: less than three for each commit of the longest log here."""
NEW = Join(
    member_id="",
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=10_000,
    session_timeout_ms=10_000,
    protocol_type="consumer",
    protocols=(("range", bytes(1_000)),),
    must_know_its_id=True,
)


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def held() -> int:
    """Return the bytes that are in use."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def a_life_of_a_group(coordinating: GroupCoordinator, topic: FakeTopic) -> None:
    """A group comes, has a member that is replaced, one that never joins, and a commit; then nothing is left of it."""
    await a_stable_group(coordinating, instance="i")
    member, generation = await a_stable_group(coordinating, instance="i")
    await coordinating.members.join("g", NEW)
    await commits(coordinating, member, generation, "i")
    coordinating.members.leave("g", [(member, "i")])
    await asyncio.sleep(2 * NEW.session_timeout_ms / 1_000)
    await coordinating.expiration.delete_group("g")
    assert coordinating.store.group("g") is None
    assert isinstance(coordinating.state_log, RecordingStateLog)
    coordinating.state_log.events.clear()
    topic.disk.batches.clear()


async def test_groups_that_are_gone_leave_nothing_behind() -> None:
    topic = FakeTopic()
    coordinating = await leading(topic)
    for _ in range(10):
        await a_life_of_a_group(coordinating, topic)
    before = held()
    for _ in range(100):
        await a_life_of_a_group(coordinating, topic)
    assert held() - before < A_LITTLE


async def test_what_is_loaded_is_the_last_of_each_key_however_long_the_log_is() -> None:
    topic, key = FakeTopic(), OffsetKey(group="g", topic="t", partition=0)
    for batch in range(40):
        many = [(key, CommittedOffset(offset=500 * batch + number, timestamp_ms=1)) for number in range(500)]
        topic.disk.add(encode_batch(many, RETENTION_MS))
    before = held()
    tracemalloc.reset_peak()
    coordinating = await leading(topic)
    assert tracemalloc.get_traced_memory()[1] - before < 10 * A_LITTLE
    assert (committed := coordinating.store.get("g", "t", 0)) is not None
    assert committed.offset == 19_999
