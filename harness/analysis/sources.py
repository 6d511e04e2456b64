"""What did clients, brokers and ZooKeeper write? Lines of run folders as frames, typed by the classes that write them.

Every frame has two columns more than the lines: `run_id`, and `file` within the run folder. A line that is no JSON or
does not fit keeps its text in `corrupt`; `facts/evidence.py` counts those, so that none is lost silently.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.origins import FACT_EVENTS
from harness.analysis.session import tasks_for
from harness.analysis.storage import file_path_column
from harness.events import COMMON, KINDS
from harness.store.folder import RunFolder
from harness.store.history import (
    DeletedLog,
    JournalEntry,
    Liveness,
    Operation,
    ReplicaRecord,
    ReplicaState,
    ZnodeChange,
)

CORRUPT = "corrupt"
ENDS = "lines"
"""What only a writer's last line says (`harness/system/chain.py`)."""

_SCALARS: dict[Any, T.DataType] = {
    int: T.LongType(),
    float: T.DoubleType(),
    str: T.StringType(),
    bool: T.BooleanType(),
}


def struct_of(cls: type) -> T.StructType:
    """Return the columns that a dataclass has as a JSON line; a dict stays the JSON text it is."""
    hints = get_type_hints(cls)
    return T.StructType([T.StructField(field.name, _type_of(hints[field.name])) for field in fields(cls)])


def _type_of(hint: Any) -> T.DataType:
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (hint,) = (argument for argument in arguments if argument is not NoneType)
        return _type_of(hint)
    if origin in (list, tuple):
        return T.ArrayType(_type_of(arguments[0]))
    if origin is dict:
        return T.StringType()
    if is_dataclass(hint) and isinstance(hint, type):
        return struct_of(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return T.StringType()
    raise TypeError(f"no column type for {hint}")


def merged(structs: Iterable[T.StructType]) -> T.StructType:
    """Return all columns of several kinds of line; a name with two types becomes text, as it stands in the JSON."""
    types: dict[str, T.DataType] = {}
    for struct in structs:
        for field in struct.fields:
            known = types.setdefault(field.name, field.dataType)
            if known != field.dataType:
                types[field.name] = T.StringType()
    return T.StructType([T.StructField(name, type_) for name, type_ in types.items()])


OPERATION = struct_of(Operation)
JOURNAL_ENTRY = struct_of(JournalEntry)
ZNODE_CHANGE = struct_of(ZnodeChange)
REPLICA_LINE = merged([struct_of(ReplicaState), struct_of(ReplicaRecord), struct_of(DeletedLog)])
_COMMON = T.StructType([T.StructField(name, _type_of(type_)) for name, type_ in COMMON])
_FACT_FIELDS = {*_COMMON.names, *(field.name for kind in FACT_EVENTS for field in fields(kind))}
_ALL_KINDS = merged([_COMMON, *(struct_of(kind) for kind in KINDS.values())])
STATE_CHANGE = T.StructType([field for field in _ALL_KINDS.fields if field.name in _FACT_FIELDS])
"""Fields of the kinds in `TOLD`; a name that any other kind uses with another type is text all the same."""

SCHEMAS: dict[str, T.StructType] = {
    "operations": OPERATION,
    "journal": JOURNAL_ENTRY,
    "zookeeper": ZNODE_CHANGE,
    "replicas": REPLICA_LINE,
    "state_changes": STATE_CHANGE,
    "liveness": struct_of(Liveness),
}
"""What a line holds, by the kinds of files that a run folder has."""
LINES = T.MapType(T.StringType(), T.ArrayType(T.StringType()))
"""Lines of files, without their ends, by the file's place within the run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The lines of one run or of many, one frame a kind of file."""

    operations: DataFrame
    journal: DataFrame
    zookeeper: DataFrame
    replicas: DataFrame
    state_changes: DataFrame
    liveness: DataFrame

    size_bytes: int
    """Of all files."""
    torn: tuple[str, ...]
    """Files that end in half a line, each as run id and place within the run folder."""
    together: bool
    """Whether one task has all lines of a run, so that what is joined by run is joined where it is."""

    @property
    def frames(self) -> dict[str, DataFrame]:
        """All of them, by the kind of their files."""
        return {kind: getattr(self, kind) for kind in SCHEMAS}

    def with_frames(self, frames: Mapping[str, DataFrame]) -> "Sources":
        """Return the same lines from other frames, one a kind of file."""
        return Sources(**frames, size_bytes=self.size_bytes, torn=self.torn, together=self.together)


def read(spark: SparkSession, folders: Sequence[RunFolder]) -> Sources:
    """Return what the run folders hold; a file or folder that is missing reads as no lines."""
    runs = [folder.evidence() for folder in folders]
    files = {kind: _with_lines(path for run in runs for path in run[kind]) for kind in SCHEMAS}
    all_files = [path for paths in files.values() for path in paths]
    size_bytes = sum(path.stat().st_size for path in all_files)
    frames = {kind: _lines(spark, schema, files[kind]) for kind, schema in SCHEMAS.items()}
    together = tasks_for(spark, size_bytes) <= 1
    if together:
        frames = {kind: frame.coalesce(1) for kind, frame in frames.items()}
    return Sources(
        **frames,
        size_bytes=size_bytes,
        torn=tuple(_in_run(path) for path in all_files if _is_torn(path)),
        together=together,
    )


def from_table(table: DataFrame, size_bytes: int) -> Sources:
    """Return what a table of runs holds: a column `run_id`, and one of `LINES` for each kind of file.

    All of a run comes to one task: every key of a join, group or window begins with `run_id`, so nothing moves again.

    Args:
        table: One row a run.
        size_bytes: Of all lines.
    """
    table = table.repartition(max(tasks_for(table.sparkSession, size_bytes), 1), "run_id")
    return Sources(
        **{kind: _parsed(table, schema, kind) for kind, schema in SCHEMAS.items()},
        size_bytes=size_bytes,
        torn=(),
        together=True,
    )


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _in_run(path: Path) -> str:
    match = re.search(_RUN_AND_FILE, str(path))
    assert match is not None, f"no file of a run: {path}"
    return f"{match[1]}/{match[2]}"


def _with_lines(paths: Iterable[Path]) -> list[Path]:
    """Return the files that hold something, in a stable order."""
    return sorted(path.resolve() for path in paths if path.stat().st_size)


def no_rows(spark: SparkSession, columns: Iterable[tuple[str, str]]) -> DataFrame:
    """Return an empty table of (name, Spark SQL type); unlike `createDataFrame([])`, it starts no Python worker."""
    return spark.range(0).select(*(F.lit(None).cast(type_).alias(name) for name, type_ in columns))


def _lines(spark: SparkSession, schema: T.StructType, paths: Sequence[Path]) -> DataFrame:
    """Return one row a line of the files."""
    whole = with_corrupt(schema)
    if not paths:
        named = T.StructType([*whole.fields, *(T.StructField(name, T.StringType()) for name in ("run_id", "file"))])
        return no_rows(spark, [(field.name, field.dataType.simpleString()) for field in named])
    path = file_path_column()
    return (
        spark.read.schema(T.StructType([*whole.fields, T.StructField(ENDS, T.LongType())]))
        .options(**PERMISSIVE)
        .json([str(path) for path in paths])
        .where(F.col(ENDS).isNull())
        .select(
            *whole.names,
            F.regexp_extract(path, _RUN_AND_FILE, 1).alias("run_id"),
            F.regexp_extract(path, _RUN_AND_FILE, 2).alias("file"),
        )
    )


def _parsed(table: DataFrame, schema: T.StructType, kind: str) -> DataFrame:
    """Return one row a line of one kind of file, as `_lines` does."""
    return (
        table.select("run_id", F.explode(kind).alias("file", "lines"))
        .select("run_id", "file", F.explode("lines").alias("line"))
        .where(F.length("line") > 0)
        .select("run_id", "file", F.from_json("line", with_corrupt(schema), PERMISSIVE).alias("parsed"))
        .select("parsed.*", "run_id", "file")
    )


def with_corrupt(schema: T.StructType) -> T.StructType:
    """Return the columns of a line, and one for the text of a line that does not fit."""
    return T.StructType([*schema.fields, T.StructField(CORRUPT, T.StringType())])


PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
_RUN_AND_FILE = r"^(?:[^/]*/)*?([^/]+)/((?:operations/|brokers/[^/]+/|replicas/[^/]+/)?[^/]+)$"
"""Run folder and file within it, of any path that `read` lists."""
