"""What did clients do, an operation a row and a record that was read a row?"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.sealing.rows import (
    Columns,
    Files,
    Layout,
    file_rows,
    null_if_empty,
    null_if_unknown,
    require,
    require_known,
    require_words,
    where,
)
from harness.analysis.sources.sealing.writer import Write
from harness.analysis.sources.typed import ARGUMENTS
from harness.analysis.tables.schemas import POLLS
from harness.store.history import OpKind, OpType

_OPERATIONS = Layout(SCHEMAS["operations"])


def write_operations(write: Write, files: Files) -> set[str]:
    """Write both tables; return which kinds of operations there are."""
    processes: set[str] = set()
    present: set[str] = set()
    values = []
    for path, number in files:
        lines = file_rows(path, _OPERATIONS, number)
        if not lines.num_rows:
            continue
        require_known(lines, "process", "index", "time_ns", "type", "kind")
        require_words(lines, "type", OpType)
        require_words(lines, "kind", OpKind)
        (process, *others) = lines["process"].unique().to_pylist()
        require(not others and process not in processes, "a file is not that of one process")
        processes.add(process)
        done = _paired(lines)
        write("operations", done)
        present.update(done["kind"].unique().to_pylist())
        values.append(done["value"].filter(pc.equal(done["kind"], OpKind.SEND.value)))
        polled = where(where(lines, "kind", OpKind.POLL.value), "type", OpType.OK.value)
        write(POLLS.name, _read(polled))
    sent = pa.chunked_array([chunk for column in values for chunk in column.chunks], pa.string())
    require(sent.null_count == 0 and pc.count_distinct(sent).as_py() == len(sent), "value ids are not unique")
    return present


def _paired(lines: pa.Table) -> Columns:
    """Return one row an operation of a process, which begins once and ends once at most."""
    begins = lines.filter(pc.equal(lines["type"], OpType.INVOKE.value))
    ends = lines.filter(pc.not_equal(lines["type"], OpType.INVOKE.value))
    number = begins.num_rows
    ended = ends["index"].to_numpy()
    require(np.array_equal(begins["index"].to_numpy(), np.arange(number)), "beginnings are missing or there twice")
    require(not len(ended) or (ended.min() >= 0 and ended.max() < number), "an end has no beginning")
    require(len(np.unique(ended)) == len(ended), "an operation ends twice")
    place = np.full(number, -1)
    place[ended] = np.arange(len(ended))
    ends = ends.take(pa.array(place, mask=place < 0))
    require(pc.all(pc.equal(begins["kind"], ends["kind"]), min_count=0).as_py(), "an end is of another kind")
    in_order = pc.less_equal(begins["time_ns"], ends["time_ns"])
    require(pc.all(in_order, min_count=0).as_py(), "an operation ends before it begins")
    return {
        "process": begins["process"],
        "index": begins["index"],
        "kind": begins["kind"],
        "invoke_ns": begins["time_ns"],
        "complete_ns": ends["time_ns"],
        "outcome": pc.fill_null(ends["type"], OpType.INFO.value),
        **{name: pc.max_element_wise(begins[name], ends[name]) for name in (*ARGUMENTS, "offset")},
        "ok_offset": pc.if_else(pc.equal(ends["type"], OpType.OK.value), ends["offset"], None),
        "lines": pc.add(1, pc.cast(pc.is_valid(ends["index"]), pa.int64())),
    }


def _read(polled: pa.Table) -> Columns:
    """Return one row a record that a client read."""
    records = polled["records"].combine_chunks()
    poll = pc.list_parent_indices(records)
    number = np.asarray(pc.fill_null(pc.list_value_length(records), 0), dtype=np.int64)
    position = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    of_record = pa.table(pc.list_flatten(records).flatten(), names=[field.name for field in records.type.value_type])
    return {
        **{name: polled[name].take(poll) for name in ("process", "index", "time_ns", "mode")},
        **{name: of_record[name] for name in of_record.column_names},
        "isolation": null_if_empty(polled["isolation"]).take(poll),
        "position": pa.array(position),
        "leader_epoch": null_if_unknown(of_record["leader_epoch"]),
    }
