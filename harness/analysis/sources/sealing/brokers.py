"""What did brokers write down, in a table a kind, and how long did each of their lives last?"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from harness.analysis.sources.lines import ENDS, STATE_CHANGE, struct_of
from harness.analysis.sources.sealing.rows import (
    Files,
    columns_of,
    few_rows,
    json_rows,
    require,
    require_known,
    require_words,
    where,
)
from harness.analysis.sources.sealing.writer import Write
from harness.analysis.sources.state_changes import FREQUENT, KINDS_OF, LIVES, NAMES
from harness.analysis.sources.steps import BROKER_STEPS, Walk
from harness.events import COMMON, KIND, KINDS, BrokerRegistered, LogDirectoryFailure

LINES_AT_ONCE = 500_000
_FREQUENT = {kind.ev for kind in FREQUENT}
_LIFE = ("broker", "incarnation", "seq", "time_ns")


def write_state_changes(write: Write, files: Files) -> set[str]:
    """Write the tables of all kinds of lines, and of lives; return which kinds there are."""
    lives, walk = [], Walk("state_changes")
    for path, number in files:
        if not number:
            continue
        with path.open("rb") as file:
            while lines := list(islice(file, LINES_AT_ONCE)):
                require(lines[-1].endswith(b"\n"), "the last line is torn")
                lives += list(_by_event(write, lines))
                walk.add(lines)
    if not lives:
        return set()
    rows = pa.concat_tables(lives)
    require_known(rows, *_LIFE)
    of_life = [("seq", "count"), ("seq", "count_distinct"), ("seq", "max"), ("time_ns", "max")]
    more = [("began_ns", "min"), ("disk_failed", "max")]
    ended = rows.group_by(["broker", "incarnation"]).aggregate([*of_life, *more])
    require(ended["seq_count"].equals(ended["seq_count_distinct"]), "lines of a broker are there twice")
    require(ended["seq_count"].equals(pc.add(ended["seq_max"], 1)), "lines of a broker are missing")
    renamed = {"lived_ns": "time_ns_max", "began_ns": "began_ns_min", "disk_failed": "disk_failed_max"}
    write(LIVES, {**columns_of(ended), **{name: ended[column] for name, column in renamed.items()}})
    write(BROKER_STEPS, columns_of(walk.table()))
    return set(rows["ev"].unique().to_pylist())


def _by_event(write: Write, lines: Iterable[bytes]) -> Iterator[pa.Table]:
    """Write some lines to the tables of their kinds; yield what the lives of brokers are made of."""
    frequent: dict[str, list[bytes]] = {name: [] for name in _FREQUENT}
    rare = []
    for line in lines:
        match = KIND.search(line)
        event = match[1].decode() if match else ""
        if event in frequent:
            frequent[event].append(line)
        elif ENDS not in (content := json.loads(line)):
            rare.append(content)
    for event, of_event in frequent.items():
        struct = T.StructType([*_COMMON, *struct_of(KINDS[event])])
        whole = b"".join(of_event)
        table = _renamed(json_rows(pa.BufferReader(whole), len(whole), struct, len(of_event)))
        write(event, columns_of(table))
        yield _life(table)
    table = _renamed(few_rows(rare, STATE_CHANGE))
    require_words(table, "ev", KINDS)
    for name, kinds in KINDS_OF.items():
        if name not in frequent:
            write(name, columns_of(where(table, "ev", *(kind.ev for kind in kinds))))
    yield _life(table)


_COMMON = [STATE_CHANGE[name] for name, _ in COMMON]


def _renamed(table: pa.Table) -> pa.Table:
    return table.rename_columns([NAMES.get(name, name) for name in table.column_names])


def _life(table: pa.Table) -> pa.Table:
    registered = pc.equal(table["ev"], BrokerRegistered.ev)
    return (
        table.select(["ev", *_LIFE])
        .append_column("began_ns", pc.if_else(registered, table["time_ns"], pa.scalar(None, pa.int64())))
        .append_column("disk_failed", pc.equal(table["ev"], LogDirectoryFailure.ev))
    )
