"""What does a request name: topics, partitions, a group, a transactional id, epochs?

A request is read only as far as the last field that says it, in the versions of Kafka 0.11 to 4.x, flexible ones
included. The relay imports this: standard library only. Source: Kafka's message definitions.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.kafka.codec import (
    BOOL,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    NO_TAGS,
    STRING,
    Each,
    Field,
    Fields,
    Malformed,
    Values,
    after_tags,
    decode_beginning,
    encode,
)

_HEADER = struct.Struct(">hhih")
"""API, version, correlation id, length of the client id."""
_UUID = struct.Struct(">16s")
_NEVER = 99
FETCH, PRODUCE = 1, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every request begins with."""

    api_key: int
    version: int
    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What one request names."""

    partitions: frozenset[tuple[str, int]] = frozenset()
    """Topic and partition."""
    groups: frozenset[str] = frozenset()
    transactional_ids: frozenset[str] = frozenset()
    epochs: frozenset[int] = frozenset()
    """Leader epochs, and epochs of producers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Api:
    """The beginning of one request, and of its answer if that can be an error alone."""

    key: int
    flexible: int = _NEVER
    """Since which version it is."""
    fields: Fields = ()
    error: Fields = ()
    """All of the answer."""


def _topics(name: str, partition: str, *rest: Field, before: int = 0, until: int = 99, ids: int = 99) -> Field:
    """Return an array of topics with arrays of partitions; since version `ids` it has ids in the place of names."""
    fields = (
        Field("topic", STRING, 0, ids - 1),
        Field("topic_id", _UUID, ids),
        Field("partitions", (Field(partition, INT32), *rest)),
    )
    return Field(name, fields, before, until)


_THROTTLE, _ERROR = Field("throttle_time_ms", INT32), Field("error_code", INT16)
_GROUP, _TRANSACTIONAL_ID = Field("group_id", STRING), Field("transactional_id", STRING)
_PRODUCER = (Field("producer_id", INT64), Field("producer_epoch", INT16))
_LEADER_EPOCH = Field("leader_epoch", INT32)
_CONTROLLER = (Field("controller_id", INT32),)
_STATE = (Field("index", INT32), Field("controller_epoch", INT32), Field("leader", INT32), _LEADER_EPOCH)
_STATE_REST = (Field("isr", Each(INT32)), Field("zk_version", INT32), Field("replicas", Each(INT32)))
_TXN_TOPICS = (Field("topic", STRING), Field("indexes", Each(INT32)))
_MEMBER_ANSWER = (Field("throttle_time_ms", INT32, 1), _ERROR)

_APIS: Mapping[str, _Api] = {
    "Produce": _Api(
        key=PRODUCE,
        flexible=9,
        fields=(
            Field("transactional_id", STRING, 3),
            Field("acks", INT16),
            Field("timeout_ms", INT32),
            _topics("topics", "index", Field("records", BYTES), ids=13),
        ),
    ),
    "Fetch": _Api(
        key=FETCH,
        flexible=12,
        fields=(
            Field("replica_id", INT32, 0, 14),
            Field("max_wait_ms", INT32),
            Field("min_bytes", INT32),
            Field("max_bytes", INT32, 3),
            Field("isolation_level", INT8, 4),
            Field("session_id", INT32, 7),
            Field("session_epoch", INT32, 7),
            _topics(
                "topics",
                "index",
                Field("leader_epoch", INT32, 9),
                Field("fetch_offset", INT64),
                Field("last_fetched_epoch", INT32, 12),
                Field("log_start_offset", INT64, 5),
                Field("partition_max_bytes", INT32),
                ids=13,
            ),
        ),
    ),
    "ListOffsets": _Api(key=2, flexible=6),
    "Metadata": _Api(key=3, flexible=9),
    "LeaderAndIsr": _Api(
        key=4,
        flexible=4,
        fields=(
            *_CONTROLLER,
            Field("is_kraft", BOOL, 7),
            Field("controller_epoch", INT32),
            Field("broker_epoch", INT64, 2),
            Field("type", INT8, 5),
            Field(
                "states",
                (Field("topic", STRING), *_STATE, *_STATE_REST, Field("is_new", BOOL, 1)),
                0,
                1,
            ),
            Field(
                "topics",
                (
                    Field("topic", STRING),
                    Field("topic_id", _UUID, 5),
                    Field(
                        "partitions",
                        (
                            *_STATE,
                            *_STATE_REST,
                            Field("adding_replicas", Each(INT32), 3),
                            Field("removing_replicas", Each(INT32), 3),
                            Field("is_new", BOOL, 1),
                            Field("leader_recovery_state", INT8, 6),
                        ),
                    ),
                ),
                2,
            ),
        ),
    ),
    "StopReplica": _Api(
        key=5,
        flexible=2,
        fields=(
            *_CONTROLLER,
            Field("is_kraft", BOOL, 4),
            Field("controller_epoch", INT32),
            Field("broker_epoch", INT64, 1),
            Field("delete_partitions", BOOL, 0, 2),
            Field("states", (Field("topic", STRING), Field("index", INT32)), 0, 0),
            Field("indexed_topics", _TXN_TOPICS, 1, 2),
            _topics("topics", "index", _LEADER_EPOCH, Field("delete_partition", BOOL), before=3),
        ),
    ),
    "UpdateMetadata": _Api(
        key=6,
        flexible=6,
        fields=(
            *_CONTROLLER,
            Field("is_kraft", BOOL, 8),
            Field("controller_epoch", INT32),
            Field("broker_epoch", INT64, 5),
            Field(
                "states",
                (Field("topic", STRING), *_STATE, *_STATE_REST, Field("offline_replicas", Each(INT32), 4)),
                0,
                4,
            ),
            Field(
                "topics",
                (
                    Field("topic", STRING),
                    Field("topic_id", _UUID, 7),
                    Field("partitions", (*_STATE, *_STATE_REST, Field("offline_replicas", Each(INT32), 4))),
                ),
                5,
            ),
        ),
    ),
    "ControlledShutdown": _Api(key=7, flexible=3),
    "OffsetCommit": _Api(key=8, flexible=8, fields=(_GROUP,)),
    "OffsetFetch": _Api(
        key=9,
        flexible=6,
        fields=(
            Field("group_id", STRING, 0, 7),
            Field(
                "groups",
                (
                    _GROUP,
                    Field("member_id", STRING, 9),
                    Field("member_epoch", INT32, 9),
                    Field(
                        "indexed_topics",
                        (Field("topic", STRING, 0, 9), Field("topic_id", _UUID, 10), Field("indexes", Each(INT32))),
                    ),
                ),
                8,
            ),
        ),
    ),
    "FindCoordinator": _Api(key=10, flexible=3),
    "JoinGroup": _Api(key=11, flexible=6, fields=(_GROUP,)),
    "Heartbeat": _Api(key=12, flexible=4, fields=(_GROUP,), error=_MEMBER_ANSWER),
    "LeaveGroup": _Api(key=13, flexible=4, fields=(_GROUP,)),
    "SyncGroup": _Api(key=14, flexible=4, fields=(_GROUP,)),
    "DescribeGroups": _Api(key=15, flexible=5),
    "ListGroups": _Api(key=16, flexible=3),
    "CreateTopics": _Api(key=19, flexible=5),
    "DeleteTopics": _Api(key=20, flexible=4),
    "DeleteRecords": _Api(key=21, flexible=2),
    "InitProducerId": _Api(key=22, flexible=2, fields=(_TRANSACTIONAL_ID,), error=(_THROTTLE, _ERROR, *_PRODUCER)),
    "OffsetForLeaderEpoch": _Api(
        key=23,
        flexible=4,
        fields=(
            Field("replica_id", INT32, 3),
            _topics("topics", "index", Field("leader_epoch", INT32, 2), Field("epoch", INT32)),
        ),
    ),
    "AddPartitionsToTxn": _Api(
        key=24,
        flexible=3,
        fields=(
            Field("transactional_id", STRING, 0, 3),
            Field("producer_id", INT64, 0, 3),
            Field("producer_epoch", INT16, 0, 3),
            Field("indexed_topics", _TXN_TOPICS, 0, 3),
            Field(
                "transactions",
                (_TRANSACTIONAL_ID, *_PRODUCER, Field("verify_only", BOOL), Field("indexed_topics", _TXN_TOPICS)),
                4,
            ),
        ),
    ),
    "AddOffsetsToTxn": _Api(
        key=25, flexible=3, fields=(_TRANSACTIONAL_ID, *_PRODUCER, _GROUP), error=(_THROTTLE, _ERROR)
    ),
    "EndTxn": _Api(
        key=26,
        flexible=3,
        fields=(_TRANSACTIONAL_ID, *_PRODUCER),
        error=(_THROTTLE, _ERROR, Field("producer_id", INT64, 5), Field("producer_epoch", INT16, 5)),
    ),
    "WriteTxnMarkers": _Api(
        key=27,
        flexible=1,
        fields=(
            Field(
                "markers",
                (*_PRODUCER, Field("committed", BOOL), Field("indexed_topics", _TXN_TOPICS), Field("epoch", INT32)),
            ),
        ),
    ),
    "TxnOffsetCommit": _Api(key=28, flexible=3, fields=(_TRANSACTIONAL_ID, _GROUP, *_PRODUCER)),
    "CreatePartitions": _Api(key=37, flexible=2),
    "ElectLeaders": _Api(key=43, flexible=2),
    "IncrementalAlterConfigs": _Api(key=44, flexible=1),
    "AlterPartitionReassignments": _Api(key=45, flexible=0),
    "Vote": _Api(key=52, flexible=0),
    "BeginQuorumEpoch": _Api(key=53, flexible=1),
    "EndQuorumEpoch": _Api(key=54, flexible=1),
    "AlterPartition": _Api(
        key=56,
        flexible=0,
        fields=(
            Field("broker_id", INT32),
            Field("broker_epoch", INT64),
            _topics("topics", "index", _LEADER_EPOCH, ids=2),
        ),
    ),
    "FetchSnapshot": _Api(key=59, flexible=0),
    "BrokerRegistration": _Api(key=62, flexible=0),
    "BrokerHeartbeat": _Api(key=63, flexible=0),
    "AllocateProducerIds": _Api(key=67, flexible=0),
    "ConsumerGroupHeartbeat": _Api(key=68, flexible=0, fields=(_GROUP,)),
}
_BY_KEY = {api.key: api for api in _APIS.values()}
NAMES: Mapping[int, str] = {api.key: name for name, api in _APIS.items()}
KEYS: Mapping[str, int] = {name: api.key for name, api in _APIS.items()}
READ = tuple(name for name, api in _APIS.items() if api.fields)
"""The APIs whose requests are read."""
CAN_FAIL = tuple(name for name, api in _APIS.items() if api.error)
"""The APIs whose answer can be an error alone."""
ERRORS: Mapping[str, int] = {
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "NOT_COORDINATOR": 16,
    "UNKNOWN_MEMBER_ID": 25,
    "REBALANCE_IN_PROGRESS": 27,
    "INVALID_PRODUCER_EPOCH": 47,
    "INVALID_TXN_STATE": 48,
    "CONCURRENT_TRANSACTIONS": 51,
}
"""Kafka's numbers of errors that such an answer may have."""


def head_of(frame: bytes) -> Head | None:
    """Return the head of a request, without its length; None for a frame that has none."""
    if len(frame) < _HEADER.size:
        return None
    key, version, correlation_id, _ = _HEADER.unpack_from(frame)
    return Head(api_key=key, version=version, correlation_id=correlation_id)


def named_in(frame: bytes) -> Named | None:
    """Return what a request names; None where that cannot be read."""
    values = _values(frame)
    if values is None:
        return None
    found = _Found()
    found.look(values)
    return Named(
        partitions=frozenset(found.partitions),
        groups=frozenset(found.groups),
        transactional_ids=frozenset(found.transactional_ids),
        epochs=frozenset(found.epochs),
    )


def is_answered(frame: bytes) -> bool:
    """Return whether a request gets an answer, which all do but Produce with acks=0."""
    head = head_of(frame)
    if head is None or head.api_key != PRODUCE:
        return True
    values = _values(frame, only=_APIS["Produce"].fields[:2])
    return values is None or values["acks"] != 0


def error_answer(head: Head, error_code: int) -> bytes:
    """Return an answer, without its length, that says only this error; for `CAN_FAIL`."""
    api = _BY_KEY[head.api_key]
    values = {field.name: -1 for field in api.error} | {"throttle_time_ms": 0, "error_code": error_code}
    flexible = head.version >= api.flexible
    body = encode(api.error, values, head.version, flexible=flexible)
    return head.correlation_id.to_bytes(4, signed=True) + (NO_TAGS if flexible else b"") + body


def _values(frame: bytes, only: Fields | None = None) -> Values | None:
    head = head_of(frame)
    api = None if head is None else _BY_KEY.get(head.api_key)
    if head is None or api is None or not api.fields:
        return None
    (*_, length) = _HEADER.unpack_from(frame)
    start, flexible = _HEADER.size + max(0, length), head.version >= api.flexible
    try:
        start = after_tags(frame, start) if flexible else start
        return decode_beginning(only or api.fields, frame[start:], head.version, flexible=flexible)
    except Malformed:
        return None


class _Found:
    """What has been found in a request so far."""

    def __init__(self) -> None:
        self.partitions: set[tuple[str, int]] = set()
        self.groups: set[str] = set()
        self.transactional_ids: set[str] = set()
        self.epochs: set[int] = set()

    def look(self, values: Values, topic: str = "") -> None:
        """Look through a struct and all structs in it, which are of this topic if they do not say another one."""
        topic = values.get("topic") or topic
        self.partitions |= {(topic, index) for index in (*values.get("indexes", ()), *_one(values, "index"))}
        self.groups |= {*_one(values, "group_id")}
        self.transactional_ids |= {*_one(values, "transactional_id")}
        self.epochs |= {*_one(values, "leader_epoch"), *_one(values, "producer_epoch")}
        for value in values.values():
            if isinstance(value, list):
                for each in value:
                    if isinstance(each, dict):
                        self.look(each, topic)


def _one(values: Values, name: str) -> Iterable[Any]:
    value = values.get(name)
    return () if value is None else (value,)
