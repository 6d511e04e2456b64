"""Reads all changes of a ZooKeeper server from its transaction log.

Watches only show that a znode changed, not how often; the log has every transaction with its zxid, session and time,
and each operation of a multi. The server's own tool prints data without escapes, so that commas and line breaks in it
are ambiguous; hence the files are read directly. Sources of the format: `FileTxnLog` (files), `zookeeper.jute`
(records), `SerializeUtils.deserializeTxn` (record by transaction type).
"""

import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from harness.errors import EvidenceError
from harness.store.history import ZnodeChange
from harness.zookeeper.sessions import to_text

MAGIC = b"ZKLG"
FILE_HEADER = struct.Struct(">4siq")
"""Magic, version, database id."""
ENTRY_HEADER = struct.Struct(">qi")
"""Adler-32 of the entry, its length."""
END_OF_RECORD = b"B"
SOURCE = "transaction_log"


class OpCode(IntEnum):
    """Types of transactions (`ZooDefs.OpCode`) that matter here: those that change znodes, multis and errors."""

    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    MULTI = 14
    CREATE2 = 15
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    CLOSE_SESSION = -11
    ERROR = -1


@dataclass(slots=True)
class TransactionLog:
    """The changes of all log files of one server, in the order of their zxids."""

    changes: list[ZnodeChange] = field(default_factory=list)
    damage: str = ""
    """Empty, or the file that could not be read to its end, and where reading stopped."""


@dataclass(slots=True)
class _Jute:
    """Reads ZooKeeper's serialization: big-endian numbers, length-prefixed strings and buffers (length -1 is null)."""

    data: bytes
    position: int = 0

    def int32(self) -> int:
        return self._number(">i")

    def int64(self) -> int:
        return self._number(">q")

    def boolean(self) -> bool:
        return bool(self._number(">b"))

    def buffer(self) -> bytes:
        length = self.int32()
        if length < 0:
            return b""
        end = self.position + length
        if end > len(self.data):
            raise ValueError(f"{length} bytes announced, {len(self.data) - self.position} there")
        result = self.data[self.position : end]
        self.position = end
        return result

    def text(self) -> str:
        return self.buffer().decode("utf-8", errors="replace")

    def skip_acl(self) -> None:
        for _ in range(self.int32()):
            self.int32()  # permissions
            self.buffer()  # scheme
            self.buffer()  # id

    def _number(self, form: str) -> int:
        value: int = struct.unpack_from(form, self.data, self.position)[0]
        self.position += struct.calcsize(form)
        return value


@dataclass(frozen=True, slots=True)
class _Transaction:
    """The header that all operations of one transaction share (`TxnHeader`)."""

    session: int
    zxid: int
    time_ms: int


class _Replay:
    """Turns transactions into changes, in order; remembers owners of ephemeral znodes, which only a create has."""

    def __init__(self) -> None:
        self._owners: dict[str, int] = {}

    def changes(self, entry: bytes) -> Iterator[ZnodeChange]:
        """Yield what one transaction changed, in the order of its operations."""
        jute = _Jute(entry)
        session = jute.int64()
        jute.int32()  # cxid: the client's number of the request
        transaction = _Transaction(session=session, zxid=jute.int64(), time_ms=jute.int64())
        op = jute.int32()
        if op == OpCode.MULTI:
            operations = [(jute.int32(), jute.buffer()) for _ in range(jute.int32())]
            # A failed multi is logged too: its operations before the failed one, then errors.
            if all(op != OpCode.ERROR for op, _ in operations):
                for op, body in operations:
                    yield from self._operation(transaction, op, _Jute(body))
        else:
            yield from self._operation(transaction, op, jute)

    def _operation(self, transaction: _Transaction, op: int, jute: _Jute) -> Iterator[ZnodeChange]:
        if op in (OpCode.CREATE, OpCode.CREATE2, OpCode.CREATE_CONTAINER, OpCode.CREATE_TTL):
            path, data = jute.text(), jute.buffer()
            jute.skip_acl()
            if op in (OpCode.CREATE, OpCode.CREATE2) and jute.boolean():
                self._owners[path] = transaction.session
            yield self._change(transaction, "create", path, data, 0)
        elif op == OpCode.SET_DATA:
            path, data, version = jute.text(), jute.buffer(), jute.int32()
            yield self._change(transaction, "set", path, data, version)
        elif op in (OpCode.DELETE, OpCode.DELETE_CONTAINER):
            yield self._deleted(transaction, jute.text())
        elif op == OpCode.CLOSE_SESSION:
            for _ in range(jute.int32()):
                yield self._deleted(transaction, jute.text())

    def _deleted(self, transaction: _Transaction, path: str) -> ZnodeChange:
        change = self._change(transaction, "delete", path, b"", -1)
        self._owners.pop(path, None)
        return change

    def _change(self, transaction: _Transaction, kind: str, path: str, data: bytes, version: int) -> ZnodeChange:
        return ZnodeChange(
            zxid=transaction.zxid,
            time_ms=transaction.time_ms,
            type=kind,
            path=path,
            data=data.decode("utf-8", errors="replace"),
            version=version,
            session=to_text(transaction.session),
            ephemeral_owner=to_text(self._owners.get(path, 0)),
            source=SOURCE,
        )


def read_transaction_log(data_dir: Path) -> TransactionLog:
    """Return every change in the log files under a server's data directory; the server may still run.

    Raises:
        EvidenceError: there is no log file.
    """
    files = sorted((data_dir / "version-2").glob("log.*"), key=lambda file: int(file.suffix.removeprefix("."), base=16))
    if not files:
        raise EvidenceError(f"no transaction log in {data_dir / 'version-2'}")
    result = TransactionLog()
    replay = _Replay()
    for file in files:
        entries = _Entries(file)
        for entry in entries:
            result.changes += replay.changes(entry)
        if entries.damage:
            result.damage = entries.damage
            break
    return result


def read_ensemble_log(data_dirs: Sequence[Path]) -> TransactionLog:
    """Return every change that any server of an ensemble logged, in the order of zxids.

    A server that joined late begins with a snapshot, and one that was isolated ends early, so no single log need be
    complete. Servers log the same under one zxid; where they do not, the longest log decides and `damage` says so.

    Raises:
        EvidenceError: no server has a log file.
    """
    logs, missing = [], []
    for data_dir in data_dirs:
        try:
            logs.append(read_transaction_log(data_dir))
        except EvidenceError as error:
            missing.append(str(error))
    if not logs:
        raise EvidenceError("; ".join(missing))
    logs.sort(key=lambda log: len(log.changes), reverse=True)
    damage = missing + [log.damage for log in logs if log.damage]
    changes = logs[0].changes
    for other in logs[1:]:
        known = _by_zxid(changes)
        for zxid, logged in _by_zxid(other.changes).items():
            if zxid not in known:
                changes = changes + logged
            elif list(map(_content, logged)) != list(map(_content, known[zxid])):
                damage.append(f"the ZooKeeper servers disagree about zxid {zxid}")
    return TransactionLog(changes=sorted(changes, key=lambda change: change.zxid), damage="; ".join(damage))


def _by_zxid(changes: list[ZnodeChange]) -> dict[int, list[ZnodeChange]]:
    grouped: dict[int, list[ZnodeChange]] = defaultdict(list)
    for change in changes:
        grouped[change.zxid].append(change)
    return grouped


def _content(change: ZnodeChange) -> tuple[str, str, str, int]:
    return change.type, change.path, change.data, change.version


class _Entries:
    """Iterates over the serialized transactions of one file, up to its padding of zeros or the first damage."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.damage = ""

    def __iter__(self) -> Iterator[bytes]:
        data = self._file.read_bytes()
        if data[:4] != MAGIC:
            if data.strip(b"\0"):  # else the file is new, its header still in the server's buffer
                self.damage = f"{self._file}: does not begin with {MAGIC!r}"
            return
        position = FILE_HEADER.size
        while position + ENTRY_HEADER.size <= len(data):
            checksum, length = ENTRY_HEADER.unpack_from(data, position)
            if length == 0:
                return
            start = position + ENTRY_HEADER.size
            entry = data[start : start + max(length, 0)]
            position = start + length + len(END_OF_RECORD)
            if data[start + length : position] != END_OF_RECORD or zlib.adler32(entry) != checksum:
                self.damage = f"{self._file}: damaged or half written at byte {start - ENTRY_HEADER.size}"
                return
            yield entry
