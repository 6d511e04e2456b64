"""Snapshots of producer state: what a log knew of its producers at an offset, in Kafka's format (`.snapshot`, v1).

A log writes one whenever a new segment begins, named after the segment's first offset, and one at a clean stop. They
avoid reading the log from its start, and keep producers whose records are gone. Of each producer a snapshot has only
the last batch. A snapshot with a wrong CRC is ignored.
"""

import logging
import re
import struct
from collections import deque

from crc32c import crc32c

from harness.broker.log.producers import ProducerState, ProducerStates, RememberedBatch
from harness.broker.log.storage import Storage

_log = logging.getLogger(__name__)

SNAPSHOT = ".snapshot"
_NAME = re.compile(r"(\d{20})\.snapshot")
_VERSION = 1
_HEAD = struct.Struct(">hIi")
_CRC_FROM = 6
_ENTRY = struct.Struct(">qhiqiqiq")
_NONE = -1
_SEQUENCES = 2**31


class MalformedSnapshot(ValueError):
    """The bytes are no snapshot, or have another version."""


def encode_snapshot(states: ProducerStates) -> bytes:
    """Return the snapshot of these producers."""
    entries = b"".join(
        _ENTRY.pack(
            producer_id,
            state.epoch,
            batch.last_sequence if batch else _NONE,
            batch.last_offset if batch else _NONE,
            batch.last_offset - batch.base_offset if batch else 0,
            state.timestamp_ms,
            state.coordinator_epoch,
            _NONE if state.transaction_start is None else state.transaction_start,
        )
        for producer_id, state in sorted(states.items())
        for batch in (states.in_snapshot(state),)
    )
    body = struct.pack(">i", len(states)) + entries
    return struct.pack(">hI", _VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> dict[int, ProducerState]:
    """Return the producers of a snapshot, by their ids.

    Raises:
        MalformedSnapshot: it has another version, another CRC, or another length.
    """
    if len(data) < _HEAD.size:
        raise MalformedSnapshot(f"{len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise MalformedSnapshot(f"version {version}, known is {_VERSION}")
    if crc != crc32c(memoryview(data)[_CRC_FROM:]):
        raise MalformedSnapshot(f"it does not fit its CRC {crc:#010x}")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise MalformedSnapshot(f"{count} producers in {len(data)} bytes")
    states: dict[int, ProducerState] = {}
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, transaction_start = fields
        batches: deque[RememberedBatch] = deque()
        if offset >= 0:
            first = (sequence - delta) % _SEQUENCES
            batches.append(RememberedBatch(first, sequence, offset - delta, offset, timestamp_ms))
        states[producer_id] = ProducerState(
            epoch=epoch,
            batches=batches,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=timestamp_ms,
            transaction_start=transaction_start if transaction_start >= 0 else None,
        )
    return states


class ProducerSnapshots:
    """The snapshot files of one log."""

    __slots__ = ("_folder", "_offsets", "_storage")

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder
        names = (_NAME.fullmatch(name) for name in storage.list(folder))
        self._offsets = sorted(int(match[1]) for match in names if match is not None)

    def take(self, offset: int, states: ProducerStates, *, durably: bool = False) -> None:
        """Write the state at `offset`, if there is no snapshot of it or of a later one; raises OSError."""
        if self._offsets and self._offsets[-1] >= offset:
            return
        data, path = encode_snapshot(states), self._path(offset)
        if durably:
            self._storage.replace(path, data)
        else:
            self._storage.remove(path)
            file = self._storage.open_append(path)
            try:
                file.append(data)
            finally:
                file.close()
        self._offsets.append(offset)

    def load_latest(self, up_to: int, states: ProducerStates) -> int | None:
        """Load the last valid snapshot of `up_to` or earlier into `states`, and return its offset; None without any.

        Invalid ones are removed.
        """
        for offset in reversed([each for each in self._offsets if each <= up_to]):
            try:
                states.restore(decode_snapshot(self._storage.read(self._path(offset))), offset)
                return offset
            except (MalformedSnapshot, FileNotFoundError) as error:
                _log.warning("snapshot.dropped path=%s why=%s", self._path(offset), error)
                self.remove(offset, offset)
        return None

    def remove(self, first: int, last: int) -> None:
        """Remove the snapshots from one offset to another, both included; raises OSError."""
        for offset in [each for each in self._offsets if first <= each <= last]:
            self._storage.remove(self._path(offset))
            self._offsets.remove(offset)

    def keep_only(self, base_offsets: set[int]) -> None:
        """Remove those that begin no segment, but for the latest of all (`removeStraySnapshots`)."""
        for offset in self._offsets[:-1]:
            if offset not in base_offsets:
                self.remove(offset, offset)

    def _path(self, offset: int) -> str:
        return f"{self._folder}/{offset:020d}{SNAPSHOT}"
