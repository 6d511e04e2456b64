"""What does a line of each kind of evidence hold, as columns? Made from the classes that write them."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pyspark.sql import types as T

from harness.analysis.sources.lineage import FACT_EVENTS
from harness.events import COMMON, KINDS
from harness.store.history import (
    AbortedEntry,
    DeletedLog,
    JournalEntry,
    Liveness,
    Operation,
    ProducerEntry,
    ReplicaRecord,
    ReplicaState,
    StoredBatch,
    StoredMarker,
    StoredTransition,
    ZnodeChange,
)

ENDS = "lines"
"""What only a writer's last line says (`harness/system/chain.py`)."""
RUN_ID = T.StructField("run_id", T.StringType())

_SCALARS: dict[Any, T.DataType] = {
    int: T.LongType(),
    float: T.DoubleType(),
    str: T.StringType(),
    bool: T.BooleanType(),
}


def struct_of(cls: type) -> T.StructType:
    """Return the columns that a dataclass has as a JSON line; a dict stays the JSON text it is."""
    hints = get_type_hints(cls)
    return T.StructType([T.StructField(field.name, _type_of(hints[field.name])) for field in fields(cls)])


def _type_of(hint: Any) -> T.DataType:
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (hint,) = (argument for argument in arguments if argument is not NoneType)
        return _type_of(hint)
    if origin in (list, tuple):
        return T.ArrayType(_type_of(arguments[0]))
    if origin is dict:
        return T.StringType()
    if is_dataclass(hint) and isinstance(hint, type):
        return struct_of(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return T.StringType()
    raise TypeError(f"no column type for {hint}")


def merged(structs: Iterable[T.StructType]) -> T.StructType:
    """Return all columns of several kinds of line; a name with two types becomes text, as it stands in the JSON."""
    types: dict[str, T.DataType] = {}
    for struct in structs:
        for field in struct.fields:
            known = types.setdefault(field.name, field.dataType)
            if known != field.dataType:
                types[field.name] = T.StringType()
    return T.StructType([T.StructField(name, type_) for name, type_ in types.items()])


OPERATION = struct_of(Operation)
JOURNAL_ENTRY = struct_of(JournalEntry)
ZNODE_CHANGE = struct_of(ZnodeChange)
_OF_REPLICAS = (ReplicaState, ReplicaRecord, DeletedLog)
_OF_TRANSACTIONS = (StoredMarker, StoredBatch, StoredTransition, AbortedEntry, ProducerEntry)
REPLICA_LINE = merged(struct_of(each) for each in (*_OF_REPLICAS, *_OF_TRANSACTIONS))
RECORD_LINE = merged(map(struct_of, _OF_REPLICAS))
"""The same without what only the lines about transactions have: most lines are records."""
_COMMON = T.StructType([T.StructField(name, _type_of(type_)) for name, type_ in COMMON])
_FACT_FIELDS = {*_COMMON.names, *(field.name for kind in FACT_EVENTS for field in fields(kind))}
_ALL_KINDS = merged([_COMMON, *(struct_of(kind) for kind in KINDS.values())])
STATE_CHANGE = T.StructType([field for field in _ALL_KINDS.fields if field.name in _FACT_FIELDS])
"""Fields of the kinds in `TOLD`; a name that any other kind uses with another type is text."""

SCHEMAS: dict[str, T.StructType] = {
    "operations": OPERATION,
    "journal": JOURNAL_ENTRY,
    "zookeeper": ZNODE_CHANGE,
    "replicas": REPLICA_LINE,
    "state_changes": STATE_CHANGE,
    "liveness": struct_of(Liveness),
}
"""What a line holds, by the kinds of files that a run folder has."""
