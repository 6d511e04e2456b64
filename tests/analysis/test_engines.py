"""Sail judges as Apache Spark does: the cases of every check, and recorded histories, whose answers Spark has given."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.engine.compat import by_run, checkpoint, require_same_files
from harness.analysis.engine.connect import remote_session, sail_session
from harness.analysis.engine.session import TASK_BYTES, tuned
from harness.analysis.judge import Judgement, Question, judge_sources, questions
from harness.analysis.sources.parsed_lines import CORRUPT
from harness.analysis.sources.reading import from_table, read
from harness.cli.judge import behind_uri
from harness.errors import EvidenceError, HarnessError, ScenarioError, SparkError
from harness.ingest.lines import RecordedEvidence
from harness.ingest.settings import AllowedSettings
from harness.run.settings import settings_of
from harness.scenario.file import scenario_yaml
from harness.store.folder import RunFolder
from harness.sweep.executor import simulate_share
from harness.sweep.jobs import HISTORIES, Unseen, judge
from harness.sweep.recorded import History, RecordedAnswer, histories_in
from harness.sweep.sweep import Sweep
from harness.system.engine import ENGINE_VARIABLE, Engine
from harness.system.scratch import scratch_folder
from harness.verdict import SystemVerdict
from tests.analysis.run_folders import write_intact_run
from tests.histories.one_table import one_table
from tests.ingest.test_lines import SEND
from tests.simulation.scenarios import KILL_LEADER, scenario
from tests.sweep.losing import lost

pytestmark = pytest.mark.whole

KEPT = histories_in(Path(__file__).parents[1] / "histories")
IN_TASKS = 3 * TASK_BYTES
"""As large as that, evidence is judged in several tasks."""


@pytest.fixture(scope="module")
def sail() -> Iterator[SparkSession]:
    with scratch_folder() as scratch, sail_session(scratch) as session, tuned(session, 0):
        yield session


def test_what_is_grouped_and_stored_keeps_every_run_whole(sail: SparkSession) -> None:
    rows = sail.range(2000).selectExpr("cast(id % 50 as string) as run_id", "id as number")
    grouped = checkpoint(by_run(rows, 2).groupBy("run_id", "number").count())
    assert grouped.groupBy("run_id").count().count() == 50


@pytest.fixture(scope="module")
def judgements(sail: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judgement]:
    """All recorded histories, judged at once."""
    root = tmp_path_factory.mktemp("kept")
    one_table(KEPT, [], root / "all.parquet")
    table = parquet.read_table(root / "all.parquet", columns=["run_id"])
    histories = dict(zip(table["run_id"].to_pylist(), KEPT, strict=True))
    criteria = {}
    for run_id, history in histories.items():
        candidate = history.candidate()
        criteria[run_id] = (settings_of(candidate.scenario, candidate.plan), tuple(history.recorded().checks))
    sources = from_table(sail.read.schema(HISTORIES).parquet(str(root / "all.parquet")), IN_TASKS, root / "rows")
    made = judge_sources(sail, sources, questions(criteria), into=RunFolder(root / "judged"), keep=False)
    return {histories[judgement.run_id].name: judgement for judgement in made}


@pytest.mark.parametrize("history", [pytest.param(each, id=each.name) for each in KEPT])
def test_a_recorded_history_gets_the_answers_of_apache_spark(
    history: History, judgements: dict[str, Judgement]
) -> None:
    now = {
        check.check: RecordedAnswer(verdict=check.verdict, violations=check.violations, expected=check.expected)
        for check in judgements[history.name].checks
    }
    assert now == history.recorded().checks


def test_a_sweep_gets_the_answers_of_apache_spark(sail: SparkSession, tmp_path: Path) -> None:
    """With a schedule that lost a record, and one without tables."""
    sweep = Sweep(scenario=scenario(KILL_LEADER), seed=7, schedules=3, root=tmp_path)
    sound, losing, lines_alone = simulate_share(scenario_yaml(sweep.scenario), 7, range(3))
    rows = [sound.row(), lost(losing).row(), replace(lines_alone, tables={}).row()]
    sweep.histories.mkdir()
    parquet.write_table(pa.Table.from_pylist(rows, schema=to_arrow_schema(HISTORIES)), sweep.histories / "all.parquet")
    verdicts = judge(sail, sweep, [], Unseen())
    assert [(each.system.name, each.error) for each in verdicts] == [("PASS", ""), ("FAIL", ""), ("PASS", "")]
    assert {"lost-write", "I10"} <= {check.check for check in verdicts[1].checks if check.violations}
    assert not list(sweep.judged.rglob("tables")), "what was unpacked is gone"


def test_a_row_of_others_that_does_not_fit_is_explained_as_on_apache_spark(sail: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "operations.parquet"
    rows = [SEND, SEND | {"type": "done"}, SEND | {"type": "gone"}]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    evidence = RecordedEvidence(sail, {"operations": [str(path)]}, tmp_path / "lines")
    explanation = "`type` is done, none of invoke, ok, fail, info"
    assert evidence.explain(["operations/operations.parquet"]) == [f"{path}:2: {explanation}"]


TABLES = {
    "words from a dictionary": {name: pa.array([SEND[name]] * 3).dictionary_encode() for name in ("topic", "process")},
    "numbers from a dictionary": {"partition": pa.array([0, 1, 2]).dictionary_encode()},
    "words from a dictionary, deep within": {
        "records": pa.array(
            [[{"topic": "t", "partition": 0, "offset": 1, "value": "v"}]] * 3,
            pa.list_(
                pa.struct(
                    {
                        "topic": pa.dictionary(pa.int32(), pa.string()),
                        "partition": pa.int32(),
                        "offset": pa.uint64(),
                        "value": pa.large_string(),
                    }
                )
            ),
        )
    },
    "whole numbers without a sign": {
        "offset": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        "partition": pa.array([1, 2, 3], pa.uint8()),
    },
    "a column of nothing": {"key": pa.nulls(3, pa.timestamp("us"))},
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_others_is_read_as_on_apache_spark(name: str, sail: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "operations.parquet"
    columns = {key: pa.array([value] * 3) for key, value in SEND.items()} | {"type": pa.array(["invoke", "ok", "done"])}
    parquet.write_table(pa.table(columns | TABLES[name]), path)
    evidence = RecordedEvidence(sail, {"operations": [str(path)]}, tmp_path / "lines")
    rows = evidence.sources("h", -1).lines["operations"].select("topic", CORRUPT).collect()
    explanation = "`type` is done, none of invoke, ok, fail, info"
    assert [tuple(row) for row in rows] == [("t", None), ("t", None), (None, explanation)]
    assert evidence.explain(["operations/operations.parquet"]) == [f"{path}:3: {explanation}"]


@pytest.mark.parametrize("of", [pa.int64(), pa.dictionary(pa.int32(), pa.int64())], ids=str)
def test_a_table_of_others_may_have_no_rows(of: pa.DataType, sail: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "operations.parquet"
    rows = pa.Table.from_pylist([SEND]).slice(0, 0)
    parquet.write_table(rows.set_column(0, "index", pa.array([], of)), path)
    evidence = RecordedEvidence(sail, {"operations": [str(path)]}, tmp_path / "lines")
    assert evidence.sources("h", -1).lines["operations"].count() == 0
    assert evidence.explain(["operations/operations.parquet"]) == [f"{path}: every line fits"]


def test_a_table_that_no_message_holds_is_explained(sail: SparkSession, tmp_path: Path) -> None:
    path, rows = tmp_path / "operations.parquet", 34
    columns = {key: pa.array([value] * rows) for key, value in SEND.items()}
    columns |= {"key": pa.array(["a" * 2**22] * rows), "type": pa.array(["ok"] * (rows - 1) + ["done"])}
    parquet.write_table(pa.table(columns), path)
    evidence = RecordedEvidence(sail, {"operations": [str(path)]}, tmp_path / "lines")
    (explanation,) = evidence.explain(["operations/operations.parquet"])
    assert explanation.startswith(f"{path}:{rows}: `type` is done")


def test_a_file_that_is_gone_by_now_costs_no_answer(sail: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "operations.parquet"
    parquet.write_table(pa.Table.from_pylist([SEND]), path)
    evidence = RecordedEvidence(sail, {"operations": [str(path)]}, tmp_path / "lines")
    path.unlink()
    (explanation,) = evidence.explain(["operations/operations.parquet"])
    assert explanation.startswith(f"{path}: the line is not found: ")


@pytest.mark.parametrize("keep", [pytest.param(True, id="with facts"), pytest.param(False, id="without facts")])
def test_that_nothing_was_found_is_written(keep: bool, sail: SparkSession, tmp_path: Path) -> None:
    run, into = write_intact_run(tmp_path / "intact"), RunFolder(tmp_path / "judged")
    question = Question(settings={run.run_id: AllowedSettings().for_checks()}, checks=("I9",))
    (judgement,) = judge_sources(sail, read(sail, [run], tmp_path / "rows"), [question], into=into, keep=keep)
    assert [check.verdict for check in judgement.checks] == [SystemVerdict.PASS]
    assert list(into.findings.iterdir()) == []


def test_a_folder_behind_a_uri_is_refused_to_who_asks_no_apache_spark(sail: SparkSession) -> None:
    with pytest.raises(
        ScenarioError, match=r"s3a://bucket/judged: only Apache Spark .* writes there: use --engine spark"
    ):
        behind_uri("s3a://bucket/judged", sail)


CHOSEN = """
from harness.analysis.engine.compat import is_sail
from harness.analysis.engine.session import spark_session
with spark_session(anywhere=True) as spark, spark_session() as inner:
    print(inner is spark, is_sail(spark), spark.range(3).count())
"""


def test_the_engine_that_was_chosen_judges() -> None:
    environment = os.environ | {ENGINE_VARIABLE: Engine.SAIL}
    command = [sys.executable, "-c", CHOSEN]
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("True True 3\n", "")


@pytest.mark.parametrize(
    ("address", "error", "sentence"),
    [
        pytest.param(
            "sc://127.0.0.1:1", SparkError, "no Spark Connect server answers at 127.0.0.1:1", id="no server there"
        ),
        pytest.param("spark://127.0.0.1:7077", HarnessError, "give sc://HOST:PORT", id="the address of a master"),
        pytest.param("sc://127.0.0.1:none", HarnessError, "give sc://HOST:PORT", id="a port that is no number"),
    ],
)
def test_a_server_that_cannot_judge_is_named(address: str, error: type[HarnessError], sentence: str) -> None:
    with pytest.raises(error, match=sentence), remote_session(address):
        pass


class Elsewhere:
    """Stands for a session whose server writes to the disk of another machine."""

    __module__ = "pyspark.sql.connect.session"

    def __getattr__(self, name: str) -> "Elsewhere":
        return self

    def __call__(self, *_: object) -> "Elsewhere":
        return self


def test_a_server_that_writes_elsewhere_is_not_asked(sail: SparkSession, tmp_path: Path) -> None:
    require_same_files(sail, tmp_path / "here")
    with pytest.raises(EvidenceError, match="must be in storage that both share"):
        require_same_files(Elsewhere(), tmp_path)  # type: ignore[arg-type]
    assert list(tmp_path.rglob("*")) == [tmp_path / "here"]


LOST = """
import os, signal, sys
from harness.analysis.engine.connect import remote_session
from harness.errors import SparkError
try:
    with remote_session(sys.argv[2], retries=0) as spark:
        spark.range(1).count()
        os.kill(int(sys.argv[1]), signal.SIGKILL)
        spark.range(1).count()
except SparkError as error:
    print(error)
"""


def test_a_server_that_ends_in_the_middle_is_said_in_a_sentence() -> None:
    serve = "from pysail.spark import SparkConnectServer as S; s = S('127.0.0.1', 0); s.start(background=True);"
    serve += "print(s.listening_address[1], flush=True); import time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", serve], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        address = f"sc://127.0.0.1:{int(server.stdout.readline())}"
        command = [sys.executable, "-c", LOST, str(server.pid), address]
        ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stdout == "the Spark Connect server no longer answers\n"
