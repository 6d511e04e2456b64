"""A broker's metrics: counters since its start, and gauges computed at every look.

Plain values; `harness.broker.metrics.prometheus` exports them to Prometheus. Their selection is
Kafka's choice (`ReplicaManager`, `BrokerTopicStats`, `KafkaController`, `ControllerEventManager`,
`GroupMetadataManager`, `TransactionMarkerChannelManager`, `AddPartitionsToTxnManager`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness.broker.cleaner.cleaner import LogCleaner
from harness.broker.cleaner.statistics import CleanerStatistics
from harness.broker.controller.controller import Controller
from harness.broker.controller.statistics import ControllerStatistics, EventTimes
from harness.broker.coordinator.coordinator import GroupCoordinator
from harness.broker.coordinator.statistics import CoordinatorStatistics
from harness.broker.replicas.counters import Counters
from harness.broker.replicas.replica_manager import ReplicaManager
from harness.broker.transactions.statistics import TransactionStatistics
from harness.broker.wire.messages import ApiKey
from harness.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetrics:
    """A snapshot of a broker, taken in one step of its loop, so the numbers are consistent."""

    partitions: int
    leaders: int
    """Of the partitions, those that this broker leads."""
    under_replicated: int
    """Partitions led here whose ISR lacks a replica."""
    under_min_isr: int
    """Partitions led here whose ISR is too small for acks=all."""
    offline_replicas: int
    """Replicas that belong here and are on a failed disk."""
    producer_ids: int
    """Producers with an id that the logs here know, once for each log."""
    late_transactions: int
    """Partitions led here whose oldest open transaction is overdue."""
    stable_offset_lags: Mapping[TopicPartition, int]
    """Of each partition led here, how far its last stable offset is behind its high watermark."""
    log_bytes: int
    delayed_produces: int
    delayed_fetches: int
    delayed_deletions: int
    is_controller: bool
    controller: ControllerStatistics
    unclean_leader_elections: int
    event_queue_size: int
    event_times: EventTimes
    counters: Counters
    cleaner: CleanerStatistics
    coordinator: CoordinatorStatistics
    transactions: TransactionStatistics


class Exporter(Protocol):
    """Exports the metrics of one broker."""

    def answered(self, api_key: ApiKey, seconds: float) -> None:
        """A request was answered, or given up, this long after it came."""
        ...

    async def start(self, look: Callable[[], BrokerMetrics]) -> None:
        """Start exporting what `look` returns; raises OSError."""
        ...

    async def stop(self) -> None:
        """Stop exporting; idempotent."""
        ...


def metrics_of(
    manager: ReplicaManager,
    controller: Controller,
    cleaner: LogCleaner,
    coordinator: GroupCoordinator | None,
    transactions: TransactionStatistics,
) -> BrokerMetrics:
    """Return the metrics of a broker with these parts."""
    replicas = manager.replicas
    hosted = replicas.all()
    led = [partition for partition in hosted if partition.is_leader]
    return BrokerMetrics(
        partitions=len(hosted),
        leaders=len(led),
        under_replicated=sum(len(partition.isr) < len(partition.replicas) for partition in led),
        under_min_isr=sum(
            not partition.has_enough_insync(manager.topic_config(partition.key[0])["min.insync.replicas"])
            for partition in led
        ),
        offline_replicas=replicas.offline_count,
        producer_ids=sum(len(partition.log.producers) for partition in hosted),
        late_transactions=manager.late_transactions(led),
        stable_offset_lags={each.key: each.high_watermark - each.last_stable_offset for each in led},
        log_bytes=sum(partition.log.size_bytes for partition in hosted),
        delayed_produces=len(replicas.appends),
        delayed_fetches=len(replicas.fetches),
        delayed_deletions=len(replicas.deletions),
        is_controller=controller.is_active,
        controller=controller.statistics,
        unclean_leader_elections=controller.unclean_leader_elections,
        event_queue_size=controller.event_queue_size,
        event_times=controller.event_times,
        counters=replicas.counters,
        cleaner=cleaner.statistics(),
        coordinator=CoordinatorStatistics() if coordinator is None else coordinator.statistics(),
        transactions=transactions,
    )
