"""Passes typed tables of many runs from simulation to judging: as bytes, a stream a run and table."""

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc, parquet

from harness.analysis.sources.lines import RUN_ID
from harness.analysis.sources.sealing.kinds import MAKE, NOT_IN_ORDER
from harness.analysis.sources.sealing.rows import Files
from harness.analysis.sources.sealing.writer import Writer, path_of
from harness.analysis.sources.typed import TYPED, layout_of
from harness.store.seal import DIGEST_BYTES

Pack = Mapping[str, bytes]
"""Tables of a run by their names: a digest, and a stream of Arrow."""
GROUP_BYTES = 2**25
"""So many bytes of rows of a table are written at once."""
WRITERS = 2
"""Tables that are written at once, beside the thread that reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """The tables of many runs together."""

    paths: Mapping[str, Path]
    """Parquet files by the names of tables; none of a kind that no run has packed."""
    without: Mapping[str, list[str]]
    """Runs that are to be read from their lines, by kind of evidence."""


def packed(run_id: str, files: Mapping[str, Files]) -> dict[str, bytes]:
    """Return the tables of a run's evidence, without those of a kind that is not in perfect order.

    Args:
        run_id: The run's.
        files: By kind of evidence.
    """
    pack: dict[str, bytes] = {}
    for kind, of_kind in files.items():
        streams: dict[str, pa.BufferOutputStream] = {}
        try:
            with Writer(run_id, kind, partial(_stream, streams)) as write:
                MAKE[kind](write, of_kind)
        except NOT_IN_ORDER:
            continue
        for name, stream in streams.items():
            content = stream.getvalue().to_pybytes()
            pack[name] = _digest(kind, name, content) + content
    return pack


def _stream(streams: dict[str, pa.BufferOutputStream], name: str, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
    streams[name] = pa.BufferOutputStream()
    return ipc.new_stream(streams[name], schema)


def _digest(kind: str, name: str, content: bytes) -> bytes:
    """Return the digest of a table as it is laid out today: one that was packed with another layout has another."""
    digest = hashlib.blake2b(f"{layout_of(kind)} {name} ".encode(), digest_size=DIGEST_BYTES)
    digest.update(content)
    return digest.digest()


def unpacked(packs: Iterable[tuple[str, Pack]], folder: Path) -> Unpacked:
    """Write the tables of runs into a new folder, a file a table.

    What is damaged, or was packed by another version with another layout, counts as not packed.

    Args:
        packs: Run ids, each with what was packed of it.
        folder: Where the files go.
    """
    folder.mkdir(parents=True)
    without: dict[str, list[str]] = {kind: [] for kind in TYPED}
    files: dict[str, _File] = {}
    with ThreadPoolExecutor(max_workers=WRITERS) as pool:
        for run_id, pack in packs:
            for kind, names in TYPED.items():
                try:
                    tables = {name: _table(run_id, kind, name, pack[name]) for name in names}
                except (KeyError, _Damaged):
                    without[kind].append(run_id)
                    continue
                for name, table in tables.items():
                    if name not in files:
                        files[name] = _File(path_of(folder, name), table.schema, pool)
                    files[name].write(table, len(pack[name]))
        for file in files.values():
            file.flush()
        for file in files.values():
            file.close()
    return Unpacked(paths={name: file.path for name, file in files.items()}, without=without)


class _Damaged(Exception):
    """What was packed is no more what it was."""


def _table(run_id: str, kind: str, name: str, pack: bytes) -> pa.Table:
    """Return the rows, of the run that they are handed on with."""
    digest, content = pack[:DIGEST_BYTES], pack[DIGEST_BYTES:]
    if digest != _digest(kind, name, content):
        raise _Damaged
    table = ipc.open_stream(content).read_all()
    column = table.column_names.index(RUN_ID.name)
    return table.set_column(column, table.schema.field(column), pa.repeat(run_id, len(table)))


class _File:
    """A file of a table, which many runs are written to: rows wait until there are enough for a group."""

    def __init__(self, path: Path, schema: pa.Schema, pool: ThreadPoolExecutor) -> None:
        self.path = path
        self._writer = parquet.ParquetWriter(path, schema)
        self._pool = pool
        self._writing: Future[None] | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0

    def write(self, table: pa.Table, size_bytes: int) -> None:
        """Add rows that were packed in so many bytes."""
        self._waiting.append(table)
        self._waiting_bytes += size_bytes
        if self._waiting_bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Let the rows be written that wait, once those before them are."""
        self._wait()
        if self._waiting:
            self._writing = self._pool.submit(self._writer.write_table, pa.concat_tables(self._waiting))
        self._waiting, self._waiting_bytes = [], 0

    def close(self) -> None:
        """Return when all rows are in the file.

        Raises:
            OSError: it cannot be written.
        """
        self._wait()
        self._writer.close()

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.result()
