"""What did brokers write down, in a table a kind, and how long did each of their lives last?"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.json import decode
from pyspark.sql import types as T

from harness.analysis.sources.lines import ENDS, RUN_ID, STATE_CHANGE, struct_of
from harness.analysis.sources.sealing.rows import (
    Files,
    Layout,
    columns_of,
    few_rows,
    json_rows,
    require,
    require_known,
    require_words,
    where,
)
from harness.analysis.sources.sealing.writer import Write
from harness.analysis.sources.state_changes import FREQUENT, KINDS_OF, LIVES, NAMES, STATE_CHANGE_TABLES
from harness.analysis.sources.steps import BROKER_STEPS, Walk
from harness.events import COMMON, KIND, KINDS, BrokerRegistered, LogDirectoryFailure

LINES_AT_ONCE = 500_000
_COMMON = [STATE_CHANGE[name] for name, _ in COMMON]
_FREQUENT = {kind.ev: Layout(T.StructType([*_COMMON, *struct_of(kind)])) for kind in FREQUENT}
"""How lines are read of the kinds that have tables of their own."""
_RARE = Layout(STATE_CHANGE)
_COLUMNS = {name: [each for each in STATE_CHANGE_TABLES[name].names if each != RUN_ID.name] for name in KINDS_OF}
_LIFE = ("broker", "incarnation", "seq", "time_ns")


def write_state_changes(write: Write, files: Files) -> set[str]:
    """Write the tables of all kinds of lines, and of lives; return which kinds there are."""
    lives, walk = [], Walk("state_changes")
    lines = _lines(files)
    while some := list(islice(lines, LINES_AT_ONCE)):
        lives += list(_by_event(write, some, walk))
    if not lives:
        return set()
    rows = pa.concat_tables(lives)
    require_known(rows, *_LIFE)
    registered = pc.equal(rows["ev"], BrokerRegistered.ev)
    rows = rows.append_column("began_ns", pc.if_else(registered, rows["time_ns"], pa.scalar(None, pa.int64())))
    rows = rows.append_column("disk_failed", pc.equal(rows["ev"], LogDirectoryFailure.ev))
    of_life = [("seq", "count"), ("seq", "count_distinct"), ("seq", "max"), ("time_ns", "max")]
    more = [("began_ns", "min"), ("disk_failed", "max")]
    ended = rows.group_by(["broker", "incarnation"]).aggregate([*of_life, *more])
    require(ended["seq_count"].equals(ended["seq_count_distinct"]), "lines of a broker are there twice")
    require(ended["seq_count"].equals(pc.add(ended["seq_max"], 1)), "lines of a broker are missing")
    renamed = {"lived_ns": "time_ns_max", "began_ns": "began_ns_min", "disk_failed": "disk_failed_max"}
    write(LIVES, {**columns_of(ended), **{name: ended[column] for name, column in renamed.items()}})
    write(BROKER_STEPS, columns_of(walk.table()))
    return set(rows["ev"].unique().to_pylist())


def _lines(files: Files) -> Iterator[bytes]:
    for path, number in files:
        if not number:
            continue
        line = b"\n"
        with path.open("rb") as file:
            for line in file:
                yield line
        require(line.endswith(b"\n"), "the last line is torn")


def _by_event(write: Write, lines: Iterable[bytes], walk: Walk) -> Iterator[pa.Table]:
    """Write some lines to the tables of their kinds, and walk them; yield what the lives of brokers are made of."""
    frequent: dict[str, list[bytes]] = {name: [] for name in _FREQUENT}
    rare: list[dict[str, Any]] = []
    in_order: list[bytes | dict[str, Any]] = []
    for line in lines:
        match = KIND.search(line)
        event = match[1].decode() if match else ""
        if event in frequent:
            frequent[event].append(line)
            in_order.append(line)
        elif ENDS not in (content := decode(line)):
            rare.append(content)
            in_order.append(content)
    walk.add(in_order)
    for event, of_event in frequent.items():
        whole = b"".join(of_event)
        table = _renamed(json_rows(pa.BufferReader(whole), len(whole), _FREQUENT[event], len(of_event)))
        write(event, columns_of(table))
        yield table.select(["ev", *_LIFE])
    table = _renamed(few_rows(rare, _RARE))
    require_words(table, "ev", KINDS)
    for name, kinds in KINDS_OF.items():
        if name not in frequent:
            write(name, columns_of(where(table.select(_COLUMNS[name]), "ev", *(kind.ev for kind in kinds))))
    yield table.select(["ev", *_LIFE])


def _renamed(table: pa.Table) -> pa.Table:
    return table.rename_columns([NAMES.get(name, name) for name in table.column_names])
