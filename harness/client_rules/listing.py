"""The requests of a client that lists offsets continuously: the latest, the earliest, and those of timestamps.

Sometimes it reads records from a known offset on, as a consumer does after a seek, or deletes the records before one
(KIP-107), of topics that the scenario names.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.client_rules.steps import partitions_of
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder
from harness.values import TopicPartition

LATEST, EARLIEST, TIMESTAMP = "latest", "earliest", "timestamp"
MODES = (LATEST, LATEST, EARLIEST, TIMESTAMP)
BACK_MS = (200, 20_000)
"""How long ago a timestamp lies at most: half of them are near the newest records."""
DELETION_SHARE = 0.1
"""Share of requests that delete records, where allowed, instead of listing."""
LEADER, REPLICA = "leader", "replica"
"""Modes of a read: from the leader, or from any broker, which may be a follower (KIP-392)."""
READ_BYTES = (1, 2_000, 1 << 20)
"""Limits of an answer; at least one batch is in it."""
READ_RECORDS = 20
"""Records of an answer that are recorded at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One request: to list an offset, to read from one on, or to delete the records before one."""

    invoked: Operation
    partition: TopicPartition
    timestamp_ms: int = -1
    """For a lookup by timestamp."""
    max_bytes: int = 0
    """For a read."""

    @property
    def deletes(self) -> bool:
        """Whether records are deleted."""
        return self.invoked.kind is OpKind.DELETE_RECORDS

    @property
    def reads(self) -> bool:
        """Whether records are read."""
        return self.invoked.kind is OpKind.READ


class Listing:
    """The requests of one process."""

    def __init__(
        self, plan: ClientPlan, recorder: Recorder, wall_ms: Callable[[], int], read_modes: Sequence[str] = (LEADER,)
    ) -> None:
        self.interval_s: float = plan.parameters["list_interval_s"]
        self._read_share: float = plan.parameters["read_share"]
        self._read_modes = read_modes
        self._deletable = frozenset(plan.parameters["delete_records_of"])
        self._partitions = partitions_of(plan.topics)
        self._rng = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
        self._recorder = recorder
        self._wall_ms = wall_ms
        self._starts: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        """The earliest and the latest known offset of each partition."""

    def next(self) -> Inquiry:
        """Return the next request, and record it."""
        partition = self._rng.choice(self._partitions)
        topic, number = partition
        if topic in self._deletable and self._ends.get(partition, 0) > 0 and self._rng.random() < DELETION_SHARE:
            end = self._ends[partition]
            offset = self._rng.randint(min(self._starts.get(partition, 0), end), end)
            invoked = self._recorder.invoke(OpKind.DELETE_RECORDS, topic=topic, partition=number, offset=offset)
            return Inquiry(invoked=invoked, partition=partition)
        if self._read_share and self._ends.get(partition, 0) > 0 and self._rng.random() < self._read_share:
            return self._read(partition)
        mode = self._rng.choice(MODES)
        timestamp_ms = self._wall_ms() - self._rng.randint(0, self._rng.choice(BACK_MS)) if mode == TIMESTAMP else -1
        invoked = self._recorder.invoke(OpKind.LIST_OFFSET, topic=topic, partition=number, mode=mode)
        return Inquiry(invoked=invoked, partition=partition, timestamp_ms=timestamp_ms)

    def _read(self, partition: TopicPartition) -> Inquiry:
        topic, number = partition
        end = self._ends[partition]
        offset = self._rng.randint(min(self._starts.get(partition, 0), end), end)
        mode, max_bytes = self._rng.choice(self._read_modes), self._rng.choice(READ_BYTES)
        invoked = self._recorder.invoke(OpKind.READ, topic=topic, partition=number, offset=offset, mode=mode)
        return Inquiry(invoked=invoked, partition=partition, max_bytes=max_bytes)

    def read(self, inquiry: Inquiry, records: Sequence[tuple[int, str]]) -> None:
        """Record the first records of an answer, each by offset and value id."""
        texts = [f"{offset}={value}" for offset, value in records[:READ_RECORDS]]
        self._recorder.end(inquiry.invoked, OpType.OK, value=" ".join(texts))

    def answered(self, inquiry: Inquiry, offset: int) -> None:
        """Record the offset of an answer; -1 if no record has the timestamp or a later one."""
        if inquiry.invoked.mode == LATEST:
            self._ends[inquiry.partition] = offset
        elif inquiry.invoked.mode == EARLIEST:
            self._starts[inquiry.partition] = offset
        self._recorder.end(inquiry.invoked, OpType.OK, offset=max(-1, offset))

    def refused(self, inquiry: Inquiry, error: str) -> None:
        """Record why there is no answer; whether records were deleted is unknown then."""
        self._recorder.end(inquiry.invoked, OpType.INFO if inquiry.deletes else OpType.FAIL, error=error)
