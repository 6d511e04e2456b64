"""The lines of a run in memory: what the model of a cluster writes, and what corruptions change before it is judged."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from harness.analysis.sources.lines import SCHEMAS
from harness.events import Event, encode
from harness.store.folder import TRANSACTIONS_DUMP
from harness.store.history import (
    JournalEntry,
    Liveness,
    Operation,
    OpKind,
    OpType,
    ReplicaRecord,
    ReplicaState,
    TransactionLine,
    ZnodeChange,
    line_of,
)

Line = dict[str, Any]
Files = dict[str, list[Line]]
"""Lines by the file's place within the run folder."""

MS = 1_000_000
WALL_AHEAD_NS = 1_700_000_000_000_000_000
OPERATIONS, JOURNAL, ZOOKEEPER, REPLICAS, STATE_CHANGES, LIVENESS = SCHEMAS
UNREADABLE = "unreadable"
"""A line that holds this is written as no JSON."""


@dataclass
class Evidence:
    """Everything that is known of a run, a dictionary a line."""

    files: dict[str, Files] = field(default_factory=lambda: {kind: {} for kind in SCHEMAS})
    now_ns: int = 1_000 * MS
    zxid: int = 100
    versions: dict[str, int] = field(default_factory=dict)
    """Of the znodes that are there."""

    def tick(self, ms: float = 1.0) -> None:
        self.now_ns += int(ms * MS)

    def event(self, common: Line, event: Event) -> None:
        """Write a line of a broker; `common` has `seq`, `broker`, `inc`, `session` and `broker_epoch`."""
        self.tick(0.01)
        clocks = {"ts": self.now_ns + WALL_AHEAD_NS, "mono": self.now_ns}
        self.add(STATE_CHANGES, state_change_log(common["broker"]), json.loads(encode(event, {**clocks, **common})))

    def znode(self, path: str, data: str | None, *, owner: str = "", multi: bool = False) -> int:
        """Create or set a znode, or delete it where there is no data; return its version."""
        self.tick(0.01)
        self.zxid += 0 if multi else 1
        type_ = "delete" if data is None else "set" if path in self.versions else "create"
        version = self.versions.get(path, -1) + 1
        if data is None:
            del self.versions[path]
        else:
            self.versions[path] = version
        change = ZnodeChange(
            zxid=self.zxid,
            time_ms=(self.now_ns + WALL_AHEAD_NS) // MS,
            type=type_,
            path=path,
            data=data or "",
            version=-1 if data is None else version,
            session="",
            ephemeral_owner=owner,
            source="observer",
        )
        self.add(ZOOKEEPER, "zookeeper.jsonl", change)
        return version

    def operation(self, process: str, kind: OpKind, type_: OpType, index: int, **fields: Any) -> None:
        self.tick()
        operation = Operation(index=index, time_ns=self.now_ns, process=process, type=type_, kind=kind, **fields)
        self.add(OPERATIONS, f"operations/{process}.jsonl", operation)

    def journal(self, entry: JournalEntry) -> None:
        self.add(JOURNAL, "journal.jsonl", entry)

    def sign(self, line: Liveness) -> None:
        self.add(LIVENESS, "liveness.jsonl", line)

    def dump(self, line: ReplicaState | ReplicaRecord) -> None:
        self.add(REPLICAS, replica_dump(line.broker, line.topic, line.partition), line)

    def dump_transaction(self, line: TransactionLine) -> None:
        self.add(REPLICAS, f"replicas/{line.broker}/{TRANSACTIONS_DUMP}", line)

    def add(self, kind: str, file: str, line: Any) -> None:
        whole = line if isinstance(line, dict) else json.loads(line_of(line))
        self.files[kind].setdefault(file, []).append(whole)

    def lines(self, kind: str, /, **fields: Any) -> Iterator[Line]:
        """Yield the lines of a kind of file whose fields have these values, file by file."""
        for lines in self.files[kind].values():
            yield from (line for line in lines if all(line.get(name) == value for name, value in fields.items()))

    def remove(self, kind: str, unwanted: list[Line]) -> None:
        """Take lines out."""
        gone = {id(line) for line in unwanted}
        for lines in self.files[kind].values():
            lines[:] = [line for line in lines if id(line) not in gone]

    def copy(self) -> "Evidence":
        return deepcopy(self)

    def row(self, run_id: str) -> dict[str, Any]:
        """Return one row of a table of runs, as `from_table` reads it."""
        return {"run_id": run_id} | {
            kind: [(file, [_text(line) for line in lines]) for file, lines in files.items()]
            for kind, files in self.files.items()
        }


def _text(line: Line) -> str:
    return '{"half' if UNREADABLE in line else json.dumps(line)


def state_change_log(broker: int) -> str:
    return f"brokers/{broker}/state-change.jsonl"


def replica_dump(broker: int, topic: str, partition: int) -> str:
    return f"replicas/{broker}/replica-{topic}-{partition}.jsonl"
