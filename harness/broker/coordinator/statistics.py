"""What a group coordinator has counted, and what it holds just now (Kafka's `GroupMetadataManager`)."""

from dataclasses import dataclass, field

from harness.broker.coordinator.group import GroupState


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
class GroupCounters:
    """What has happened to groups since this broker started (Kafka's `group-coordinator-metrics`)."""

    committed: int = 0
    """Offsets."""
    expired: int = 0
    """Offsets."""
    deleted: int = 0
    """Offsets that somebody deleted by name; those that go with their group or topic are not counted."""
    rebalances: int = 0
    """Generations for which a leader brought the assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorStatistics:
    """One look."""

    groups: dict[GroupState, int] = field(default_factory=dict)
    """How many are in each state."""
    offsets: int = 0
    loads: LoadTimes = field(default_factory=LoadTimes)
    counters: GroupCounters = field(default_factory=GroupCounters)
