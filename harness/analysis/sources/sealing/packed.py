"""How do typed tables of many runs go from those who simulate to whoever judges? As bytes, a stream a run and table."""

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
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
    with ExitStack() as stack:
        for run_id, pack in packs:
            for kind, names in TYPED.items():
                try:
                    tables = {name: _table(run_id, kind, name, pack[name]) for name in names}
                except (KeyError, _Damaged):
                    without[kind].append(run_id)
                    continue
                for name, table in tables.items():
                    if name not in files:
                        files[name] = stack.enter_context(_File(path_of(folder, name), table.schema))
                    files[name].write(table)
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

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self._writer = parquet.ParquetWriter(path, schema)
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0

    def __enter__(self) -> "_File":
        return self

    def __exit__(self, *_error: object) -> None:
        self._flush()
        self._writer.close()

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if self._waiting_bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting, self._waiting_bytes = [], 0
