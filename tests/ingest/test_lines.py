"""Histories that others recorded: read by lines and by columns, refused or remarked on where that is due."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from harness.analysis.engine.compat import is_connect
from harness.analysis.sources.parsed_lines import CORRUPT
from harness.errors import EvidenceError
from harness.ingest.ends import WITHOUT_ENDS
from harness.ingest.judging import judge_history
from harness.ingest.lines import RecordedEvidence
from harness.ingest.settings import AllowedSettings
from harness.progress import Silent
from harness.store.folder import RunFolder
from harness.store.result import forbidding
from harness.verdict import ExitCode
from tests.verdicts import UNKNOWN

pytestmark = pytest.mark.spark

SEND = {"index": 0, "time_ns": 1, "process": "p", "type": "invoke", "kind": "send", "topic": "t", "value": "a"}
MISFITS = {
    "a time in words": (SEND | {"time_ns": "soon"}, '`time_ns` is "soon", and must be bigint'),
    "no time": ({name: value for name, value in SEND.items() if name != "time_ns"}, "it has no `time_ns`"),
    "no value": ({name: value for name, value in SEND.items() if name != "value"}, "it has no `value`"),
    "a typing error": (SEND | {"ofset": 7}, "unknown key `ofset`"),
    "another word": (SEND | {"type": "done"}, "`type` is done, none of invoke, ok, fail, info"),
    "no object": ([1, 2], "not a JSON object: [1, 2]"),
    "half a record": (
        SEND | {"kind": "poll", "type": "ok", "records": [{"topic": "t", "partition": 0, "offset": 0}]},
        "one of its `records` has no `topic`, `partition`, `offset` or `value`",
    ),
    "a record before the log": (
        SEND | {"kind": "poll", "type": "ok", "records": [{"topic": "t", "partition": 0, "offset": -1, "value": "a"}]},
        "one of its `records` has a negative `partition` or `offset`",
    ),
}


@pytest.fixture(scope="module")
def explained(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each line that does not fit, which is the third of its file."""
    root = tmp_path_factory.mktemp("misfits")
    files = {name: root / f"{name}.jsonl" for name in MISFITS}
    for name, (line, _) in MISFITS.items():
        text = "".join(f"{json.dumps(each)}\n" for each in (SEND, SEND | {"type": "ok"}))
        files[name].write_text(f"{text}\n{json.dumps(line)}\n", encoding="utf-8")
    return {
        name: RecordedEvidence(spark, {"operations": [str(path)]}, root / f"lines of {name}")
        .explain([f"operations/{path.name}"])[0]
        .removeprefix(f"{path}:")
        for name, path in files.items()
    }


@pytest.mark.parametrize("name", MISFITS)
def test_the_first_line_that_does_not_fit_is_named_with_what_is_wrong(explained: dict[str, str], name: str) -> None:
    assert explained[name] == f"4: {MISFITS[name][1]}"


def test_a_line_that_nobody_can_read_is_named_too(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "ops.jsonl"
    path.write_text(f'{json.dumps(SEND)}\n{{"value": {"[" * 100_000}{"]" * 100_000}}}\n', encoding="utf-8")
    (explanation,) = RecordedEvidence(spark, {"operations": [str(path)]}, tmp_path / "lines").explain(
        ["operations/ops.jsonl"]
    )
    assert explanation.startswith(f"{path}:2: not JSON: maximum recursion depth exceeded")


def test_lines_that_do_not_fit_become_no_facts_and_leave_no_promise_kept(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "ops.jsonl"
    bad = [line for line, _ in MISFITS.values()]
    lines = [json.dumps(line) for line in (SEND, SEND | {"type": "ok", "offset": 0}, *bad)]
    path.write_text("\n".join(lines) + '\n{"index": 1, "tim', encoding="utf-8")
    result = judge_history(
        spark, {"operations": [str(path)]}, AllowedSettings(), RunFolder(tmp_path / "out"), checks=["nonmonotonic-send"]
    )
    assert result.counts["sends"] == 1
    assert (result.checks[0].verdict, result.exit_code) == (UNKNOWN, ExitCode.INCONCLUSIVE)
    assert forbidding(result.remarks)
    count = len(bad) + 1
    assert [str(remark) for remark in result.remarks if remark.text != WITHOUT_ENDS] == [
        f"operations/ops.jsonl: {count} unreadable lines",
        f'{path}:3: `time_ns` is "soon", and must be bigint',
    ]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        pytest.param({"ofset": [1]}, r"unknown column `ofset` \(did you mean offset\?\)", id="an unknown column"),
        pytest.param({"time_ns": ["1"]}, "column `time_ns` is string, and must be bigint", id="another type"),
        pytest.param({"time_ns": None}, "no column `time_ns`", id="a column too few"),
        pytest.param({"records": [[{"at": 1}]]}, "column `records` is array<struct<at:bigint>>", id="other members"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_refused(
    spark: SparkSession, tmp_path: Path, columns: dict[str, Any], reason: str
) -> None:
    row = {name: [value] for name, value in SEND.items()} | columns
    parquet.write_table(pa.table({name: value for name, value in row.items() if value}), tmp_path / "ops.parquet")
    with pytest.raises(EvidenceError, match=reason):
        RecordedEvidence(spark, {"operations": [str(tmp_path / "ops.parquet")]}, tmp_path / "lines")


class Heard(Silent):
    """Keeps the messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        """Keep it."""
        self.messages.append(text)


def test_lines_are_read_once_with_a_line_of_progress(spark: SparkSession, tmp_path: Path) -> None:
    """Settings, deleted records, acks that are not stated, facts and the first line that does not fit."""
    path, heard, folder = tmp_path / "ops.jsonl", Heard(), RunFolder(tmp_path / "out")
    stated = SEND | {"kind": "setting", "key": "min_insync_replicas", "value": "2"}
    lines = [stated, SEND, SEND | {"type": "ok", "offset": 0}, SEND | {"type": "done"}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    checks, settings = ["nonmonotonic-send"], AllowedSettings(min_insync_replicas=1)
    result = judge_history(spark, {"operations": [str(path)]}, settings, folder, checks=checks, progress=heard)
    remarks = [str(remark) for remark in result.remarks]
    assert f"{path}:4: `type` is done, none of invoke, ok, fail, info" in remarks
    read = [text.partition(":")[0] for text in heard.messages if text.startswith("reading")]
    assert read == ["reading 1 file of operations, 0.0 MB"]
    assert not list(folder.root.glob(".*")), "the rows of lines are gone"


def test_tables_of_several_clients_need_not_have_columns_of_the_same_types(spark: SparkSession, tmp_path: Path) -> None:
    record = {"topic": "t", "partition": 0, "offset": 5, "value": "a"}
    sent = {name: [value] for name, value in SEND.items()} | {"records": pa.nulls(1), "offset": pa.array([7], "uint64")}
    polled = {name: [value] for name, value in (SEND | {"kind": "poll", "process": "q"}).items()}
    polled |= {"records": [[record]], "offset": pa.array([8], "int32"), "key": pa.nulls(1)}
    parquet.write_table(pa.table(sent), tmp_path / "sent.parquet")
    parquet.write_table(pa.table(polled), tmp_path / "polled.parquet")
    lines = (
        RecordedEvidence(spark, {"operations": [str(tmp_path)]}, tmp_path / "lines")
        .sources("h", -1)
        .lines["operations"]
    )
    rows = {row["process"]: row for row in lines.collect()}
    assert {name: (row["offset"], row[CORRUPT]) for name, row in rows.items()} == {"p": (7, None), "q": (8, None)}
    assert rows["p"]["records"] is None
    assert rows["q"]["records"][0]["value"] == "a"


def test_the_table_that_does_not_fit_is_named_among_others(spark: SparkSession, tmp_path: Path) -> None:
    fits = {name: [value] for name, value in SEND.items()}
    parquet.write_table(pa.table(fits), tmp_path / "a.parquet")
    parquet.write_table(pa.table(fits | {"ofset": [7]}), tmp_path / "b.parquet")
    with pytest.raises(EvidenceError, match=r"b\.parquet: unknown column `ofset`"):
        RecordedEvidence(spark, {"operations": [str(tmp_path)]}, tmp_path / "lines")


def test_a_file_is_taken_by_its_name_and_its_last_line_without_an_end_for_what_it_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a[1]{b}.jsonl"
    first, last = json.dumps(SEND), json.dumps(SEND | {"type": "ok", "offset": 0})
    path.write_bytes(f"{first}\n{first}\n{last}".encode().replace(b'"p"', b'"p\xff"', 1))
    evidence = RecordedEvidence(spark, {"operations": [str(path)]}, tmp_path / "lines")
    sources = evidence.sources("h", -1)
    assert sources.torn == ()
    assert [row["process"] for row in sources.lines["operations"].collect()] == [None, "p", "p"]
    assert evidence.explain([f"operations/{path.name}"])[0].startswith(f"{path}:1: not UTF-8: ")


def test_a_file_that_breaks_off_within_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "ops.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(SEND).encode())[:-20])
    with pytest.raises(EvidenceError, match=r"the history cannot be judged: .*ops\.jsonl\.gz"):
        judge_history(spark, {"operations": [str(path)]}, AllowedSettings(), RunFolder(tmp_path / "out"))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        pytest.param("none.jsonl", None, "none.jsonl: there is no file", id="missing"),
        pytest.param("empty.jsonl", b"", "is empty", id="empty"),
        pytest.param("ops.csv", b"a,b\n", "its name must end in one of .jsonl, .ndjson, .json, .parquet", id="CSV"),
        pytest.param("bad.parquet", b"PAR1 not", "bad.parquet: not Parquet that can be read", id="damaged Parquet"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, name: str, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EvidenceError, match=reason):
        RecordedEvidence(spark, {"operations": [str(tmp_path / name)]}, tmp_path / "lines")


def parquet_bomb(folder: Path) -> str:
    """Write 200,000 bytes that hold a hundred million values."""
    parquet.write_table(pa.table({"kind": pa.nulls(10**8)}), folder / "bomb.parquet")
    return str(folder / "bomb.parquet")


def packed_bomb(folder: Path) -> str:
    """Write 300,000 bytes that are unpacked to 300 MB."""
    (folder / "bomb.jsonl.gz").write_bytes(gzip.compress(b"\n" * 2**20) * 300)
    return f"file://{folder}/bomb.jsonl.gz"


@pytest.mark.parametrize(
    ("bomb", "reason"),
    [
        pytest.param(
            parquet_bomb,
            r"bomb\.parquet: its [\d,]{7} bytes hold more than [\d,]{10} values in a column, which is the limit; "
            "raise it with --expansion, now 100 times the size of a file$",
            id="Parquet",
        ),
        pytest.param(packed_bomb, r"bomb\.jsonl\.gz: .* hold more than 268,435,456 bytes, which", id="gzip"),
    ],
)
def test_a_file_that_holds_more_than_its_size_makes_likely_is_refused(
    spark: SparkSession, tmp_path: Path, bomb: Callable[[Path], str], reason: str
) -> None:
    with pytest.raises(EvidenceError, match=reason):
        RecordedEvidence(spark, {"operations": [bomb(tmp_path)]}, tmp_path / "lines")


def test_what_a_file_may_hold_can_be_raised(spark: SparkSession, tmp_path: Path) -> None:
    paths = {"operations": [packed_bomb(tmp_path)]}
    assert RecordedEvidence(spark, paths, tmp_path, expansion=2000).files["operations"]


def test_a_file_system_that_the_engine_does_not_know_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    reason = "only Apache Spark in a JVM" if is_connect(spark) else "cannot be read: .*UnsupportedFileSystem"
    with pytest.raises(EvidenceError, match=rf"gopher://host/x\.jsonl: {reason}"):
        RecordedEvidence(spark, {"operations": ["gopher://host/x.jsonl"]}, tmp_path)
