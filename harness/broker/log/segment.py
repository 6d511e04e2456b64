"""One segment: a file of batches named by the offset of the first, and the index of its batches."""

import re
import struct
from collections.abc import Callable, Iterator, Sequence

from harness.broker.log.batch import HEADER_BYTES, LENGTH_END, MAGIC, BatchHeader, crc_matches, parse_header
from harness.broker.log.markers import Marker, read_marker
from harness.broker.log.offset_index import BatchPosition, OffsetIndex
from harness.broker.log.segment_index import SegmentIndex
from harness.broker.log.storage import AppendFile, Storage
from harness.broker.log.transaction_index import TransactionIndex

SEGMENT_NAME = re.compile(r"(\d{20})\.log")
DELETED = ".deleted"
"""Suffix of files that are no part of a log any more."""
_PEEK = struct.Struct(">qi4xB6xi8xq")
"""Base offset, batch length, magic, last offset delta, max timestamp."""
_CHUNK_BYTES = 4096
_NO_LIMIT = 1 << 62


def segment_name(base_offset: int) -> str:
    """Return the file name of the segment that starts at `base_offset`."""
    return f"{base_offset:020d}.log"


class Segment:
    """Batches in offset order; `next_offset` is the one after the last."""

    __slots__ = (
        "_file",
        "_first_timestamp",
        "_index",
        "_storage",
        "_tail",
        "aborted",
        "base_offset",
        "closed",
        "next_offset",
        "path",
    )

    def __init__(self, storage: Storage, folder: str, base_offset: int, interval_bytes: int, suffix: str = "") -> None:
        """`suffix` is the end of the file's name while the segment is not yet part of the log."""
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.path = f"{folder}/{segment_name(base_offset)}{suffix}"
        self._file: AppendFile = storage.open_append(self.path)
        self._storage = storage
        stem = self.path.removesuffix(".log")
        self._index = SegmentIndex(storage, stem, base_offset, interval_bytes, self._batches)
        self.aborted = TransactionIndex(storage, stem)
        """The aborted transactions whose markers are in the segment."""
        if not self._file.size:
            self._index.begin()
        self._tail: BatchPosition | None = None
        """The last batch, while it is the one appended last, which is requested most."""
        self._first_timestamp: int | None = None
        self.closed = False
        """Whether it was closed, or deleted."""

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self._file.size

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of its batches; -1 when there are none."""
        return self._index.max_timestamp

    @property
    def has_index(self) -> bool:
        """Whether its index is on disk, or there is nothing to index."""
        return not self.size or self._index.is_on_disk

    @property
    def index_entries(self) -> int:
        """How many entries its index has, beside the one of its first batch, while the segment grows."""
        return len(self._index.live()) - 1

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of its first batch; there is one."""
        if self._first_timestamp is None:
            self._first_timestamp = parse_header(self._file.read(0, HEADER_BYTES)).max_timestamp
        return self._first_timestamp

    def append(self, data: bytes | bytearray | memoryview, headers: Sequence[BatchHeader]) -> None:
        """Write whole batches, described by `headers`, at the end; raises OSError with nothing written."""
        index = self._index.live()
        position = self._file.size
        self._file.append(data)
        for header in headers:
            start, position = position, position + header.size
            index.add(header.last_offset, start, header.max_timestamp)
        self._tail = BatchPosition(start, position, header.base_offset, header.last_offset, header.max_timestamp)
        self.next_offset = header.last_offset + 1

    def read(self, offset: int, *, max_bytes: int, up_to: int, at_least_one: bool) -> tuple[bytes, bool]:
        """Return whole batches, from the one with `offset` or the next, and whether they reach the file's end.

        None of them ends after `up_to`; they have at most `max_bytes`, except the first one with `at_least_one`.
        """
        first = self._find(offset)
        if first is None:
            return b"", True
        if first.last_offset >= up_to:
            return b"", False
        end = self._run_end(first, max_bytes, up_to)
        if end == first.position and at_least_one:
            end = first.end
        return self._file.read(first.position, end - first.position), end == self._file.size

    def batches_reaching(self, timestamp_ms: int) -> Iterator[bytes]:
        """Yield, in offset order, the batches with a record of `timestamp_ms` or later."""
        for batch in self._batches(self._index.before_timestamp(timestamp_ms)):
            if batch.max_timestamp >= timestamp_ms:
                yield self._file.read(batch.position, batch.end - batch.position)

    def headers(self) -> Iterator[BatchHeader]:
        """Yield the headers of all batches."""
        for batch in self._batches(0):
            yield parse_header(self._file.read(batch.position, HEADER_BYTES))

    @property
    def has_file(self) -> bool:
        """Whether its file is where it should be."""
        return self._storage.exists(self.path)

    def written(self, offset: int) -> Iterator[tuple[BatchHeader, Marker | None]]:
        """Yield the headers of the batches from the one with `offset` on, with the markers of control batches."""
        for batch in self._batches(self._index.before_offset(offset)):
            if batch.last_offset >= offset:
                header = parse_header(self._file.read(batch.position, HEADER_BYTES))
                is_marker = header.is_control and header.producer_id >= 0
                yield header, read_marker(self._file.read(batch.position, header.size), header) if is_marker else None

    def bytes_at(self, position: int, length: int) -> bytes:
        """Return up to this many bytes of the file."""
        return self._file.read(position, length)

    def position_before(self, offset: int) -> int:
        """Return the position of a batch at or before the one with `offset`."""
        return self._index.before_offset(offset)

    @property
    def index_bytes(self) -> tuple[int, int]:
        """Bytes of the index by offset and of the one by time, on disk or once they are."""
        return self._index.sizes

    def change_suffix(self, suffix: str) -> None:
        """Rename the file, finally to the name of a segment of the log."""
        name = f"{self.path.partition('.log')[0]}.log{suffix}"
        self._storage.move(self.path, name)
        self.path = name
        self._index.move(name.removesuffix(".log"))
        self.aborted.move(name.removesuffix(".log"))

    def resume(self) -> int:
        """Set `next_offset` by the index and the batches after it; return the number of valid bytes."""
        self._tail = None
        self.next_offset = self.base_offset
        sound = 0
        for batch in self._batches(self._index.live().before_limits(self.size, _NO_LIMIT)):
            self.next_offset, sound = batch.last_offset + 1, batch.end
        return sound

    def scan(self, verify: Callable[[BatchHeader], None], *, gaps: bool = False) -> int:
        """Read the file from its start, set index and `next_offset`; return the number of valid bytes.

        Every batch must match its CRC and, except for gaps of compaction, follow the one before it, as the CRC does not
        cover its offset; its header is passed to `verify`.
        """
        index = self._index.begin()
        self._tail = None
        self.next_offset = self.base_offset
        sound = 0
        for batch in self._batches(0):
            records = self._file.read(batch.position, batch.end - batch.position)
            header = parse_header(records)
            follows = header.base_offset == self.next_offset or (gaps and header.base_offset > self.next_offset)
            if not follows or not crc_matches(records, header):
                break
            verify(header)
            self._add(index, batch)
            sound = batch.end
        return sound

    def drop_from(self, offset: int) -> None:
        """Drop the batch with `offset` and all after it; the segment ends there, or where that batch began."""
        batch = self._find(offset)
        end = min(self.next_offset, offset)
        if batch is not None:
            self.cut(batch.position)
            end = min(offset, batch.base_offset)
        self.next_offset = end

    def cut(self, size: int) -> None:
        """Drop everything from byte `size` on, at the start of a batch or of invalid data."""
        start = self._index.rewind(size)
        index = self._index.live()
        self._file.truncate(size)
        self._tail = None
        self._first_timestamp = None
        self.next_offset = self.base_offset
        for batch in self._batches(start):
            self._add(index, batch)
        self.aborted.truncate(self.next_offset)

    def sync(self) -> None:
        """Return when all batches and entries of aborted transactions survive a power loss."""
        self.aborted.sync()
        self._file.sync()

    async def sync_off_loop(self) -> None:
        """Like `sync`, for data written by now, without blocking the loop."""
        self.aborted.sync()
        await self._file.sync_off_loop()

    def seal(self) -> None:
        """Move the index to disk; raises OSError."""
        self._index.seal()

    async def seal_off_loop(self) -> None:
        """Like `seal`, without blocking the loop; an index that changes meanwhile stays in memory."""
        await self._index.seal_off_loop()

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._index.close()
        self.aborted.close()
        self._file.close()

    def put_aside(self) -> list[str]:
        """Close the file, and rename it with its index so that they are no part of the log; return the paths."""
        self.close()
        paths = [self.path, *self._index.files(), *self.aborted.files()]
        for path in paths:
            self._storage.rename(path, path + DELETED)
        return [path + DELETED for path in paths]

    def delete(self) -> None:
        """Close the file and remove it, with its index; raises OSError."""
        self.close()
        self._storage.remove(self.path)
        self._index.remove()
        self.aborted.remove()

    def _add(self, index: OffsetIndex, batch: BatchPosition) -> None:
        index.add(batch.last_offset, batch.position, batch.max_timestamp)
        self.next_offset = batch.last_offset + 1

    def _find(self, offset: int) -> BatchPosition | None:
        tail = self._tail
        if tail is not None and offset >= tail.base_offset:
            return tail if offset <= tail.last_offset else None
        for batch in self._batches(self._index.before_offset(offset)):
            if batch.last_offset >= offset:
                return batch
        return None

    def _run_end(self, first: BatchPosition, max_bytes: int, up_to: int) -> int:
        limit = first.position + max_bytes
        if limit >= self._file.size and up_to >= self.next_offset:
            return self._file.size
        end = max(first.position, self._index.before_limits(limit, up_to))
        for batch in self._batches(end):
            if batch.end > limit or batch.last_offset >= up_to:
                break
            end = batch.end
        return end

    def _batches(self, position: int) -> Iterator[BatchPosition]:
        """Yield the batches from `position` on, up to the first invalid one."""
        size = self._file.size
        chunk, chunk_at, lowest = b"", position, self.base_offset
        while position + HEADER_BYTES <= size:
            if position - chunk_at + _PEEK.size > len(chunk):
                chunk, chunk_at = self._file.read(position, _CHUNK_BYTES), position
            base_offset, length, magic, delta, max_timestamp = _PEEK.unpack_from(chunk, position - chunk_at)
            end = position + LENGTH_END + length
            sound = length >= HEADER_BYTES - LENGTH_END and end <= size and magic == MAGIC
            if not sound or base_offset < lowest or delta < 0:
                return
            lowest = base_offset + delta + 1
            yield BatchPosition(position, end, base_offset, lowest - 1, max_timestamp)
            position = end
