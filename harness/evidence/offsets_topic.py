"""Decodes the records of `__consumer_offsets` to JSON text that Spark can read.

    key    {"type": "offset", "group": …, "topic": …, "partition": …}
    value  {"offset": …, "leader_epoch": …, "metadata": …, "commit_timestamp_ms": …}
    key    {"type": "group", "group": …}
    value  {"protocol_type": …, "generation": …, "protocol": …, "leader": …}

A tombstone's value is empty. The formats are Kafka's (`OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey`,
`GroupMetadataValue`): big endian, a version first.
"""

import json
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

OFFSET_KEY_VERSIONS = (0, 1)
GROUP_KEY_VERSION = 2
OFFSET_VALUE_VERSIONS = (0, 1, 2, 3, 4)
GROUP_VALUE_VERSIONS = (0, 1, 2, 3)
FIRST_VERSION_WITH_LEADER_EPOCH = 3
KEPT = 1 << 14
"""So many records stay decoded: each replica of a partition has them."""
FIRST_FLEXIBLE_VERSION = 4
"""Of offsets: texts are compact, and tagged fields follow (KIP-482)."""


@dataclass(slots=True)
class Reader:
    """Reads Kafka's classic types from bytes, one after the other; raises struct.error or ValueError."""

    data: bytes
    position: int = 0

    def number(self, form: str) -> int:
        """Read a number, in a form of `struct`."""
        value: int = struct.unpack_from(form, self.data, self.position)[0]
        self.position += struct.calcsize(form)
        return value

    def varint(self) -> int:
        """Read an unsigned number of variable length."""
        value = shift = 0
        while True:
            byte = self.number(">B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self, *, compact: bool = False) -> str | None:
        """Read a text, or null."""
        length = self.varint() - 1 if compact else self.number(">h")
        if length < 0:
            return None
        end = self.position + length
        if end > len(self.data):
            raise ValueError(f"a text of {length} bytes where {len(self.data) - self.position} are left")
        result = self.data[self.position : end].decode()
        self.position = end
        return result


@lru_cache(maxsize=KEPT)
def decode(key: bytes | None, value: bytes | None) -> tuple[str, str] | None:
    """Return key and value as JSON text, or None when they are not what a group coordinator writes."""
    try:
        if key is None:
            return None
        fields = _key(Reader(key))
        if value is None:
            return _json(fields), ""
        read = _offset_value if fields["type"] == "offset" else _group_value
        return _json(fields), _json(read(Reader(value)))
    except (struct.error, ValueError):
        return None


def _key(reader: Reader) -> dict[str, Any]:
    version = reader.number(">h")
    if version in OFFSET_KEY_VERSIONS:
        return {
            "type": "offset",
            "group": reader.text(),
            "topic": reader.text(),
            "partition": reader.number(">i"),
        }
    if version == GROUP_KEY_VERSION:
        return {"type": "group", "group": reader.text()}
    raise ValueError(f"unknown key version {version}")


def _offset_value(reader: Reader) -> dict[str, Any]:
    version = reader.number(">h")
    if version not in OFFSET_VALUE_VERSIONS:
        raise ValueError(f"unknown offset version {version}")
    offset = reader.number(">q")
    leader_epoch = reader.number(">i") if version >= FIRST_VERSION_WITH_LEADER_EPOCH else -1
    return {
        "offset": offset,
        "leader_epoch": leader_epoch,
        "metadata": reader.text(compact=version >= FIRST_FLEXIBLE_VERSION),
        "commit_timestamp_ms": reader.number(">q"),
    }


def _group_value(reader: Reader) -> dict[str, Any]:
    version = reader.number(">h")
    if version not in GROUP_VALUE_VERSIONS:
        raise ValueError(f"unknown group version {version}")
    return {
        "protocol_type": reader.text(),
        "generation": reader.number(">i"),
        "protocol": reader.text(),
        "leader": reader.text(),
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
