"""What might a client send? Streams of frames that are nearly right.

Frames are built from the specifications of the messages, every API in every version that is served, and then damaged:
bits, lengths, whole ranges, the header; a stream may lie about a frame's length or end anywhere.
"""

import random
from collections.abc import Sequence
from typing import Any

from harness.broker.handlers.apis import APIS
from harness.broker.log.batch import Numbering, build_batch
from harness.broker.log.markers import TRANSACTIONAL
from harness.broker.log.records import Record
from harness.broker.wire.codec import encode_request

NAMES = (
    "t",
    "u",
    "new",
    "__consumer_offsets",
    "__transaction_state",
    "",
    ".",
    "a/b",
    "\u0000",
    "x" * 300,
    "retention.ms",
    "1",
    "test",
    "PLAINTEXT",
)
NUMBERS = (-(2**31), -1000, -3, -2, -1, 0, 1, 2, 3, 5, 100, 2**15, 2**31 - 1)
SHORT_WAITS_MS = (-1, 0, 1, 50)
WAITS = frozenset({"max_wait_ms", "timeout_ms"})
_MOST_ELEMENTS = 3
_BITS = {"int8": 7, "int16": 15, "int32": 31}
_CUT_SHARE, _WRONG_LENGTH_SHARE = 0.1, 0.05


class Frames:
    """Draws frames and streams of them.

    Args:
        rng: Draws.
        numbers: Those that mean something to the broker, as its epoch.
        producer_ids: Those that it has given to transactional ids.
    """

    def __init__(self, rng: random.Random, numbers: Sequence[int] = (), producer_ids: Sequence[int] = ()) -> None:
        self._rng = rng
        self._numbers = (*NUMBERS, *numbers)
        self._producer_ids = producer_ids

    def valid(self) -> bytes:
        """Return a request as the protocol has it, without its length."""
        rng = self._rng
        api = rng.choice(list(APIS.values()))
        version = rng.randint(api.versions.served_min, api.versions.max)
        request = self._filled(api.request._struct, api.request, version)
        return bytes(encode_request(request, version, correlation_id=rng.choice(NUMBERS), client_id="fuzz")[4:])

    def damaged(self, frame: bytes, other: bytes) -> bytes:
        """Return a frame with up to four things wrong with it; `other` lends parts of itself."""
        damaged = bytearray(frame)
        for _ in range(self._rng.choice((0, 1, 1, 1, 2, 4))):
            self._damage(damaged, other)
        return bytes(damaged)

    def stream(self, frames: Sequence[bytes]) -> bytes:
        """Return frames with their lengths, some of which are wrong, and perhaps without the end."""
        stream = b"".join(self._length(len(frame)) + frame for frame in frames)
        return stream[: self._rng.randint(0, len(stream))] if self._rng.random() < _CUT_SHARE else stream

    def _length(self, size: int) -> bytes:
        if self._rng.random() < _WRONG_LENGTH_SHARE:
            size = self._rng.choice((size - 1, size + 1, size * 2, 0, self._rng.choice(NUMBERS)))
        return size.to_bytes(4, signed=True)

    def _damage(self, frame: bytearray, other: bytes) -> None:
        rng, at = self._rng, self._rng.randint(0, len(frame))
        until = min(len(frame), at + rng.choice((1, 2, 4, 8, 30)))
        match rng.randrange(9):
            case 0 if at < len(frame):
                frame[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(frame):
                frame[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 2:
                frame[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 2, 4, 20))))
            case 3:
                del frame[at:until]
            case 4:
                frame[at:at] = frame[at:until]
            case 5:
                size = rng.choice((2, 4, 8))
                number = rng.choice(self._numbers) % (1 << 8 * size)
                frame[at : at + size] = number.to_bytes(size)
            case 6:
                del frame[at:]
            case 7:
                start = rng.randint(0, len(other))
                frame[at:until] = other[start : start + until - at + rng.randrange(20)]
            case _:
                frame[0:4] = rng.choice(list(APIS)).to_bytes(2) + rng.randrange(13).to_bytes(2)

    # --- values for the fields of a message ---

    def _filled(self, fields: Any, message_class: Any, version: int) -> Any:
        message = message_class(version=version)
        for field in fields.untagged_fields(version):
            setattr(message, field.name, self._value(field, version))
        return message

    def _value(self, field: Any, version: int) -> Any:
        rng = self._rng
        if field.nullable_for_version_q(version) and rng.random() < 0.1:
            return None
        if field.is_struct_array():
            return [self._filled(field, field.data_class, version) for _ in range(rng.randint(0, _MOST_ELEMENTS))]
        kind = field.type_str
        if field.is_array():
            return [self._simple(field.name, kind.removeprefix("[]")) for _ in range(rng.randint(0, _MOST_ELEMENTS))]
        return self._simple(field.name, kind)

    def _simple(self, name: str, kind: str) -> Any:
        rng = self._rng
        match kind:
            case "string":
                return rng.choice(NAMES[:4]) if rng.random() < 0.8 else rng.choice(NAMES)
            case "bytes" | "records":
                return self._records()
            case "bool":
                return rng.random() < 0.5
            case "bitfield":
                return {rng.randrange(8)}
        if name in WAITS:
            return rng.choice(SHORT_WAITS_MS)
        if name.endswith("producer_id") and self._producer_ids and rng.random() < 0.8:
            return rng.choice(self._producer_ids)
        number = rng.choice((0, 1, 2)) if rng.random() < 0.6 else rng.choice(self._numbers)
        highest = (1 << _BITS.get(kind, 63)) - 1
        return max(-highest - 1, min(number, highest))

    def _records(self) -> bytes:
        rng = self._rng
        records = [Record(value=rng.randbytes(rng.randrange(30)), timestamp_ms=1000) for _ in range(rng.randint(1, 3))]
        batch = build_batch(records)
        if self._producer_ids and rng.random() < 0.5:
            numbering = Numbering(rng.choice(self._producer_ids), rng.choice((0, 0, 1)), rng.choice((0, 0, 1, 2)))
            batch = build_batch(records, attributes=rng.choice((0, TRANSACTIONAL)), numbering=numbering)
        return bytes(batch) if rng.random() < 0.7 else self.damaged(bytes(batch), bytes(batch))
