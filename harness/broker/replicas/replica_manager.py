"""The parts that serve a broker's replicas: their order of start and stop, and the checkpoints.

`replicas` hosts the partitions, `appending` and `fetching` serve clients and followers, `isr` writes ISRs, `fetcher`
follows other leaders, `control_requests` obeys the controller. Each user gets the part that it needs.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.broker.background import every
from harness.broker.configs.config import BrokerConfig
from harness.broker.configs.config_types import LONG_MAX
from harness.broker.log.directories import LogDirectories
from harness.broker.log.log import LogSettings
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.appending import Appender
from harness.broker.replicas.control_requests import ControlRequests
from harness.broker.replicas.deleted_logs import DeletedLogs
from harness.broker.replicas.deleting import Deleter
from harness.broker.replicas.fetcher import FetcherSettings
from harness.broker.replicas.fetchers import Fetchers
from harness.broker.replicas.fetching import FetchServer
from harness.broker.replicas.in_force import ConfigurationsInForce
from harness.broker.replicas.isr import IsrKeeper
from harness.broker.replicas.markers import MarkerWriter
from harness.broker.replicas.moving import ReplicaMover
from harness.broker.replicas.partition import Partition, nobody_else
from harness.broker.replicas.replicas import Replicas
from harness.broker.replicas.verifying import PartitionVerifier
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.wire.transport import Transport
from harness.broker.zookeeper.client import ZooKeeper
from harness.events import HighWatermarkCheckpoint
from harness.values import TopicPartition

log = logging.getLogger(__name__)

_LATE_MS = 300_000
"""Kafka's `LATE_TRANSACTION_BUFFER_MS`."""


@dataclass(slots=True, kw_only=True, eq=False)
class ReplicaManager:
    """All replicas of one broker."""

    config: BrokerConfig
    logs: LogDirectories
    metadata: MetadataCache
    transport: Transport
    zookeeper: Callable[[], ZooKeeper]
    """Returns the session in force; called again for every write."""
    state_log: StateLog
    rules: ProtocolRules
    topic_config: Callable[[str], Mapping[str, Any]]
    """Returns a topic's effective properties, by Kafka's names: its own over the broker's."""
    wall_ms: Callable[[], int]
    """Milliseconds since 1970, for timestamps of records."""
    replicas: Replicas = field(init=False)
    appender: Appender = field(init=False)
    markers: MarkerWriter = field(init=False)
    verifier: PartitionVerifier = field(init=False)
    deleter: Deleter = field(init=False)
    mover: ReplicaMover = field(init=False)
    fetch_server: FetchServer = field(init=False)
    isr: IsrKeeper = field(init=False)
    control: ControlRequests = field(init=False)
    _deleted_logs: DeletedLogs = field(init=False)
    fetchers: Fetchers = field(init=False)
    _checkpointer: asyncio.Task[None] | None = field(init=False, default=None)
    _checkpointed: dict[TopicPartition, int] | None = field(init=False, default=None)
    """None if it is unknown which of two checkpoints is on disk."""

    def __post_init__(self) -> None:
        """Connect the parts."""
        self._deleted_logs = DeletedLogs(self.logs, self.config["log.segment.delete.delay.ms"] / 1000)
        self.replicas = Replicas(
            broker_id=self.config.broker_id,
            logs=self.logs,
            metadata=self.metadata,
            state_log=self.state_log,
            rules=self.rules,
            lag_s=self.config["replica.lag.time.max.ms"] / 1000,
            log_settings=self._log_settings,
            in_force=ConfigurationsInForce(state_log=self.state_log, min_insync_replicas=self._min_insync_replicas),
            put_aside=self._deleted_logs.remove_later,
            committing_needs=self._min_insync_replicas if self.config["replication.profile"] == "3.7" else nobody_else,
        )
        self.isr = IsrKeeper(replicas=self.replicas, zookeeper=self.zookeeper, state_log=self.state_log)
        self.appender = Appender(
            replicas=self.replicas,
            rules=self.rules,
            state_log=self.state_log,
            min_insync_replicas=self._min_insync_replicas,
            wall_ms=self.wall_ms,
        )
        self.markers = MarkerWriter(
            replicas=self.replicas,
            appender=self.appender,
            wall_ms=self.wall_ms,
            timeout_s=self.config["request.timeout.ms"] / 1000,
        )
        self.verifier = PartitionVerifier(replicas=self.replicas, state_log=self.state_log, wall_ms=self.wall_ms)
        self.deleter = Deleter(replicas=self.replicas)
        self.mover = ReplicaMover(replicas=self.replicas)
        self.fetch_server = FetchServer(
            replicas=self.replicas, isr=self.isr, state_log=self.state_log, rules=self.rules
        )
        self.fetchers = Fetchers(
            FetcherSettings(
                broker_id=self.config.broker_id,
                config=self.config,
                metadata=self.metadata,
                transport=self.transport,
                rules=self.rules,
                counters=self.replicas.counters,
                committed=self.replicas.fetches.check,
            )
        )
        self.control = ControlRequests(
            replicas=self.replicas,
            fetchers=self.fetchers,
            metadata=self.metadata,
            state_log=self.state_log,
            rules=self.rules,
        )

    def _min_insync_replicas(self, topic: str) -> int:
        return int(self.topic_config(topic)["min.insync.replicas"])

    def _log_settings(self, topic: str) -> LogSettings:
        config = self.topic_config(topic)
        compacts = "compact" in config["cleanup.policy"]
        oldest_ms, youngest_ms = (config[f"message.timestamp.{side}.max.ms"] for side in ("before", "after"))
        return LogSettings(
            segment_bytes=config["segment.bytes"],
            max_batch_bytes=config["max.message.bytes"],
            index_interval_bytes=config["index.interval.bytes"],
            segment_ms=min(config["segment.ms"], config["max.compaction.lag.ms"]) if compacts else config["segment.ms"],
            retention_ms=config["retention.ms"],
            retention_bytes=config["retention.bytes"],
            deletes="delete" in config["cleanup.policy"],
            compacts=compacts,
            min_cleanable_ratio=config["min.cleanable.dirty.ratio"],
            min_compaction_lag_ms=config["min.compaction.lag.ms"],
            max_compaction_lag_ms=config["max.compaction.lag.ms"],
            delete_retention_ms=config["delete.retention.ms"],
            segment_jitter_ms=config["segment.jitter.ms"],
            index_bytes=config["segment.index.bytes"],
            append_time=config["message.timestamp.type"] == "LogAppendTime",
            oldest_ms=config["message.timestamp.difference.max.ms"] if oldest_ms == LONG_MAX else oldest_ms,
            youngest_ms=config["message.timestamp.difference.max.ms"] if youngest_ms == LONG_MAX else youngest_ms,
            flush_messages=config["flush.messages"],
            flush_ms=config["flush.ms"],
            file_delete_delay_ms=config["file.delete.delay.ms"],
            compression=config["compression.type"],
            verify_transactions=self.config["transaction.partition.verification.enable"],
        )

    async def start(self) -> None:
        """Start; the logs are loaded."""
        self.replicas.load_high_watermarks()
        self._checkpointed = self.replicas.high_watermarks()
        self._deleted_logs.start()
        self.isr.start()

    async def stop(self) -> None:
        """End all background work and checkpoint the high watermarks; the logs stay open."""
        if self._checkpointer is not None:
            self._checkpointer.cancel()
            await asyncio.gather(self._checkpointer, return_exceptions=True)
            self._checkpointer = None
        self._deleted_logs.stop()
        await self.mover.stop()
        await self.isr.stop()
        await self.fetchers.stop()
        await self._checkpoint()

    def disk_failed(self, directory: str) -> int:
        """Take every replica in a data directory offline, and return their number."""
        return self.control.disk_failed(self.logs.keys_in(directory))

    def begin_checkpoints(self) -> None:
        """Start periodic checkpoints of the high watermarks; called by the first LeaderAndIsr."""
        if self._checkpointer is None:
            interval_s = self.config["replica.high.watermark.checkpoint.interval.ms"] / 1000
            self._checkpointer = asyncio.create_task(every(interval_s, self._checkpoint, name="checkpoint"))

    async def _checkpoint(self) -> None:
        high_watermarks = self.replicas.high_watermarks()
        if high_watermarks == self._checkpointed:
            return
        self._checkpointed = None
        try:
            in_place = await self.logs.checkpoint_high_watermarks(self.replicas.high_watermarks)
        except OSError as error:
            log.error("checkpoint.high_watermarks failed error=%s", error)
            return
        if in_place:
            self._checkpointed = high_watermarks
            self.state_log.emit(HighWatermarkCheckpoint(count=len(high_watermarks)))

    def late_transactions(self, partitions: Iterable[Partition]) -> int:
        """Return how many of these have a transaction open for five minutes longer than allowed (KIP-664)."""
        before_ms = self.wall_ms() - self.config["transaction.max.timeout.ms"] - _LATE_MS
        written_ms = (partition.log.producers.oldest_open_ms() for partition in partitions)
        return sum(0 < each < before_ms for each in written_ms if each is not None)

    def topic_configured(self, topic: str, config: Mapping[str, Any]) -> None:
        """Apply a topic's new properties to its logs."""
        self.replicas.configured(topic)

    def broker_configured(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Apply this broker's new properties to all logs that inherit them."""
        for topic in sorted({partition.key[0] for partition in self.replicas.all()}):
            self.topic_configured(topic, self.topic_config(topic))
