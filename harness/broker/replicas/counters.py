"""A broker's counters: plain numbers that only grow."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Since the broker started; the names are those of Kafka's `BrokerTopicStats` and `ReplicaManager`."""

    messages_in: int = 0
    """Records that producers wrote."""
    bytes_in: int = 0
    """Batches of producers, as they came; those sent twice count once."""
    bytes_out: int = 0
    """Batches handed to consumers."""
    replication_bytes_in: int = 0
    replication_bytes_out: int = 0
    isr_shrinks: int = 0
    """ISR changes that ZooKeeper accepted."""
    isr_expands: int = 0
    failed_isr_updates: int = 0
