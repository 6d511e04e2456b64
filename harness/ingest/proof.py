"""Proves whether a file of chained lines is complete; defects are holes, worded as for a sealed run."""

from collections.abc import Iterator
from itertools import chain

from harness.errors import EvidenceError
from harness.ingest.files import BYTE_ORDER_MARK, Files, StoredFile
from harness.store.seal import MUST_END, NO_END, Hole, broken
from harness.system.chain import read_chain


def holes_in(files: Files, file: StoredFile, kind: str, place: str) -> Iterator[Hole]:
    """Yield the defects of a file of chained lines.

    Args:
        files: Its file system.
        file: The file.
        kind: Its kind of evidence.
        place: Its name in remarks.

    Raises:
        EvidenceError: it cannot be read.
    """
    try:
        with files.text(file.path) as stream:
            reading = read_chain(_as_written(stream, torn=file.torn))
    except EvidenceError as error:
        raise EvidenceError(f"the history cannot be judged: {error}") from error
    if reading.breaks:
        yield Hole(place=place, kind=kind, text=broken(reading.breaks, reading.first_breaks))
    if kind in MUST_END and (reading.cut_short or not reading.ended):
        yield Hole(place=place, kind=kind, text=NO_END, is_open_end=True)


def _as_written(lines: Iterator[bytes], *, torn: bool) -> Iterator[bytes]:
    """Yield lines without a byte order mark, and with a missing last newline added."""
    for line in chain([next(lines, b"").removeprefix(BYTE_ORDER_MARK)], lines):
        yield line if torn or line.endswith(b"\n") else line + b"\n"
