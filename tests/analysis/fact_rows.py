"""Rows of facts, in a few words each; whatever a test does not say has an everyday value."""

from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from harness.analysis.sources.reading import no_rows, of_table
from harness.analysis.tables.arrow import ARROW_TYPES
from harness.analysis.tables.schemas import TABLES

RUN = "run-1"
TOPIC = "orders"
Row = tuple[str, dict[str, Any]]
"""Name of a fact, and what the row says."""

_HERE = {"run_id": RUN, "topic": TOPIC, "partition": 0}


def facts(spark: SparkSession, *rows: Row) -> dict[str, DataFrame]:
    """Return every fact; those without a row are empty."""
    by_table: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for table, row in rows:
        by_table[table].append(row)
    return {name: table_of(spark, name, each) if each else _empty(spark, name) for name, each in by_table.items()}


@cache
def _empty(spark: SparkSession, name: str) -> DataFrame:
    """Return one fact without rows, as most facts of a case are; to make one takes as long as with rows."""
    return no_rows(spark, of_table(TABLES[name]))


def table_of(spark: SparkSession, name: str, rows: list[dict[str, Any]]) -> DataFrame:
    """Return one fact with these rows, by way of Arrow; a column that a row does not name is null."""
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in TABLES[name].columns])
    for row in rows:
        assert row.keys() <= set(schema.names), f"{name} has no column {row.keys() - set(schema.names)}"
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def sent(value: str, offset: int | None = None, **other: Any) -> Row:
    """A send that was acknowledged at `offset`; without one it is an info."""
    row = {
        **_HERE,
        "process": "p0",
        "index": other.get("index", 0),
        "value": value,
        "acks": -1,
        "invoke_ns": 1,
        "complete_ns": 2,
        "outcome": "info" if offset is None else "ok",
        "offset": offset,
        "leader_epoch": 0,
    }
    return "sends", row | other


def read(value: str, offset: int, **other: Any) -> Row:
    """A record that a consumer read."""
    row = {**_HERE, "process": "c0", "index": 0, "time_ns": 3, "mode": "assign", "position": 0}
    return "polls", row | {"offset": offset, "value": value, "leader_epoch": 0} | other


def replica(broker: int, end: int, **other: Any) -> Row:
    """A replica whose log holds offsets 0 to end - 1."""
    row = {**_HERE, "broker": broker, "log_start_offset": 0, "log_end_offset": end, "high_watermark": end}
    return "replicas", row | {"recovery_point": 0, "leader_epochs": [], "damage": ""} | other


def held(broker: int, value: str, offset: int, epoch: int = 0, **other: Any) -> Row:
    """A record in a replica's log."""
    row = {**_HERE, "broker": broker, "offset": offset, "leader_epoch": epoch, "value": value, "key": "k"}
    return "replica_records", row | {"digest": f"digest of {value}"} | other


def state(version: int, *, leader: int, epoch: int, isr: list[int], previous: Row | None = None, **other: Any) -> Row:
    """A version of a partition's state znode; `previous` is the version before it."""
    row = {**_HERE, "life": 1, "zxid": 100 + version, "zk_version": version, "leader": leader, "leader_epoch": epoch}
    row |= {"isr": isr, "controller_epoch": 1, "assignment": [1, 2, 3]}
    if previous is not None:
        before = previous[1]
        names = ("zk_version", "leader", "leader_epoch", "isr", "controller_epoch")
        row |= {f"previous_{name}": before[name] for name in names}
    assigned = other.get("assignment", row["assignment"])
    number = None if assigned is None else len(assigned)
    return "partition_states", row | {
        "fewest_replicas": number,
        "most_replicas": number,
        "once_assigned": assigned,
    } | other


def led(leader: int, epoch: int, **other: Any) -> Row:
    """A leader in its leader epoch, by ZooKeeper and by its own claim."""
    row = {**_HERE, "life": 1, "leader_epoch": epoch, "leader": leader, "isr": [1, 2, 3], "controller_epoch": 1}
    row |= {"zk_version": epoch, "zxid": 100 + epoch, "start_offset": 0, "claimed": True, "unclean": False}
    return "leader_epochs", row | other


def elected_uncleanly(leader: int, epoch: int, **other: Any) -> Row:
    """A leader from outside the ISR, as the configuration allows."""
    return led(leader, epoch, unclean=True, unclean_allowed=True, **other)


def controller(broker: int | None, epoch: int, *, zxid: int | None, **other: Any) -> Row:
    """A controller; by ZooKeeper's history if there is a zxid, else by its own word."""
    source = "broker" if zxid is None else "zookeeper"
    row = {"run_id": RUN, "controller_epoch": epoch, "broker": broker, "source": source, "zk_version": epoch}
    return "controller_epochs", row | {"zxid": zxid} | other


def marked(broker: int, old: int, new: int, end: int, *, seq: int = 0, **other: Any) -> Row:
    """A high watermark that went from `old` to `new` on a leader."""
    row = {**_HERE, "broker": broker, "incarnation": f"inc-{broker}", "seq": seq, "time_ns": seq, "role": "leader"}
    return "high_watermarks", row | {"leader_epoch": 0, "old": old, "new": new, "log_end_offset": end} | other


def claimed(broker: int, epoch: int, *, high_watermark: int, end: int, seq: int = 0, **other: Any) -> Row:
    """A broker that says it became leader."""
    row = {**_HERE, "broker": broker, "incarnation": f"inc-{broker}", "seq": seq, "time_ns": seq, "role": "leader"}
    row |= {"leader": broker, "leader_epoch": epoch, "previous_leader_epoch": epoch - 1, "log_start_offset": 0}
    return "leadership_claims", row | {"high_watermark": high_watermark, "log_end_offset": end} | other


def truncated(broker: int, end: int, to: int, *, high_watermark: int, epoch: int, **other: Any) -> Row:
    """A follower in `epoch` that cut its log from `end` to `to`."""
    row = {**_HERE, "broker": broker, "incarnation": f"inc-{broker}", "seq": 0, "time_ns": 0, "leader_epoch": epoch}
    row |= {"log_end_offset": end, "to_offset": to, "high_watermark": high_watermark, "reason": "epoch"}
    return "truncations", row | {"asked_epoch": 0, "answer_epoch": 0, "answer_end_offset": to} | other


def committed(offset: int, *, at: tuple[int, int | None], outcome: str = "ok", **other: Any) -> Row:
    """A commit of a group, asked and answered at the instants `at`."""
    return "committed_offsets", _group_row("commit", offset, at, outcome) | other


def fetched(offset: int, *, at: tuple[int, int | None], outcome: str = "ok", **other: Any) -> Row:
    """A committed offset that was read back."""
    return "committed_offsets", _group_row("fetch", offset, at, outcome) | other


def _group_row(kind: str, offset: int, at: tuple[int, int | None], outcome: str) -> dict[str, Any]:
    row = {**_HERE, "source": "client", "kind": kind, "group": "g0", "offset": offset, "outcome": outcome}
    return row | {"process": "c0", "index": at[0], "invoke_ns": at[0], "complete_ns": at[1], "final": False}


def remark(subject: str, problem: str, count: int) -> Row:
    """A remark on the evidence."""
    return "evidence", {"run_id": RUN, "subject": subject, "problem": problem, "count": count}
