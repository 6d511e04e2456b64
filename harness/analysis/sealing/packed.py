"""How do typed tables of many runs go from those who simulate to whoever judges? As bytes, a stream a run and table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc, parquet

from harness.analysis.lines import RUN_ID
from harness.analysis.sealing.kinds import MAKE, NOT_IN_ORDER
from harness.analysis.sealing.rows import Files
from harness.analysis.sealing.writer import Writer, path_of
from harness.analysis.typed import TYPED, layout_of

Pack = Mapping[str, bytes]
"""Tables of a run as streams of Arrow, by their names."""
_LAYOUT = b"layout"


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
            with Writer(run_id, kind, partial(_stream, streams, layout_of(kind))) as write:
                MAKE[kind](write, of_kind)
        except NOT_IN_ORDER:
            continue
        pack |= {name: stream.getvalue().to_pybytes() for name, stream in streams.items()}
    return pack


def _stream(
    streams: dict[str, pa.BufferOutputStream], layout: str, name: str, schema: pa.Schema
) -> ipc.RecordBatchStreamWriter:
    streams[name] = pa.BufferOutputStream()
    return ipc.new_stream(streams[name], schema.with_metadata({_LAYOUT: layout}))


def unpacked(packs: Iterable[tuple[str, Pack]], folder: Path) -> Unpacked:
    """Write the tables of runs into a new folder, a file a table.

    What cannot be read, or was packed by another version with another layout, counts as not packed.

    Args:
        packs: Run ids, each with what was packed of it.
        folder: Where the files go.
    """
    folder.mkdir(parents=True)
    without: dict[str, list[str]] = {kind: [] for kind in TYPED}
    tables: dict[str, list[pa.Table]] = {}
    for run_id, pack in packs:
        for kind, structs in TYPED.items():
            try:
                of_kind = {name: _table(run_id, pack[name], layout_of(kind)) for name in structs}
            except (KeyError, ValueError, OSError, pa.ArrowException):
                without[kind].append(run_id)
                continue
            for name, table in of_kind.items():
                tables.setdefault(name, []).append(table)
    paths = {name: path_of(folder, name) for name in tables}
    for name, path in paths.items():
        parquet.write_table(pa.concat_tables(tables[name]), path)
    return Unpacked(paths=paths, without=without)


def _table(run_id: str, stream: bytes, layout: str) -> pa.Table:
    """Return the rows, of the run that they are handed on with."""
    table = ipc.open_stream(stream).read_all()
    if table.schema.metadata != {_LAYOUT: layout.encode()}:
        raise ValueError("another layout")
    column = table.column_names.index(RUN_ID.name)
    named = table.set_column(column, table.schema.field(column), pa.repeat(run_id, len(table)))
    return named.replace_schema_metadata()
