"""Decodes the records of `__transaction_state` to JSON text that Spark can read.

    key    {"type": "transaction", "transactional_id": …}
    value  {"producer_id": …, "producer_epoch": …, "timeout_ms": …, "state": …, "partitions": ["t-0", …], …}

A tombstone's value is empty. The formats are Kafka's (`TransactionLogKey` and `TransactionLogValue`, version 0): big
endian, a version first.
"""

import json
import struct
from typing import Any

from harness.evidence.offsets_topic import Reader

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


def decode(key: bytes | None, value: bytes | None) -> tuple[str, str] | None:
    """Return key and value as JSON text, or None when they are not what a transaction coordinator writes."""
    try:
        if key is None:
            return None
        reader = Reader(key)
        if reader.number(">h") != 0:
            return None
        named = {"type": "transaction", "transactional_id": reader.text()}
        return _json(named), "" if value is None else _json(_value(Reader(value)))
    except (struct.error, ValueError):
        return None


def _value(reader: Reader) -> dict[str, Any]:
    version = reader.number(">h")
    if version != 0:
        raise ValueError(f"unknown transaction version {version}")
    producer_id, epoch = reader.number(">q"), reader.number(">h")
    timeout_ms, state = reader.number(">i"), reader.number(">b")
    if not 0 <= state < len(STATES):
        raise ValueError(f"unknown transaction state {state}")
    partitions: list[str] = []
    for _ in range(reader.number(">i")):
        topic = reader.text()
        partitions += [f"{topic}-{reader.number('>i')}" for _ in range(reader.number(">i"))]
    return {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "timeout_ms": timeout_ms,
        "state": STATES[state],
        "partitions": partitions,
        "updated_ms": reader.number(">q"),
        "started_ms": reader.number(">q"),
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
