from collections.abc import Callable
from typing import Any

import crc32c
import pyarrow
import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

Batch = Callable[..., bytes]


@pytest.fixture
def batch() -> Batch:
    """Makes record batches as a producer and a leader would."""
    return make_batch


def make_batch(
    *values: bytes | None,
    base_offset: int = 0,
    leader_epoch: int = 0,
    codec: int = 0,
    xerial: bool = False,
    key: bytes | None = b"k",
    headers: tuple[tuple[str, bytes | None], ...] = (),
    producer: tuple[int, int, int] = (-1, -1, -1),
    attributes: int = 0,
) -> bytes:
    builder: Any = DefaultRecordBatchBuilder(2, 0, False, *producer, 1 << 20)
    for delta, value in enumerate(values):
        builder.append(delta, 1000 + delta, key, value, list(headers))
    data = bytearray(builder.build())
    payload = compressed(bytes(data[61:]), codec, xerial=xerial)
    data[61:] = payload
    data[0:8] = base_offset.to_bytes(8, "big")
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[12:16] = leader_epoch.to_bytes(4, "big")
    data[21:23] = (codec | attributes).to_bytes(2, "big")
    data[17:21] = crc32c.crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def compressed(data: bytes, codec: int, *, xerial: bool) -> bytes:
    if codec == 0:
        return data
    name = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}[codec]
    if not xerial:
        return bytes(pyarrow.compress(data, name, asbytes=True))
    half = len(data) // 2
    framed = b"\x82SNAPPY\x00" + bytes([0, 0, 0, 1, 0, 0, 0, 1])
    for part in (data[:half], data[half:]):
        block = pyarrow.compress(part, name, asbytes=True)
        framed += len(block).to_bytes(4, "big") + block
    return framed
