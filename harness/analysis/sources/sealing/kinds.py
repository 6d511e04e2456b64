"""How are the tables of each kind of evidence made? Each returns what its lines say that they are."""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.json import decode

from harness.analysis.sources.arrow_lines import FEW_BYTES
from harness.analysis.sources.lines import ENDS, RECORD_LINE, SCHEMAS, struct_of
from harness.analysis.sources.sealing.brokers import write_state_changes
from harness.analysis.sources.sealing.clients import write_operations
from harness.analysis.sources.sealing.rows import (
    Files,
    Layout,
    Odd,
    columns_of,
    few_rows,
    json_rows,
    null_if_unknown,
    require,
    require_known,
    require_unique,
    where,
)
from harness.analysis.sources.sealing.writer import Write
from harness.analysis.sources.steps import STEPS_OF, Walk
from harness.analysis.sources.typed import DELETED, NO_SEQUENCE, OF_TRANSACTIONS, TRANSITIONS, UNIQUE_KEYS
from harness.analysis.tables.schemas import REPLICA_RECORDS, REPLICAS
from harness.store.folder import TRANSACTIONS_DUMP
from harness.store.history import ReplicaState
from harness.values import OFFSETS_TOPIC

PLACE = "place"
_RECORDS, _TRANSACTIONS = Layout(RECORD_LINE), Layout(SCHEMAS["replicas"])


def _replicas(write: Write, files: Files) -> set[str]:
    dumps = []
    present: set[str] = set()
    for layout, some in _together(files):
        lines = _lines_of(some, layout)
        order = [(PLACE, "ascending"), ("offset", "ascending"), ("broker", "ascending")]
        records = where(lines, "type", "record").sort_by(order)
        numbered = pc.if_else(pc.greater_equal(records["producer_id"], 0), records["sequence"], NO_SEQUENCE)
        of_coordinator = pc.or_(
            pc.is_null(records["producer_id"]), pc.fill_null(pc.equal(records["topic"], OFFSETS_TOPIC), True)
        )
        sequence = pc.if_else(of_coordinator, NO_SEQUENCE, numbered)
        write(REPLICA_RECORDS.name, {**columns_of(records), "sequence": sequence})
        write(DELETED, columns_of(where(lines, "type", DELETED)))
        _write_transactions(write, lines)
        dumps.append(where(lines, "type", "replica").select(struct_of(ReplicaState).names))
        require_known(lines, "type")
        present.update(lines["type"].unique().to_pylist())
    if not dumps:
        return present
    states = pa.concat_tables(dumps)
    require_known(states, "broker", "topic", "partition", "damage")
    require_unique(states, "broker", "topic", "partition")
    require(pc.all(pc.equal(states["damage"], ""), min_count=0).as_py(), "a replica's log is damaged")
    write(REPLICAS.name, {**columns_of(states), "high_watermark": null_if_unknown(states["high_watermark"])})
    return present


def _together(files: Files) -> Iterator[tuple[Layout, Files]]:
    """Yield files that are read at once, in the order of their names: all dumps of some replicas, few bytes or one."""
    some: list[tuple[Path, int]] = []
    size_bytes = 0
    for name, of_name in groupby(sorted(files, key=_name), key=_name):
        parts = list(of_name)
        if name == TRANSACTIONS_DUMP:
            yield _TRANSACTIONS, parts
            continue
        more_bytes = sum(path.stat().st_size for path, _ in parts)
        if some and size_bytes + more_bytes > FEW_BYTES:
            yield _RECORDS, some
            some, size_bytes = [], 0
        some, size_bytes = some + parts, size_bytes + more_bytes
    if some:
        yield _RECORDS, some


def _name(file: tuple[Path, int]) -> str:
    return file[0].name


def _lines_of(files: Files, layout: Layout) -> pa.Table:
    """Return the lines of files, each with the place of its file's name among theirs."""
    contents = [path.read_bytes() for path, _ in files]
    require(all(content.endswith(b"\n") for content in contents if content), "the last line is torn")
    whole, number = b"".join(contents), sum(of_file for _, of_file in files)
    lines = json_rows(pa.BufferReader(whole), len(whole), layout, number)
    require(lines.num_rows == number, "a dump has a writer's end")
    names = sorted({path.name for path, _ in files})
    places = np.repeat([names.index(path.name) for path, _ in files], [of_file for _, of_file in files])
    return lines.append_column(PLACE, pa.array(places, pa.int64()))


def _write_transactions(write: Write, lines: pa.Table) -> None:
    """Write the tables of the lines about transactions."""
    tables = {name: fact.name for name, fact in OF_TRANSACTIONS.items()} | {"transition": TRANSITIONS}
    for name, table in tables.items():
        rows = where(lines, "type", name)
        if rows.num_rows:
            require("transactional_id" in lines.column_names, "lines about transactions are in another file")
            write(table, columns_of(rows))


def _few(kind: str) -> Callable[[Write, Files], set[str]]:
    """Return what makes the table of a kind of which there are few lines."""
    layout = Layout(SCHEMAS[kind])

    def make(write: Write, files: Files) -> set[str]:
        for path, _ in files:
            with path.open("rb") as file:
                lines = file.readlines()
            require(not lines or lines[-1].endswith(b"\n"), "the last line is torn")
            contents = [content for content in map(decode, lines) if ENDS not in content]
            table = few_rows(contents, layout)
            if key := UNIQUE_KEYS.get(kind):
                require_known(table, *key)
                require_unique(table, *key)
            write(kind, columns_of(table))
            if kind in STEPS_OF:
                walk = Walk(kind)
                walk.add(contents)
                write(STEPS_OF[kind], columns_of(walk.table()))
        return set()

    return make


NOT_IN_ORDER = (Odd, pa.ArrowException, ValueError, TypeError, KeyError, AttributeError)
"""What is raised where evidence is not in perfect order."""
MAKE: Mapping[str, Callable[[Write, Files], set[str]]] = {
    "operations": write_operations,
    "replicas": _replicas,
    "state_changes": write_state_changes,
    **{kind: _few(kind) for kind in ("journal", "zookeeper", "liveness")},
}
