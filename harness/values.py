"""Values that harness and broker share: Kafka's own names, and a dataclass for values made by the thousand.

A frozen dataclass sets each of its fields through `object.__setattr__`, which takes two to three times as long. These
are frozen for the type checker, which refuses every assignment, and plain slots at run time. They are declared like any
dataclass: `@value_class(frozen=True, slots=True, kw_only=True)`. Stdlib only: the broker imports this module too.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

__all__ = [
    "ACKS_ALL",
    "MAX_SEED",
    "METADATA_TOPIC",
    "OFFSETS_TOPIC",
    "PROBE_PROCESS",
    "PYTHON",
    "TRANSACTIONS_TOPIC",
    "TopicPartition",
    "value_class",
    "value_id",
]

TopicPartition = tuple[str, int]
NO_BROKER = -1
"""As broker: none, as of a partition without a leader or a cluster without a controller."""
ACKS_ALL = -1
"""A producer's setting to wait for the whole ISR."""
OFFSETS_TOPIC = "__consumer_offsets"
"""Topic of the offsets that groups commit."""
TRANSACTIONS_TOPIC = "__transaction_state"
"""Topic of the states of transactions."""
METADATA_TOPIC = "__cluster_metadata"
"""The log of Kafka's quorum of controllers. It has the format of a topic and is none."""
PROBE_PROCESS = "liveness"
"""The harness's client that probes liveness; it commits without reading back."""
MAX_SEED = 2**63 - 1
"""The largest seed of a run."""
PYTHON = "python"
"""The default system under test: the broker of this project."""

if TYPE_CHECKING:
    from dataclasses import dataclass as value_class
else:

    def value_class(*, frozen: bool, **options: Any) -> Callable[[type], type]:
        """Make a class a dataclass that compares and hashes by its fields."""
        return dataclass(unsafe_hash=frozen, **options)


VALUE_ID = "value-id"
"""The header that identifies a record with a null value."""
NULL = "-null"
"""Suffix of the id of a record without a value."""


def value_id(value: bytes | str | None, headers: Iterable[tuple[str, bytes | str | None]] = ()) -> str:
    """Return the id of a record: its value up to the first space if that is UTF-8, else the SHA-256 of it.

    A record without a value has its header as id; empty without one.
    """
    if value is None:
        own = next((text for name, text in headers if name == VALUE_ID), None)
        return own.decode() if isinstance(own, bytes) else own or ""
    try:
        text = value if isinstance(value, str) else value.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(value).hexdigest() if isinstance(value, bytes) else ""
    return text.partition(" ")[0]
