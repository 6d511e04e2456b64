"""Parquet files of others: do their columns fit the lines of a kind of evidence, and which rows are they?"""

import difflib
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.engine.bisection import SPARK_ERRORS
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.engine.storage import reason
from harness.analysis.sources.lines import SCHEMAS
from harness.errors import EvidenceError
from harness.ingest import reading
from harness.ingest.files import StoredFile
from harness.ingest.formats import CHAIN, LINE_NUMBER, Format
from harness.ingest.reading import BROKEN, FILE, KEYS

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_UNSIGNED = T.DecimalType(20, 0)
"""Spark's type for unsigned 64-bit integers."""
_SCALAR = (*_WHOLE, T.FloatType, T.DoubleType, T.StringType, T.BooleanType)


def read_tables(spark: SparkSession, form: Format, files: Sequence[StoredFile]) -> list[DataFrame]:
    """Return the Parquet files in as few tables as the engine can read; one each if the types of columns differ.

    Raises:
        EvidenceError: one cannot be read, or its columns do not fit.
    """
    try:
        return [read_table(spark, form, part) for part in reading.tables(spark, files)]
    except EvidenceError:
        if len(files) == 1:
            raise
        return [read_table(spark, form, [file]) for file in files]


def read_table(spark: SparkSession, form: Format, files: Sequence[StoredFile], *, numbered: bool = False) -> DataFrame:
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


def shaped(table: DataFrame, schema: T.StructType, *more: str) -> DataFrame:
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
