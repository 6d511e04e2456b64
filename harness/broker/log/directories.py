"""All logs of one broker, in any number of data directories (`log.dirs`): each is a `LogManager` of its own.

A new log goes where there are the fewest (Kafka's `LogManager.nextLogDirs`). A directory that fails takes its own logs
with it and no others; it keeps its place here, so that no second log is created of those it holds.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from harness.broker.log.checkpoint import PartitionOffsets
from harness.broker.log.directory import DirectoryOffline, LogDirectory
from harness.broker.log.log import Log, LogSettings, PutAside
from harness.broker.log.manager import LogManager
from harness.broker.log.recovery import LoadedLog
from harness.broker.log.storage import StorageError

LogKey = tuple[str, int]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDirectory:
    """One data directory."""

    disk: LogDirectory
    logs: LogManager


class LogDirectories:
    """A `LogManager` over several directories, by their names in the configuration."""

    def __init__(self, directories: Mapping[str, DataDirectory]) -> None:
        self._directories = dict(directories)
        self._preferred: dict[LogKey, str] = {}

    @property
    def names(self) -> list[str]:
        """All directories, in the order of the configuration."""
        return list(self._directories)

    def has_failed(self, name: str) -> bool:
        """Whether a directory has failed."""
        return self._directories[name].disk.failed

    def keys_in(self, name: str) -> set[LogKey]:
        """Return the logs of a directory, or those that it had when it failed."""
        return {(log.topic, log.partition) for log in self._directories[name].logs.logs()}

    def directory_of(self, topic: str, partition: int) -> str | None:
        """Return the directory that holds a log; None when there is no such log."""
        names = (name for name, each in self._directories.items() if each.logs.get(topic, partition) is not None)
        return next(names, None)

    def load(self) -> list[LoadedLog]:
        """Open every log in every directory.

        Raises:
            StorageError: a leader-epoch checkpoint is malformed, or two directories hold the same log.
            OSError: a disk failed.
        """
        loaded = [log for each in self._directories.values() for log in each.logs.load()]
        counts = Counter(f"{log.topic}-{log.partition}" for log in loaded)
        twice = sorted(name for name, times in counts.items() if times > 1)
        if twice:
            raise StorageError(f"more than one data directory holds {', '.join(twice)}")
        return loaded

    def get(self, topic: str, partition: int) -> Log | None:
        """Return the log, or None when this broker has none of that partition."""
        name = self.directory_of(topic, partition)
        return None if name is None else self._directories[name].logs.get(topic, partition)

    def get_or_create(self, topic: str, partition: int, settings: LogSettings | None = None) -> Log:
        """Return the log; a new one is in the directory that has the fewest.

        Raises:
            OSError: no directory works, or the disk failed.
        """
        name = self.directory_of(topic, partition)
        if name is not None:
            return self._directories[name].logs.get_or_create(topic, partition, settings)
        preferred = self._preferred.pop((topic, partition), None)
        if preferred is not None and not self.has_failed(preferred):
            return self._directories[preferred].logs.get_or_create(topic, partition, settings)
        chosen = min(self._online(), key=lambda each: each.logs.count)
        return chosen.logs.get_or_create(topic, partition, settings)

    def prefer(self, topic: str, partition: int, name: str) -> None:
        """Create a log that this broker does not have yet in this directory."""
        self._preferred[topic, partition] = name

    def open_future(self, name: str, source: Log, first_offset: int) -> Log:
        """Return an empty log in another directory, for a copy of a log; raises OSError."""
        logs = self._directories[name].logs
        return logs.open_future(source.topic, source.partition, source.settings, first_offset)

    def drop_future(self, name: str, future: Log) -> None:
        """Close and remove a future log; raises OSError."""
        future.close()
        self._directories[name].logs.remove(future.folder)

    def replace(self, name: str, future: Log, high_watermark: int) -> tuple[Log, str | None]:
        """Put a future log, synced and closed, in place of the log of its partition.

        Return the log, and the path of the replaced one, renamed for deletion. As in Kafka, a crash between the two
        renames leaves the log in both directories, and the next start refuses that by name.

        Raises:
            OSError: a disk failed.
        """
        key = (future.topic, future.partition)
        before = self.directory_of(*key)
        logs = self._directories[name].logs
        log = logs.adopt(future)
        logs.write_high_watermarks(logs.read_high_watermarks() | {key: high_watermark})
        folder = None if before is None else self._directories[before].logs.delete(*key)
        return log, None if folder is None else f"{before}/{folder}"

    def delete(self, topic: str, partition: int) -> str | None:
        """Rename a log for deletion and return its new path; None when there is no such log."""
        name = self.directory_of(topic, partition)
        folder = None if name is None else self._directories[name].logs.delete(topic, partition)
        return None if folder is None else f"{name}/{folder}"

    def put_aside(self) -> list[str]:
        """Return the paths of deleted logs that are still on disk."""
        return [f"{name}/{folder}" for name, each in self._directories.items() for folder in each.logs.put_aside()]

    def remove(self, place: str) -> None:
        """Remove a deleted log; raises OSError."""
        name = max((name for name in self._directories if place.startswith(f"{name}/")), key=len)
        self._directories[name].logs.remove(place.removeprefix(f"{name}/"))

    def on_put_aside(self, listener: PutAside) -> None:
        """Call `listener` with the path of files of a log that may be removed later."""

        def in_directory(name: str) -> PutAside:
            return lambda path, delay_ms: listener(f"{name}/{path}", delay_ms)

        for name, each in self._directories.items():
            each.logs.on_put_aside(in_directory(name))

    def logs(self) -> list[Log]:
        """Return all logs, sorted by topic and partition."""
        logs = [log for each in self._directories.values() for log in each.logs.logs()]
        return sorted(logs, key=lambda log: (log.topic, log.partition))

    def read_high_watermarks(self) -> PartitionOffsets:
        """Return the checkpointed high watermarks; raises StorageError when a checkpoint is malformed."""
        return {key: at for each in self._directories.values() for key, at in each.logs.read_high_watermarks().items()}

    async def checkpoint_high_watermarks(self, high_watermarks: Callable[[], Mapping[LogKey, int]]) -> bool:
        """Checkpoint them, each in its log's directory, without blocking the loop; partitions left out are dropped.

        Each directory's values are read when its turn comes: until then a log may have been deleted, and created again.
        Return whether all were put in place, none overtaken.
        """

        async def checkpoint(logs: LogManager) -> bool:
            held = {key: offset for key, offset in high_watermarks().items() if logs.get(*key) is not None}
            return await logs.checkpoint_high_watermarks(held)

        return all(await self._each_online(checkpoint))

    async def checkpoint_recovery_points(self) -> None:
        """Sync full segments, and checkpoint up to where logs are synced and where they start."""
        await self._each_online(LogManager.checkpoint_recovery_points)

    async def checkpoint_cleaner_offsets(self, name: str) -> None:
        """Checkpoint how far the logs of one directory were cleaned; raises OSError."""
        await self._directories[name].logs.checkpoint_cleaner_offsets()

    def close_clean(self) -> None:
        """Sync and close every log, and mark the directories as clean where that succeeded.

        Raises:
            OSError: a disk failed, now or before.
        """
        errors: list[OSError] = []
        for name, each in self._directories.items():
            try:
                if each.disk.failed:
                    each.logs.close()
                    raise DirectoryOffline(f"the data directory {name} has failed")
                each.logs.close_clean()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Close every log without syncing, as after a failed start."""
        for each in self._directories.values():
            each.logs.close()

    def _online(self) -> list[DataDirectory]:
        online = [each for each in self._directories.values() if not each.disk.failed]
        if not online:
            raise DirectoryOffline("every data directory has failed")
        return online

    async def _each_online(self, act: Callable[[LogManager], Awaitable[_T]]) -> list[_T]:
        """Do something with every working directory, then raise the first error."""
        done, errors = [], []
        for each in self._online():
            try:
                done.append(await act(each.logs))
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return done
