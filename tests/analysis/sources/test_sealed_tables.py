"""Tables are made of evidence in perfect order alone; they hold for the lines, run and layout that they are made of."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from harness.analysis.sources import typed
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.sealing import packed as packing
from harness.analysis.sources.sealing.packed import packed, unpacked
from harness.analysis.sources.sealing.sealed import STATED, Sealed, sealed_tables
from harness.analysis.sources.typed import TYPED
from harness.store.folder import RunFolder
from harness.store.seal import DIGEST_BYTES
from tests.analysis.model_evidence import JOURNAL, OPERATIONS, REPLICAS, STATE_CHANGES, ZOOKEEPER, Evidence, Line
from tests.analysis.model_run import history
from tests.analysis.run_folders import lines_of, sealed_run
from tests.small_disk import small_disk


@cache
def intact() -> Evidence:
    return history(1)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return sealed_run(tmp_path, "run", lines_of(intact()))


def in_first(kind: str, change: Callable[[list[Line]], Any]) -> tuple[str, Callable[[Evidence], Any]]:
    """Change the lines of the first file of a kind, if it has two at least."""
    return kind, lambda evidence: change(next(lines for lines in evidence.files[kind].values() if len(lines) > 1))


def of(kind: str, /, **fields: Any) -> Callable[[Evidence], Line]:
    return lambda evidence: next(evidence.lines(kind, **fields))


def changed(kind: str, line: Callable[[Evidence], Line], /, **values: Any) -> tuple[str, Callable[[Evidence], Any]]:
    return kind, lambda evidence: line(evidence).update(values)


SEND, END = of(OPERATIONS, kind="send", type="invoke"), of(OPERATIONS, kind="send", type="ok")
ODD = [
    pytest.param(*in_first(OPERATIONS, lambda lines: lines.pop(0)), id="a beginning is missing"),
    pytest.param(*in_first(OPERATIONS, lambda lines: lines.append(lines[-1])), id="an operation ends twice"),
    pytest.param(*in_first(OPERATIONS, lambda lines: lines.append(lines[0])), id="an operation begins twice"),
    pytest.param(*changed(OPERATIONS, END, index=10**6), id="an end is of no operation"),
    pytest.param(*changed(OPERATIONS, END, kind="commit"), id="an end is of another kind"),
    pytest.param(*changed(OPERATIONS, END, type="oj"), id="an end is of no outcome that there is"),
    pytest.param(*changed(OPERATIONS, END, kind="sene"), id="an end is of a kind that there is not"),
    pytest.param(*changed(STATE_CHANGES, of(STATE_CHANGES, ev="append"), ev="apend"), id="a line is of no kind"),
    pytest.param(*changed(OPERATIONS, END, time_ns=0), id="an end is before its beginning"),
    pytest.param(*changed(OPERATIONS, SEND, process="another"), id="a file is of two processes"),
    pytest.param(*changed(OPERATIONS, SEND, value=7), id="a number is where a text should be"),
    pytest.param(*changed(OPERATIONS, SEND, time_ns="now"), id="a text is where a number should be"),
    pytest.param(*changed(OPERATIONS, SEND, kind=None), id="a line does not say what it is"),
    pytest.param(*in_first(STATE_CHANGES, lambda lines: lines.pop(1)), id="a number of a broker's line is missing"),
    pytest.param(*in_first(STATE_CHANGES, lambda lines: lines.append(lines[1])), id="a broker's line is there twice"),
    pytest.param(*changed(STATE_CHANGES, of(STATE_CHANGES, ev="append"), base_offset="x"), id="a frequent one misfits"),
    pytest.param(*changed(STATE_CHANGES, of(STATE_CHANGES, ev="zk_write"), new_version="x"), id="a rare one misfits"),
    pytest.param(*changed(REPLICAS, of(REPLICAS, type="replica"), damage="torn"), id="a replica's log is damaged"),
    pytest.param(*in_first(REPLICAS, lambda lines: lines.append(lines[0])), id="a replica is dumped twice"),
    pytest.param(*in_first(ZOOKEEPER, lambda lines: lines.append(lines[0])), id="a change of a znode is there twice"),
    pytest.param(*changed(ZOOKEEPER, of(ZOOKEEPER), zxid=None), id="a change of a znode has no transaction"),
]


@pytest.mark.parametrize(("kind", "plant"), ODD)
def test_what_is_odd_has_no_tables(kind: str, plant: Callable[[Evidence], Any], tmp_path: Path) -> None:
    evidence = intact().copy()
    plant(evidence)
    folder = sealed_run(tmp_path, "run", lines_of(evidence))
    assert set(sealed_tables(folder)) == set(SCHEMAS) - {kind}
    assert json.loads((folder.tables / kind / STATED).read_bytes())["odd"]


def test_value_ids_that_are_sent_twice_have_no_tables(tmp_path: Path) -> None:
    evidence = intact().copy()
    first, second, *_ = evidence.lines(OPERATIONS, kind="send", type="invoke")
    for line in evidence.lines(OPERATIONS, kind="send", value=second["value"]):
        line["value"] = first["value"]
    assert OPERATIONS not in sealed_tables(sealed_run(tmp_path, "run", lines_of(evidence)))


def _joined(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"", 1))


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize("damage", [_joined, _torn, Path.unlink])
@pytest.mark.parametrize("made_before", [True, False])
def test_lines_that_were_damaged_after_sealing_are_read_again(
    damage: Callable[[Path], None], run: RunFolder, *, made_before: bool
) -> None:
    if made_before:
        assert OPERATIONS in sealed_tables(run)
    damage(next(run.operations.iterdir()))
    assert OPERATIONS not in sealed_tables(run)


def test_nothing_is_written_where_nothing_may_be(run: RunFolder) -> None:
    assert sealed_tables(run, make=False) == {}
    assert not run.tables.exists()


def test_without_a_seal_there_are_no_tables(run: RunFolder) -> None:
    sealed_tables(run)
    run.seal.unlink()
    assert sealed_tables(run) == {}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _other_rows(path: Path) -> None:
    parquet.write_table(parquet.read_table(path).slice(1), path)


def _says_else(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"send"', b'"spin"'))


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (_says_else, STATED),
        (_cut, STATED),
        (_cut, "operations.parquet"),
        (_other_rows, "polls.parquet"),
        (Path.unlink, "polls.parquet"),
        (Path.unlink, STATED),
    ],
)
def test_a_damaged_table_is_made_again(damage: Callable[[Path], None], file: str, run: RunFolder) -> None:
    before = sealed_tables(run)
    rows = parquet.read_table(before[OPERATIONS].paths["polls"])
    damage(run.tables / OPERATIONS / file)
    assert sealed_tables(run) == before
    assert parquet.read_table(before[OPERATIONS].paths["polls"]).equals(rows)


def test_a_run_that_is_copied_has_tables_under_its_own_name(run: RunFolder, tmp_path: Path) -> None:
    sealed_tables(run)
    copy = RunFolder(Path(shutil.copytree(run.root, tmp_path / "copy")))
    tables = [parquet.read_table(path) for kind in sealed_tables(copy).values() for path in kind.paths.values()]
    assert {name for table in tables for name in table["run_id"].unique().to_pylist()} == {"copy"}


def test_tables_of_another_layout_are_made_again(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed_tables(run)
    before = (run.tables / JOURNAL / STATED).read_bytes()
    monkeypatch.setattr(typed, "LAYOUT", 0)
    sealed_tables(run)
    assert (run.tables / JOURNAL / STATED).read_bytes() != before


def pack_of(evidence: Evidence, run_id: str, root: Path) -> dict[str, bytes]:
    folder = sealed_run(root, run_id, lines_of(evidence))
    files = {
        kind: [(path, len(path.read_bytes().splitlines())) for path in paths]
        for kind, paths in folder.evidence().items()
    }
    return packed(run_id, files)


def rows_of(path: Path) -> list[str]:
    """Return the rows in an order of their own: lives of brokers come in any."""
    return sorted(map(repr, parquet.read_table(path).to_pylist()))


def test_what_is_packed_of_runs_and_unpacked_are_their_tables_together(tmp_path: Path) -> None:
    runs = {run_id: history(seed) for seed, run_id in enumerate(["first", "second"])}
    together = unpacked([(each, pack_of(runs[each], each, tmp_path)) for each in runs], tmp_path / "new" / "tables")
    assert together.without == {kind: [] for kind in TYPED}
    sealed: list[dict[str, Sealed]] = [sealed_tables(RunFolder(tmp_path / each)) for each in runs]
    for kind, names in TYPED.items():
        for name in names:
            expected = [row for of_run in sealed for row in rows_of(of_run[kind].paths[name])]
            assert rows_of(together.paths[name]) == sorted(expected), name


def test_rows_are_of_the_run_that_they_are_handed_on_with(tmp_path: Path) -> None:
    paths = unpacked([("another", pack_of(intact(), "run", tmp_path))], tmp_path / "tables").paths
    run_ids = {name: set(parquet.read_table(path)["run_id"].to_pylist()) for name, path in paths.items()}
    assert {run_id for of_table in run_ids.values() for run_id in of_table} == {"another"}


@pytest.mark.parametrize(("kind", "plant"), ODD)
def test_what_is_odd_is_not_packed(kind: str, plant: Callable[[Evidence], Any], tmp_path: Path) -> None:
    evidence = intact().copy()
    plant(evidence)
    assert pack_of(evidence, "run", tmp_path).keys() == {
        name for each, names in TYPED.items() if each != kind for name in names
    }


def _without_last_message(pack: bytes) -> bytes:
    """Return a pack whose stream ends early, as Arrow does not notice."""
    digest, content = pack[:DIGEST_BYTES], pack[DIGEST_BYTES:]
    whole = pa.BufferReader(content)
    ipc.open_stream(whole).read_next_batch()
    return digest + content[: whole.tell()]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "the end of a table is missing": lambda pack: pack[: len(pack) // 2],
    "all but the first rows of a table are missing": _without_last_message,
    "one bit of a table is another": lambda pack: pack[:-50] + bytes([pack[-50] ^ 1]) + pack[-49:],
    "a table is empty": lambda _: b"",
    "a table is something else": lambda _: b"something else",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_left_to_the_lines(damage: str, tmp_path: Path) -> None:
    whole = pack_of(intact(), "run", tmp_path)
    damaged = whole | {"operations": DAMAGE[damage](whole["operations"])}
    assert damaged != whole
    without = {kind: ["run"] if kind == OPERATIONS else [] for kind in TYPED}
    assert unpacked([("run", damaged)], tmp_path / "damaged").without == without
    both = unpacked([("run", damaged), ("another", whole)], tmp_path / "both")
    assert both.without == without
    alone = unpacked([("another", whole)], tmp_path / "alone")
    assert rows_of(both.paths["operations"]) == rows_of(alone.paths["operations"])


def test_a_table_in_the_place_of_another_is_left_to_the_lines(tmp_path: Path) -> None:
    names = list(TYPED[REPLICAS])
    pack = pack_of(intact(), "run", tmp_path)
    swapped = pack | {names[0]: pack[names[1]], names[1]: pack[names[0]]}
    assert unpacked([("run", swapped)], tmp_path / "tables").without[REPLICAS] == ["run"]


@pytest.mark.parametrize("fits", ["nothing", "all but the last byte"])
def test_rows_that_cannot_be_written_are_an_error(tmp_path: Path, fits: str) -> None:
    pack = pack_of(intact(), "run", tmp_path)
    largest = max(path.stat().st_size for path in unpacked([("run", pack)], tmp_path / "tables").paths.values())
    with pytest.raises(OSError, match="too large"), small_disk(64 if fits == "nothing" else largest - 1):
        unpacked([("run", pack)], tmp_path / "again")


def test_rows_are_written_as_soon_as_there_are_enough_for_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = pack_of(intact(), "run", tmp_path)
    names = [f"run-{number}" for number in range(4)]
    of_run = len(pack["operations"])
    groups: dict[int, int] = {}
    rows = set()
    for group_bytes in (packing.GROUP_BYTES, of_run + 1, of_run, 1):
        monkeypatch.setattr(packing, "GROUP_BYTES", group_bytes)
        paths = unpacked([(name, pack) for name in names], tmp_path / f"{group_bytes}").paths
        groups[group_bytes] = parquet.ParquetFile(paths["operations"]).num_row_groups
        rows.add(tuple(row for path in paths.values() for row in rows_of(path)))
    assert list(groups.values()) == [1, 2, 4, 4]
    assert len(rows) == 1


def test_what_was_packed_with_another_layout_is_left_to_the_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = pack_of(intact(), "run", tmp_path)
    monkeypatch.setattr(typed, "LAYOUT", 0)
    other = unpacked([("run", pack), ("earlier", {})], tmp_path / "tables")
    assert (other.paths, other.without) == ({}, {kind: ["run", "earlier"] for kind in TYPED})
