"""All logs of one broker in its data directory, and the checkpoint files that they share."""

import logging
import re
from collections.abc import Callable, Mapping

from harness.broker.log.checkpoint import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    MalformedCheckpoint,
    PartitionOffsets,
    read_offsets,
    write_offsets,
    write_offsets_off_loop,
)
from harness.broker.log.log import EpochListener, Log, LogSettings, PutAside
from harness.broker.log.meta_properties import META_PROPERTIES
from harness.broker.log.producers import NEVER_MS
from harness.broker.log.recovery import LoadedLog, LogOrigin, open_log
from harness.broker.log.storage import Storage
from harness.broker.rules import ProtocolRules

logger = logging.getLogger(__name__)

CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"
_KNOWN_FILES = {
    CLEAN_SHUTDOWN_MARKER,
    META_PROPERTIES,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    LOG_START_OFFSETS,
    CLEANER_OFFSETS,
}
_DELETED, _FUTURE = "-delete", "-future"
_LOG_FOLDER = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_MAX_NAME_CHARS = 255


def _nobody(_topic: str, _partition: int, _leader_epoch: int, _start_offset: int) -> None:
    """Drop the call: there is no listener."""


def _never() -> int:
    """Return a time before that of any record: no producer has expired."""
    return NEVER_MS - 1


class LogManager:
    """Opens, creates and deletes logs; `load` comes first."""

    def __init__(
        self,
        storage: Storage,
        settings: LogSettings | None = None,
        *,
        epoch_assigned: EpochListener = _nobody,
        rules: ProtocolRules | None = None,
        expired_ms: Callable[[], int] = _never,
    ) -> None:
        self._storage = storage
        self._expired_ms = expired_ms
        self._settings = settings or LogSettings()
        self._epoch_assigned = epoch_assigned
        self._rules = rules or ProtocolRules()
        self._logs: dict[tuple[str, int], Log] = {}
        self._put_aside: PutAside = lambda path, _: storage.remove(path)

    def on_put_aside(self, listener: PutAside) -> None:
        """Call `listener` for logs that may be removed later; without a listener they are removed at once."""
        self._put_aside = listener

    def load(self) -> list[LoadedLog]:
        """Open every log in the data directory, sorted; not those renamed for deletion.

        Raises:
            StorageError: a leader-epoch checkpoint is malformed.
            OSError: the disk refused.
        """
        clean = self._storage.exists(CLEAN_SHUTDOWN_MARKER)
        recovery_points = self._read_or_reset(RECOVERY_POINTS)
        log_starts = self._read_or_reset(LOG_START_OFFSETS) if self._rules.log_starts_are_kept else {}
        cleaned_to = self._read_cleaner_offsets() if self._rules.gaps_are_remembered else {}
        loaded = []
        for unfinished in [name for name in self._storage.list("") if name.endswith(_FUTURE)]:
            logger.info("log.removed name=%s reason=its move did not end", unfinished)
            self._storage.remove(unfinished)
        for topic, partition in self._folders():
            key = (topic, partition)
            origin = LogOrigin(
                topic=topic,
                partition=partition,
                clean=clean,
                recovery_point=recovery_points.get(key, 0),
                log_start_offset=log_starts.get(key, 0),
                cleaned_to=cleaned_to.get(key) if cleaned_to is not None else 0,
            )
            loaded.append(self._open(origin, self._settings))
        self._write_recovery_points()
        if self._rules.clean_marker_counts_once:
            self._storage.remove(CLEAN_SHUTDOWN_MARKER)
        logger.info("logs.loaded count=%d clean=%s", len(loaded), clean)
        return loaded

    def get(self, topic: str, partition: int) -> Log | None:
        """Return the log, or None when this broker has none of that partition."""
        return self._logs.get((topic, partition))

    def get_or_create(self, topic: str, partition: int, settings: LogSettings | None = None) -> Log:
        """Return the log, empty if it is new; `settings` are those of the topic, if it has its own."""
        log = self._logs.get((topic, partition))
        if log is None:
            origin = LogOrigin(topic=topic, partition=partition, clean=False)
            self._open(origin, settings or self._settings)
            log = self._logs[topic, partition]
        elif settings is not None and self._rules.loaded_logs_take_properties:
            log.settings = settings
        return log

    def delete(self, topic: str, partition: int) -> str | None:
        """Rename the log for deletion, drop its checkpoints, and return the folder to be removed later.

        None when there is no such log.
        """
        log = self._logs.pop((topic, partition), None)
        if log is None:
            return None
        log.close()
        doomed = self._free_name(log.folder, _DELETED)
        self._storage.rename(log.folder, doomed)
        self._write_checkpoints()
        high_watermarks = self.read_high_watermarks()
        if high_watermarks.pop((topic, partition), None) is not None:
            self.write_high_watermarks(high_watermarks)
        return doomed

    def open_future(self, topic: str, partition: int, settings: LogSettings, first_offset: int) -> Log:
        """Return an empty log that `adopt` makes the log of its partition; a start of the broker removes it.

        Raises:
            OSError: the disk refused.
        """
        name = self._free_name(f"{topic}-{partition}", _FUTURE)
        origin = LogOrigin(
            topic=topic, partition=partition, clean=False, log_start_offset=first_offset, folder_name=name
        )
        log, _ = open_log(
            self._storage,
            origin,
            settings,
            _nobody,
            lambda: None,
            lambda path, _: self._storage.remove(path),
            self._rules,
            self._expired_ms,
        )
        return log

    def adopt(self, future: Log) -> Log:
        """Make a future log, synced and closed, the log of its partition.

        Raises:
            OSError: the disk refused.
        """
        self._storage.rename(future.folder, f"{future.topic}-{future.partition}")
        origin = LogOrigin(
            topic=future.topic,
            partition=future.partition,
            clean=True,
            recovery_point=future.log_end_offset,
            log_start_offset=future.log_start_offset,
            cleaned_to=future.cleaned_to,
        )
        self._open(origin, future.settings)
        self._write_checkpoints()
        return self._logs[future.topic, future.partition]

    def put_aside(self) -> list[str]:
        """Return the folders of deleted logs that are still on disk."""
        return [name for name in self._storage.list("") if name.endswith(_DELETED)]

    def remove(self, folder: str) -> None:
        """Remove a folder or file that was renamed for deletion.

        Raises:
            OSError: the disk refused.
        """
        self._storage.remove(folder)

    @property
    def count(self) -> int:
        """How many logs there are."""
        return len(self._logs)

    def logs(self) -> list[Log]:
        """Return all logs, sorted by topic and partition."""
        return [log for _, log in sorted(self._logs.items())]

    def read_high_watermarks(self) -> PartitionOffsets:
        """Return the checkpointed high watermarks.

        Raises:
            StorageError: the checkpoint is malformed.
        """
        return read_offsets(self._storage, HIGH_WATERMARKS)

    def write_high_watermarks(self, high_watermarks: Mapping[tuple[str, int], int]) -> None:
        """Checkpoint the high watermarks; partitions left out are dropped."""
        write_offsets(self._storage, HIGH_WATERMARKS, high_watermarks)

    async def checkpoint_high_watermarks(self, high_watermarks: Mapping[tuple[str, int], int]) -> bool:
        """Checkpoint them without blocking the loop; return whether they were put in place, or overtaken."""
        return await write_offsets_off_loop(self._storage, HIGH_WATERMARKS, high_watermarks)

    async def checkpoint_recovery_points(self) -> None:
        """Sync full segments, and checkpoint up to where the logs are synced and where they start.

        Called periodically: by then the kernel has written most of them, so syncing is cheap. The loop is not blocked;
        a checkpoint that another call writes meanwhile has newer offsets, and stays.
        """
        for log in self.logs():
            await log.flush_rolled()
        await write_offsets_off_loop(self._storage, RECOVERY_POINTS, self._recovery_points())
        await write_offsets_off_loop(self._storage, LOG_START_OFFSETS, self._log_start_offsets())

    async def checkpoint_cleaner_offsets(self) -> None:
        """Checkpoint how far logs were cleaned, without blocking the loop."""
        await write_offsets_off_loop(self._storage, CLEANER_OFFSETS, self._cleaner_offsets())

    def close_clean(self) -> None:
        """Sync and close every log, write the checkpoints, and last the marker of a clean stop.

        Raises:
            OSError: the disk refused; the marker is not written.
        """
        for log in self.logs():
            log.flush()
            log.seal()
        self._write_recovery_points()
        self.close()
        self._storage.replace(CLEAN_SHUTDOWN_MARKER, b"")

    def close(self) -> None:
        """Close every log without syncing, as after a failed start."""
        for log in self.logs():
            log.close()
        self._logs.clear()

    def _open(self, origin: LogOrigin, settings: LogSettings) -> LoadedLog:
        log, loaded = open_log(
            self._storage,
            origin,
            settings,
            self._epoch_assigned,
            self._write_checkpoints,
            lambda path, delay_ms: self._put_aside(path, delay_ms),
            self._rules,
            self._expired_ms,
        )
        self._logs[origin.topic, origin.partition] = log
        return loaded

    def _folders(self) -> list[tuple[str, int]]:
        folders = []
        for name in self._storage.list(""):
            match = _LOG_FOLDER.fullmatch(name)
            if match is not None:
                folders.append((match[1], int(match[2])))
            elif name not in _KNOWN_FILES and not name.endswith(_DELETED):
                logger.warning("log.ignored name=%s reason=not topic-partition", name)
        return sorted(folders)

    def _free_name(self, folder: str, ending: str) -> str:
        """Return a free name in the form of Kafka's deleted and future logs."""
        number = 0
        while True:
            suffix = f".{number}{ending}"
            name = folder[: _MAX_NAME_CHARS - len(suffix)] + suffix
            if not self._storage.exists(name):
                return name
            number += 1

    def _read_or_reset(self, path: str) -> PartitionOffsets:
        """Return a checkpoint that only speeds up loading; a malformed one counts as empty, as in Kafka."""
        try:
            return read_offsets(self._storage, path)
        except MalformedCheckpoint as error:
            logger.warning("checkpoint.reset %s", error)
            return {}

    def _read_cleaner_offsets(self) -> PartitionOffsets | None:
        """Return how far logs were cleaned; None if unknown, so that any log may lack offsets."""
        try:
            return read_offsets(self._storage, CLEANER_OFFSETS)
        except MalformedCheckpoint as error:
            logger.warning("checkpoint.reset %s", error)
            return None

    def _write_checkpoints(self) -> None:
        """Write the checkpoints that a truncation, a deletion or a first gap changes, at once."""
        self._write_recovery_points()
        cleaner_offsets = self._cleaner_offsets()
        if cleaner_offsets or self._storage.exists(CLEANER_OFFSETS):
            write_offsets(self._storage, CLEANER_OFFSETS, cleaner_offsets)

    def _write_recovery_points(self) -> None:
        write_offsets(self._storage, RECOVERY_POINTS, self._recovery_points())
        if self._rules.log_starts_are_checkpointed:
            write_offsets(self._storage, LOG_START_OFFSETS, self._log_start_offsets())

    def _recovery_points(self) -> PartitionOffsets:
        synced_only = self._rules.recovery_points_are_synced
        return {key: log.recovery_point if synced_only else log.log_end_offset for key, log in self._logs.items()}

    def _cleaner_offsets(self) -> PartitionOffsets:
        return {key: log.cleaned_to for key, log in self._logs.items() if log.cleaned_to is not None}

    def _log_start_offsets(self) -> PartitionOffsets:
        """Return where logs start, of those whose first segment does not say it."""
        logs = self._logs.items()
        return {key: log.log_start_offset for key, log in logs if log.log_start_offset > log.segments[0].base_offset}
