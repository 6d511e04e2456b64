"""Periodic work on a broker's logs: sync them, delete old segments, and drop idle producers."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harness.broker.background import every, reported
from harness.broker.configs.config import BrokerConfig
from harness.broker.configs.config_types import LONG_MAX
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas
from harness.broker.state_log import StateLog
from harness.events import ProducersExpired
from harness.values import TopicPartition

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Housekeeping:
    """Three jobs in the background, each at its own pace."""

    replicas: Replicas
    config: BrokerConfig
    wall_ms: Callable[[], int]
    """Records carry wall-clock time, so their age is measured by it."""
    state_log: StateLog
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _synced_s: dict[TopicPartition, float] = field(default_factory=dict)
    """First sight, or last sync, of each log."""

    def start(self) -> None:
        """Begin."""
        self._tasks = [
            asyncio.create_task(self._retain_at_intervals(), name="retention"),
            asyncio.create_task(
                every(self._seconds("producer.id.expiration.check.interval.ms"), self._forget, name="producer_ids"),
                name="producer-expiration",
            ),
        ]
        if self.config["log.flush.scheduler.interval.ms"] < LONG_MAX:
            interval_s = self._seconds("log.flush.scheduler.interval.ms")
            self._tasks.append(asyncio.create_task(every(interval_s, self._sync, name="flush"), name="flush"))
        for task in self._tasks:
            task.add_done_callback(reported)

    async def stop(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def _retain_at_intervals(self) -> None:
        await asyncio.sleep(self._seconds("log.initial.task.delay.ms"))
        await self._retain()
        await every(self._seconds("log.retention.check.interval.ms"), self._retain, name="retention")

    def _hosted(self) -> Iterator[Partition]:
        """Yield the replicas that are still there when it is their turn; one that was removed has a closed log."""
        for partition in self.replicas.all():
            if self.replicas.get(*partition.key) is partition:
                yield partition

    async def _retain(self) -> None:
        for partition in self._hosted():
            log = partition.log
            try:
                deleted = partition.retain(self.wall_ms())
            except OSError as error:
                _log.error("retention.failed log=%s error=%s", log.folder, error)
                continue
            if deleted:
                _log.info("retention.complete log=%s segments=%d start=%d", log.folder, deleted, log.log_start_offset)
                self.replicas.deletions.check(partition.key)
            await asyncio.sleep(0)

    async def _sync(self) -> None:
        """Sync the logs that are due; without a scheduler none is, whatever `flush.ms` says."""
        now_s = asyncio.get_running_loop().time()
        self._synced_s = {each.key: self._synced_s.get(each.key, now_s) for each in self.replicas.all()}
        for partition in self._hosted():
            log = partition.log
            due = now_s - self._synced_s[partition.key] >= log.settings.flush_ms / 1000
            if due and log.recovery_point < log.log_end_offset:
                try:
                    log.flush()
                except OSError as error:
                    _log.error("flush.failed log=%s error=%s", log.folder, error)
                self._synced_s[partition.key] = now_s
                await asyncio.sleep(0)

    async def _forget(self) -> None:
        expired_ms = producers_expired_ms(self.config, self.wall_ms)
        for partition in self.replicas.all():
            if expired := partition.log.producer_history.expire(expired_ms):
                topic, number = partition.key
                self.state_log.emit(ProducersExpired(topic=topic, partition=number, producer_ids=expired))

    def _seconds(self, name: str) -> float:
        return float(self.config[name]) / 1000


def producers_expired_ms(config: BrokerConfig, wall_ms: Callable[[], int]) -> int:
    """Return the wall time in ms; producers that have written nothing after it have expired."""
    return int(wall_ms() - config["producer.id.expiration.ms"])
