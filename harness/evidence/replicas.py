"""Dumps each replica after the run: its records, leader epochs and checkpoints, and any damage."""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.evidence import offsets_topic, transactions_topic
from harness.evidence.segments import Batches, ReplicaLog, StoredRecord, log_end
from harness.evidence.transactions import transaction_lines
from harness.store.folder import RunFolder
from harness.store.history import DeletedLog, ReplicaRecord, ReplicaState, TransactionLine, line_of
from harness.values import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, value_id

REPLICA_FOLDER = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
"""`topic-partition`; a replica that is moved or deleted has a suffix after it (`-delete`, `-future`, `-stray`)."""
DELETED_FOLDER = re.compile(REPLICA_FOLDER.pattern + r"\.[0-9a-zA-Z]+-delete")
LEADER_EPOCHS = "leader-epoch-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
META_PROPERTIES = "meta.properties"
"""Every data directory has one."""
CHECKPOINT_VERSION = 0
UNKNOWN = -1

Offsets = dict[tuple[str, int], int]
_DECODERS = {OFFSETS_TOPIC: offsets_topic.decode, TRANSACTIONS_TOPIC: transactions_topic.decode}
"""Decoders of internal topics, which are dumped field by field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Broker:
    """Data that the replicas in one data directory share."""

    broker_id: int
    log_dir: Path
    checkpoints: dict[str, Offsets]
    problems: list[str]
    """A sentence for each checkpoint file that cannot be read."""
    transactions: list[TransactionLine]
    """Transactions and producers in its replicas."""
    prefix: str = ""
    """How the names of the run's topics and groups begin; empty where all are the run's."""
    known: Batches | None = None
    """Batches of other replicas, which it may share; None if they are not kept."""

    def shares(self, topic: str) -> bool:
        """Return whether a topic has records of other users of the cluster, which are not kept."""
        return bool(self.prefix) and topic == OFFSETS_TOPIC


def dump_replicas(
    folder: RunFolder, broker_id: int, log_dir: Path, prefix: str = "", known: Batches | None = None
) -> list[ReplicaState]:
    """Write a file for every replica that a broker has in `log_dir`; return their first lines, by topic and partition.

    While the broker runs, its newest records may be missing or incomplete. Damage is noted in the state, never raised.
    Several data directories are folders in `log_dir`. Remains of deleted replicas are listed in an extra file.
    With `prefix`, only topics with this prefix are read, and of the offsets topic the commits of groups with it: its
    dumps end where the last of them does. With `known`, a batch that several replicas have is read once and kept.
    """
    directories = _directories(log_dir)
    transactions: list[TransactionLine] = []
    states = [
        state
        for directory in directories
        for state in _dump_directory(folder, broker_id, directory, prefix, transactions, known)
    ]
    if transactions:
        _write(folder.transactions_dump(broker_id), transactions)
    deleted = [
        DeletedLog(broker=broker_id, topic=match[1], partition=int(match[2]), folder=match[0])
        for directory in directories
        for match in _folders(directory, DELETED_FOLDER, prefix)
    ]
    if deleted:
        _write(folder.deleted_logs(broker_id), deleted)
    return sorted(states, key=lambda state: (state.topic, state.partition))


def log_ends(log_dir: Path, prefix: str = "") -> Offsets:
    """Return the log end of each replica in `log_dir`, by topic and partition; only batch headers are read."""
    return {
        (match[1], int(match[2])): log_end(directory / match[0])
        for directory in _directories(log_dir)
        for match in _folders(directory, REPLICA_FOLDER, prefix)
        if match[1] != METADATA_TOPIC
    }


def _directories(log_dir: Path) -> list[Path]:
    marks = sorted(log_dir.glob(f"*/{META_PROPERTIES}"))
    return [mark.parent for mark in marks] or [log_dir]


def _write(path: Path, lines: Sequence[DeletedLog] | Sequence[TransactionLine]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(line_of, lines)))


def _dump_directory(
    folder: RunFolder,
    broker_id: int,
    log_dir: Path,
    prefix: str,
    transactions: list[TransactionLine],
    known: Batches | None,
) -> list[ReplicaState]:
    problems: list[str] = []
    names = (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS)
    checkpoints = {name: _offsets(log_dir / name, problems) for name in names}
    broker = _Broker(
        broker_id=broker_id,
        log_dir=log_dir,
        checkpoints=checkpoints,
        problems=problems,
        transactions=transactions,
        prefix=prefix,
        known=known,
    )
    prefixes = (prefix, f"{OFFSETS_TOPIC}-") if prefix else ("",)
    found = sorted((match[1], int(match[2])) for match in _folders(log_dir, REPLICA_FOLDER, *prefixes))
    return [
        _dump(broker, topic, partition, folder.replica_dump(broker_id, topic, partition))
        for topic, partition in found
        if topic != METADATA_TOPIC
    ]


def _folders(log_dir: Path, name: re.Pattern[str], *prefixes: str) -> list[re.Match[str]]:
    """Return the folders with a replica's name and one of these prefixes, in order."""
    paths = log_dir.iterdir() if log_dir.is_dir() else ()
    names = sorted(path.name for path in paths if path.name.startswith(prefixes) and path.is_dir())
    return [match for each in names if (match := name.fullmatch(each)) is not None]


def _dump(broker: _Broker, topic: str, partition: int, path: Path) -> ReplicaState:
    path.parent.mkdir(parents=True, exist_ok=True)
    log = ReplicaLog(broker.log_dir / f"{topic}-{partition}", broker.known)
    partial = path.with_suffix(".part")  # an incomplete dump must not look like a complete one
    with path.with_suffix(".records").open("w+b") as records, partial.open("wb") as dump:
        lines = (_record_line(broker.broker_id, topic, partition, record) for record in log)
        if broker.shares(topic):
            own = [line for line in lines if _is_of_group(line, broker.prefix)]
            records.writelines(map(line_of, own))
            state = _up_to(_state(broker, topic, partition, log), own[-1].offset + 1 if own else 0)
        else:
            records.writelines(map(line_of, lines))
            state = _state(broker, topic, partition, log)
        dump.write(line_of(state))  # the first line, but known only after all records
        records.seek(0)
        shutil.copyfileobj(records, dump)
    path.with_suffix(".records").unlink()
    partial.replace(path)
    return state


def _state(broker: _Broker, topic: str, partition: int, log: ReplicaLog) -> ReplicaState:
    """Return the state of a replica whose records have been read."""
    problems = [log.damage] if log.damage else []
    epochs = _rows(broker.log_dir / f"{topic}-{partition}" / LEADER_EPOCHS, 2, problems)
    if not broker.shares(topic):
        broker.transactions.extend(transaction_lines(broker.broker_id, topic, partition, log, problems))

    def checkpointed(name: str) -> int:
        return broker.checkpoints[name].get((topic, partition), UNKNOWN)

    return ReplicaState(
        broker=broker.broker_id,
        topic=topic,
        partition=partition,
        log_start_offset=max(log.start_offset, checkpointed(LOG_STARTS)),
        log_end_offset=log.end_offset,
        high_watermark=checkpointed(HIGH_WATERMARKS),
        recovery_point=checkpointed(RECOVERY_POINTS),
        leader_epochs=tuple((int(epoch), int(start)) for epoch, start in epochs),
        damage="; ".join(problems + broker.problems),
    )


def _is_of_group(line: ReplicaRecord, prefix: str) -> bool:
    """Return whether a record of the offsets topic is about a group with this prefix."""
    try:
        return str(json.loads(line.key)["group"]).startswith(prefix)
    except (ValueError, KeyError, TypeError):
        return False


def _up_to(state: ReplicaState, end: int) -> ReplicaState:
    """Return the state of a log as if it ended there: others go on to write while replicas are copied."""
    end = max(end, state.log_start_offset)
    return replace(
        state,
        log_end_offset=end,
        high_watermark=min(state.high_watermark, end),
        recovery_point=min(state.recovery_point, end),
        leader_epochs=tuple((epoch, start) for epoch, start in state.leader_epochs or () if start < end),
    )


def _record_line(broker_id: int, topic: str, partition: int, record: StoredRecord) -> ReplicaRecord:
    decode = _DECODERS.get(topic)
    decoded = None if decode is None else decode(record.key, record.value)
    key, value = decoded if decoded is not None else (_text(record.key), value_id(record.value, record.headers))
    return ReplicaRecord(
        broker=broker_id,
        topic=topic,
        partition=partition,
        offset=record.offset,
        leader_epoch=record.leader_epoch,
        timestamp_ms=record.timestamp_ms,
        key=key,
        value=value,
        digest=record.digest,
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        sequence=record.sequence,
    )


def _text(data: bytes | None) -> str:
    """Return the bytes as text if they are UTF-8, else their SHA-256; empty for null."""
    if data is None:
        return ""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(data).hexdigest()


def _offsets(path: Path, problems: list[str]) -> Offsets:
    return {(topic, int(partition)): int(offset) for topic, partition, offset in _rows(path, 3, problems)}


def _rows(path: Path, columns: int, problems: list[str]) -> list[list[str]]:
    """Return the rows of a checkpoint file (version, count, a row a line); none, and a problem, when it is malformed.

    An empty file has no rows and no problem: Kafka creates its checkpoint files empty.
    """
    if not path.exists() or path.stat().st_size == 0:
        return []
    try:
        version, count, *lines = path.read_text(encoding="utf-8").splitlines()
        rows = [line.split() for line in lines]
        well_formed = all(len(row) == columns and all(_is_number(cell) for cell in row[-2:]) for row in rows)
        if int(version) == CHECKPOINT_VERSION and int(count) == len(rows) and well_formed:
            return rows
    except ValueError:
        pass
    problems.append(f"{path.name}: not a checkpoint")
    return []


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()
