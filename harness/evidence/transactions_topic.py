"""Decodes the records of `__transaction_state` to JSON text that Spark can read.

    key    {"type": "transaction", "transactional_id": …}
    value  {"producer_id": …, "producer_epoch": …, "timeout_ms": …, "state": …, "partitions": ["t-0", …], …}

A tombstone's value is empty. The formats are Kafka's (`TransactionLogKey` and `TransactionLogValue`): big endian, a
version first. Version 1 of a value, which Kafka 4 writes with transactions version 2, is flexible (KIP-482).
"""

import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from harness.evidence.offsets_topic import KEPT, Reader

FLEXIBLE = 1
"""Version of a value with compact types and tagged fields."""
CLIENT_VERSION_TAG = 2
"""Tag of `ClientTransactionVersion`."""
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""By their numbers in the log (`TransactionState`)."""


@lru_cache(maxsize=KEPT)
def decode(key: bytes | None, value: bytes | None) -> tuple[str, str] | None:
    """Return key and value as JSON text, or None when they are not what a transaction coordinator writes."""
    fields = read(key, value)
    if fields is None:
        return None
    named = {"type": "transaction", "transactional_id": fields[0]}
    return _json(named), "" if value is None else _json(fields[1])


@lru_cache(maxsize=KEPT)
def read(key: bytes | None, value: bytes | None) -> tuple[Any, Mapping[str, Any]] | None:
    """Return the transactional id and the fields of the value, which a tombstone has none of; or None, as `decode`."""
    try:
        if key is None:
            return None
        reader = Reader(key)
        if reader.number(">h") != 0:
            return None
        transactional_id = reader.text()
        return transactional_id, {} if value is None else _value(Reader(value))
    except (struct.error, ValueError):
        return None


def _value(reader: Reader) -> dict[str, Any]:
    version = reader.number(">h")
    if version not in (0, FLEXIBLE):
        raise ValueError(f"unknown transaction version {version}")
    producer_id, epoch = reader.number(">q"), reader.number(">h")
    timeout_ms, state = reader.number(">i"), reader.number(">b")
    if not 0 <= state < len(STATES):
        raise ValueError(f"unknown transaction state {state}")
    value: dict[str, Any] = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "timeout_ms": timeout_ms,
        "state": STATES[state],
        "partitions": _partitions(reader, flexible=version == FLEXIBLE),
        "updated_ms": reader.number(">q"),
        "started_ms": reader.number(">q"),
    }
    if version == FLEXIBLE:
        client_version = _tagged(reader).get(CLIENT_VERSION_TAG, b"\0\0")
        value["transaction_version"] = int.from_bytes(client_version, "big")
    return value


def _partitions(reader: Reader, *, flexible: bool) -> list[str]:
    """Read the partitions of a transaction; null is none."""
    partitions: list[str] = []
    for _ in range(_length(reader, flexible=flexible)):
        topic = reader.text(compact=flexible)
        partitions += [f"{topic}-{reader.number('>i')}" for _ in range(_length(reader, flexible=flexible))]
        if flexible:
            _tagged(reader)
    return partitions


def _length(reader: Reader, *, flexible: bool) -> int:
    return reader.varint() - 1 if flexible else reader.number(">i")


def _tagged(reader: Reader) -> dict[int, bytes]:
    """Read tagged fields; return them by their tags."""
    fields = {}
    for _ in range(reader.varint()):
        tag, size = reader.varint(), reader.varint()
        fields[tag] = reader.data[reader.position : reader.position + size]
        reader.position += size
    return fields


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
