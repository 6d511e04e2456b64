"""What a topic may set for its logs."""

from harness.broker.log.compression import KEEP_CODEC
from harness.values import value_class

NO_LIMIT = 2**63 - 1


@value_class(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What a topic may set for its logs."""

    segment_bytes: int = 1 << 30
    max_batch_bytes: int = 1_048_588
    """`max.message.bytes`; followers take what their leader took."""
    index_interval_bytes: int = 4096
    segment_ms: int = 604_800_000
    """How much younger than a segment's first batch its others may be."""
    retention_ms: int = -1
    retention_bytes: int = -1
    """-1 for no limit."""
    deletes: bool = True
    """Whether `cleanup.policy` has delete."""
    compacts: bool = False
    """Whether `cleanup.policy` has compact; then every record needs a key."""
    min_cleanable_ratio: float = 0.5
    """How much of a compacted log must be dirty for it to be cleaned."""
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = (1 << 63) - 1
    """After so long a log is cleaned however little of it is dirty."""
    delete_retention_ms: int = 86_400_000
    """How long a tombstone is kept once it was first cleaned."""
    segment_jitter_ms: int = 0
    """By how much less than `segment_ms` it may be, so that not all logs roll at once."""
    index_bytes: int = 10_485_760
    """How large an index file of a segment may get."""
    append_time: bool = False
    """Whether records get the time at which they are appended (`message.timestamp.type`)."""
    oldest_ms: int = NO_LIMIT
    youngest_ms: int = NO_LIMIT
    """How far before and after that time a producer's timestamps may be."""
    flush_messages: int = NO_LIMIT
    """After how many records the log is synced …"""
    flush_ms: int = NO_LIMIT
    """… and after which time, when the broker looks (`log.flush.scheduler.interval.ms`)."""
    file_delete_delay_ms: int = 60_000
    """How long the files of a segment stay that is no part of the log any more."""
    compression: str = KEEP_CODEC
    """`compression.type`: what a leader has batches compressed with, whatever the producer chose."""
    verify_transactions: bool = True
    """Whether the first batch of a transaction needs the coordinator's word (KIP-890)."""
