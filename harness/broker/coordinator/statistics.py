"""Counters and gauges of a group coordinator (Kafka's `GroupMetadataManager`)."""

from dataclasses import dataclass, field

from harness.broker.coordinator.group import GroupState

SAMPLES = 2
SAMPLE_MS = 30_000
"""Kafka's `metrics.num.samples` and `metrics.sample.window.ms`, by default."""


@dataclass(slots=True)
class LoadTimes:
    """How long this broker took to read its parts of `__consumer_offsets`."""

    count: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one more load."""
        self.count += 1
        self.total_s += seconds
        self.longest_s = max(self.longest_s, seconds)

    @property
    def average_s(self) -> float:
        """Of all loads; 0 without any."""
        return self.total_s / self.count if self.count else 0.0


@dataclass(slots=True)
class _Sample:
    since_ms: int
    last_ms: int
    count: int = 0


@dataclass(slots=True)
class Meter:
    """How often something has happened: in total, and a second recently (Kafka's `Meter`)."""

    count: int = 0
    _samples: list[_Sample] = field(default_factory=list)
    """The oldest first."""

    def mark(self, count: int, now_ms: int) -> None:
        """Count an event."""
        self.count += count
        if not self._samples or now_ms - self._samples[-1].since_ms >= SAMPLE_MS:
            self._samples = [*self._samples[-SAMPLES + 1 :], _Sample(now_ms, now_ms)]
        self._samples[-1].count += count
        self._samples[-1].last_ms = now_ms

    def per_s(self, now_ms: int) -> float:
        """Return the recent rate a second; all samples but the newest are full."""
        recent = [each for each in self._samples if now_ms - each.last_ms < SAMPLES * SAMPLE_MS]
        if not recent:
            return 0.0
        elapsed_ms = now_ms - recent[0].since_ms
        missing = max(0, SAMPLES - 1 - elapsed_ms // SAMPLE_MS)
        return 1000 * sum(each.count for each in recent) / (elapsed_ms + missing * SAMPLE_MS)


@dataclass(slots=True)
class GroupCounters:
    """Events of groups since this broker started (Kafka's `group-coordinator-metrics`)."""

    committed: Meter = field(default_factory=Meter)
    """Offsets."""
    expired: Meter = field(default_factory=Meter)
    """Offsets."""
    deleted: Meter = field(default_factory=Meter)
    """Offsets that were deleted by request; those that go with their group or topic are not counted."""
    rebalances: Meter = field(default_factory=Meter)
    """Generations whose leader sent an assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorStatistics:
    """A snapshot."""

    groups: dict[GroupState, int] = field(default_factory=dict)
    """Number of groups in each state."""
    offsets: int = 0
    delayed_rebalances: int = 0
    """Groups that wait for members to join, or to ask for their assignment (Kafka's purgatory `Rebalance`)."""
    delayed_heartbeats: int = 0
    """Members, including pending ones, with a session timer (Kafka's purgatory `Heartbeat`)."""
    loads: LoadTimes = field(default_factory=LoadTimes)
    counters: GroupCounters = field(default_factory=GroupCounters)
    now_ms: int = 0
    """Wall clock of the broker at the snapshot."""
