"""Limits the expanded size of a file: a few bytes can expand to more than any disk holds.

Parquet states its size in the footer, and Spark reads no more than that; compressed text is unpacked up to the
limit.
"""

import struct
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from harness.errors import EvidenceError
from harness.ingest.files import PARQUET, Files, StoredFile, is_compressed

EXPANSION = 100
"""Default limit of the expanded size of a file, in bytes or in values of a column, as a multiple of its size."""
ALWAYS_BYTES = 2**28
ALWAYS_VALUES = 1_000_000
"""Allowed for every file."""
_END = struct.Struct("<I4s")
"""Length of the footer before it, and the magic of Parquet."""
_MAGIC = b"PAR1"


def check_expansion(files: Files, file: StoredFile, expansion: int) -> None:
    """Refuse a file that expands too much; an unreadable file is left to its reader, which says what is wrong.

    Raises:
        EvidenceError: it holds more than `expansion` times its size.
    """
    bytes_bound, values_bound = max(ALWAYS_BYTES, expansion * file.size), max(ALWAYS_VALUES, expansion * file.size)
    bytes_held, values_held = 0, 0
    with suppress(EvidenceError, pa.ArrowException):
        if file.format == PARQUET:
            bytes_held, values_held = _stated(_footer(files, file))
        elif is_compressed(files, file.path):
            bytes_held = files.unpacked(file.path, bytes_bound + 1)
    for held, bound, unit in ((bytes_held, bytes_bound, "bytes"), (values_held, values_bound, "values in a column")):
        if held > bound:
            raise EvidenceError(
                f"{file.shown}: its {file.size:,} bytes hold more than {bound:,} {unit}, which is the limit; "
                f"raise it with --expansion, now {expansion} times the size of a file"
            )


def _stated(footer: Any) -> tuple[int, int]:
    """Return the uncompressed bytes of all columns, and the values of the longest."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    values = (sum(group.column(number).num_values for group in groups) for number in range(footer.num_columns))
    rows = sum(group.num_rows for group in groups)
    return sum(group.total_byte_size for group in groups), max(rows, *values, 0)


def _footer(files: Files, file: StoredFile) -> Any:
    """Return Arrow's view of the footer alone; raises ArrowException if it is invalid."""
    length, _ = _END.unpack(files.end(file.path, max(0, file.size - _END.size)).rjust(_END.size))
    end = files.end(file.path, max(0, file.size - _END.size - length))
    return parquet.read_metadata(pa.BufferReader(_MAGIC + end))
