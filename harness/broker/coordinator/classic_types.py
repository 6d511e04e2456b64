"""Kafka's classic types, which records of `__consumer_offsets` consist of: writing and reading.

A reader returns the value and the position after it; it raises ValueError or struct.error for invalid bytes.
"""

import struct


def write_text(text: str) -> bytes:
    """Return a text: its length in two bytes, then UTF-8."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def read_text(data: bytes, position: int) -> tuple[str, int]:
    """Read a text."""
    (length,) = struct.unpack_from(">h", data, position)
    end = position + 2 + length
    return data[position + 2 : end].decode(), end


def write_nullable_text(text: str | None) -> bytes:
    """Return a text, or null as a length of -1."""
    return struct.pack(">h", -1) if text is None else write_text(text)


def read_nullable_text(data: bytes, position: int) -> tuple[str | None, int]:
    """Read a text, or null."""
    if struct.unpack_from(">h", data, position)[0] < 0:
        return None, position + 2
    return read_text(data, position)


def write_bytes(content: bytes) -> bytes:
    """Return bytes: their number in four bytes, then they."""
    return struct.pack(">i", len(content)) + content


def read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    """Read bytes."""
    (length,) = struct.unpack_from(">i", data, position)
    end = position + 4 + length
    if not 0 <= length <= len(data) - position - 4:
        raise ValueError(f"{length} bytes where {len(data) - position - 4} are left")
    return data[position + 4 : end], end
