"""Many run folders judged by one set of jobs."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet

from harness.analysis.check_helpers.findings import finding
from harness.analysis.facts.build import written_counts
from harness.analysis.judge import Judgement
from harness.analysis.judge_many import NEW, Case, judge_many
from harness.analysis.tables.schemas import TABLES
from harness.contracts import registry
from harness.contracts.checks import Settings
from harness.store.folder import RunFolder
from tests.analysis.run_folders import write_intact_run
from tests.analysis.test_judge import SETTINGS, Broken, answers, lose, verdicts
from tests.verdicts import FAIL, PASS, UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


pytestmark = [pytest.mark.spark, pytest.mark.whole]

LARGE_PART = 21
"""Runs of which halves and halves of halves would be more than are asked about one by one."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunFolder]:
    root = tmp_path_factory.mktemp("together")
    losing = write_intact_run(root / "losing at 10%")
    lose(losing, 7)
    stale = losing.findings / "check=gone"
    stale.mkdir(parents=True)
    return {"intact": write_intact_run(root / "intact"), "losing": losing}


@pytest.fixture(scope="module")
def judged(
    spark: "SparkSession", folders: dict[str, RunFolder], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Judgement]:
    cases = [
        Case(folder=folders["intact"], settings=SETTINGS, checks=()),
        Case(folder=folders["losing"], settings=SETTINGS, checks=("lost-write", "I3")),
    ]
    scratch = tmp_path_factory.mktemp("scratch")
    answers = list(judge_many(spark, cases, scratch, keep=True))
    assert not list(scratch.iterdir())
    assert [folder for folder, _ in answers] == list(folders.values())
    judgements = [judgement for _, judgement in answers if isinstance(judgement, Judgement)]
    return dict(zip(folders, judgements, strict=True))


def test_each_run_has_its_own_facts_and_findings(folders: dict[str, RunFolder], judged: dict[str, Judgement]) -> None:
    for name, folder in folders.items():
        sends = parquet.read_table(folder.facts / "sends.parquet")
        assert set(sends["run_id"].to_pylist()) == {folder.run_id}
        assert sends.num_rows == judged[name].counts["sends"]
    losing = folders["losing"]
    findings = parquet.read_table(losing.findings).to_pylist()
    assert {(row["run_id"], row["check"]) for row in findings} == {(losing.run_id, "lost-write")}
    assert not (losing.findings / "check=gone").exists()
    assert folders["intact"].findings.is_dir(), "that nothing was found is evidence"
    assert {check.check: check.verdict for check in judged["losing"].checks} == {"lost-write": FAIL, "I3": PASS}


def test_a_run_that_is_judged_alone_gets_its_facts_and_findings_too(spark: "SparkSession", tmp_path: Path) -> None:
    folder = write_intact_run(tmp_path / "alone")
    lose(folder, 7)
    (folder.findings / "check=gone").mkdir(parents=True)
    (folder.facts / "gone.parquet").mkdir(parents=True)
    (folder.root / NEW / "facts").mkdir(parents=True)  # as a judge that was killed leaves it
    case = Case(folder=folder, settings=SETTINGS, checks=("lost-write",))
    ((_, judgement),) = judge_many(spark, [case], tmp_path / "scratch", keep=True)
    assert isinstance(judgement, Judgement)
    assert {path.name for path in folder.findings.iterdir() if path.is_dir()} == {"check=lost-write"}
    assert {path.stem for path in folder.facts.iterdir()} == set(TABLES)
    assert written_counts(folder.facts) == judgement.counts


def test_a_run_that_is_judged_alone_has_findings_where_nothing_was_found(spark: "SparkSession", tmp_path: Path) -> None:
    folder = write_intact_run(tmp_path / "alone")
    case = Case(folder=folder, settings=SETTINGS, checks=("lost-write",))
    assert len(list(judge_many(spark, [case], tmp_path / "scratch", keep=True))) == 1
    assert not [path for path in folder.findings.iterdir() if path.is_dir()]


def test_a_run_of_which_nothing_is_known_has_facts_and_findings_without_rows(
    spark: "SparkSession", tmp_path: Path
) -> None:
    empty = RunFolder(tmp_path / "empty")
    empty.root.mkdir()
    folders = [write_intact_run(tmp_path / "intact"), empty]
    cases = [Case(folder=folder, settings=SETTINGS, checks=("lost-write",)) for folder in folders]
    judged = dict(judge_many(spark, cases, tmp_path / "scratch", keep=True))
    assert isinstance(judged[empty], Judgement)
    assert not list(empty.facts.iterdir())
    assert not list(empty.findings.iterdir())


def test_runs_that_are_judged_without_keeping_anything_stay_as_they_were(spark: "SparkSession", tmp_path: Path) -> None:
    folders = [write_intact_run(tmp_path / name) for name in ("first", "second")]
    before = [sorted(folder.root.rglob("*")) for folder in folders]
    cases = [Case(folder=folder, settings=SETTINGS, checks=("lost-write",)) for folder in folders]
    judged = list(judge_many(spark, cases, tmp_path / "scratch", keep=False))
    assert [isinstance(judgement, Judgement) for _, judgement in judged] == [True, True]
    assert [sorted(folder.root.rglob("*")) for folder in folders] == before


def test_what_a_run_has_stays_until_all_that_is_new_is_there(spark: "SparkSession", tmp_path: Path) -> None:
    folders = [write_intact_run(tmp_path / name) for name in ("first", "second")]
    for folder in folders:
        (folder.facts / "from-before.parquet").mkdir(parents=True)
    (folders[1].root / NEW).write_text("nothing new can be put here")
    cases = [Case(folder=folder, settings=SETTINGS, checks=("lost-write",)) for folder in folders]
    with pytest.raises(FileExistsError):
        list(judge_many(spark, cases, tmp_path / "scratch", keep=True))
    assert [[path.name for path in folder.facts.iterdir()] for folder in folders] == [["from-before.parquet"]] * 2
    assert not (folders[0].root / NEW).exists()


class DecidesInPython(Broken):
    name = "decides"

    def findings(self, facts: "dict[str, DataFrame]", settings: Settings) -> "DataFrame":
        from pyspark.sql import functions as F

        rows = facts["sends"] if settings.idempotence else facts["sends"].limit(0)
        return finding(rows, self.name, message="It is idempotent.", evidence=F.array())


def test_each_run_is_judged_by_what_it_was_allowed_to_do(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = {"decides": DecidesInPython(), "lost-write": registry.check("lost-write")}
    monkeypatch.setattr(registry, "check", plugins.__getitem__)
    settings = (replace(SETTINGS, idempotence=True), replace(SETTINGS, acks=frozenset({0, 1}), read_from_start=False))
    folders = [write_intact_run(tmp_path / f"{number}") for number in range(2 * LARGE_PART)]
    for folder in folders:
        lose(folder, 0)
    judged = answers(spark, folders, list(plugins), RunFolder(tmp_path / "into"), *settings * LARGE_PART)
    assert [list(verdicts(each).values()) for each in judged] == [[FAIL, FAIL], [PASS, UNKNOWN]] * LARGE_PART
