"""Gauges of the cleaners (those of Kafka's `LogCleaner` and `LogCleanerManager`)."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCleaning:
    """The result of a cleaner's last cleaning."""

    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    buffer_utilization: float = 0.0
    delay_ms: int = 0
    """How long some log had been due by `max.compaction.lag.ms` when it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerStatistics:
    """A snapshot of all cleaners of a broker."""

    last: tuple[LastCleaning, ...] = ()
    """Of each cleaner."""
    dirtiest_ratio: float = 0.0
    """Of all cleanable logs, at the last check."""
    since_last_look_ms: int = 0
    dead_cleaners: int = 0
    uncleanable_partitions: dict[str, int] = field(default_factory=dict)
    """By data directory."""
    uncleanable_bytes: dict[str, int] = field(default_factory=dict)
    """Their dirty bytes, by data directory."""

    @property
    def recopy_percent(self) -> int:
        """Share of the read bytes that stayed."""
        read = sum(each.bytes_read for each in self.last)
        return int(100 * sum(each.bytes_written for each in self.last) / max(read, 1))

    @property
    def max_clean_time_s(self) -> int:
        """The longest of the last cleanings."""
        return int(max((each.seconds for each in self.last), default=0.0))

    @property
    def max_buffer_utilization_percent(self) -> int:
        """The fullest map of keys."""
        return int(100 * max((each.buffer_utilization for each in self.last), default=0.0))

    @property
    def max_compaction_delay_s(self) -> int:
        """The longest delay."""
        return max((each.delay_ms for each in self.last), default=0) // 1000
