"""Are all lines of a file there, unchanged, in their order? Each says its number and a checksum of all up to it.

A line is a JSON object; its last two fields are `line`, which counts from 0, and `chain`, the CRC-32 of this line up to
there, begun with the chain of the line before. A writer that ends in good order ends with `{"lines": …}`: how many it
wrote. A second writer of the same file counts from 0 again.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from zlib import crc32

from harness.values import value_class

BREAKS_LIMIT = 5
_LINK = re.compile(rb'(\{.*,"line":(0|[1-9][0-9]{0,17})),"chain":"([0-9a-f]{8})"\}\n', re.DOTALL)
_END = re.compile(rb'\{"lines":([0-9]{1,18}),"line":')
_ANY_LINK = re.compile(rb',"line":[0-9]{1,18},"chain":"[0-9a-f]{8}"\}\r?(?:\n|\Z)')
WRITERS_END = r'^\{"lines":[0-9]{1,18},"line":[0-9]{1,18},"chain":"[0-9a-f]{8}"\}$'
"""What a writer's last line looks like without its newline, as Python and Java understand it."""
_WRITERS_END = re.compile(WRITERS_END.encode())


@value_class(frozen=True, slots=True)
class Link:
    """How far a writer has come."""

    lines: int = 0
    """Written so far."""
    checksum: int = 0


def chained(line: bytes, after: Link) -> tuple[bytes, Link]:
    """Return a line (an object with a field at least, and its newline) with its number and chain, and what follows."""
    body = b'%b,"line":%d' % (line[:-2], after.lines)
    checksum = crc32(body, after.checksum)
    return b'%b,"chain":"%08x"}\n' % (body, checksum), Link(after.lines + 1, checksum)


def end(after: Link) -> bytes:
    """Return the last line of a writer."""
    return chained(b'{"lines":%d}\n' % after.lines, after)[0]


def all_chained(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a whole file, its end included; nothing where there are none."""
    link = Link()
    for line in lines:
        written, link = chained(line, link)
        yield written
    if link.lines:
        yield end(link)


@dataclass(slots=True)
class Reading:
    """What a file turned out to hold, line by line."""

    lines: int = 0
    breaks: int = 0
    first_breaks: list[str] = field(default_factory=list)
    """Of no more than `BREAKS_LIMIT`, each a sentence."""
    ended: bool = False
    """Whether the last line is a writer's end."""
    cut_short: int = 0
    """Writers without an end that are followed by another writer."""

    def broken(self, what: str) -> None:
        """Count a break."""
        self.breaks += 1
        if self.breaks <= BREAKS_LIMIT:
            self.first_breaks.append(f"line {self.lines}: {what}")


def read_chain(lines: Iterable[bytes]) -> Reading:
    """Return whether the lines of a file follow one another; numbers in sentences are those of the file, from 1."""
    reading = Reading()
    before = Link()
    for raw in lines:
        reading.lines += 1
        match = _LINK.fullmatch(raw)
        if match is None:
            reading.ended = False
            if raw.endswith(b"\n"):  # a kill may tear the last line
                reading.broken("it is not a complete line with a number and a checksum")
            continue
        number, stated = int(match[2]), int(match[3], 16)
        follows = number == before.lines and crc32(match[1], before.checksum) == stated
        if not follows and not (number == 0 and crc32(match[1]) == stated):
            reading.broken(_why(number, before.lines))
        reading.cut_short += number == 0 < before.lines and not reading.ended
        before = Link(number + 1, stated)
        of_writer = _END.match(raw)
        reading.ended = of_writer is not None and int(of_writer[1]) == number
    return reading


def has_link(text: bytes) -> bool:
    """Return whether a line among some has a number and a chain."""
    return _ANY_LINK.search(text) is not None


def is_writers_end(line: bytes) -> bool:
    """Return whether a line, without its newline, is what a writer ends with."""
    return _WRITERS_END.match(line) is not None


def _why(number: int, expected: int) -> str:
    if number == expected:
        return "it is changed, or follows another line than the one before"
    if number > expected:
        return f"numbers {expected} to {number - 1} are missing before it"
    return f"it has the number {number} where {expected} is expected: a line is doubled or out of order"
