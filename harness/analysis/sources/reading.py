"""What did clients, brokers and ZooKeeper write? Typed tables of what was sealed in perfect order, lines of all else.

A frame of lines has two columns more than they: `run_id`, and `file` within the run folder. A line that is no JSON or
does not fit keeps its text in `corrupt`; `facts/evidence.py` counts those, so that none is lost silently.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.engine.compat import by_run, to_read
from harness.analysis.engine.session import tasks_for
from harness.analysis.frames import balanced_union
from harness.analysis.sources.lineage import LINE_KINDS, all_of
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.parsed_lines import Line, in_messages, lines_of, stored_rows, with_corrupt
from harness.analysis.sources.sealing.packed import Unpacked
from harness.analysis.sources.sealing.sealed import odd_kinds, sealed_tables
from harness.analysis.sources.steps import STEPS_OF, Walk
from harness.analysis.sources.typed import FACTS, TYPED
from harness.analysis.tables.protocol import STEPS
from harness.analysis.tables.table import Table
from harness.store.folder import RunFolder
from harness.store.seal import stated_files

LINES = T.MapType(T.StringType(), T.ArrayType(T.StringType()))
"""Lines of files, without their ends, by the file's place within the run folder."""
ROW_BYTES = 64
"""What a row of a table counts for, in bytes of lines: a task reads half a million."""
SEALED_LINE_BYTES = 16
"""What a sealed line counts for where a session is fitted: its tables are judged before a second compiler pays."""
_COLUMNS = {name: columns for of_kind in TYPED.values() for name, columns in of_kind.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The evidence of one run or of many: each kind of each run as lines, or as tables that it was sealed with."""

    spark: SparkSession
    lines: Mapping[str, DataFrame]
    """One frame a kind of file; without the kinds that all runs have tables of."""
    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    """Typed tables of the evidence that was in perfect order when it was sealed, by their names."""
    sealed_facts: Mapping[str, Path] = field(default_factory=dict)
    """Files of those that are facts as they are, where all rows are of one run, whose folder is on this machine."""
    absent: frozenset[str] = frozenset()
    """Kinds of evidence, and of lines as `LINE_KINDS` has them, of which no run has any for certain."""
    size_bytes: int
    """Of all files of lines, read or not."""
    read_bytes: int | None = None
    """Of the lines that are read, and what the tables count for, which jobs are fitted to; None is all lines."""
    torn: tuple[str, ...]
    """Files that end in half a line, each as run id and place within the run folder."""
    together: bool
    """Whether one task has all lines of a run, so that what is joined by run is joined where it is."""
    unstated_acks: int | None = None
    """What the acks of a send are taken for where none of its lines states them; None where all of them do."""


def read(spark: SparkSession, folders: Sequence[RunFolder], scratch: Path, *, make_tables: bool = True) -> Sources:
    """Return what the run folders hold; a file or folder that is missing reads as no lines.

    Args:
        spark: An open session.
        folders: Of the runs.
        scratch: Folder for the rows of lines, which the caller removes.
        make_tables: Whether tables that a run lacks are made in its folder.
    """
    runs = [(folder.evidence(), sealed_tables(folder, make=make_tables)) for folder in folders]
    size_bytes = sum(folder.evidence_bytes() for folder in folders)
    together = tasks_for(spark, size_bytes) <= 1
    lines, torn, absent = {}, [], set()
    for kind, schema in SCHEMAS.items():
        if runs and all(kind in tables for _, tables in runs):
            absent |= set(LINE_KINDS[kind]).difference(*(tables[kind].present for _, tables in runs))
            continue
        paths = _with_lines(path for files, tables in runs if kind not in tables for path in files[kind])
        if not paths and not any(kind in tables for _, tables in runs):
            absent |= all_of(kind)
        of_kind = chain.from_iterable(lines_of(path, *_place(path)) for path in paths)
        lines[kind] = _rows(spark, of_kind, schema, kind, scratch)
        torn += ["/".join(_place(path)) for path in paths if _is_torn(path)]
    files: dict[str, list[Path]] = {}
    for _, tables in runs:
        for sealed in tables.values():
            for name, path in sealed.paths.items():
                files.setdefault(name, []).append(path)
    frames = {name: _typed(spark, name, paths) for name, paths in files.items()}
    of_lines = [(folder.run_id, paths, tables) for folder, (paths, tables) in zip(folders, runs, strict=True)]
    for kind, name in STEPS_OF.items():
        walks = (_walk(kind, run_id, paths[kind]) for run_id, paths, tables in of_lines if kind not in tables)
        frames[name] = with_walked(spark, frames.get(name), walks)
    read_bytes = None
    if not together:
        read = [path for paths, tables in runs for kind in paths.keys() - tables.keys() for path in paths[kind]]
        read_bytes = sum(path.stat().st_size for path in read) + as_lines(chain.from_iterable(files.values()))
    return Sources(
        spark=spark,
        lines=_in_one_task(lines) if together else lines,
        tables=_in_one_task(frames) if together else frames,
        sealed_facts={name: files[name][0] for name in FACTS if name in files and len(folders) == 1},
        absent=frozenset(absent),
        size_bytes=size_bytes,
        read_bytes=read_bytes,
        torn=tuple(torn),
        together=together,
    )


def session_bytes(folders: Iterable[RunFolder], *, make_tables: bool = True) -> int:
    """Return the size that a session is fitted to: of all lines of runs, and little of those that tables stand for."""
    return sum(_session_bytes(folder, make_tables=make_tables) for folder in folders)


def _session_bytes(folder: RunFolder, *, make_tables: bool) -> int:
    files = stated_files(folder)
    if not files or not (make_tables or folder.tables.is_dir()):
        return folder.evidence_bytes()
    odd = odd_kinds(folder)
    return sum(file.size_bytes if file.breaks or file.kind in odd else file.lines * SEALED_LINE_BYTES for file in files)


def _walk(kind: str, run_id: str, paths: Iterable[Path]) -> Walk:
    """Return what the model makes of the files of one kind of a run."""
    walk = Walk(kind, run_id)
    for path in paths:
        with path.open("rb") as file:
            walk.add(file)
    return walk


def _walks_in(table: DataFrame, kind: str) -> Iterator[Walk]:
    """Yield the same of each run of a table of lines."""
    for row in table.select("run_id", kind).toArrow().to_pylist():
        walk = Walk(kind, row["run_id"])
        for _, lines in sorted(row[kind] or ()):
            walk.add(line.encode() for line in lines)
        yield walk


def with_walked(spark: SparkSession, sealed: DataFrame | None, walks: Iterable[Walk]) -> DataFrame:
    """Return the steps that runs were sealed with, and those that were walked now."""
    walked = [table for table in (walk.table() for walk in walks) if len(table)]
    frame = in_messages(spark, [pa.concat_tables(walked)]) if walked else None
    parts = [part for part in (sealed, frame) if part is not None]
    return balanced_union(parts) if parts else no_rows(spark, of_table(STEPS))


def as_lines(tables: Iterable[Path]) -> int:
    """Return how many bytes of lines the rows of these files count for, where jobs are fitted to what they read."""
    rows: int = sum(pq.read_metadata(table).num_rows for table in tables)
    return rows * ROW_BYTES


def _typed(spark: SparkSession, name: str, paths: Iterable[Path]) -> DataFrame:
    return spark.read.schema(_COLUMNS[name]).parquet(*(to_read(spark, path) for path in paths))


def _in_one_task(frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    return {name: frame.coalesce(1) for name, frame in frames.items()}


def from_table(table: DataFrame, size_bytes: int, scratch: Path, typed: Unpacked | None = None) -> Sources:
    """Return what a table of runs holds: a column `run_id`, and one of `LINES` for each kind of file.

    All of a run comes to one task: every key of a join, group or window begins with `run_id`, so nothing moves again.
    Sail parts rows anew for each of these.

    Args:
        table: One row a run.
        size_bytes: Of all lines.
        scratch: Folder for the rows of lines, which the caller removes.
        typed: The tables that runs have beside their lines, which are read of the others alone; None if none has any.
    """
    spark = table.sparkSession
    paths = {} if typed is None else typed.paths
    any_lines = typed is None or any(typed.without.values())
    read_bytes = as_lines(paths.values()) + (size_bytes if any_lines else 0)
    tasks = max(tasks_for(spark, read_bytes), 1)
    runs = {kind: table if typed is None else _of_runs(table, typed.without[kind]) for kind in SCHEMAS}
    sealed = {name: by_run(_typed(spark, name, [path]), tasks) for name, path in paths.items()}
    for kind, name in STEPS_OF.items():
        rows = runs[kind]
        sealed[name] = with_walked(spark, sealed.get(name), () if rows is None else _walks_in(rows, kind))
    return Sources(
        spark=spark,
        lines={
            kind: by_run(_rows(spark, _lines_in(rows, kind), SCHEMAS[kind], kind, scratch), tasks)
            for kind, rows in runs.items()
            if rows is not None
        },
        tables=sealed,
        size_bytes=size_bytes,
        read_bytes=read_bytes,
        torn=(),
        together=True,
    )


def _of_runs(table: DataFrame, run_ids: Sequence[str]) -> DataFrame | None:
    """Return the rows of these runs, None if there are none."""
    return table.where(F.col("run_id").isin(list(run_ids))) if run_ids else None


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _place(path: Path) -> tuple[str, str]:
    """Return run id and file within the run folder."""
    match = re.search(_RUN_AND_FILE, str(path))
    assert match is not None, f"no file of a run: {path}"
    return match[1], match[2]


def _with_lines(paths: Iterable[Path]) -> list[Path]:
    """Return the files that hold something, in a stable order."""
    return sorted(path.resolve() for path in paths if path.stat().st_size)


def no_rows(spark: SparkSession, columns: Iterable[tuple[str, str]]) -> DataFrame:
    """Return an empty table of (name, Spark SQL type); unlike `createDataFrame([])`, it starts no Python worker."""
    return spark.range(0).selectExpr(*(f"cast(null as {type_}) `{name}`" for name, type_ in columns))


def of_table(table: Table) -> list[tuple[str, str]]:
    """Return the columns of a fact as `no_rows` takes them."""
    return [(column.name, column.type) for column in table.columns]


def _rows(spark: SparkSession, lines: Iterable[Line], schema: T.StructType, kind: str, scratch: Path) -> DataFrame:
    """Return one row a line of one kind of file."""
    rows = stored_rows(spark, lines, schema, scratch / f"{kind}.parquet")
    if rows is not None:
        return rows
    fields = [*with_corrupt(schema).fields, *(T.StructField(name, T.StringType()) for name in ("run_id", "file"))]
    return no_rows(spark, [(field.name, field.dataType.simpleString()) for field in fields])


def _lines_in(table: DataFrame, kind: str) -> Iterator[Line]:
    for row in table.select("run_id", kind).toLocalIterator():
        for file, lines in (row[kind] or {}).items():
            yield from ((row["run_id"], file, line.encode()) for line in lines if line)


_RUN_AND_FILE = r"^(?:[^/]*/)*?([^/]+)/((?:operations/|brokers/[^/]+/|replicas/[^/]+/)?[^/]+)$"
"""Run folder and file within it, of any path that `read` lists."""
