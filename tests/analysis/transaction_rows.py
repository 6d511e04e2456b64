"""Rows of the facts about transactions, in a few words each, as `fact_rows` has others."""

from typing import Any

from tests.analysis.fact_rows import RUN, TOPIC, Row, read, replica, sent

_HERE = {"run_id": RUN, "broker": 1, "topic": TOPIC, "partition": 0, "leader_epoch": 0, "timestamp_ms": 0}
_PRODUCER = {"producer_id": 7, "producer_epoch": 0}
WHOLE = (replica(1, 100), replica(1, 100, partition=1), replica(1, 100, topic="__transaction_state"))
"""Logs of two partitions and of their coordinator; none says how many records it has, which matters to few checks."""


def became(state: str, offset: int, *partitions: str, **other: Any) -> Row:
    """The transactional id `t` came into a state; its coordinator logs that it stored it."""
    row = {**_HERE, **_PRODUCER, "topic": "__transaction_state", "offset": offset, "transactional_id": "t"}
    row |= {"state": state, "timeout_ms": 1000, "partitions": [*partitions], "started_ms": 0, "transaction_version": 0}
    row |= {"whole": True, "told_ns": offset, "stored_by": "inc-1", "counts": True}
    del row["broker"]
    return "transactions", row | other


def one(offset: int = 1, *, commits: bool = True, at: str = "orders-0", **other: Any) -> list[Row]:
    """A whole transaction in the log of its coordinator: three records from an offset on."""
    end, other = "Commit" if commits else "Abort", {"started_ms": offset} | other
    return [
        became("Ongoing", offset, at, **other),
        became(f"Prepare{end}", offset + 1, at, **other),
        became(f"Complete{end}", offset + 2, **other),
    ]


def wrote(first: int, last: int | None = None, **other: Any) -> Row:
    """A batch of a transaction on broker 1."""
    row = {**_HERE, **_PRODUCER, "first_offset": first, "last_offset": first if last is None else last}
    return "transactional_batches", row | {"first_sequence": 0} | other


def ended(offset: int, *, commits: bool = True, **other: Any) -> Row:
    """A marker on broker 1."""
    row = {**_HERE, **_PRODUCER, "offset": offset, "result": "commit" if commits else "abort", "coordinator_epoch": 0}
    return "markers", row | other


def wrote_marker(offset: int, at_ns: int, **other: Any) -> Row:
    """A marker as the leader logged it."""
    row = {**_HERE, **_PRODUCER, "incarnation": "inc-1", "seq": 0, "time_ns": at_ns, "offset": offset}
    del row["timestamp_ms"]
    return "marker_writes", row | {"result": "commit", "coordinator_epoch": 0, "first_offset": 0} | other


def answered_end(at_ns: int, **other: Any) -> Row:
    """A coordinator answered EndTxn."""
    row = {"run_id": RUN, "broker": 1, "incarnation": "inc-1", "seq": 0, "time_ns": at_ns, "transactional_id": "t"}
    row |= {"state_partition": 0, "coordinator_epoch": 0, "api": "EndTxn", "error": 0}
    return "transaction_answers", row | _PRODUCER | other


def stable(old: int, new: int, high_watermark: int, unstable: int = -1, *, seq: int = 0, **other: Any) -> Row:
    """The last stable offset of broker 1, the leader, changed."""
    row = {**_HERE, "incarnation": "inc-1", "seq": seq, "time_ns": seq, "role": "leader", "old": old, "new": new}
    del row["timestamp_ms"]
    return "stable_offsets", row | {"high_watermark": high_watermark, "first_unstable_offset": unstable} | other


def indexed(first: int, last: int, **other: Any) -> Row:
    """An entry of an index of aborted transactions."""
    row = {"run_id": RUN, "broker": 1, "topic": TOPIC, "partition": 0, "segment": 0, "producer_id": 7}
    return "aborted_transactions", row | {"first_offset": first, "last_offset": last, "last_stable_offset": 0} | other


def remembered(**other: Any) -> Row:
    """A producer in a snapshot at offset 10: its last record at 0, no open transaction."""
    row = {"run_id": RUN, "broker": 1, "topic": TOPIC, "partition": 0, "snapshot_offset": 10, **_PRODUCER}
    row |= {"last_sequence": 0, "last_offset": 0, "coordinator_epoch": 0, "transaction_first_offset": -1}
    return "producer_states", row | other


def logged(offset: int, log_offset: int, **other: Any) -> Row:
    """An offset of group g0 in the log of the offsets topic."""
    row = {"run_id": RUN, "topic": TOPIC, "partition": 0, "source": "log", "kind": "commit", "group": "g0"}
    row |= {"offset": offset, "outcome": "ok", "log_partition": 0, "log_offset": log_offset, "final": False}
    return "committed_offsets", row | other


def committed_in(generation: int, known: int | None, **other: Any) -> Row:
    """A producer commits offset 5 in its transaction, for a member of a generation; the group has another one."""
    row = {"run_id": RUN, "broker": 1, "incarnation": "inc-1", "seq": 0, "time_ns": 0, "group": "g0", **_PRODUCER}
    row |= {"transactional_id": "t", "topic": TOPIC, "partition": 0, "offset": 5, "generation": generation}
    row |= {"member": "m", "coordinator_epoch": 0, "decided_seq": 0, "error": 0, "group_generation": known}
    return "transactional_commits", row | other


def asked(transaction: int = 0, *, commit_ns: int | None = 5, **other: Any) -> Row:
    """A transaction of process p0, which asked to commit it."""
    row = {"run_id": RUN, "process": "p0", "transactional_id": "t", "transaction": transaction, "begun_ns": 0}
    row |= {"commit_ns": commit_ns, "abort_ns": None, "ended_ns": 6, "outcome": "committed", "group": None}
    return "client_transactions", row | other


def sent_in(value: str, offset: int | None = None, transaction: int | None = 0, **other: Any) -> Row:
    """A record of a transaction, of which the client knows that it is committed."""
    of = {"transactional_id": "t", "transaction": transaction, "transaction_outcome": "committed"}
    return sent(value, offset, **of | other)


def read_committed(value: str, offset: int, **other: Any) -> Row:
    """A record that a reader with read_committed got."""
    return read(value, offset, **{"time_ns": 9, "isolation": "read_committed"} | other)
