"""What the lines of evidence hold, field by field, for writers of other tools.

Made from the dataclasses that the harness itself writes (`history`, `events`), with two additions: which fields
others must give, and the defaults of the rest.
"""

import ast
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from harness.analysis.sources.lineage import FACT_EVENTS
from harness.events import (
    COMMON,
    KINDS,
    Append,
    AssignedPartition,
    BrokerStart,
    ControlledPartition,
    CoordinatorLoad,
    CoordinatorUnload,
    Event,
    GroupMember,
    MemberAssignment,
    OffsetCommit,
    OffsetForLeaderEpoch,
    PartitionState,
    ProduceResponse,
    TransactionalOffsetCommit,
)
from harness.store.history import (
    LINK,
    JournalEntry,
    Liveness,
    Operation,
    OpKind,
    Record,
    ReplicaRecord,
    ReplicaState,
    ZnodeChange,
)
from harness.store.seal import UNCHAINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a line."""

    name: str
    type: str
    """JSON type, as text."""
    required: bool
    default: Any
    """Default if it is left out; None if there is none."""
    choices: tuple[str, ...]
    """All allowed values; empty for any."""
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineKind:
    """One kind of line among those of a format."""

    name: str
    """Value of the field that distinguishes kinds; empty if there is one kind."""
    about: str
    fields: tuple[Field, ...]

    @property
    def required(self) -> tuple[str, ...]:
        """The fields that such a line must have."""
        return tuple(field.name for field in self.fields if field.required)


LINE_NUMBER, CHAIN = LINK
LINKS = (
    Field(
        name=LINE_NUMBER,
        type="whole number",
        required=False,
        default=None,
        choices=(),
        about="Number of the line among those of its writer, from 0.",
    ),
    Field(
        name=CHAIN,
        type="text",
        required=False,
        default=None,
        choices=(),
        about="CRC-32 of all lines of its writer up to and with `line` of this one, as eight hexadecimal digits.",
    ),
)
"""Fields that a line of any kind but a dump's may end with, so that a file proves that it is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of evidence."""

    kind: str
    """Name in `harness/analysis/sources/lines.py`."""
    option: str
    about: str
    kind_field: str
    """Name of the field that distinguishes kinds of lines; empty if there is one kind."""
    lines: tuple[LineKind, ...]

    @property
    def chained(self) -> bool:
        """Whether lines may be numbered and chained."""
        return self.kind not in UNCHAINED

    @property
    def names(self) -> list[str]:
        """Every field of any line."""
        of_lines = [field for line in self.lines for field in line.fields]
        return list(dict.fromkeys(field.name for field in (*of_lines, *(LINKS if self.chained else ()))))

    @property
    def defaults(self) -> dict[str, Any]:
        """Defaults of fields that are left out."""
        return {field.name: field.default for line in self.lines for field in line.fields if field.default is not None}

    @property
    def choices(self) -> dict[str, tuple[str, ...]]:
        """All allowed values of a field, if limited."""
        return {field.name: field.choices for line in self.lines for field in line.fields if field.choices}


_OPTIONAL: Mapping[type, Mapping[str, Any]] = {
    ZnodeChange: {"time_ms": None, "data": "", "session": "", "ephemeral_owner": "", "source": "transaction_log"},
    ReplicaState: {"high_watermark": -1, "recovery_point": -1, "leader_epochs": None, "damage": ""},
    ReplicaRecord: {
        "timestamp_ms": None,
        "key": "",
        "digest": None,
        "producer_id": -1,
        "producer_epoch": -1,
        "sequence": -1,
    },
    CoordinatorLoad: {"disk_error": None},
    CoordinatorUnload: {"groups": None},
    OffsetCommit: dict.fromkeys(("instance", "coordinator_epoch", "decided_seq", "log_offset")),
    TransactionalOffsetCommit: {"decided_seq": None},
    BrokerStart: {"config_digest": None, "clean_marker": None, "planted_bugs": None},
    Append: dict.fromkeys(("batch_epoch", "crc", "producer_id", "producer_epoch", "base_sequence", "isr_size")),
    OffsetForLeaderEpoch: dict.fromkeys(("leader_epoch", "log_end_offset", "leader_epochs")),
    ProduceResponse: dict.fromkeys(("correlation_id", "client", "duration_ms")),
    JournalEntry: {"targets": None, "parameters": None, "detail": "", "state": None},
    Liveness: {"cpu_percent": 0, "load_percent": 0, "late_ms": 0},
}
"""Fields that others may leave out although the harness never does."""
_NESTED: Mapping[type, str] = {
    Record: "record",
    PartitionState: "partition state",
    ControlledPartition: "controlled partition",
    GroupMember: "group member",
    MemberAssignment: "member assignment",
    AssignedPartition: "assigned partition",
}
"""Objects within lines, by their names in types."""
_UNSAID: frozenset[str] = frozenset({"records", "targets", "parameters", "state"})
"""Fields with an empty list or object as default, which is not filled in."""
_OF_OPERATIONS: Mapping[OpKind, tuple[str, tuple[str, ...]]] = {
    OpKind.SEND: (
        "A record is written; its end says at which `offset`, and nothing about the end of its transaction.",
        ("topic", "value"),
    ),
    OpKind.POLL: ("Records are read; an `ok` end has them in `records`.", ()),
    OpKind.COMMIT: ("A group's offset is committed.", ("group", "topic", "partition", "offset")),
    OpKind.FETCH_COMMITTED: ("It is read back; its end says the `offset`.", ("group", "topic", "partition")),
    OpKind.END_OFFSET: ("The end of a partition is asked for; its end says the `offset`.", ("topic", "partition")),
    OpKind.LIST_OFFSET: (
        "An offset is asked for, as its `mode` says (latest, earliest or timestamp); its end says the `offset`.",
        ("topic", "partition"),
    ),
    OpKind.READ: (
        "Records are read from an `offset` on, uncommitted ones too; an `ok` end has in `value` the first of them, "
        "each as offset=value id, with a space between two. The `mode` says from which replica (leader or replica).",
        ("topic", "partition", "offset"),
    ),
    OpKind.DELETE_RECORDS: (
        "The records before the `offset` are deleted; an `ok` end says where the log begins.",
        ("topic", "partition", "offset"),
    ),
    OpKind.ADMINISTER: (
        "Topics, configurations, leaders or groups are changed or described; the `mode` says how.",
        ("mode",),
    ),
    OpKind.ASK: (
        "A recorded script of client calls is played; the `mode` says which. An `ok` end has in `error` the first "
        "answer that is not as recorded.",
        ("mode",),
    ),
    OpKind.REQUEST: (
        "A request that the scenario states is sent; the `mode` says which, in which version and to which broker. An "
        "`ok` end has the answer in `error`, as JSON. `key` is the answer that Kafka promises, if the scenario states "
        "one, and an `ok` end has in `value` how the answer differs.",
        ("mode",),
    ),
    OpKind.SUBSCRIBE: ("A member subscribes; it ends with its first assignment, which may be empty.", ("group",)),
    OpKind.ASSIGNED: (
        "A partition becomes a member's; an `ok` end says the `offset` at which it reads on, an `info` that "
        "it is unknown.",
        ("group", "topic", "partition"),
    ),
    OpKind.REVOKED: (
        "A member gives a partition back, which it had read to `offset`.",
        ("group", "topic", "partition"),
    ),
    OpKind.LOST: ("A member learns that its group continued without it.", ("group", "topic", "partition")),
    OpKind.LEAVE: ("A member closes.", ("group",)),
    OpKind.INIT_TRANSACTIONS: (
        "A producer becomes the present one of its transactional id; earlier ones are fenced.",
        ("transactional_id",),
    ),
    OpKind.BEGIN_TRANSACTION: (
        "A transaction begins. Its operations, and this one, have the `index` of this one as `transaction`.",
        ("transactional_id", "transaction"),
    ),
    OpKind.SEND_OFFSETS: (
        "A group's offset becomes part of the transaction.",
        ("transactional_id", "transaction", "group", "topic", "partition", "offset"),
    ),
    OpKind.COMMIT_TRANSACTION: (
        "The transaction is committed: `ok` says that it is, `fail` that it certainly is not. There may be several of "
        "one transaction.",
        ("transactional_id", "transaction"),
    ),
    OpKind.ABORT_TRANSACTION: ("The transaction is aborted.", ("transactional_id", "transaction")),
    OpKind.SETTING: (
        "A setting of the client or of its cluster: `key` is its name, `value` what `--set` takes. One line of type "
        "`invoke`, without an end.",
        ("key", "value"),
    ),
}
"""The meaning of each kind of operation, and the further fields that its lines need."""
_CHOICES: Mapping[tuple[type, str], tuple[str, ...]] = {
    (ZnodeChange, "type"): ("create", "set", "delete"),
}
_COMMON_ABOUT = {
    "ts": "Wall clock, nanoseconds since 1970; never used to order events of two brokers.",
    "mono": "Monotonic clock of the process, nanoseconds.",
    "seq": "Counts up from 0 without gaps within one life of the process, so that lost lines are noticed.",
    "broker": "Id of the broker.",
    "inc": "A fresh id each time the process starts.",
    "session": "ZooKeeper session in hexadecimal.",
    "broker_epoch": "czxid of the registration.",
    "ev": "Kind of the line.",
}
_COMMON_OPTIONAL: Mapping[str, Any] = {"ts": None, "session": "", "broker_epoch": -1}
_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}


@cache
def formats() -> dict[str, Format]:
    """Return every format by the kind of its evidence."""
    made = (_operations(), _replicas(), _zookeeper(), _state_changes(), _journal(), _liveness())
    return {form.kind: form for form in made}


def _operations() -> Format:
    shared = _fields(Operation)
    lines = tuple(
        LineKind(name=kind.value, about=about, fields=_requiring(shared, more))
        for kind, (about, more) in _OF_OPERATIONS.items()
    )
    return Format(
        kind="operations",
        option="--operations",
        about="What clients tried and how it ended: a line as each operation begins, and one as it ends.",
        kind_field="kind",
        lines=lines,
    )


def _replicas() -> Format:
    classes = {"replica": ReplicaState, "record": ReplicaRecord}
    return Format(
        kind="replicas",
        option="--replicas",
        about="What every replica's log held at the end: a line for the replica, and one for each of its records.",
        kind_field="type",
        lines=tuple(
            LineKind(name=name, about=_about(cls), fields=_choosing(_fields(cls), "type", tuple(classes)))
            for name, cls in classes.items()
        ),
    )


def _zookeeper() -> Format:
    line = LineKind(name="", about=_about(ZnodeChange), fields=_fields(ZnodeChange))
    return Format(
        kind="zookeeper",
        option="--zookeeper",
        about="Every change of every znode, in any order.",
        kind_field="",
        lines=(line,),
    )


def _state_changes() -> Format:
    common = tuple(
        Field(
            name=name,
            type=_WORDS[type_],
            required=name not in _COMMON_OPTIONAL,
            default=_COMMON_OPTIONAL.get(name),
            choices=tuple(KINDS) if name == "ev" else (),
            about=_COMMON_ABOUT[name],
        )
        for name, type_ in COMMON
    )
    lines = [
        LineKind(name=kind.ev, about=_about(kind), fields=common + _fields_of_event(kind)) for kind in KINDS.values()
    ]
    return Format(
        kind="state_changes",
        option="--state-changes",
        about="State changes that each broker logged, in its own order.",
        kind_field="ev",
        lines=tuple(lines),
    )


def _fields_of_event(kind: type[Event]) -> tuple[Field, ...]:
    """Return the fields of a kind of state change; those that no fact uses are optional."""
    own = _fields(kind)
    return own if kind in FACT_EVENTS else _requiring(tuple(_left_out(field) for field in own), ())


def _journal() -> Format:
    line = LineKind(name="", about=_about(JournalEntry), fields=_fields(JournalEntry))
    return Format(
        kind="journal",
        option="--journal",
        about="Which faults were injected and healed, and when.",
        kind_field="",
        lines=(line,),
    )


def _liveness() -> Format:
    line = LineKind(name="", about=_about(Liveness), fields=_fields(Liveness))
    return Format(
        kind="liveness",
        option="--liveness",
        about="Answers of the cluster to liveness probes after all faults were healed.",
        kind_field="",
        lines=(line,),
    )


def nested() -> dict[str, tuple[Field, ...]]:
    """Return the fields of objects within lines, by their names in types."""
    return {word: _fields(cls) for cls, word in _NESTED.items()}


def _fields(cls: type) -> tuple[Field, ...]:
    """Return the fields of a dataclass, with their docstrings."""
    hints, docs = get_type_hints(cls), _docs(cls)
    optional = _OPTIONAL.get(cls, {})
    described = []
    for field in fields(cls):
        hint = hints[field.name]
        has_default = isinstance(field.default, str | int) and field.name not in _UNSAID
        may_be_null = NoneType in get_args(hint)
        default = optional.get(field.name, field.default if has_default and field.name != "type" else None)
        left_out = (
            field.name in optional or field.name in _UNSAID or (has_default and field.name != "type") or may_be_null
        )
        choices = tuple(hint) if isinstance(hint, type) and issubclass(hint, StrEnum) else ()
        described.append(
            Field(
                name=field.name,
                type=_type_name(hint),
                required=not left_out,
                default=default,
                choices=tuple(map(str, choices)) or _CHOICES.get((cls, field.name), ()),
                about=docs.get(field.name, ""),
            )
        )
    return tuple(described)


def _requiring(of_line: tuple[Field, ...], more: tuple[str, ...]) -> tuple[Field, ...]:
    return tuple(replace(field, required=True, default=None) if field.name in more else field for field in of_line)


def _left_out(field: Field) -> Field:
    return replace(field, required=False, default=None)


def _choosing(of_line: tuple[Field, ...], name: str, choices: tuple[str, ...]) -> tuple[Field, ...]:
    return tuple(replace(field, choices=choices) if field.name == name else field for field in of_line)


def _type_name(hint: Any) -> str:
    if hint in _WORDS:
        return _WORDS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (hint,) = (argument for argument in arguments if argument is not NoneType)
        return f"{_type_name(hint)}, or null"
    if origin is tuple and arguments[-1] is not ...:
        return f"pair of {_many(arguments[0])}"
    if origin in (list, tuple):
        return f"list of {_many(arguments[0])}"
    if origin is dict:
        return "object"
    return "text" if issubclass(hint, StrEnum) else _word(hint)


def _many(hint: Any) -> str:
    first, _, rest = _type_name(hint).partition(" of ")
    return f"{first}s of {rest}" if rest else f"{first}s"


def _word(cls: type) -> str:
    return _NESTED[cls]


def _about(cls: type) -> str:
    return inspect.cleandoc(cls.__doc__ or "").partition("\n")[0]


def _docs(cls: type) -> dict[str, str]:
    """Return the docstring of each field of a dataclass."""
    body = ast.parse(inspect.cleandoc(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    docs: dict[str, str] = {}
    name = ""
    for statement in body.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and name:
            docs[name], name = inspect.cleandoc(str(statement.value.value)).replace("\n", " "), ""
    return docs
