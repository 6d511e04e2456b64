import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.events import COMMON, KINDS, PartitionState, encode
from harness.store.folder import RunFolder
from harness.store.history import (
    DeletedLog,
    JournalEntry,
    Liveness,
    Operation,
    Record,
    ReplicaRecord,
    ReplicaState,
    ZnodeChange,
)
from harness.store.seal import seal
from tests.analysis.model_run import history
from tests.analysis.run_folders import lines_of as model_lines
from tests.analysis.run_folders import sealed_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

SCALARS: dict[Any, Any] = {int: 7, float: 0.5, str: "text", bool: True}


def example(cls: type, **values: Any) -> Any:
    """An object of a dataclass with every field filled, nested ones too."""
    hints = get_type_hints(cls)
    return cls(**{field.name: values.get(field.name, value_of(hints[field.name])) for field in fields(cls)})


def value_of(hint: Any) -> Any:
    if hint in SCALARS:
        return SCALARS[hint]
    if get_origin(hint) is UnionType:
        return value_of(get_args(hint)[0])
    if get_origin(hint) is list:
        return [value_of(get_args(hint)[0])]
    if get_origin(hint) is tuple:
        return tuple(value_of(inner) for inner in get_args(hint) if inner is not ...)
    if get_origin(hint) is dict:
        return {"nested": {"list": [1]}}
    if hasattr(hint, "__members__"):
        return next(iter(hint))
    return example(hint)


def lines_of(folder: RunFolder) -> dict[Path, list[Any]]:
    """One line of every kind there is."""
    return {
        folder.operations_of("p0"): [example(Operation, records=(example(Record),))],
        folder.journal: [example(JournalEntry)],
        folder.liveness: [example(Liveness)],
        folder.zookeeper: [example(ZnodeChange)],
        folder.replica_dump(1, "orders", 0): [
            example(ReplicaState, type="replica", leader_epochs=((0, 0), (1, 5))),
            example(ReplicaRecord, type="record"),
        ],
        folder.deleted_logs(1): [example(DeletedLog, type="deleted")],
        folder.state_change_log(1): [example(kind) for kind in KINDS.values()],
    }


def write(folder: RunFolder, extra: str = "") -> None:
    for path, lines in lines_of(folder).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        common = {name: SCALARS[type_] for name, type_ in COMMON if name != "ev"}
        texts = [
            encode(line, common).decode() if path.name == "state-change.jsonl" else json.dumps(asdict(line)) + "\n"
            for line in lines
        ]
        path.write_text("".join(texts) + extra, encoding="utf-8")


def test_every_kind_of_line_that_is_written_can_be_read(spark: "SparkSession", tmp_path: Path) -> None:
    from harness.analysis.sources.parsed_lines import CORRUPT
    from harness.analysis.sources.reading import read

    folder = RunFolder(tmp_path / "run-1")
    write(folder)
    sources = read(spark, [folder], tmp_path / "rows")
    for frame in sources.lines.values():
        rows = frame.cache().collect()
        assert rows
        assert [row[CORRUPT] for row in rows if row[CORRUPT]] == []
        assert {row.run_id for row in rows} == {"run-1"}
    assert sources.lines["state_changes"].count() == len(KINDS)


def test_torn_and_corrupt_lines_are_kept_as_text_and_named_by_file(spark: "SparkSession", tmp_path: Path) -> None:
    from harness.analysis.sources.parsed_lines import CORRUPT
    from harness.analysis.sources.reading import read

    folder = RunFolder(tmp_path / "run-1")
    write(folder, extra='{"mono":1,"ev":"hw","seq":"not a number"}\nno json at all\n{"mono":3,"ev":"h')
    frame = read(spark, [folder], tmp_path / "rows").lines["state_changes"].cache()
    bad = frame.where(f"{CORRUPT} is not null").collect()
    assert len(bad) == 3
    assert {row.file for row in bad} == {"brokers/1/state-change.jsonl"}


def test_a_folder_without_any_evidence_reads_as_no_lines(spark: "SparkSession", tmp_path: Path) -> None:
    from harness.analysis.sources.reading import read

    sources = read(spark, [RunFolder(tmp_path / "empty")], tmp_path / "rows")
    assert [frame.count() for frame in sources.lines.values()] == [0] * 6
    assert sources.size_bytes == 0
    assert {"run_id", "file"} <= set(sources.lines["state_changes"].columns)


def test_runs_are_told_apart_by_their_folders(spark: "SparkSession", tmp_path: Path) -> None:
    from harness.analysis.sources.reading import read

    folders = [RunFolder(tmp_path / "smoke-20261121T061958-6a276b73"), RunFolder(tmp_path / "another run")]
    for folder in folders:
        write(folder)
    rows = read(spark, folders, tmp_path / "rows").lines["replicas"].select("run_id", "file").distinct().collect()
    assert {(row.run_id, row.file) for row in rows} == {
        (folder.run_id, str(path.relative_to(folder.root)))
        for folder in folders
        for path in (folder.replica_dump(1, "orders", 0), folder.deleted_logs(1))
    }


def unsealed(root: Path) -> RunFolder:
    folder = sealed_run(root, "unsealed", model_lines(history(1)))
    folder.seal.unlink()
    return folder


def in_order(root: Path) -> RunFolder:
    return sealed_run(root, "in order", model_lines(history(2)))


def ends_twice(root: Path) -> RunFolder:
    """A run whose operations are not in order, so that they alone are read from their lines."""
    run = history(3).copy()
    lines = next(lines for lines in run.files["operations"].values() if lines)
    lines.append(lines[-1])
    return sealed_run(root, "ends twice", model_lines(run))


@pytest.mark.parametrize(
    ("runs", "by_lines"),
    [
        pytest.param([unsealed], 6, id="of lines, by their bytes"),
        pytest.param([in_order], 0, id="of tables, by their rows"),
        pytest.param([ends_twice], 1, id="of lines of one kind and tables of the others, by both"),
        pytest.param([unsealed, in_order, ends_twice], 7, id="of many, by what each is read from"),
    ],
)
def test_jobs_are_fitted_to_what_is_read_of_large_runs(
    runs: list[Any], by_lines: int, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.analysis.sources.reading import ROW_BYTES, read
    from harness.analysis.sources.sealing.sealed import sealed_tables

    folders = [make(tmp_path) for make in runs]
    tables = [sealed_tables(folder) for folder in folders]
    lines = [
        paths
        for folder, of_run in zip(folders, tables, strict=True)
        for kind, paths in folder.evidence().items()
        if kind not in of_run
    ]
    assert len(lines) == by_lines
    files = [path for of_run in tables for of_kind in of_run.values() for path in of_kind.paths.values()]
    rows = sum(parquet.read_table(path).num_rows for path in files)
    assert read(spark, folders, tmp_path / "rows").read_bytes is None, "all lines of small ones"
    monkeypatch.setattr("harness.analysis.engine.session.TASK_BYTES", 1_000)
    sources = read(spark, folders, tmp_path / "rows")
    assert not sources.together
    assert sources.read_bytes == sum(path.stat().st_size for paths in lines for path in paths) + rows * ROW_BYTES


@dataclass
class Odd:
    field: complex


@dataclass
class One:
    shared: int
    own: str


@dataclass
class Two:
    shared: list[int]
    state: PartitionState | None


def test_a_name_with_two_types_is_read_as_text() -> None:
    from harness.analysis.sources.lines import merged, struct_of

    both = merged([struct_of(One), struct_of(Two)])
    assert both["shared"].dataType.simpleString() == "string"
    assert both["own"].dataType.simpleString() == "string"
    assert (
        both["state"].dataType.simpleString().startswith("struct<leader:bigint,leader_epoch:bigint,isr:array<bigint>")
    )


def test_a_type_without_a_column_type_is_refused() -> None:
    from harness.analysis.sources.lines import struct_of

    with pytest.raises(TypeError, match="no column type for <class 'complex'>"):
        struct_of(Odd)


def test_a_session_is_fitted_to_the_lines_of_runs_of_which_sealed_ones_count_little(tmp_path: Path) -> None:
    from harness.analysis.sources.reading import SEALED_LINE_BYTES, session_bytes
    from harness.store.seal import sealed_lines

    sealed, copy = (sealed_run(tmp_path, name, model_lines(history(1))) for name in ("sealed", "copy"))
    copy.seal.unlink()
    assert session_bytes([copy]) == copy.evidence_bytes()
    assert session_bytes([sealed]) == sealed_lines(sealed) * SEALED_LINE_BYTES < sealed.evidence_bytes() / 4
    assert session_bytes([sealed, copy]) == session_bytes([sealed]) + session_bytes([copy])
    assert session_bytes([sealed], make_tables=False) == sealed.evidence_bytes()
    sealed.tables.mkdir()
    assert session_bytes([sealed], make_tables=False) == session_bytes([sealed])


def test_a_file_whose_lines_do_not_follow_one_another_counts_in_full(tmp_path: Path) -> None:
    from harness.analysis.sources.reading import session_bytes

    run = sealed_run(tmp_path, "run", model_lines(history(1)))
    before, file = session_bytes([run]), run.evidence()["operations"][0]
    run.seal.unlink()
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    seal(run)
    assert session_bytes([run]) > before + file.stat().st_size / 2


@pytest.mark.parametrize(
    ("lacking", "rows", "lines_bytes"),
    [
        pytest.param(None, 0, 1000, id="no run has tables"),
        pytest.param([], 3, 0, id="all runs have tables"),
        pytest.param(["run-1"], 3, 1000, id="one run lacks tables of one kind"),
    ],
)
def test_a_table_of_runs_counts_for_rows_of_tables_and_for_lines_where_they_are_read(
    lacking: list[str] | None, rows: int, lines_bytes: int, spark: "SparkSession", tmp_path: Path
) -> None:
    from harness.analysis.sources.lines import SCHEMAS
    from harness.analysis.sources.reading import LINES, ROW_BYTES, from_table
    from harness.analysis.sources.sealing.packed import Unpacked

    polls = tmp_path / "polls.parquet"
    parquet.write_table(pa.table({"run_id": ["run-0"] * 3}), polls)
    typed = None
    if lacking is not None:
        typed = Unpacked(paths={"polls": polls}, without={kind: [] for kind in SCHEMAS} | {"operations": lacking})
    nothing = [f"cast(null as {LINES.simpleString()}) as `{kind}`" for kind in SCHEMAS]
    sources = from_table(
        spark.range(2).selectExpr("concat('run-', id) as run_id", *nothing), 1000, tmp_path / "rows", typed
    )
    assert (sources.size_bytes, sources.read_bytes) == (1000, rows * ROW_BYTES + lines_bytes)
    assert (sources.torn, sources.together) == ((), True)
    assert set(sources.lines) == (set(SCHEMAS) if typed is None else {"operations"} if lacking else set())
    assert set(sources.tables) == {*(["polls"] if typed else []), "broker_steps", "znode_steps"}


def test_a_kind_that_is_too_odd_for_tables_counts_in_full(tmp_path: Path) -> None:
    from harness.analysis.sources.reading import session_bytes
    from harness.analysis.sources.sealing.sealed import sealed_tables

    evidence = model_lines(history(1))
    place, lines = next(iter(evidence["operations"].items()))
    evidence["operations"][place] = [lines[0].replace(b'"type":"', b'"type":"another '), *lines[1:]]
    run = sealed_run(tmp_path, "run", evidence)
    before, files = session_bytes([run]), run.evidence()["operations"]
    assert "operations" not in sealed_tables(run)
    assert session_bytes([run]) > before + sum(file.stat().st_size for file in files) / 2
