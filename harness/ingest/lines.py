"""Recorded evidence as the lines of one run: JSON Lines or Parquet, from any file system of Spark.

A line that does not fit `harness/ingest/formats.py` is dropped: it becomes no fact, its file gets a remark as
unreadable, and checks that rest on it do not answer.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import takewhile
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.engine.bisection import SPARK_ERRORS
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.session import tasks_for
from harness.analysis.engine.storage import display_path, reason
from harness.analysis.frames import balanced_union
from harness.analysis.sources.lineage import PLACES, all_of
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import CORRUPT, Sources, no_rows, with_corrupt, with_walked
from harness.analysis.sources.steps import STEPS_OF, Walk
from harness.errors import EvidenceError
from harness.ingest import reading
from harness.ingest.expansion import EXPANSION, check_expansion
from harness.ingest.files import JSON, PARQUET, Files, StoredFile, stored_files
from harness.ingest.formats import CHAIN, LINE_NUMBER, Format, formats
from harness.ingest.proof import holes_in
from harness.ingest.reading import BROKEN, FILE, KEYS, LINE, TEXT
from harness.store.history import OpKind, OpType
from harness.store.seal import Hole

MISREAD = "not JSON, or a value of another type"
EXPLAINED_FILES = 5
SHOWN_CHARS = 120
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_UNSIGNED = T.DecimalType(20, 0)
"""Spark's type for unsigned 64-bit integers."""
_SCALAR = (*_WHOLE, T.FloatType, T.DoubleType, T.StringType, T.BooleanType)


class RecordedEvidence:
    """The files of one history, by the kind of evidence in them."""

    def __init__(self, spark: SparkSession, paths: Mapping[str, Sequence[str]], *, expansion: int = EXPANSION) -> None:
        """Look for the files.

        Raises:
            EvidenceError: a path has nothing readable, a file holds more than `expansion` times its
                size, or a table has other columns.
        """
        self.spark = spark
        self._where = reading.files_of(spark)
        self.files = {kind: _all(self._where, paths.get(kind, ())) for kind in SCHEMAS}
        for files in self.files.values():
            for file in files:
                check_expansion(self._where, file, expansion)
        self._tables = {
            kind: _tables(spark, formats()[kind], [file for file in files if file.format == PARQUET])
            for kind, files in self.files.items()
        }

    def sources(self, run_id: str, unstated_acks: int) -> Sources:
        """Return the lines of all files as those of one run.

        Args:
            run_id: What the history is called.
            unstated_acks: What the acks of a send are taken for where none of its lines states them.
        """
        everything = [file for files in self.files.values() for file in files]
        size_bytes = sum(file.size for file in everything)
        together = tasks_for(self.spark, size_bytes) <= 1
        frames = {kind: self._lines(kind).withColumn("run_id", F.lit(run_id)) for kind in SCHEMAS}
        if together:
            frames = {kind: frame.coalesce(1) for kind, frame in frames.items()}
        torn = (
            f"{run_id}/{_named(kind, file.path, files)}"
            for kind, files in self.files.items()
            for file in files
            if file.torn
        )
        absent = set[str]().union(*(all_of(kind) for kind, files in self.files.items() if not files))
        return Sources(
            spark=self.spark,
            lines=frames,
            tables={name: with_walked(self.spark, None, [self._walk(kind, run_id)]) for kind, name in STEPS_OF.items()},
            absent=frozenset(absent),
            size_bytes=size_bytes,
            torn=tuple(torn),
            together=together,
            unstated_acks=unstated_acks,
        )

    def _walk(self, kind: str, run_id: str) -> Walk:
        """Return the steps in the text of one kind; tables do not have all that the model reads."""
        walk = Walk(kind, run_id)
        for file in self.files[kind]:
            if file.format == JSON:
                with self._where.text(file.path) as lines:
                    walk.add(lines)
        return walk

    def said(self) -> list[tuple[str, str]]:
        """Return the settings that lines of operations state, name and value of each."""
        rows = self._having(OpKind.SETTING).select("key", "value").distinct()
        return sorted((row.key, row.value) for row in rows.collect())

    def place_of(self, name: str, value: str) -> str:
        """Return file and line of the first line that states this value of a setting."""
        stated = (F.col("kind") == OpKind.SETTING.value) & (F.col("key") == name) & (F.col("value") == value)
        for file in self.files["operations"]:
            with reading.in_order(self.spark):
                row = self._numbered("operations", file).where(stated).select(LINE).orderBy(LINE).first()
            if row is not None:
                return f"{file.shown}:{row[LINE]}"
        return "a line of the history"

    def deleted_from(self) -> list[str]:
        """Return the topics whose records a client asked to delete, and did not certainly fail to."""
        lines = self._having(OpKind.DELETE_RECORDS)
        failed = lines.where(F.col("type") == OpType.FAIL).select("process", "index")
        deleted = lines.join(failed, on=["process", "index"], how="left_anti").select("topic").distinct()
        return sorted(row.topic for row in deleted.collect())

    def events(self) -> set[str]:
        """Return the kinds of state changes that occur."""
        return {row.ev for row in self._lines("state_changes").select("ev").distinct().collect()}

    def without_acks(self) -> DataFrame | None:
        """Return `process` and `index` of the sends whose acks no line states; None if there are none."""
        sends = self._having(OpKind.SEND).groupBy("process", "index").agg(F.max("acks").alias("acks"))
        rows = sends.where(F.col("acks").isNull()).select("process", "index")
        return None if rows.isEmpty() else rows

    def _having(self, kind: OpKind) -> DataFrame:
        """Return the valid lines of one kind of operation, without defaults."""
        form, schema = formats()["operations"], SCHEMAS["operations"]
        texts = [file for file in self.files["operations"] if file.format == JSON]
        parts = [_fitting(_shaped(table, schema), form) for table in self._tables["operations"]]
        if texts:
            parts.append(_fitting(reading.lines(self.spark, texts, schema, having=f'"{kind}"'), form))
        if not parts:
            return no_rows(self.spark, [(field.name, field.dataType.simpleString()) for field in schema])
        return balanced_union(parts).where(F.col("kind") == kind.value)

    def _lines(self, kind: str) -> DataFrame:
        form, schema = formats()[kind], SCHEMAS[kind]
        texts = [file for file in self.files[kind] if file.format == JSON]
        parts = [_fitting(_shaped(table, schema), form) for table in self._tables[kind]]
        if texts:
            parts.append(_fitting(reading.lines(self.spark, texts, schema), form))
        if not parts:
            named = T.StructType([*with_corrupt(schema).fields, T.StructField(FILE, T.StringType())])
            return no_rows(self.spark, [(field.name, field.dataType.simpleString()) for field in named])
        lines = balanced_union(parts)
        known = {name: value for name, value in form.defaults.items() if (kind, name) != ("operations", "acks")}
        fits = F.col(CORRUPT).isNull()
        filled = {
            name: F.when(fits, F.coalesce(name, F.lit(value))) for name, value in known.items() if name in lines.columns
        }
        return lines.withColumns(filled | _derived(kind) | {FILE: self._named(kind)})

    def _named(self, kind: str) -> Column:
        """The file of a row as remarks name it."""
        return F.concat(F.lit(f"{PLACES[kind]}/"), F.substr(FILE, F.lit(len(_parent(self.files[kind])) + 1)))

    @property
    def chained(self) -> dict[str, list[StoredFile]]:
        """The files that prove whether they are complete, by the kind of evidence in them."""
        of_kinds = {kind: [file for file in files if file.chained] for kind, files in self.files.items()}
        return {kind: files for kind, files in of_kinds.items() if files and formats()[kind].chained}

    def holes(self) -> list[Hole]:
        """Return their defects.

        Raises:
            EvidenceError: one cannot be read.
        """
        return [
            hole
            for kind, files in self.chained.items()
            for file in files
            for hole in holes_in(self._where, file, kind, _named(kind, file.path, self.files[kind]))
        ]

    def explain(self, subjects: Sequence[str]) -> list[str]:
        """Return, for the first few files with invalid lines, the place of the first such line and its problem."""
        named = {_named(kind, file.path, files): (kind, file) for kind, files in self.files.items() for file in files}
        bad = [named[subject] for subject in subjects if subject in named]
        return [self._explained(kind, file) for kind, file in bad[:EXPLAINED_FILES]]

    def _explained(self, kind: str, file: StoredFile) -> str:
        try:
            return self._first_misfit(kind, file)
        except (*SPARK_ERRORS, EvidenceError, OSError, pa.ArrowException) as error:  # everything else is judged by now
            return f"{file.shown}: the line is not found: {reason(error)}"

    def _first_misfit(self, kind: str, file: StoredFile) -> str:
        with reading.in_order(self.spark):
            rows = self._numbered(kind, file)
            row = rows.where(F.col(CORRUPT).isNotNull()).select(LINE, CORRUPT, TEXT).orderBy(LINE).first()
        if row is None:
            return f"{file.shown}: every line fits"
        wrong = _wrong(row[TEXT], SCHEMAS[kind]) if row[CORRUPT] == MISREAD else row[CORRUPT]
        return f"{file.shown}:{row[LINE]}: {wrong}"

    def _numbered(self, kind: str, file: StoredFile) -> DataFrame:
        """Return the lines of a file with `LINE` and `TEXT`; the session reads them in order."""
        form, schema = formats()[kind], SCHEMAS[kind]
        if file.format == PARQUET:
            raw = _shaped(_table(self.spark, form, [file], numbered=True), schema, LINE)
            return _fitting(raw, form, LINE).withColumn(TEXT, F.lit(""))
        return _fitting(reading.numbered_lines(self.spark, file, schema), form, LINE, TEXT)


def _all(where: Files, paths: Sequence[str]) -> list[StoredFile]:
    files = {file.path: file for path in paths for file in stored_files(where, path)}
    return sorted(files.values(), key=lambda file: file.path)


def _parent(files: Sequence[StoredFile]) -> str:
    """Return the folder, with its last slash, that all files are below; a URI may have two slashes."""
    folders = [file.shown.split("/")[:-1] for file in files]
    common = [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*folders, strict=False))]
    return "".join(f"{step}/" for step in common)


def _named(kind: str, path: str, files: Sequence[StoredFile]) -> str:
    return f"{PLACES[kind]}/{display_path(path)[len(_parent(files)) :]}"


def _shaped(table: DataFrame, schema: T.StructType, *more: str) -> DataFrame:
    """The rows of a table in the types of lines; its columns are known to fit."""
    types = {field.name: field.dataType for field in table.schema}
    columns = [
        (_cast(F.col(field.name), types[field.name], field.dataType) if field.name in types else F.lit(None))
        .try_cast(field.dataType)
        .alias(field.name)
        for field in schema
    ]
    keys = F.lit(None).cast("array<string>").alias(KEYS)
    return table.select(*columns, keys, F.lit(False).alias(BROKEN), FILE, *more)


def _cast(column: Column, actual: T.DataType, wanted: T.DataType) -> Column:
    """Return a value in the given type; members of structures are matched by name."""
    if isinstance(actual, T.ArrayType) and isinstance(wanted, T.ArrayType):
        return F.transform(column, lambda each: _cast(each, actual.elementType, wanted.elementType))
    if isinstance(actual, T.StructType) and isinstance(wanted, T.StructType):
        types = {field.name: field.dataType for field in actual}
        members = [
            (_cast(column[field.name], types[field.name], field.dataType) if field.name in types else F.lit(None))
            .try_cast(field.dataType)
            .alias(field.name)
            for field in wanted
        ]
        return F.when(column.isNotNull(), F.struct(*members))
    return column


def _fitting(lines: DataFrame, form: Format, *more: str) -> DataFrame:
    """The lines, with the problem in `CORRUPT`; a line with a problem has no other values."""
    wrong = F.when(F.col(BROKEN), MISREAD)
    for name, choices in form.choices.items():
        wrong = wrong.when(
            ~F.col(name).isin(*choices),
            F.concat(F.lit(f"`{name}` is "), name, F.lit(f", none of {', '.join(choices)}")),
        )
    lacking = _lacking(form, lines.columns)
    wrong = wrong.when(F.size(lacking) > 0, F.concat(F.lit("it has no `"), F.array_join(lacking, "`, `"), F.lit("`")))
    if "records" in lines.columns:
        part = F.exists("records", _lacks_a_part)
        wrong = wrong.when(
            F.coalesce(part, F.lit(False)), "one of its `records` has no `topic`, `partition`, `offset` or `value`"
        )
        negative = F.exists("records", lambda record: (record["partition"] < 0) | (record["offset"] < 0))
        wrong = wrong.when(
            F.coalesce(negative, F.lit(False)), "one of its `records` has a negative `partition` or `offset`"
        )
    unknown = F.array_distinct(F.filter(KEYS, lambda key: ~key.isin(*form.names)))
    wrong = wrong.when(F.size(unknown) > 0, F.concat(F.lit("unknown key `"), F.array_join(unknown, "`, `"), F.lit("`")))
    checked = lines.withColumn(CORRUPT, wrong)
    fits = F.col(CORRUPT).isNull()
    names = [name for name in lines.columns if name not in (KEYS, BROKEN, FILE, LINE, TEXT)]
    return checked.select(*(F.when(fits, F.col(name)).alias(name) for name in names), CORRUPT, FILE, *more)


def _lacks_a_part(record: Column) -> Column:
    return reduce(Column.__or__, [record[name].isNull() for name in ("topic", "partition", "offset", "value")])


def _lacking(form: Format, columns: Sequence[str]) -> Column:
    """Required fields that are missing."""
    always = set.intersection(*(set(line.required) for line in form.lines))
    missing = [F.when(F.col(name).isNull(), name) for name in columns if name in always]
    for line in form.lines:
        more = [name for name in line.required if name not in always and name in columns]
        missing += [F.when((F.col(form.kind_field) == line.name) & F.col(name).isNull(), name) for name in more]
    return F.array_compact(F.array(*missing))


def _derived(kind: str) -> dict[str, Column]:
    """Fields that can be derived from others if left out."""
    if kind != "replicas":
        return {}
    digest = F.sha2(F.concat_ws("\x00", "key", "value"), 256)
    return {"digest": F.when(F.col("type") == "record", F.coalesce("digest", digest))}


def _tables(spark: SparkSession, form: Format, files: Sequence[StoredFile]) -> list[DataFrame]:
    """Return the Parquet files in as few tables as the engine can read; one each if the types of columns differ.

    Raises:
        EvidenceError: one cannot be read, or its columns do not fit.
    """
    try:
        return [_table(spark, form, part) for part in reading.tables(spark, files)]
    except EvidenceError:
        if len(files) == 1:
            raise
        return [_table(spark, form, [file]) for file in files]


def _table(spark: SparkSession, form: Format, files: Sequence[StoredFile], *, numbered: bool = False) -> DataFrame:
    """Return the Parquet files as one table; a column that fits only because it is empty is left out.

    Raises:
        EvidenceError: it cannot be read, or its columns do not fit.
    """
    wanted = {field.name: field.dataType for field in SCHEMAS[form.kind]}
    try:
        table = reading.table(spark, files)
        unfit = [
            field for field in table.schema if field.name in wanted and not _fits(field.dataType, wanted[field.name])
        ]
        empty = [field.name for field in unfit if table.where(F.col(field.name).isNotNull()).isEmpty()]
    except (*SPARK_ERRORS, OSError, pa.ArrowException) as error:
        raise_if_engine_lost(error)
        raise EvidenceError(f"{files[0].shown}: not Parquet that can be read: {reason(error)}") from error
    problems = [
        f"column `{field.name}` is {field.dataType.simpleString()}, and must be {wanted[field.name].simpleString()}"
        for field in unfit
        if field.name not in empty
    ]
    for name in table.columns:
        if name not in form.names:
            near = difflib.get_close_matches(name, form.names, n=1)
            problems.append(f"unknown column `{name}`{f' (did you mean {near[0]}?)' if near else ''}")
    always = set.intersection(*(set(line.required) for line in form.lines))
    problems += [f"no column `{name}`" for name in form.names if name in always and name not in table.columns]
    if problems:
        raise EvidenceError("\n".join(f"{files[0].shown}: {problem}" for problem in problems))
    table = table.drop(*empty, LINE_NUMBER, CHAIN)
    return reading.named(reading.numbered(table, files) if numbered else table, files)


def _fits(actual: T.DataType, wanted: T.DataType) -> bool:
    """Return whether values of one type convert to another without loss."""
    if isinstance(actual, T.NullType):
        return True
    if isinstance(wanted, T.ArrayType):
        return isinstance(actual, T.ArrayType) and _fits(actual.elementType, wanted.elementType)
    if isinstance(wanted, T.StructType):
        if not isinstance(actual, T.StructType):
            return False
        members = {field.name: field.dataType for field in wanted}
        return all(field.name in members and _fits(field.dataType, members[field.name]) for field in actual)
    if isinstance(wanted, T.LongType):
        return isinstance(actual, _WHOLE) or actual == _UNSIGNED
    if isinstance(wanted, T.DoubleType):
        return isinstance(actual, (*_WHOLE, T.FloatType, T.DoubleType))
    return isinstance(actual, _SCALAR) if isinstance(wanted, T.StringType) else actual == wanted


def _wrong(text: str, schema: T.StructType) -> str:
    """Return in a sentence why a line cannot be read."""
    shown = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}: {shown}"
    if not isinstance(value, dict):
        return f"not a JSON object: {shown}"
    for field in schema:
        member = value.get(field.name)
        if member is not None and not _has_type(member, field.dataType):
            return f"`{field.name}` is {json.dumps(member)[:SHOWN_CHARS]}, and must be {field.dataType.simpleString()}"
    return f"not UTF-8: {shown}" if "\ufffd" in text else f"{MISREAD}: {shown}"


def _has_type(value: Any, wanted: T.DataType) -> bool:
    match wanted:
        case T.LongType():
            return isinstance(value, int) and not isinstance(value, bool)
        case T.DoubleType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case T.BooleanType():
            return isinstance(value, bool)
        case T.ArrayType():
            return isinstance(value, list) and all(
                each is None or _has_type(each, wanted.elementType) for each in value
            )
        case T.StructType():
            return isinstance(value, dict) and all(
                value.get(field.name) is None or _has_type(value[field.name], field.dataType) for field in wanted
            )
        case _:
            return True
