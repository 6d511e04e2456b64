"""Cleaners: each takes the dirtiest log that no other one has, repeatedly (Kafka's `LogCleaner`).

Leaders and followers each clean their own logs. A log that cannot be cleaned is left alone until the broker starts
again.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.broker.background import reported
from harness.broker.cleaner.choosing import Cleanable, cleanable, dirtiest
from harness.broker.cleaner.cleaning import Abandoned, Cleaned, Cleaning
from harness.broker.cleaner.offset_map import capacity_of
from harness.broker.cleaner.pace import STEP_BYTES, Pace
from harness.broker.cleaner.statistics import CleanerStatistics, LastCleaning
from harness.broker.configs.config import BrokerConfig
from harness.broker.log.batch import HEADER_BYTES
from harness.broker.log.log import Log
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas, now_s
from harness.broker.state_log import StateLog
from harness.broker.unexpected import failed
from harness.events import CleaningStart, Compaction
from harness.values import TopicPartition

_log = logging.getLogger(__name__)

_SHORTEST_PAUSE_S = 0.001
"""With a `log.cleaner.backoff.ms` of 0 the cleaner would occupy the loop."""


@dataclass(slots=True, kw_only=True, eq=False)
class LogCleaner:
    """All cleaners of one broker."""

    replicas: Replicas
    config: BrokerConfig
    state_log: StateLog
    wall_ms: Callable[[], int]
    """Records carry wall-clock time, so their age is measured by it."""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _in_progress: set[TopicPartition] = field(default_factory=set)
    _uncleanable: dict[TopicPartition, Log] = field(default_factory=dict)
    """With the log object: another one of that name may be cleaned."""
    _last: dict[int, LastCleaning] = field(default_factory=dict)
    _dirtiest_ratio: float = 0.0
    _looked_ms: int = 0
    _pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        """Start counters."""
        self._pace = Pace(bytes_per_second=self.config["log.cleaner.io.max.bytes.per.second"])
        self._looked_ms = self.wall_ms()

    def start(self) -> None:
        """Begin, if the cleaner is enabled."""
        if self.config["log.cleaner.enable"]:
            self._tasks = [
                asyncio.create_task(self._clean_for_ever(number), name=f"log-cleaner-{number}")
                for number in range(self.config["log.cleaner.threads"])
            ]
            for task in self._tasks:
                task.add_done_callback(reported)

    async def stop(self) -> None:
        """Stop; unfinished segments are removed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def statistics(self) -> CleanerStatistics:
        """Return the cleaners' gauges."""
        now_ms = self.wall_ms()
        partitions = dict.fromkeys(self.replicas.logs.names, 0)
        dirty_bytes = partitions.copy()
        for key, log in self._uncleanable_now().items():
            directory = self.replicas.logs.directory_of(*key)
            partition = self.replicas.get(*key)
            if directory is not None and partition is not None:
                partitions[directory] += 1
                dirty_bytes[directory] += cleanable(log, self._stable_offset(partition), now_ms).dirty_bytes
        return CleanerStatistics(
            last=tuple(self._last.values()),
            dirtiest_ratio=self._dirtiest_ratio,
            since_last_look_ms=now_ms - self._looked_ms,
            dead_cleaners=sum(task.done() for task in self._tasks),
            uncleanable_partitions=partitions,
            uncleanable_bytes=dirty_bytes,
        )

    async def clean_dirtiest(self, number: int = 0) -> bool:
        """Clean the log that needs it most, and return whether there was one."""
        chosen, delay_ms = self._choose()
        if chosen is None:
            return False
        key = (chosen.log.topic, chosen.log.partition)
        self._in_progress.add(key)
        self._log_choice(chosen)
        began_s = now_s()
        try:
            cleaned = await self._clean(chosen)
        finally:
            self._in_progress.discard(key)
        if cleaned is None:
            return False
        self._last[number] = LastCleaning(
            bytes_read=cleaned.bytes_read,
            bytes_written=cleaned.bytes_written,
            seconds=now_s() - began_s,
            buffer_utilization=cleaned.buffer_utilization,
            delay_ms=delay_ms,
        )
        return True

    async def _clean_for_ever(self, number: int) -> None:
        pause_s = max(self.config["log.cleaner.backoff.ms"] / 1000, _SHORTEST_PAUSE_S)
        while True:
            if not await self.clean_dirtiest(number):
                await asyncio.sleep(pause_s)

    def _choose(self) -> tuple[Cleanable | None, int]:
        """Return the dirtiest due log, and the longest delay of any."""
        now_ms = self._looked_ms = self.wall_ms()
        uncleanable = self._uncleanable_now()
        candidates = [
            cleanable(partition.log, self._stable_offset(partition), now_ms)
            for partition in self.replicas.all()
            if self._may_be_cleaned(partition) and partition.key not in uncleanable
        ]
        self._dirtiest_ratio = max((each.ratio for each in candidates), default=0.0)
        return dirtiest(candidates), max((each.delay_ms for each in candidates), default=0)

    def _stable_offset(self, partition: Partition) -> int:
        """Return the offset before which every transaction is decided."""
        if not partition.rules.cleaning_spares_uncommitted:
            return partition.log.log_end_offset
        stops = partition.rules.cleaning_stops_at_open_transactions
        return partition.last_stable_offset if stops else partition.high_watermark

    def _may_be_cleaned(self, partition: Partition) -> bool:
        return partition.log.settings.compacts and partition.key not in self._in_progress and not partition.offline

    def _uncleanable_now(self) -> dict[TopicPartition, Log]:
        """Return the logs left alone, without deleted ones."""
        of_today = {partition.key: partition.log for partition in self.replicas.all()}
        self._uncleanable = {key: log for key, log in self._uncleanable.items() if of_today.get(key) is log}
        return self._uncleanable

    async def _clean(self, chosen: Cleanable) -> Cleaned | None:
        log, now_ms = chosen.log, self.wall_ms()
        threads = max(self.config["log.cleaner.threads"], 1)
        cleaning = Cleaning(
            chosen=chosen,
            capacity=capacity_of(
                self.config["log.cleaner.dedupe.buffer.size"] // threads,
                self.config["log.cleaner.io.buffer.load.factor"],
            ),
            read_bytes=max(min(self.config["log.cleaner.io.buffer.size"] // threads // 2, STEP_BYTES), HEADER_BYTES),
            now_ms=now_ms,
            pace=self._pace,
            replacing=self._log_compaction,
        )
        try:
            cleaned = await cleaning.run()
            log.cleaned_to = cleaned.end_offset
            directory = self.replicas.logs.directory_of(log.topic, log.partition)
            if directory is not None:
                await self.replicas.logs.checkpoint_cleaner_offsets(directory)
        except Abandoned:
            _log.info("cleaning.abandoned log=%s", log.folder)
        except OSError as error:  # its directory has the error
            _log.error("cleaning.failed log=%s error=%s", log.folder, error)
        except Exception as error:  # noqa: BLE001  a log that cannot be cleaned must not keep the others dirty
            self._uncleanable[log.topic, log.partition] = log
            failed(_log, error, "cleaning.failed log=%s is left alone from now on", log.folder)
        else:
            _log.info(
                "cleaning.complete log=%s from=%d to=%d read=%d written=%d records=%d kept=%d without_key=%d",
                log.folder,
                chosen.first_dirty_offset,
                cleaned.end_offset,
                cleaned.bytes_read,
                cleaned.bytes_written,
                cleaned.records_read,
                cleaned.records_written,
                cleaned.without_key,
            )
            return cleaned
        return None

    def _log_choice(self, chosen: Cleanable) -> None:
        self.state_log.emit(
            CleaningStart(
                topic=chosen.log.topic,
                partition=chosen.log.partition,
                from_offset=chosen.first_dirty_offset,
                until_offset=chosen.end_offset,
                clean_bytes=chosen.clean_bytes,
                dirty_bytes=chosen.dirty_bytes,
                min_dirty_ratio=chosen.log.settings.min_cleanable_ratio,
                delay_ms=chosen.delay_ms,
            )
        )

    def _log_compaction(self, log: Log, from_offset: int, until_offset: int) -> None:
        self.state_log.emit(
            Compaction(topic=log.topic, partition=log.partition, from_offset=from_offset, until_offset=until_offset)
        )
