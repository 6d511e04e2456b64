"""What is made of a history goes wherever Hadoop knows the file system, and is read back from there."""

import json
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from harness.analysis.engine.hadoop import HadoopPath
from harness.cli.judge import judge
from harness.errors import EvidenceError, ScenarioError
from harness.ingest.answer import HistoryResult
from harness.ingest.judging import judge_history, report
from harness.ingest.settings import load_settings
from harness.ingest.stored_evidence import StoredEvidence
from harness.report.evidence import RunEvidence
from harness.store.folder import ResultFolder, RunFolder
from tests.verdicts import FAIL, PASS
from tools.pages.evidence import EXAMPLE

pytestmark = [pytest.mark.spark, pytest.mark.jvm]

ROOT = Path(__file__).parents[3]
OPERATIONS = ROOT / EXAMPLE / "operations.jsonl"
SETTINGS = OPERATIONS.with_name("settings.yaml")
POM = ROOT / "docs/examples/s3a/pom.xml"
MOUNT = "fs.viewfs.mounttable.anywhere.link./"


@pytest.fixture(scope="module")
def anywhere(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this machine that Hadoop has as `viewfs://anywhere/`."""
    root = tmp_path_factory.mktemp("anywhere")
    spark._jsc.hadoopConfiguration().set(MOUNT + "there", f"file://{root}")
    return root


@pytest.fixture(scope="module")
def judged(spark: SparkSession, anywhere: Path) -> tuple[HistoryResult, ResultFolder[HadoopPath]]:
    """What was seen in the example, and where facts and findings of it are."""
    folder = ResultFolder(HadoopPath("viewfs://anywhere/there/a[b] c/", spark))
    result = judge_history(
        spark,
        {"operations": [f"file://{OPERATIONS}"]},
        load_settings(SETTINGS, []),
        folder,
        checks=["lost-write", "phantom"],
    )
    report(folder, result, ["chaos", "judge"])
    return result, folder


def test_facts_findings_verdict_and_report_are_behind_the_uri(
    judged: tuple[HistoryResult, ResultFolder[HadoopPath]], anywhere: Path
) -> None:
    result, folder = judged
    here = RunFolder(anywhere / folder.run_id)
    assert {each.check: (each.verdict, each.violations) for each in result.checks} == {
        "lost-write": (FAIL, 1),
        "phantom": (PASS, 0),
    }
    assert json.loads(here.verdict.read_text(encoding="utf-8"))["checks"][0]["verdict"] == "FAIL"
    assert "b was acknowledged (acks=all) at orders-0 offset 1" in here.report.read_text(encoding="utf-8")
    assert sorted(path.name for path in here.root.glob("[!.]*")) == [
        "facts",
        "findings.parquet",
        "report.html",
        "verdict.json",
    ]


def test_the_report_shows_what_that_of_a_folder_shows(
    judged: tuple[HistoryResult, ResultFolder[HadoopPath]], anywhere: Path
) -> None:
    _, folder = judged
    there, here = StoredEvidence(folder), RunEvidence(RunFolder(anywhere / folder.run_id))
    assert (there.zero_ns, there.end_s()) == (here.zero_ns, here.end_s())
    assert [group.count for group in here.groups()] == [1]
    assert there.groups() == here.groups()
    assert there.rows("sends", "invoke_ns", descending=True) == here.rows("sends", "invoke_ns", descending=True)
    assert there.per_second() == here.per_second()
    findings = [row for group in here.groups() for row in group.listed]
    assert there.instants(findings) == here.instants(findings) != [None]


@pytest.mark.parametrize("most", [pytest.param(3_000, id="all"), pytest.param(6, id="the slowest and the quickest")])
def test_the_operations_that_are_drawn_are_the_same(
    judged: tuple[HistoryResult, ResultFolder[HadoopPath]], anywhere: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.evidence.SHOWN_OPERATIONS", most)
    _, folder = judged
    there, here = StoredEvidence(folder).operations(), RunEvidence(RunFolder(anywhere / folder.run_id)).operations()
    assert (there.count, there.every_s) == (here.count, here.every_s)
    assert here.shown
    assert sorted(map(repr, there.shown)) == sorted(map(repr, here.shown))


def test_the_jars_of_s3a_are_of_the_hadoop_that_spark_brings() -> None:
    brought = Path(*pyspark.__path__, "jars").glob("hadoop-client-api-*.jar")
    (version,) = (jar.stem.removeprefix("hadoop-client-api-") for jar in brought)
    assert f"<artifactId>hadoop-aws</artifactId><version>{version}</version>" in POM.read_text(encoding="utf-8")


def test_nothing_is_overwritten_or_becomes_evidence(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plan.json").touch()
    with pytest.raises(ScenarioError, match="is the folder of a run"):
        judge(operations=[str(OPERATIONS)], into=f"file://{tmp_path}/run")
    for text in (str(tmp_path), f"file://{tmp_path}/"):
        with pytest.raises(ScenarioError, match="which holds evidence"):
            judge(operations=[text], into=f"file://{tmp_path}/judged/h")


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        pytest.param(
            "gopher://somewhere/h", r"gopher://somewhere/h/plan\.json: .*No FileSystem for scheme", id="unknown"
        ),
        pytest.param("viewfs://nowhere/h", "viewfs://nowhere/h/plan.json: .*[Mm]ount", id="nowhere"),
        pytest.param("viewfs://anywhere/h", r"viewfs://anywhere/h/\.lines: .*does not exist", id="not mounted"),
    ],
)
def test_a_file_system_that_cannot_be_used_is_said(anywhere: Path, uri: str, why: str) -> None:
    with pytest.raises(EvidenceError, match=why):
        judge(operations=[str(OPERATIONS)], into=uri, checks=["phantom"])
