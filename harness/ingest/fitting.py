"""Which lines of others do not fit the format of their kind, and why?"""

import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.sources.parsed_lines import CORRUPT
from harness.ingest.formats import Format
from harness.ingest.reading import BROKEN, FILE, KEYS, LINE

MISREAD = "not JSON, or a value of another type"
SHOWN_CHARS = 120


def fitting(lines: DataFrame, form: Format, *more: str) -> DataFrame:
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
    names = [name for name in lines.columns if name not in (KEYS, BROKEN, FILE, LINE)]
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


def derived(kind: str) -> dict[str, Column]:
    """Fields that can be derived from others if left out."""
    if kind != "replicas":
        return {}
    digest = F.sha2(F.concat_ws("\x00", "key", "value"), 256)
    return {"digest": F.when(F.col("type") == "record", F.coalesce("digest", digest))}


def misfit(text: str, schema: T.StructType) -> str:
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
