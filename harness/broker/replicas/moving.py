"""Moves replicas between the data directories of this broker (AlterReplicaLogDirs, KIP-113).

A move copies the log into another directory while the replica goes on. When the copy has everything, it takes the place
of the log in one step. What cuts the log meanwhile (truncation, retention) makes the copy begin again. A stop of the
broker ends a move, and the next start removes the copy.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.broker.background import reported
from harness.broker.log.batch import iter_batches
from harness.broker.log.epoch_cache import LeaderEpochCache
from harness.broker.log.log import Log
from harness.broker.replicas.partition import Partition
from harness.broker.replicas.replicas import Replicas
from harness.broker.wire.error_codes import ErrorCode
from harness.values import TopicPartition

_log = logging.getLogger(__name__)

CHUNK_BYTES = 128 * 1024
MOST_NAME_CHARS = 255
_FUTURE_SUFFIX_CHARS = len(".") + 32 + len("-future")


@dataclass(slots=True, eq=False)
class Move:
    """A move that is under way."""

    partition: Partition
    directory: str
    """Where the replica goes."""
    future: Log | None = None
    task: asyncio.Task[None] | None = None


@dataclass(slots=True, kw_only=True)
class ReplicaMover:
    """All moves of this broker."""

    replicas: Replicas
    _moves: dict[TopicPartition, Move] = field(default_factory=dict)

    @property
    def moves(self) -> Mapping[TopicPartition, Move]:
        """The moves that are under way."""
        return self._moves

    def ask(self, key: TopicPartition, directory: str) -> ErrorCode:
        """Begin to move a replica into a directory, as `ReplicaManager.alterReplicaLogDirs` does.

        A replica that is not here yet is created there, once the controller assigns it.
        """
        logs = self.replicas.logs
        if len(f"{key[0]}-{key[1]}") + _FUTURE_SUFFIX_CHARS > MOST_NAME_CHARS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if directory not in logs.names:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if logs.has_failed(directory) or self.replicas.is_offline(*key):
            return ErrorCode.KAFKA_STORAGE_ERROR
        running = self._moves.get(key)
        if running is not None and running.directory != directory:
            self._end(running)
        partition = self.replicas.get(*key)
        if partition is None:
            if logs.get(*key) is None:
                logs.prefer(*key, directory)
            known = self.replicas.metadata.partition(*key) is not None
            return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if logs.directory_of(*key) != directory and key not in self._moves:
            if any(logs.has_failed(name) for name in logs.names):
                return ErrorCode.KAFKA_STORAGE_ERROR
            move = self._moves[key] = Move(partition, directory)
            move.task = asyncio.create_task(self._run(move), name=f"move {key[0]}-{key[1]}")
            move.task.add_done_callback(reported)
        return ErrorCode.NONE

    async def stop(self) -> None:
        """End all moves."""
        tasks = [move.task for move in self._moves.values() if move.task is not None]
        for move in list(self._moves.values()):
            self._end(move)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end(self, move: Move) -> None:
        """Forget a move, and remove its copy."""
        if self._moves.get(move.partition.key) is move:
            del self._moves[move.partition.key]
        if move.task is not None:
            move.task.cancel()
        self._drop(move)

    def _drop(self, move: Move) -> None:
        if move.future is not None:
            future, move.future = move.future, None
            try:
                self.replicas.logs.drop_future(move.directory, future)
            except OSError as error:  # the next start removes it
                _log.warning("move.remains folder=%s error=%s", future.folder, error)

    def _is_wanted(self, move: Move) -> bool:
        return self._moves.get(move.partition.key) is move and self.replicas.get(*move.partition.key) is move.partition

    async def _run(self, move: Move) -> None:
        topic, number = move.partition.key
        try:
            while self._is_wanted(move) and not await self._copied(move):
                self._drop(move)
        except OSError as error:
            _log.error("move.failed partition=%s-%d directory=%s error=%s", topic, number, move.directory, error)
        finally:
            self._drop(move)
            if self._moves.get(move.partition.key) is move:
                del self._moves[move.partition.key]

    async def _copied(self, move: Move) -> bool:
        """Copy the log and put the copy in its place; False if the log was cut, so that the copy is worth nothing."""
        source = move.partition.log
        cuts, synced = source.cuts, False
        start = source.log_start_offset
        while True:
            await asyncio.sleep(0)
            at = start if move.future is None else move.future.log_end_offset
            await source.storage.ready()
            if source.cuts != cuts or not self._is_wanted(move):
                return False
            end = source.log_end_offset
            data = source.read(at, max_bytes=CHUNK_BYTES, up_to=end, at_least_one=True)
            if move.future is None:
                first = next((header.base_offset for header, _ in iter_batches(data)), start)
                move.future = self.replicas.logs.open_future(move.directory, source, min(first, start))
            if data:
                move.future.append_as_follower(data)
            if move.future.log_end_offset < end:
                continue
            if synced:
                self._put_in_place(move, source, move.future)
                return True
            await move.future.flush_rolled()
            await move.future.segments[-1].sync_off_loop()
            synced = True

    def _put_in_place(self, move: Move, source: Log, future: Log) -> None:
        """Make a complete copy the log of its replica, in one step of the loop."""
        partition, key = move.partition, move.partition.key
        future.advance_log_start(source.log_start_offset)
        future.replace_epochs(LeaderEpochCache(source.epochs.entries))
        future.cleaned_to, future.settings = source.cleaned_to, source.settings
        future.flush()
        future.seal()
        future.close()
        move.future = None
        partition.log, replaced = self.replicas.logs.replace(move.directory, future, partition.high_watermark)
        if replaced is not None:
            self.replicas.put_aside(replaced)
        self.replicas.in_force.look(partition)
        _log.info("move.complete partition=%s-%d directory=%s", *key, move.directory)
        self.replicas.wake(key)
