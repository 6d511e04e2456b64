"""Which bytes are one message: ZooKeeper and Kafka both send each behind its length."""

import struct

_LENGTH = struct.Struct(">i")
MOST_BYTES = 64 << 20
"""More than any message has: what would be longer is none, and is passed on as it comes."""


class Frames:
    """Makes whole frames of what comes in."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._needed = _LENGTH.size

    def of(self, data: bytes) -> list[bytes]:
        """Return the frames that are now whole, each with its length."""
        self._rest += data
        if len(self._rest) < self._needed:
            return []
        whole, frames, start = bytes(self._rest), [], 0
        while len(whole) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(whole, start)
            if not 0 <= length <= MOST_BYTES:  # four letters of a command
                length = len(whole) - start - _LENGTH.size
            end = start + _LENGTH.size + length
            if end > len(whole):
                break
            frames.append(whole[start:end])
            start = end
        self._rest = bytearray(whole[start:])
        self._needed = _LENGTH.size + (_LENGTH.unpack_from(whole, start)[0] if len(self._rest) >= _LENGTH.size else 0)
        return frames
