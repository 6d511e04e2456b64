"""Files whose lines are chained prove that they are whole; what is wrong with one is remarked on and takes answers."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from harness.contracts import registry
from harness.ingest.ends import WITHOUT_ENDS
from harness.ingest.judging import judge_history
from harness.ingest.lines import RecordedEvidence
from harness.ingest.settings import AllowedSettings
from harness.judging.assessment import within_holes
from harness.judging.needs import evidence_of
from harness.store.folder import RunFolder
from harness.store.result import CheckResult
from harness.store.seal import NO_END
from harness.system.chain import all_chained
from harness.verdict import ExitCode, SystemVerdict
from tests.analysis.run_folders import write_intact_run
from tests.command_line import chaos
from tests.verdicts import PASS, UNKNOWN

__all__ = ["chaos"]

pytestmark = pytest.mark.spark

CHECK = "nonmonotonic-send"
OPERATION = {"time_ns": 1, "process": "p", "kind": "send", "topic": "t", "partition": 0}


_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("process", "kind", "type", "topic", "value", "chain")]
    + [(name, pa.int64()) for name in ("index", "time_ns", "partition", "offset", "line")]
)


def written(process: str = "p") -> list[bytes]:
    """Return what a producer writes without a chain: two sends."""
    ends: list[dict[str, Any]] = [{"type": "invoke"}, {"type": "ok", "offset": 0}]
    lines = [
        OPERATION | {"process": process, "index": index, "value": f"{process}-{index}"} | end
        for index in range(2)
        for end in ends
    ]
    return [json.dumps(line | {"time_ns": number}).encode() + b"\n" for number, line in enumerate(lines)]


LINES = list(all_chained(written()))
ENDLESS = LINES[:-1]
CHAINED_Q = list(all_chained(written("q")))
MISSING = "numbers 1 to 1 are missing before it"
PROOFS = [
    pytest.param(LINES, [], PASS, id="all lines are there"),
    pytest.param([LINES[0], *LINES[2:]], [f"line 2: {MISSING}"], UNKNOWN, id="a line is deleted"),
    pytest.param(LINES[1:], ["line 1: numbers 0 to 0 are missing before it"], UNKNOWN, id="the first line is deleted"),
    pytest.param(
        [LINES[0], *LINES],
        [NO_END],
        PASS,
        id="the first line is there twice, as of a writer that was killed after it",
    ),
    pytest.param(
        [*LINES[:2], *LINES[1:]],
        ["line 3: it has the number 1 where 2 is expected: a line is doubled or out of order"],
        UNKNOWN,
        id="a line is there twice",
    ),
    pytest.param(
        [LINES[0], LINES[1][:-1] + LINES[2], *LINES[3:]],
        [f"line 2: {MISSING}"],
        UNKNOWN,
        id="two lines are joined",
    ),
    pytest.param(
        [LINES[0], LINES[2], LINES[1], *LINES[3:]],
        [
            f"line 2: {MISSING}; line 3: it has the number 1 where 3 is expected: a line is doubled or out of order; "
            "line 4: numbers 2 to 2 are missing before it"
        ],
        UNKNOWN,
        id="two lines have changed places",
    ),
    pytest.param(
        [LINES[0], LINES[1].replace(b'"offset": 0', b'"offset": 7'), *LINES[2:]],
        ["line 2: it is changed, or follows another line than the one before"],
        UNKNOWN,
        id="a line is changed",
    ),
    pytest.param(
        [written()[0], *LINES[1:]],
        [
            "line 1: it is not a complete line with a number and a checksum; "
            "line 2: numbers 0 to 0 are missing before it"
        ],
        UNKNOWN,
        id="the first line has lost its chain",
    ),
    pytest.param(ENDLESS, [NO_END], PASS, id="the end is missing"),
    pytest.param([*ENDLESS[:-1], ENDLESS[-1][:-9]], [NO_END], PASS, id="the last line is torn"),
    pytest.param([*ENDLESS, *all_chained(written("q"))], [NO_END], PASS, id="one end of two is missing"),
    pytest.param([*LINES, *all_chained(written("q"))], [], PASS, id="two writers, one after the other"),
    pytest.param([b"\xef\xbb\xbf", *LINES[:-1], LINES[-1][:-1]], [], PASS, id="a byte order mark, no last newline"),
    pytest.param(
        [*ENDLESS[:-1], ENDLESS[-1].replace(b'"offset": 0', b'"offset": 7')[:-1]],
        ["line 4: it is changed, or follows another line than the one before", NO_END],
        UNKNOWN,
        id="the last line is changed, and has no newline",
    ),
    pytest.param(written(), [], PASS, id="no line has a chain"),
]  # fmt: skip
"""What there is to say of a file, and what becomes of a promise that was kept as far as it shows."""


PACKED = [case for case in PROOFS if case.values[0][-1].endswith(b"\n")]  # type: ignore[index]
"""The end of compressed text is not checked."""


def assert_known(spark: SparkSession, path: Path, remarks: list[str], answer: SystemVerdict) -> None:
    holes = RecordedEvidence(spark, {"operations": [str(path)]}, path.parent / "lines").holes()
    assert [hole.text for hole in holes] == remarks
    assert {hole.place for hole in holes} <= {f"operations/{path.name}"}
    (result,) = within_holes(
        [CheckResult(check=CHECK, promise="p", verdict=PASS)], holes, evidence_of([registry.check(CHECK)])
    )
    assert result.verdict is answer


@pytest.mark.parametrize(("lines", "remarks", "answer"), PROOFS)
def test_what_is_wrong_with_a_chain_is_known(
    spark: SparkSession, tmp_path: Path, lines: list[bytes], remarks: list[str], answer: SystemVerdict
) -> None:
    (tmp_path / "ops.jsonl").write_bytes(b"".join(lines))
    assert_known(spark, tmp_path / "ops.jsonl", remarks, answer)


@pytest.mark.parametrize(("lines", "remarks", "answer"), PACKED)
def test_so_it_is_where_the_text_is_packed(
    spark: SparkSession, tmp_path: Path, lines: list[bytes], remarks: list[str], answer: SystemVerdict
) -> None:
    (tmp_path / "ops.jsonl.gz").write_bytes(gzip.compress(b"".join(lines)))
    assert_known(spark, tmp_path / "ops.jsonl.gz", remarks, answer)


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("files", "answer", "code", "remarks"),
    [
        pytest.param({"p": LINES}, PASS, ExitCode.HELD, [], id="all lines are there"),
        pytest.param(
            {"p": LINES[:3] + LINES[4:]},
            UNKNOWN,
            ExitCode.INCONCLUSIVE,
            ["operations/p.jsonl: line 4: numbers 3 to 3 are missing before it"],
            id="an end of a send is deleted",
        ),
        pytest.param({"p": ENDLESS}, PASS, ExitCode.INCONCLUSIVE, [f"operations/p.jsonl: {NO_END}"], id="no end"),
        pytest.param({"p": written("p"), "q": CHAINED_Q}, PASS, ExitCode.HELD, [], id="beside lines without a chain"),
        pytest.param(
            {"p": written("p"), "q": [CHAINED_Q[0], CHAINED_Q[1].replace(b": 0", b": 7", 1), *CHAINED_Q[2:]]},
            UNKNOWN,
            ExitCode.INCONCLUSIVE,
            ["operations/q.jsonl: line 2: it is changed, or follows another line than the one before"],
            id="a changed line beside lines without a chain",
        ),
    ],
)
def test_a_check_that_rests_on_a_broken_chain_does_not_answer(
    spark: SparkSession,
    tmp_path: Path,
    files: dict[str, list[bytes]],
    answer: SystemVerdict,
    code: ExitCode,
    remarks: list[str],
) -> None:
    for name, lines in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(lines))
    paths = {"operations": [str(tmp_path / f"{name}.jsonl") for name in files]}
    result = judge_history(spark, paths, AllowedSettings(), RunFolder(tmp_path / "out"), checks=[CHECK])
    assert (result.checks[0].verdict, result.exit_code) == (answer, code)
    assert [str(remark) for remark in result.remarks if remark.text != WITHOUT_ENDS] == remarks
    assert result.counts["sends"] == 2 * len(files)


def test_lines_are_counted_with_the_ends_of_their_writers(spark: SparkSession, tmp_path: Path) -> None:
    misfit = json.dumps(OPERATION | {"index": 2, "type": "done", "value": "r"}).encode() + b"\n"
    lines = [*LINES, *all_chained([misfit])]
    (tmp_path / "ops.jsonl").write_bytes(b"".join(lines))
    (explanation,) = RecordedEvidence(spark, {"operations": [str(tmp_path / "ops.jsonl")]}, tmp_path / "lines").explain(
        ["operations/ops.jsonl"]
    )
    assert explanation == f"{tmp_path}/ops.jsonl:{len(LINES) + 1}: `type` is done, none of invoke, ok, fail, info"


def test_columns_of_a_table_with_numbers_and_chains_are_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in ENDLESS] + [OPERATION | {"index": 2, "type": "done", "value": "r"}]
    parquet.write_table(pa.Table.from_pylist(rows, _SCHEMA), tmp_path / "ops.parquet")
    evidence = RecordedEvidence(spark, {"operations": [str(tmp_path / "ops.parquet")]}, tmp_path / "lines")
    assert evidence.holes() == []
    lines = evidence.sources("h", -1).lines["operations"].collect()
    assert sorted(line["value"] for line in lines if line["value"]) == ["p-0", "p-0", "p-1", "p-1"]
    (explanation,) = evidence.explain(["operations/ops.parquet"])
    assert explanation == f"{tmp_path}/ops.parquet:5: `type` is done, none of invoke, ok, fail, info"


def test_lines_of_dumps_have_no_chain(spark: SparkSession, tmp_path: Path) -> None:
    record = {"type": "record", "broker": 1, "topic": "t", "partition": 0, "offset": 0, "leader_epoch": 0, "value": "a"}
    (tmp_path / "dump.jsonl").write_bytes(b"".join(all_chained([json.dumps(record).encode() + b"\n"])))
    evidence = RecordedEvidence(spark, {"replicas": [str(tmp_path / "dump.jsonl")]}, tmp_path / "lines")
    assert evidence.holes() == []
    (explanation,) = evidence.explain(["replicas/dump.jsonl"])
    assert explanation == f"{tmp_path}/dump.jsonl:1: unknown key `line`, `chain`"


def test_what_clients_of_this_harness_leave_is_judged(spark: SparkSession, tmp_path: Path, chaos: Any) -> None:
    run = write_intact_run(tmp_path / "run")
    for path in run.evidence()["operations"]:
        path.write_bytes(b"".join(all_chained(path.read_bytes().splitlines(keepends=True))))
    operations = str(run.root / "operations")
    status, output, _ = chaos("judge", "--operations", operations, "--into", str(tmp_path / "judged"), "--json")
    answer = json.loads(output)
    assert (status, answer["verdict"], answer["remarks"]) == (ExitCode.HELD, "PASS", [])
    assert {"lost-write", "duplicate"} <= {check["check"] for check in answer["checks"]}
