"""What does a long history look like in which every promise holds, as the typed tables that evidence is sealed into?

Four producers write five records at a time to one of three partitions in turn, two consumers read all of them, 20
records of a partition at a time, and three brokers hold them, in one leader epoch. That is what clients, replicas and
ZooKeeper leave, and the leaders' answers to producers; other state changes there are none of, and no commits. Rows
stand as they are sealed: by client, by broker and partition. DuckDB writes ten million operations in a minute.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from harness.analysis.sources.lineage import LINE_KINDS, all_of
from harness.analysis.sources.reading import Sources, as_lines
from harness.analysis.sources.typed import FACTS, TYPED
from harness.store.history import OpKind
from tools.synthetic_cluster import WALL_CLOCK_NS

THREADS, MEMORY = 2, "2GB"
RUN_ID, TOPIC = "synthetic", "orders"
PRODUCERS, CONSUMERS, BROKERS, PARTITIONS = 4, 2, 3, 3
BATCH, POLL = 5, 20
"""Records that are sent together to a partition, and that are read together."""
LINES_OF_AN_OPERATION = 2_200
"""Bytes, all evidence included."""
TICK_NS = 1_000

_CYCLE = POLL * PARTITIONS
"""Records that are sent before all consumers poll all partitions."""
_OPERATIONS_A_CYCLE = _CYCLE + CONSUMERS * PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedHistory:
    """Where the tables of a history are."""

    operations: int
    paths: Mapping[str, Path]

    @property
    def size_bytes(self) -> int:
        """Return what its lines would have."""
        return self.operations * LINES_OF_AN_OPERATION

    def sources(self, spark: SparkSession) -> Sources:
        """Return the history as evidence in perfect order is read."""
        columns = {name: struct for of_kind in TYPED.values() for name, struct in of_kind.items()}
        present = {OpKind.SEND.value, OpKind.POLL.value, "replica", "record", "produce_resp"}
        absent = {kind for kinds in LINE_KINDS.values() for kind in kinds} - present
        return Sources(
            spark=spark,
            lines={},
            tables={name: spark.read.schema(columns[name]).parquet(str(path)) for name, path in self.paths.items()},
            sealed_facts={name: self.paths[name] for name in FACTS},
            absent=frozenset(absent | all_of("journal") | all_of("liveness")),
            size_bytes=self.size_bytes,
            read_bytes=as_lines(self.paths.values()),
            torn=(),
            together=False,
        )


def make(folder: Path, operations: int) -> TypedHistory:
    """Write the tables of an intact history of about so many operations."""
    cycles = max(operations // _OPERATIONS_A_CYCLE, 1)
    paths = {}
    with duckdb.connect(config={"threads": THREADS, "memory_limit": MEMORY}) as database:
        for of_kind in TYPED.values():
            for name, struct in of_kind.items():
                paths[name] = folder / f"{name}.parquet"
                write(database, paths[name], struct, _ROWS.get(name, _none)(cycles))
    return TypedHistory(operations=cycles * _OPERATIONS_A_CYCLE, paths=paths)


def write(database: duckdb.DuckDBPyConnection, path: Path, columns: T.StructType, parts: Iterator["Rows"]) -> None:
    """Write the rows of all parts in their order; a column that a part does not have is null."""
    query = " UNION ALL ".join(
        f"SELECT {', '.join(_column(rows, field) for field in columns)} FROM {rows.source}" for rows in parts
    )
    database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 1000000)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Some rows of a table: from what, and their columns in DuckDB's SQL."""

    source: str
    columns: Mapping[str, str]


def _column(rows: Rows, field: T.StructField) -> str:
    value = f"'{RUN_ID}'" if field.name == "run_id" else rows.columns.get(field.name, "NULL")
    return f'({value})::{_type(field.dataType)} AS "{field.name}"'


def _type(type_: T.DataType) -> str:
    if isinstance(type_, T.ArrayType):
        return f"{_type(type_.elementType)}[]"
    if isinstance(type_, T.StructType):
        fields = (f'"{field.name}" {_type(field.dataType)}' for field in type_)
        return f"STRUCT({', '.join(fields)})"
    return {"string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "boolean": "BOOLEAN", "double": "DOUBLE"}[
        type_.simpleString()
    ]


_NUMBER = f'("offset" // {BATCH} * {BATCH * PARTITIONS} + "partition" * {BATCH} + "offset" % {BATCH})'
"""Of the send that wrote a record, by partition and offset: 0 for the first of all."""
_VALUE = f"concat('producer-', {_NUMBER} % {PRODUCERS}, '-', {_NUMBER} // {PRODUCERS})"
_SENT = {
    "kind": "'send'",
    "topic": f"'{TOPIC}'",
    "partition": f"n // {BATCH} % {PARTITIONS}",
    "key": "''",
    "acks": "-1",
    "invoke_ns": f"n * {TICK_NS}",
    "complete_ns": f"n * {TICK_NS} + {TICK_NS // 2}",
    "outcome": "'ok'",
    "offset": f"n // {BATCH * PARTITIONS} * {BATCH} + n % {BATCH}",
    "ok_offset": f"n // {BATCH * PARTITIONS} * {BATCH} + n % {BATCH}",
    "lines": "2",
}
_READ_NS = f"(q + 1) * {_CYCLE * TICK_NS} + p"


def _none(_cycles: int) -> Iterator[Rows]:
    yield Rows(source="range(0)", columns={})


def _sends(cycles: int) -> Iterator[Rows]:
    for producer in range(PRODUCERS):
        own = {
            "process": f"'producer-{producer}'",
            "index": f"n // {PRODUCERS}",
            "value": f"concat('producer-{producer}-', n // {PRODUCERS})",
        }
        source = f"range({producer}, {cycles * _CYCLE}, {PRODUCERS}) numbers(n)"
        yield Rows(source=source, columns=_SENT | own)


def _operations(cycles: int) -> Iterator[Rows]:
    yield from _sends(cycles)
    for consumer in range(CONSUMERS):
        columns = {
            "process": f"'consumer-{consumer}'",
            "index": "i",
            "kind": "'poll'",
            "mode": "'assign'",
            "outcome": "'ok'",
            "invoke_ns": f"{_READ_NS} - 1",
            "complete_ns": _READ_NS,
            "lines": "2",
        }
        source = f"(SELECT i, i // {PARTITIONS} q, i % {PARTITIONS} p FROM range({cycles * PARTITIONS}) numbers(i))"
        yield Rows(source=source, columns=columns)


def _polls(cycles: int) -> Iterator[Rows]:
    for consumer in range(CONSUMERS):
        columns = {
            "process": f"'consumer-{consumer}'",
            "index": f"q * {PARTITIONS} + p",
            "time_ns": _READ_NS,
            "mode": "'assign'",
            "position": f"n % {POLL}",
            "topic": f"'{TOPIC}'",
            "partition": "p",
            "offset": '"offset"',
            "value": _VALUE,
            "leader_epoch": "0",
        }
        source = f"""(SELECT n, n // {_CYCLE} q, n % {_CYCLE} // {POLL} p, p AS "partition", q * {POLL} + n % {POLL} AS
            "offset" FROM range({cycles * _CYCLE}) numbers(n))"""
        yield Rows(source=source, columns=columns)


def _replicas(cycles: int) -> Iterator[Rows]:
    end = str(cycles * POLL)
    columns = {
        "broker": f"n // {PARTITIONS}",
        "topic": f"'{TOPIC}'",
        "partition": f"n % {PARTITIONS}",
        "log_start_offset": "0",
        "log_end_offset": end,
        "high_watermark": end,
        "recovery_point": end,
        "leader_epochs": "[[0, 0]]",
        "damage": "''",
    }
    yield Rows(source=f"range({BROKERS * PARTITIONS}) numbers(n)", columns=columns)


def _replica_records(cycles: int) -> Iterator[Rows]:
    for broker in range(BROKERS):
        for partition in range(PARTITIONS):
            columns = {
                "broker": str(broker),
                "topic": f"'{TOPIC}'",
                "partition": str(partition),
                "offset": '"offset"',
                "leader_epoch": "0",
                "key": "''",
                "value": _VALUE,
                "digest": f"sha256({_VALUE})",
                "producer_id": "-1",
                "producer_epoch": "-1",
                "sequence": "-1",
            }
            source = f'(SELECT n AS "offset", {partition} AS "partition" FROM range({cycles * POLL}) numbers(n))'
            yield Rows(source=source, columns=columns)


def _answers(cycles: int) -> Iterator[Rows]:
    for broker in range(BROKERS):
        columns = {
            "ev": "'produce_resp'",
            "broker": str(broker),
            "incarnation": f"'{broker}-1'",
            "seq": "n",
            "time_ns": f"(n * {PARTITIONS} + {broker}) * {BATCH * TICK_NS} + {BATCH * TICK_NS // 2}",
            "topic": f"'{TOPIC}'",
            "partition": str(broker),
            "acks": "-1",
            "base_offset": f"n * {BATCH}",
            "last_offset": f"n * {BATCH} + {BATCH - 1}",
            "error": "0",
            "isr_size": str(BROKERS),
            "high_watermark": f"(n + 1) * {BATCH}",
            "leader_epoch": "0",
            "client": "''",
        }
        yield Rows(source=f"range({cycles * POLL // BATCH}) numbers(n)", columns=columns)


def _zookeeper(_cycles: int) -> Iterator[Rows]:
    isr = [[(partition + place) % BROKERS for place in range(BROKERS)] for partition in range(PARTITIONS)]
    topic = {"partitions": dict(enumerate(isr))}
    znodes = {f"/brokers/topics/{TOPIC}": json.dumps(topic)}
    for partition, members in enumerate(isr):
        state = {"version": 1, "leader": members[0], "leader_epoch": 0, "isr": members, "controller_epoch": 1}
        znodes[f"/brokers/topics/{TOPIC}/partitions/{partition}/state"] = json.dumps(state)
    for zxid, (path, data) in enumerate(znodes.items(), start=1):
        columns = {
            "zxid": str(zxid),
            "time_ms": str(WALL_CLOCK_NS // 1_000_000),
            "type": "'create'",
            "path": f"'{path}'",
            "data": f"'{data}'",
            "version": "0",
            "session": "''",
            "ephemeral_owner": "''",
            "source": "'transaction_log'",
        }
        yield Rows(source="range(1)", columns=columns)


_ROWS = {
    "operations": _operations,
    "polls": _polls,
    "replicas": _replicas,
    "replica_records": _replica_records,
    "produce_resp": _answers,
    "zookeeper": _zookeeper,
}
