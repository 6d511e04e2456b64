"""The types of facts' columns in Arrow, for code that reads or makes facts without Spark."""

import pyarrow as pa

from harness.analysis.tables.table import Table

ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "array<bigint>": pa.list_(pa.int64()),
    "array<string>": pa.list_(pa.string()),
    "array<array<bigint>>": pa.list_(pa.list_(pa.int64())),
    "array<struct<partition:int,replicas:array<int>>>": pa.list_(
        pa.struct([("partition", pa.int32()), ("replicas", pa.list_(pa.int32()))])
    ),
    "array<struct<member:string,instance:string>>": pa.list_(
        pa.struct([("member", pa.string()), ("instance", pa.string())])
    ),
}
"""By Spark SQL type."""


def columns_of(table: Table) -> pa.Schema:
    """Return the columns of a table."""
    return pa.schema([(column.name, ARROW_TYPES[column.type]) for column in table.columns])
