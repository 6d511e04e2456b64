"""Log settings of a topic."""

from harness.broker.log.compression import KEEP_CODEC
from harness.values import value_class

NO_LIMIT = 2**63 - 1


@value_class(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Log settings of a topic."""

    segment_bytes: int = 1 << 30
    max_batch_bytes: int = 1_048_588
    """`max.message.bytes`; followers take what their leader took."""
    index_interval_bytes: int = 4096
    segment_ms: int = 604_800_000
    """How much younger than a segment's first batch its other batches may be."""
    retention_ms: int = -1
    retention_bytes: int = -1
    """-1 for no limit."""
    deletes: bool = True
    """Whether `cleanup.policy` has delete."""
    compacts: bool = False
    """Whether `cleanup.policy` has compact; then every record needs a key."""
    min_cleanable_ratio: float = 0.5
    """Dirty share of a compacted log from which it is cleaned."""
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = (1 << 63) - 1
    """After this time a log is cleaned even if little of it is dirty."""
    delete_retention_ms: int = 86_400_000
    """How long a tombstone is kept once it was first cleaned."""
    segment_jitter_ms: int = 0
    """Largest random reduction of `segment_ms`, so that not all logs roll at once."""
    index_bytes: int = 10_485_760
    """Largest size of a segment's index file."""
    append_time: bool = False
    """Whether records get the time at which they are appended (`message.timestamp.type`)."""
    oldest_ms: int = NO_LIMIT
    youngest_ms: int = NO_LIMIT
    """How far before and after that time a producer's timestamps may be."""
    flush_messages: int = NO_LIMIT
    """Number of records after which the log is synced …"""
    flush_ms: int = NO_LIMIT
    """… and the time, checked every `log.flush.scheduler.interval.ms`."""
    file_delete_delay_ms: int = 60_000
    """How long files of removed segments stay."""
    compression: str = KEEP_CODEC
    """`compression.type`: the codec of a leader's batches, whatever the producer chose."""
    verify_transactions: bool = True
    """Whether the first batch of a transaction needs the coordinator's confirmation (KIP-890)."""
