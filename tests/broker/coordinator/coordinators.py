"""A group coordinator on a topic of the test's own."""

import random
from collections.abc import Callable

from harness.broker.coordinator.coordinator import GroupCoordinator
from harness.broker.coordinator.members import GroupMembers
from harness.broker.coordinator.membership import GroupLimits
from harness.broker.coordinator.offsets_topic import OffsetsTopic
from harness.broker.coordinator.retirement import Retirement
from harness.broker.coordinator.store import GroupStore
from tests.broker.recording_state_log import RecordingStateLog

RETENTION_MS = 10_000


def coordinator_on(
    topic: OffsetsTopic,
    store: GroupStore | None = None,
    wall_ms: Callable[[], int] = lambda: 1_000,
    limits: GroupLimits | None = None,
    max_metadata_bytes: int = 4,
) -> GroupCoordinator:
    """Return a coordinator of one partition, which leads nothing yet."""
    store = store or GroupStore(partitions=1, limits=limits or GroupLimits(initial_rebalance_delay_ms=0))
    members = GroupMembers(store=store, topic=topic, wall_ms=wall_ms, rng=random.Random(1))
    return GroupCoordinator(
        store=store,
        topic=topic,
        members=members,
        retirement=Retirement(store=store, topic=topic, members=members, wall_ms=wall_ms, retention_ms=RETENTION_MS),
        state_log=RecordingStateLog([]),
        wall_ms=wall_ms,
        max_metadata_bytes=max_metadata_bytes,
    )
