"""What the rest of the broker asks of its replicas: append, fetch, look offsets up, take and give up the lead.

The parts do the work: `replicas` hosts the partitions, `appending` and `fetching` serve clients and followers, `isr`
writes ISRs, `fetcher` follows other leaders, `control_requests` obeys the controller. This one wires, starts and stops
them, and checkpoints the high watermarks.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.broker.background import every
from harness.broker.configs.config import BrokerConfig
from harness.broker.log.directories import LogDirectories
from harness.broker.log.log import LogSettings
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas.appending import Appender, AppendResult, ProduceParams, ToAppend
from harness.broker.replicas.control_requests import ControlRequests, DeletionListener, LeadershipListener
from harness.broker.replicas.deleted_logs import DeletedLogs
from harness.broker.replicas.deleting import Deleter, Deletion, ToDelete
from harness.broker.replicas.fetcher import Fetchers, FetcherSettings
from harness.broker.replicas.fetching import FetchedPartition, FetchLimits, FetchServer, Read
from harness.broker.replicas.isr import IsrKeeper
from harness.broker.replicas.partition import Partition, TopicPartition
from harness.broker.replicas.replicas import Replicas
from harness.broker.rules import ProtocolRules
from harness.broker.state_log import StateLog
from harness.broker.wire.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from harness.broker.wire.transport import Transport
from harness.broker.zookeeper.client import ZooKeeper
from harness.events import HighWatermarkCheckpoint

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class ReplicaManager:
    """All replicas of one broker."""

    config: BrokerConfig
    logs: LogDirectories
    metadata: MetadataCache
    transport: Transport
    zookeeper: Callable[[], ZooKeeper]
    """Returns the session in force; asked anew for every write."""
    state_log: StateLog
    rules: ProtocolRules
    topic_config: Callable[[str], Mapping[str, Any]]
    """Returns what holds for a topic, by Kafka's topic property names: its own settings over the broker's."""
    replicas: Replicas = field(init=False)
    _appender: Appender = field(init=False)
    _deleter: Deleter = field(init=False)
    _fetch_server: FetchServer = field(init=False)
    _isr: IsrKeeper = field(init=False)
    _deleted_logs: DeletedLogs = field(init=False)
    _fetchers: Fetchers = field(init=False)
    _control: ControlRequests = field(init=False)
    _checkpointer: asyncio.Task[None] | None = field(init=False, default=None)
    _checkpointed: dict[TopicPartition, int] | None = field(init=False, default=None)
    """None while it is not known which of two checkpoints is on disk."""

    def __post_init__(self) -> None:
        """Wire the parts."""
        self._deleted_logs = DeletedLogs(self.logs, self.config["log.segment.delete.delay.ms"] / 1000)
        self.replicas = Replicas(
            broker_id=self.config.broker_id,
            logs=self.logs,
            metadata=self.metadata,
            state_log=self.state_log,
            rules=self.rules,
            lag_s=self.config["replica.lag.time.max.ms"] / 1000,
            log_settings=self._log_settings,
            put_aside=self._deleted_logs.remove_later,
        )
        self._isr = IsrKeeper(replicas=self.replicas, zookeeper=self.zookeeper, state_log=self.state_log)
        self._appender = Appender(
            replicas=self.replicas,
            rules=self.rules,
            state_log=self.state_log,
            min_insync_replicas=lambda topic: int(self.topic_config(topic)["min.insync.replicas"]),
        )
        self._deleter = Deleter(replicas=self.replicas)
        self._fetch_server = FetchServer(
            replicas=self.replicas, isr=self._isr, state_log=self.state_log, rules=self.rules
        )
        self._fetchers = Fetchers(
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
        self._control = ControlRequests(
            replicas=self.replicas,
            fetchers=self._fetchers,
            metadata=self.metadata,
            state_log=self.state_log,
            rules=self.rules,
        )

    def _log_settings(self, topic: str) -> LogSettings:
        config = self.topic_config(topic)
        return LogSettings(
            segment_bytes=config["segment.bytes"],
            max_batch_bytes=config["max.message.bytes"],
            index_interval_bytes=config["index.interval.bytes"],
            segment_ms=config["segment.ms"],
            retention_ms=config["retention.ms"],
            retention_bytes=config["retention.bytes"],
            deletes="delete" in config["cleanup.policy"],
            compacts="compact" in config["cleanup.policy"],
            compression=config["compression.type"],
        )

    # --- life ---

    async def start(self) -> None:
        """Begin to work; the logs are loaded."""
        self.replicas.load_high_watermarks()
        self._checkpointed = self.replicas.high_watermarks()
        self._deleted_logs.start()
        self._isr.start()

    async def stop(self) -> None:
        """End all background work and checkpoint the high watermarks; the logs stay open."""
        if self._checkpointer is not None:
            self._checkpointer.cancel()
            await asyncio.gather(self._checkpointer, return_exceptions=True)
            self._checkpointer = None
        self._deleted_logs.stop()
        await self._isr.stop()
        await self._fetchers.stop()
        await self._checkpoint()

    def disk_failed(self, directory: str) -> int:
        """Take every replica in a data directory offline, and return how many there were."""
        return self._control.disk_failed(self.logs.keys_in(directory))

    def begin_shutdown(self) -> None:
        """This broker is about to leave: it still gives up leads, but does not start to follow the new leaders."""
        self._control.shutting_down = True

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

    # --- clients and followers ---

    def topic_configured(self, topic: str, config: Mapping[str, Any]) -> None:
        """Let the logs of a topic obey its new properties from now on."""
        for partition in self.replicas.all():
            if partition.key[0] == topic:
                partition.log.settings = self._log_settings(topic)

    def broker_configured(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Let all logs obey what their topics inherit of this broker from now on."""
        for topic in sorted({partition.key[0] for partition in self.replicas.all()}):
            self.topic_configured(topic, self.topic_config(topic))

    def partition(self, topic: str, partition: int) -> Partition | None:
        """Return a partition that this broker replicates."""
        return self.replicas.get(topic, partition)

    async def append(
        self,
        topic: str,
        partition: int,
        records: bytes,
        *,
        acks: int,
        timeout_s: float,
        client: str,
        correlation_id: int,
        internal: bool = False,
    ) -> AppendResult:
        """Append one batch to one partition, and with acks=all (-1) wait for the high watermark to pass it."""
        params = ProduceParams(
            acks=acks, timeout_s=timeout_s, client=client, correlation_id=correlation_id, internal=internal
        )
        return (await self.append_all([ToAppend((topic, partition), records)], params))[0]

    async def append_all(self, items: Sequence[ToAppend], params: ProduceParams) -> list[AppendResult]:
        """Append to several partitions at once, and return how each ended once all have."""
        return await self._appender.append(items, params)

    async def delete_records(self, items: Sequence[ToDelete], timeout_s: float) -> list[Deletion]:
        """Let logs start later, and return how each ended once all replicas have followed."""
        return await self._deleter.delete(items, timeout_s)

    async def fetch(self, replica_id: int, asked: Sequence[FetchedPartition], limits: FetchLimits) -> list[Read]:
        """Return what each partition gets, in order; waits when there is nothing yet."""
        return await self._fetch_server.fetch(replica_id, asked, limits)

    # --- the controller ---

    def on_leadership_change(self, listener: LeadershipListener) -> None:
        """Have `listener(gained, lost)` called, in the step that changes roles, with (topic, partition, epoch) each."""
        self._control.on_leadership_change(listener)

    def on_deletion(self, listener: DeletionListener) -> None:
        """Have `listener(partitions)` called, in the step that forgets them, with what is being deleted anywhere."""
        self._control.on_deletion(listener)

    async def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Take and give up leads; high watermarks are checkpointed from the first such request on."""
        response = self._control.leader_and_isr(request)
        if self._checkpointer is None:
            interval_s = self.config["replica.high.watermark.checkpoint.interval.ms"] / 1000
            self._checkpointer = asyncio.create_task(every(interval_s, self._checkpoint, name="checkpoint"))
        return response

    async def stop_replicas(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop to replicate partitions and delete those that are to go."""
        return self._control.stop_replica(request)

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        """Take over the controller's view of the cluster."""
        return self._control.update_metadata(request)
