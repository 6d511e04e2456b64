"""Which typed tables are all facts made of, whatever the evidence is read from?

`harness/analysis/facts/typed.py` makes them of lines, `harness/analysis/sources/sealing/` without Spark.
"""

import hashlib
from collections.abc import Iterable
from functools import cache

from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from harness.analysis.sources.lines import JOURNAL_ENTRY, OPERATION, RUN_ID, SCHEMAS, ZNODE_CHANGE, struct_of
from harness.analysis.sources.state_changes import STATE_CHANGE_TABLES
from harness.analysis.sources.steps import BROKER_STEPS, STEPS_OF, ZNODE_STEPS, model_digest
from harness.analysis.tables.arrow import columns_of
from harness.analysis.tables.protocol import STEPS
from harness.analysis.tables.schemas import POLLS, REPLICA_RECORDS, REPLICAS
from harness.analysis.tables.table import Table
from harness.analysis.tables.transactions import (
    ABORTED_TRANSACTIONS,
    MARKERS,
    PRODUCER_STATES,
    TRANSACTIONAL_BATCHES,
)
from harness.store.history import DeletedLog, StoredTransition
from harness.store.seal import DIGEST_BYTES

NO_SEQUENCE = -1
DELETED = "deleted"
TRANSITIONS = "transitions"
"""Table of the records of `__transaction_state`, as each replica has them."""
OF_TRANSACTIONS = {
    "marker": MARKERS,
    "batch": TRANSACTIONAL_BATCHES,
    "aborted": ABORTED_TRANSACTIONS,
    "producer": PRODUCER_STATES,
}
"""Facts that are lines of one type in the dumps of replicas."""
FACTS = (POLLS.name, REPLICAS.name, REPLICA_RECORDS.name, *(fact.name for fact in OF_TRANSACTIONS.values()))
"""Tables that are facts."""


UNIQUE_KEYS = {
    "zookeeper": ("zxid", "path", "type", "version", "source"),
    "journal": ("injection", "step", "time_ns"),
}
"""By kind of file, the columns that no two lines of a run share."""
ARGUMENTS = (
    "topic",
    "partition",
    "key",
    "value",
    "acks",
    "made_from",
    "transactional_id",
    "transaction",
    "isolation",
    "group",
    "member",
    "instance",
    "generation",
    "mode",
    "error",
)


def _long(name: str) -> T.StructField:
    return T.StructField(name, T.LongType())


OPERATIONS = T.StructType(
    [
        RUN_ID,
        *(OPERATION[name] for name in ("process", "index", "kind")),
        _long("invoke_ns"),
        _long("complete_ns"),
        T.StructField("outcome", T.StringType()),
        *(OPERATION[name] for name in ARGUMENTS),
        _long("ok_offset"),
        _long("offset"),
        _long("lines"),
    ]
)
"""One row an operation: when it began and ended, how, and its number of lines."""


def _of_fact(fact: Table) -> T.StructType:
    return from_arrow_schema(columns_of(fact))


def _of_run(fields: Iterable[T.StructField]) -> T.StructType:
    return T.StructType([RUN_ID, *fields])


TYPED: dict[str, dict[str, T.StructType]] = {
    "operations": {"operations": OPERATIONS, POLLS.name: _of_fact(POLLS)},
    "journal": {"journal": _of_run(JOURNAL_ENTRY)},
    "zookeeper": {"zookeeper": _of_run(ZNODE_CHANGE), ZNODE_STEPS: _of_fact(STEPS)},
    "replicas": {
        REPLICAS.name: _of_fact(REPLICAS),
        REPLICA_RECORDS.name: _of_fact(REPLICA_RECORDS),
        DELETED: _of_run(struct_of(DeletedLog)),
        TRANSITIONS: _of_run(struct_of(StoredTransition)),
        **{fact.name: _of_fact(fact) for fact in OF_TRANSACTIONS.values()},
    },
    "state_changes": {**STATE_CHANGE_TABLES, BROKER_STEPS: _of_fact(STEPS)},
    "liveness": {"liveness": _of_run(SCHEMAS["liveness"])},
}
"""Columns of the tables, by the kind of evidence that they are made of."""
LAYOUT = 1
"""Of the tables, beside their columns; with another one they are made again."""


def layout_of(kind: str) -> str:
    """Return a digest of how the tables of a kind look: what was written with another is not read."""
    model = model_digest() if kind in STEPS_OF else ""
    return hashlib.blake2b(f"{LAYOUT} {_columns_of(kind)}{model}".encode(), digest_size=DIGEST_BYTES).hexdigest()


@cache
def _columns_of(kind: str) -> str:
    return str({name: struct.simpleString() for name, struct in TYPED[kind].items()})
