"""The codecs of a batch's records, in Kafka's framing of each: bytes in, bytes out, never more than a limit.

gzip is zlib's; the other three are cramjam's, which has the reference implementations. Data that expands past the limit
is refused while it expands, so a small batch cannot take the broker's memory.
"""

import struct
import zlib
from collections.abc import Callable

from cramjam import Buffer, DecompressionError, gzip, lz4, snappy, zstd

NO_COMPRESSION, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = {NO_COMPRESSION: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
CODECS_BEFORE_ZSTD = frozenset({NO_COMPRESSION, GZIP, SNAPPY, LZ4})
"""What a client may send that does not know of zstd (KIP-110)."""
KEEP_CODEC = "producer"
"""As `compression.type`: batches stay as they were sent."""
COMPRESSION_TYPES = {"uncompressed": NO_COMPRESSION, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}

MAX_DECOMPRESSED_BYTES = 64 << 20
"""A batch that expands to more is refused: it could otherwise fill the broker's memory."""
_FIRST_GUESS_BYTES = 1 << 14
_GROWTH = 4
_OUT_OF_ROOM = "failed to write whole buffer"
"""cramjam's message when a buffer is too small."""
_GZIP_WINDOW = 31
_XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
"""Start of snappy-java's stream, which Java clients write; others write one bare block."""
_BLOCK_BYTES = 32 * 1024
_LENGTH = struct.Struct(">i")

Into = Callable[[bytes, bytearray], int]


class BadCompression(ValueError):
    """Bytes are not of their codec, or expand past the limit."""


def decompress(payload: bytes | memoryview, codec: int) -> bytes:
    """Return the decompressed bytes.

    Raises:
        BadCompression: the stream is broken, has trailing bytes, expands past the limit, or its codec is unknown.
    """
    if codec == NO_COMPRESSION:
        return bytes(payload)
    if codec == GZIP:
        return _inflated(payload)
    if codec == SNAPPY:
        return _unsnapped(bytes(payload))
    if codec in (LZ4, ZSTD):
        into: Into = lz4.decompress_into if codec == LZ4 else zstd.decompress_into
        return _expanded(into, bytes(payload), CODEC_NAMES[codec])
    raise BadCompression(f"unknown codec {codec}")


def compress(data: bytes, codec: int) -> bytes:
    """Return `data` compressed, as Kafka's own clients read it; deterministic."""
    if codec == NO_COMPRESSION:
        return data
    if codec == SNAPPY:
        blocks = [data[at : at + _BLOCK_BYTES] for at in range(0, len(data), _BLOCK_BYTES)]
        return _XERIAL + b"".join(_with_length(snappy.compress_raw(block)) for block in blocks)
    if codec == LZ4:  # Java reads independent blocks only
        compressor = lz4.Compressor(content_checksum=False, block_linked=False)
        compressor.compress(data)
        return bytes(compressor.finish())
    return bytes(gzip.compress(data) if codec == GZIP else zstd.compress(data))


def _inflated(payload: bytes | memoryview) -> bytes:
    inflater = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        inflated = inflater.decompress(payload, MAX_DECOMPRESSED_BYTES)
    except zlib.error as error:
        raise BadCompression(f"gzip: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise BadCompression(f"gzip stream does not end with the batch, or holds over {MAX_DECOMPRESSED_BYTES} bytes")
    return inflated


def _expanded(into: Into, payload: bytes, name: str) -> bytes:
    """Return the content of `payload`; the buffer grows with the actual size, not with the announced one."""
    size = min(max(_GROWTH * len(payload), _FIRST_GUESS_BYTES), MAX_DECOMPRESSED_BYTES)
    while True:
        buffer = bytearray(size)
        try:
            return bytes(memoryview(buffer)[: into(payload, buffer)])
        except DecompressionError as error:
            if _OUT_OF_ROOM not in str(error):
                raise BadCompression(f"{name}: {error}") from error
        if size == MAX_DECOMPRESSED_BYTES:
            raise BadCompression(f"{name}: holds over {MAX_DECOMPRESSED_BYTES} bytes")
        size = min(size * _GROWTH, MAX_DECOMPRESSED_BYTES)


def _unsnapped(payload: bytes) -> bytes:
    if not payload.startswith(_XERIAL[:8]):
        return _unsnapped_block(payload, MAX_DECOMPRESSED_BYTES)
    parts, position, left = [], len(_XERIAL), MAX_DECOMPRESSED_BYTES
    while position < len(payload):
        start = position + _LENGTH.size
        if start > len(payload):
            raise BadCompression("snappy: a block's length is cut short")
        (length,) = _LENGTH.unpack_from(payload, position)
        if not 0 <= length <= len(payload) - start:
            raise BadCompression(f"snappy: a block of {length} bytes where {len(payload) - start} are left")
        parts.append(_unsnapped_block(payload[start : start + length], left))
        left -= len(parts[-1])
        position = start + length
    return b"".join(parts)


def _unsnapped_block(block: bytes, at_most: int) -> bytes:
    """Return the content of one bare block, which begins with its size."""
    try:
        size = snappy.decompress_raw_len(block)
        if size > at_most:
            raise BadCompression(f"snappy: holds over {MAX_DECOMPRESSED_BYTES} bytes")
        buffer = bytearray(size)
        snappy.decompress_raw_into(block, buffer)
    except DecompressionError as error:
        raise BadCompression(f"snappy: {error}") from error
    return bytes(buffer)


def _with_length(block: Buffer) -> bytes:
    data = bytes(block)
    return _LENGTH.pack(len(data)) + data
