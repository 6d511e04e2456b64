"""Whole histories that others recorded come to the same in either form, and to what the page says."""

import gzip
import json
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType
from rich.console import Console

from harness.analysis.judge import Judgement, Question, judge_sources
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import read
from harness.analysis.sources.steps import STEPS_OF
from harness.cli.judge import show
from harness.ingest.formats import formats
from harness.ingest.judging import judge_history, report
from harness.ingest.lines import RecordedEvidence
from harness.ingest.settings import AllowedSettings, load_settings
from harness.store.folder import RunFolder
from harness.verdict import ExitCode
from tests.analysis.run_folders import write_intact_run
from tests.verdicts import PASS
from tools.pages.evidence import COMMAND, EXAMPLE

pytestmark = [pytest.mark.spark, pytest.mark.whole]

ROOT = Path(__file__).parents[2]
BRIEF = ("lost-write", "I9", "I1", "I16", "I24")
"""Checks that rest on evidence of every kind."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def as_parquet(kind: str, paths: list[Path], to: Path) -> str:
    """Write what other tools would: what says nothing is left out where it may be, and free objects are their text."""
    form, rows = formats()[kind], [row for path in paths for row in lines_of(path)]
    types = {field.name: field.dataType for field in SCHEMAS[kind]}
    for row in rows:
        must = next(line.required for line in form.lines if not form.kind_field or line.name == row[form.kind_field])
        for name, value in list(row.items()):
            if name not in must and value in ("", [], None, -1):
                del row[name]
            elif isinstance(types.get(name), StringType) and not isinstance(value, str):
                row[name] = json.dumps(value)
    names = list(dict.fromkeys(name for row in rows for name in row))
    parquet.write_table(pa.table({name: pa.array([row.get(name) for row in rows]) for name in names}), to)
    return str(to)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return write_intact_run(tmp_path_factory.mktemp("elsewhere") / "a+b c")


@pytest.fixture(scope="module")
def counted(spark: SparkSession, run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judgement]:
    """What a few checks say, and how many rows each fact has: as a run, as JSON Lines, and as Parquet."""
    root = tmp_path_factory.mktemp("given")
    files = run.evidence()
    packed = root / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(files["operations"][0].read_bytes()))
    texts = {
        "operations": [str(packed), str(files["operations"][1])],
        "replicas": [f"{run.replicas}/*/replica-*.jsonl"],
        "zookeeper": [f"file://{files['zookeeper'][0]}"],
        "state_changes": [str(run.brokers)],
        "journal": [str(files["journal"][0])],
        "liveness": [str(files["liveness"][0])],
    }
    tables = {kind: [as_parquet(kind, paths, root / f"{kind}.parquet")] for kind, paths in files.items()}
    settings = AllowedSettings(min_insync_replicas=2)
    three = {
        "run": read(spark, [run], root / "rows"),
        "texts": RecordedEvidence(spark, texts, root / "lines").sources("texts", -1),
        "tables": RecordedEvidence(spark, tables, root / "lines").sources("tables", -1),
    }
    together = replace(
        three["run"],
        lines={
            kind: reduce(DataFrame.unionByName, [sources.lines[kind] for sources in three.values()]) for kind in SCHEMAS
        },
        tables=dict(three["run"].tables)
        | {
            name: reduce(DataFrame.unionByName, [sources.tables[name] for sources in three.values()])
            for name in STEPS_OF.values()
        },
    )
    names = {"run": run.run_id, "texts": "texts", "tables": "tables"}
    question = Question(settings=dict.fromkeys(names.values(), settings.for_checks()), checks=BRIEF)
    judged = {each.run_id: each for each in judge_sources(spark, together, [question], into=RunFolder(root / "all"))}
    return {name: judged[run_id] for name, run_id in names.items()}


@pytest.mark.parametrize("form", ["texts", "tables"])
def test_the_same_history_gives_the_same_facts_and_answers_in_either_form(
    counted: dict[str, Judgement], form: str
) -> None:
    walked = {} if form == "texts" else {"steps": 0}  # tables do not have all that the model reads
    assert counted[form].counts == counted["run"].counts | walked
    assert [(each.check, each.verdict) for each in counted[form].checks] == [(name, PASS) for name in BRIEF]
    assert counted[form].remarks == []


def test_the_example_of_the_page_comes_to_what_the_page_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    evidence = {"operations": [f"{EXAMPLE}/operations.jsonl"]}
    folder = RunFolder(tmp_path / "example")
    settings = load_settings(ROOT / EXAMPLE / "settings.yaml", [])
    result = judge_history(spark, evidence, settings, folder, checks=["lost-write", "phantom", "I9"])
    report(folder, result, COMMAND.split())
    with (tmp_path / "out").open("w+", encoding="utf-8") as file:
        show(Console(file=file, width=100), result, folder)
        file.seek(0)
        output = "".join(f"{line.rstrip()}\n" for line in file.readlines()[:-1])
    assert output == (ROOT / EXAMPLE / "output.txt").read_text(encoding="utf-8")
    assert result.exit_code is ExitCode.VIOLATED
    assert "I9" in [each.check for each in result.unjudged]
    page = folder.report.read_text(encoding="utf-8")
    assert "Every value that is read was sent." in page
    assert "power_loss: not stated" not in page
    assert "min_insync_replicas: not stated, and taken for all" in page
    assert json.loads(folder.verdict.read_text(encoding="utf-8"))["unjudged"][0]["needed"]


def test_a_history_of_transactions_is_judged_by_what_clients_saw(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    example = "docs/examples/transactions"
    settings = load_settings(ROOT / example / "settings.yaml", [])
    checks = ["aborted-transaction-read", "lost-committed-write", "precommitted-read", "torn-transaction", "phantom"]
    result = judge_history(
        spark, {"operations": [f"{example}/operations.jsonl"]}, settings, RunFolder(tmp_path / "judged"), checks=checks
    )
    said = {each.check: each.verdict.name for each in result.checks}
    broken = dict.fromkeys(checks[:2] + checks[3:4], "FAIL")
    assert said == broken | {"precommitted-read": "PASS", "phantom": "PASS"}
