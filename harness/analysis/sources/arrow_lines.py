"""How does Arrow read lines? As objects that follow one another, refusing more than Spark does, with few exceptions.

It takes NaN and Infinity, a byte order mark before the first object, and one that goes on in the next line; `null` in
the place of an object ends the process. Callers with unknown lines check for these first.
"""

from typing import Any

import pyarrow as pa
from pyarrow.json import ParseOptions, ReadOptions, read_json

LONGEST_LINE = 1 << 26
"""Bytes; a line that is longer is refused."""
FEW_BYTES = 1 << 20
"""So many are parsed sooner by one thread than several are started."""


def arrow_rows(source: Any, size_bytes: int, schema: pa.Schema, *, other_keys: bool = True) -> pa.Table:
    """Return lines of so many bytes as rows; what has no value is null.

    Args:
        source: A path, or a file of Arrow.
        size_bytes: Of all lines.
        schema: The columns.
        other_keys: Whether keys without a column are dropped; otherwise each gets a column of its own.

    Raises:
        pa.ArrowException: something does not fit.
    """
    return read_json(
        source,
        read_options=ReadOptions(block_size=min(size_bytes + 1, LONGEST_LINE), use_threads=size_bytes > FEW_BYTES),
        parse_options=ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore" if other_keys else "infer"
        ),
    )
