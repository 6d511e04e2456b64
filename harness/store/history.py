"""The lines of a run's JSONL files, and how such files are written and read.

Six kinds of line: client operations, the fault journal, the ZooKeeper history, replica dumps, signs of life
(these here), and the brokers' state-change logs (`harness/events.py`). Writers append whole lines with one `write`, so
a killed process can tear the last line at most; readers stop there and say so. All but replica dumps are chained
(`harness/system/chain.py`).
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import msgspec

from harness.errors import EvidenceError
from harness.system.chain import Link, chained, end
from harness.values import value_class


class OpType(StrEnum):
    """The state of an operation: invoked, or one of three ends."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    """It certainly did not take effect."""
    INFO = "info"
    """Unknown: it may have taken effect, or may still do so."""


class OpKind(StrEnum):
    """What a client process does."""

    SEND = "send"
    POLL = "poll"
    COMMIT = "commit"
    FETCH_COMMITTED = "fetch_committed"
    """Reads the group's committed offset back."""
    END_OFFSET = "end_offset"
    """Asks the partition leader for the high watermark."""
    LIST_OFFSET = "list_offset"
    """Asks the partition leader for an offset: the latest, the earliest, or one by timestamp, as the mode says."""
    READ = "read"
    """Reads the records of a partition from a known offset on, from its leader or from a replica, as the mode says. An
    ok end has them in `value`."""
    DELETE_RECORDS = "delete_records"
    """Moves the start of a partition's log to an offset; the end has the new start."""
    ADMINISTER = "administer"
    """Asks for a change of topics, configurations, leaders or groups, or for a description, as the mode says."""
    ASK = "ask"
    """Plays a recorded script of client calls, as the mode says; its end says in `error` which answer differs."""
    REQUEST = "request"
    """Sends one request that a scenario states, as the mode says. An ok end has the answer in `error`, and in `value`
    how it differs from the one that is promised."""
    SUBSCRIBE = "subscribe"
    """Becomes a member of a group; ends with its first assignment, which may be empty."""
    ASSIGNED = "assigned"
    """Gets a partition from its group; ends when it can be read."""
    REVOKED = "revoked"
    """Is asked to give a partition back; ends when it has."""
    LOST = "lost"
    """Has lost a partition: its group has gone on without it."""
    LEAVE = "leave"
    """Closes a member; a static one stays in its group until its session times out."""
    INIT_TRANSACTIONS = "init_transactions"
    """Makes a producer the present one of its transactional id; earlier ones are fenced."""
    BEGIN_TRANSACTION = "begin_transaction"
    """Begins a transaction, without a request."""
    SEND_OFFSETS = "send_offsets"
    """Makes a group's offset of a partition part of the transaction (KIP-447)."""
    COMMIT_TRANSACTION = "commit_transaction"
    ABORT_TRANSACTION = "abort_transaction"
    SETTING = "setting"
    """States by `key` and `value` how the client, or its cluster, is configured; it has no end."""


READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
"""Isolation levels, by Kafka's names."""
COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
"""Outcomes of a transaction as its client knows them; one that it never asked to commit is aborted."""


@value_class(frozen=True, slots=True, kw_only=True)
class Record:
    """One record of a poll, in the order of delivery."""

    topic: str
    partition: int
    offset: int
    value: str
    """The producer's value id, or a digest of a value from elsewhere."""
    leader_epoch: int = -1


@value_class(frozen=True, slots=True, kw_only=True)
class Operation:
    """One line of `operations/<process>.jsonl`."""

    index: int
    """Pairs an invoke with its end; counts up from 0 within a process."""
    time_ns: int
    """Nanoseconds on the host's monotonic clock (CLOCK_MONOTONIC), one clock for all processes of a run."""
    process: str
    """Name of the client, which does one operation after the other."""
    type: OpType
    """invoke, or how it ended: ok, fail (had no effect) or info (unknown whether it had one)."""
    kind: OpKind
    topic: str = ""
    partition: int = -1
    """Of a send -1 until the client has chosen one."""
    offset: int = -1
    """Of the record (send), the position to resume from (commit, send_offsets, fetch_committed), the end (end_offset),
    where reading begins (assigned; -1 for the log's start, as nothing was committed) or where it has come to (revoked,
    lost)."""
    key: str = ""
    """Of the record. Of a request: the answer that is promised, as JSON; empty if none is."""
    value: str = ""
    """The value id, unique in the run. Of a request that ended ok: how the answer differs from the promised one. Of a
    read that ended ok: its records in order, each as `offset=value id`, with a space between two."""
    acks: int = -1
    """Of a send: 0, 1 or -1 for all."""
    made_from: str = ""
    """Of a send: the value id of the record that this one was made from; empty if there is none."""
    transactional_id: str = ""
    """Of a transactional producer's operations."""
    transaction: int = -1
    """Of a transaction's operations: the index of its begin_transaction, in the same process."""
    isolation: str = ""
    """Of a poll or end_offset: read_uncommitted or read_committed; empty if the client does not say."""
    group: str = ""
    """Consumer group of a commit, send_offsets or fetch_committed, and of all operations of a member."""
    member: str = ""
    """Of a member of a group: its id from the coordinator; empty without one."""
    instance: str = ""
    """Its group.instance.id; empty for a dynamic member."""
    generation: int = -1
    """The member's generation when the operation began; -1 if the client does not report it."""
    mode: str = ""
    """Of a poll: assign or subscribe; reread when a process reads everything once more from the start. Of a member:
    its assignor (subscribe), eager or cooperative (assigned, revoked, lost), manual or automatic (commit). Of an
    administrator: what it asks for."""
    records: tuple[Record, ...] = ()
    """Of a poll that ended ok, in the order of delivery."""
    error: str = ""
    """Name and message of the error that ended a fail or an info. Of an ask that ended ok: the first answer that is not
    as recorded. Of a request that ended ok: its answer, as JSON."""


class InjectionStep(StrEnum):
    """The write-ahead steps of one injection, in order; later steps never replace earlier ones."""

    POSTPONED = "postponed"
    """Nothing is done yet: its target is held, or its role is vacant."""
    INTENDED = "intended"
    INJECTED = "injected"
    CONFIRMED = "confirmed"
    MISMATCH = "mismatch"
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"
    """Inconclusive, as the fault's own code failed, with no cause in the cluster."""
    HEALED = "healed"
    HEAL_FAILED = "heal_failed"


@value_class(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One line of `journal.jsonl`."""

    time_ns: int
    """Host's monotonic clock, as in `Operation`."""
    injection: int
    """Index of the injection within the plan."""
    fault: str
    step: InjectionStep
    targets: tuple[str, ...] = ()
    """Broker ids as text, `zookeeper`, a client's process, or empty while not resolved."""
    parameters: dict[str, Any] = field(default_factory=dict)
    detail: str = ""
    """A sentence: what was seen, or what went wrong."""
    state: dict[str, Any] = field(default_factory=dict)
    """What any process needs to heal it."""


SNAPSHOT = "snapshot"
"""Source of what a snapshot of a quorum's metadata tells: the state at an offset, not when it came about."""


@value_class(frozen=True, slots=True, kw_only=True)
class ZnodeChange:
    """One line of `zookeeper.jsonl`: one znode created, set or deleted."""

    zxid: int
    """Transaction that made the change; the order of all changes."""
    time_ms: int
    """ZooKeeper server's wall clock."""
    type: str
    """create, set or delete."""
    path: str
    """Of the znode."""
    data: str
    """UTF-8 text; empty for a delete."""
    version: int
    """Version of the data after the change; -1 for a delete."""
    session: str
    """In hexadecimal, the session that made the change; empty if the source does not record it."""
    ephemeral_owner: str
    """In hexadecimal; empty for a persistent znode."""
    source: str
    """observer (seen live by a watching session), transaction_log (read from the server's log afterwards) or snapshot
    (the state with which a quorum's log begins)."""


@value_class(frozen=True, slots=True, kw_only=True)
class ReplicaRecord:
    """One record in one replica's log after the run."""

    type: str = "record"
    broker: int
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    """Stamped on the record's batch."""
    timestamp_ms: int
    key: str
    value: str
    """The text of the value if it is UTF-8, else its SHA-256."""
    digest: str
    """SHA-256 over key, value and headers."""
    producer_id: int
    """-1 without idempotence; so are the next two."""
    producer_epoch: int
    sequence: int


@value_class(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """The first line of a replica's dump: its checkpoints, its leader-epoch cache and whether the log was whole."""

    type: str = "replica"
    broker: int
    topic: str
    partition: int
    log_start_offset: int
    """First offset of the log."""
    log_end_offset: int
    """Offset of the next record."""
    high_watermark: int
    """From `replication-offset-checkpoint`; -1 when the file does not name the partition."""
    recovery_point: int
    """Everything before it was known to be flushed."""
    leader_epochs: tuple[tuple[int, int], ...]
    """Entries (epoch, start offset) of `leader-epoch-checkpoint`."""
    damage: str
    """Empty, or what is damaged and where reading stopped."""


@value_class(frozen=True, slots=True, kw_only=True)
class DeletedLog:
    """One line of a broker's `deleted.jsonl`: a folder that waits to be removed, and is no longer a replica."""

    type: str = "deleted"
    broker: int
    topic: str
    partition: int
    folder: str
    """Its name in the data directory."""


@value_class(frozen=True, slots=True, kw_only=True)
class StoredMarker:
    """One transaction marker in one replica's log after the run."""

    type: str = "marker"
    broker: int
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    timestamp_ms: int
    producer_id: int
    producer_epoch: int
    result: str
    """commit or abort."""
    coordinator_epoch: int


@value_class(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """One batch of a transaction in one replica's log after the run."""

    type: str = "batch"
    broker: int
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    """By its header: compaction may have removed any of its records."""
    leader_epoch: int
    timestamp_ms: int
    producer_id: int
    producer_epoch: int
    first_sequence: int


@value_class(frozen=True, slots=True, kw_only=True)
class StoredTransition:
    """One record in one replica's log of a partition of `__transaction_state` after the run."""

    type: str = "transition"
    broker: int
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    """Of the coordinator that wrote it."""
    timestamp_ms: int
    transactional_id: str
    state: str
    """Kafka's name; Dead for a tombstone."""
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    transaction_version: int
    """With version 2 each transaction has an epoch of its own."""
    partitions: list[str]
    """Those of the transaction, as topic-partition."""


@value_class(frozen=True, slots=True, kw_only=True)
class AbortedEntry:
    """One entry of a replica's index of aborted transactions (`.txnindex`)."""

    type: str = "aborted"
    broker: int
    topic: str
    partition: int
    segment: int
    """Base offset of the entry's segment."""
    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker."""
    last_stable_offset: int


@value_class(frozen=True, slots=True, kw_only=True)
class ProducerEntry:
    """One producer in a replica's latest snapshot (`.snapshot`); -1 stands for none."""

    type: str = "producer"
    broker: int
    topic: str
    partition: int
    snapshot_offset: int
    """The snapshot covers everything before it."""
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int


class Sign(StrEnum):
    """A sign that a cluster is alive."""

    REGISTERED = "registered"
    """A broker whose process runs is registered in ZooKeeper."""
    LED = "led"
    """A partition has a leader that is registered."""
    IN_SYNC = "in_sync"
    """Every replica whose broker runs is in its ISR."""
    PRODUCE = "produce"
    """A record sent with acks=all is acknowledged."""
    FETCH = "fetch"
    """That record is served."""
    READ = "read"
    """A reader of the load has reached that record."""
    COMMIT = "commit"
    """The coordinator of this partition of `__consumer_offsets` accepts an offset."""
    WORK = "work"
    """A client of the load completes an operation; not asked of one that plays scripts, which may take minutes."""


@value_class(frozen=True, slots=True, kw_only=True)
class Liveness:
    """One line of `liveness.jsonl`: one sign of life, after the cluster was left undisturbed."""

    time_ns: int
    """Instant of the last look; host's monotonic clock, as in `Operation`."""
    sign: Sign
    broker: int = -1
    """Of `registered`."""
    topic: str = ""
    partition: int = -1
    process: str = ""
    """Of `read`: the client, or its group, of which one member is enough. Of `work`: the client."""
    shown: bool
    """Whether the cluster showed it."""
    since_ns: int
    """Instant at which it was last seen; of the last heal, if it was not seen since."""
    healed_ns: int
    """Instant of the last heal."""
    detail: str = ""
    """A sentence: what was seen instead."""
    hindrance: str = ""
    """A sentence: what keeps an intact cluster from showing it; empty when nothing does."""
    cpu_percent: int
    """How busy all processors of the machine were from then on; 0 in virtual time, as are the next two."""
    load_percent: int
    """Runnable processes, on average over the last minute, for each 100 processors."""
    late_ms: int
    """The longest time for which the harness itself was not scheduled."""


LINK = ("line", "chain")
"""Fields with the line's position in its file."""
TransactionLine = StoredMarker | StoredBatch | StoredTransition | AbortedEntry | ProducerEntry
Line = Operation | JournalEntry | ZnodeChange | ReplicaRecord | ReplicaState | DeletedLog | TransactionLine | Liveness


def now_ns() -> int:
    """Return the time on the clock that all processes of a run share: the host's CLOCK_MONOTONIC, in nanoseconds."""
    return time.monotonic_ns()


def line_of(value: Line | dict[str, Any]) -> bytes:
    """Return a value as one line of JSON, newline included."""
    return _ENCODE(value) + b"\n"


_ENCODE = msgspec.json.Encoder().encode


class JsonlWriter:
    """Appends lines to one file, each with a single unbuffered write, so that a kill tears one line at most."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, line: Line | dict[str, Any]) -> None:
        """Append one line; other processes can read it when this returns; when this raises, nothing is appended."""
        self._append(line_of(line))

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:  # a full disk may take half a line, to which the next one would be appended
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - (len(data) - len(view)))
            raise

    def sync(self) -> None:
        """Wait until all lines survive a power loss (fsync)."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the file; writing afterwards is an error."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class ChainedWriter(JsonlWriter):
    """Adds number and checksum to each line, and the number of lines at the end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._link = Link()

    def _append(self, data: bytes) -> None:
        line, link = chained(data, self._link)
        super()._append(line)
        self._link = link

    def close(self) -> None:
        """Write the end line, unless nothing was written, and close the file; writing afterwards is an error."""
        try:
            if self._link.lines:
                super()._append(end(self._link))
        finally:
            super().close()


def without_link(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line without its position in the file; empty for a writer's end."""
    if "chain" not in line:
        return line
    return {} if "lines" in line else {name: value for name, value in line.items() if name not in LINK}


@dataclass(slots=True)
class TornLine:
    """Filled by `read_jsonl` when a file ends in half a line."""

    path: Path | None = None
    offset: int = -1


def read_jsonl(path: Path, torn: TornLine | None = None) -> Iterator[dict[str, Any]]:
    """Yield every whole line of a file; a torn last line ends it and is noted in `torn`.

    Raises:
        EvidenceError: a line before the last one is not a JSON object.
    """
    offset = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                value = json.loads(raw)
            except (ValueError, RecursionError) as error:
                if raw.endswith(b"\n"):
                    raise EvidenceError(f"{path}:{number}: not a JSON object: {error}") from error
                value = None
            if not raw.endswith(b"\n"):
                if torn is not None:
                    torn.path, torn.offset = path, offset
                return
            if not isinstance(value, dict):
                raise EvidenceError(f"{path}:{number}: not a JSON object: {raw[:80]!r}")
            offset += len(raw)
            if content := without_link(value):
                yield content
