"""A group coordinator on a `__consumer_offsets` of the test's own."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from harness.broker.coordinator.coordinator import GroupCoordinator
from harness.broker.coordinator.expiration import Expiration
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.requests import GroupLimits
from harness.broker.coordinator.store import GroupStore
from harness.broker.coordinator.topic import CoordinatorTopic
from harness.broker.log.verification import Verification
from harness.broker.wire.error_codes import ErrorCode
from harness.values import OFFSETS_TOPIC
from tests.broker.recording_state_log import RecordingStateLog

RETENTION_MS = 10_000


@dataclass
class FakeLog:
    """Whole batches in memory, each at its base offset."""

    batches: list[tuple[int, bytes]] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    reads: int = 0
    broken: bool = False

    def add(self, data: bytes) -> int:
        base = self.log_end_offset
        self.batches.append((base, base.to_bytes(8) + data[8:]))
        self.log_end_offset += int.from_bytes(data[57:61])
        return base

    async def read_off_loop(self, offset: int, *, max_bytes: int, up_to: int, at_least_one: bool) -> bytes:
        await asyncio.sleep(0)
        self.reads += 1
        if self.broken:
            raise OSError("the disk is gone")
        return next(data for base, data in self.batches if base >= offset)


@dataclass
class Result:
    error: ErrorCode
    base_offset: int


@dataclass
class FakeTopic:
    """`__consumer_offsets` with one partition; appends end as they are told to, when they are told to."""

    disk: FakeLog = field(default_factory=FakeLog)
    error: ErrorCode = ErrorCode.NONE
    gate: asyncio.Event | None = None
    committed: int = 0

    def high_watermark(self, partition: int) -> int:
        return self.committed

    def log(self, partition: int) -> FakeLog | None:
        return self.disk

    async def append(
        self,
        partition: int,
        records: bytes,
        *,
        client: str,
        correlation_id: int,
        timeout_s: float | None = None,
        verification: Verification | None = None,
    ) -> Result:
        base = self.disk.add(records)
        if self.gate is not None:
            await self.gate.wait()
        return Result(self.error, base if self.error is ErrorCode.NONE else -1)


def coordinator_on(
    topic: CoordinatorTopic,
    store: GroupStore | None = None,
    wall_ms: Callable[[], int] = lambda: 1_000,
    limits: GroupLimits | None = None,
    max_metadata_bytes: int = 4,
) -> GroupCoordinator:
    """Return a coordinator of one partition, which leads nothing yet."""
    store = store or GroupStore(partitions=1, limits=limits or GroupLimits(initial_rebalance_delay_ms=0))
    state_log = RecordingStateLog([])
    members = GroupMembers(store=store, topic=topic, state_log=state_log, wall_ms=wall_ms, rng=random.Random(1))
    return GroupCoordinator(
        store=store,
        topic=topic,
        members=members,
        expiration=Expiration(store=store, topic=topic, members=members, wall_ms=wall_ms, retention_ms=RETENTION_MS),
        state_log=state_log,
        wall_ms=wall_ms,
        max_metadata_bytes=max_metadata_bytes,
    )


async def leading(topic: FakeTopic, leader_epoch: int = 3) -> GroupCoordinator:
    coordinating = coordinator_on(topic)
    coordinating.leadership_changed([(OFFSETS_TOPIC, 0, leader_epoch)], [])
    await settled(coordinating)
    return coordinating


async def settled(coordinating: GroupCoordinator) -> None:
    for _ in range(50):
        if coordinating.store.coordinator_error("g") is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return
        await asyncio.sleep(0)
    pytest.fail("the load does not end")
