import json
import shutil
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from harness.analysis.check_helpers.assumptions import BROKERS_WHOLE
from harness.analysis.check_helpers.findings import finding
from harness.analysis.sources.lineage import LINEAGE
from harness.analysis.subjects import subjects_of
from harness.contracts import registry
from harness.contracts.checks import FINDING_COLUMNS, Assumption, Check, Settings, read_by
from harness.errors import PluginError
from harness.store.folder import RunFolder
from harness.store.result import forbidding
from harness.verdict import SystemVerdict
from tests.analysis.model_cluster import INHERITED_BY_TOPICS, ORDERS
from tests.analysis.run_folders import write_intact_run
from tests.verdicts import FAIL, PASS, UNKNOWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from harness.analysis.frames import Maker
    from harness.analysis.judge import Judgement

    Judged = tuple[dict[str, Judgement], RunFolder]

pytestmark = pytest.mark.spark

SETTINGS = Settings(
    acks=frozenset({-1}),
    min_insync_replicas=2,
    unclean_leader_election=False,
    idempotence=False,
    inherited_by_topics=INHERITED_BY_TOPICS,
)
ALL_CHECKS = registry.names(registry.Kind.CHECK)


def without_lines(folder: RunFolder, paths: list[Path], unwanted: Callable[[dict[str, Any]], bool]) -> None:
    """Take lines out of files of a run."""
    for path in paths:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        remaining = [json.dumps(line) + "\n" for line in lines if not unwanted(line)]
        path.write_text("".join(remaining), encoding="utf-8")


def lose(folder: RunFolder, offset: int) -> None:
    """Make a run in which an acknowledged record is in no log and was not read."""

    def holds(record: dict[str, Any]) -> bool:
        return record.get("offset") == offset and record.get("type") == "record"

    without_lines(folder, [folder.replica_dump(broker, ORDERS, 0) for broker in (1, 2, 3)], holds)
    path = folder.operations_of("c0")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["records"] = [record for record in line["records"] if record["offset"] != offset]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def judged(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "Judged":
    """Four runs judged at once: intact, with a record lost, with a broker's line damaged, without any evidence."""
    from harness.analysis.judge import judge_runs

    root = tmp_path_factory.mktemp("runs")
    intact = write_intact_run(root / "intact")
    losing = write_intact_run(root / "losing")
    lose(losing, 7)
    with losing.state_change_log(1).open("a", encoding="utf-8") as log:
        log.write('{"torn')
    damaged = write_intact_run(root / "damaged")
    with damaged.state_change_log(1).open("a", encoding="utf-8") as log:
        log.write("rubbish\n")
    together = RunFolder(root / "together")
    judgements = judge_runs([intact, losing, damaged, RunFolder(root / "empty")], SETTINGS, into=together)
    return {judgement.run_id: judgement for judgement in judgements}, together


def verdicts(judgement: "Judgement") -> dict[str, SystemVerdict]:
    return {result.check: result.verdict for result in judgement.checks}


def test_an_intact_run_passes_every_check(judged: "Judged") -> None:
    judgement = judged[0]["intact"]
    assert verdicts(judgement) == dict.fromkeys(map(str, verdicts(judgement)), PASS)
    assert [result.check.lower() for result in judgement.checks] == [name.lower() for name in ALL_CHECKS]
    assert judgement.remarks == []


def test_a_lost_record_fails_the_checks_that_it_breaks_and_no_other(judged: "Judged") -> None:
    judgement = judged[0]["losing"]
    failed = {result.check: result for result in judgement.checks if result.verdict is FAIL}
    assert set(failed) == {"I10", "lost-write"}
    assert failed["lost-write"].violations == 1
    assert "at orders-0 offset 7" in failed["lost-write"].reason


def test_a_run_without_evidence_is_unknown_to_every_check(judged: "Judged") -> None:
    judgement = judged[0]["empty"]
    assert set(verdicts(judgement).values()) == {UNKNOWN}
    assert all("nothing to judge: no rows in" in result.reason for result in judgement.checks)
    assert sum(judgement.counts.values()) == 0


def test_no_promise_is_kept_in_evidence_with_holes(judged: "Judged") -> None:
    judgement = judged[0]["damaged"]
    assert forbidding(judgement.remarks)
    unknown = {result.check for result in judgement.checks if result.verdict is UNKNOWN}
    resting_on_brokers = {
        check.name
        for check in map(registry.check, ALL_CHECKS)
        if BROKERS_WHOLE in check.assumes or any("state_changes" in LINEAGE[fact] for fact in check.needs)
    }
    assert unknown == resting_on_brokers
    assert {"I1", "I11", "I24"} < unknown
    assert "lost-write" not in unknown
    (reason,) = {result.reason for result in judgement.checks if result.check == "I24"}
    assert reason.endswith("evidence that is damaged: brokers/1/state-change.jsonl: 1 unreadable line")


def test_remarks_on_the_evidence_name_file_and_number(judged: "Judged") -> None:
    assert [str(remark) for remark in judged[0]["losing"].remarks] == ["brokers/1/state-change.jsonl: 1 torn last line"]
    assert not forbidding(judged[0]["losing"].remarks)


def test_rows_are_counted_a_run(judged: "Judged") -> None:
    assert judged[0]["intact"].counts["sends"] == 40
    assert judged[0]["losing"].counts["polls"] == 39


def test_findings_are_one_table_in_the_agreed_columns(judged: "Judged") -> None:
    table = parquet.read_table(judged[1].findings)
    assert set(table.column_names) == {name for name, _ in FINDING_COLUMNS}
    assert {(row["run_id"], row["check"]) for row in table.to_pylist()} == {("losing", "I10"), ("losing", "lost-write")}


def answers(
    spark: "SparkSession", folders: list[RunFolder], checks: list[str], into: RunFolder, *settings: Settings
) -> "list[Judgement]":
    """Judge runs, each by its settings, without keeping facts, so that only those are made that the checks read."""
    from harness.analysis.judge import judge_sources, questions
    from harness.analysis.sources.reading import read

    by_run = zip(folders, settings or repeat(SETTINGS), strict=False)
    to_judge = questions({folder.run_id: (allowed, tuple(checks)) for folder, allowed in by_run})
    assert len(to_judge) == 1
    return judge_sources(spark, read(spark, folders, into.root / "rows"), to_judge, into=into, keep=False)


class Broken(Check):
    name = title = "broken"
    promise = "Nothing."
    needs = ("sends",)

    def findings(self, facts: "dict[str, DataFrame]", settings: Settings) -> "DataFrame":
        raise ZeroDivisionError("on purpose\nwith a second line")


class LateBroken(Broken):
    name = "late"

    def findings(self, facts: "dict[str, DataFrame]", settings: Settings) -> "DataFrame":
        from pyspark.sql import functions as F

        rows = facts["sends"].withColumn("bad", F.raise_error(F.lit("only when it runs")))
        return rows.select("run_id", F.lit("late").alias("check"), "bad")


def test_a_check_that_breaks_is_unknown_and_stops_no_other(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = {"broken": Broken(), "late": LateBroken(), "I3": registry.check("I3")}
    monkeypatch.setattr(registry, "check", plugins.__getitem__)
    (judgement,) = answers(spark, [write_intact_run(tmp_path / "run")], list(plugins), RunFolder(tmp_path / "into"))
    results = {result.check: result for result in judgement.checks}
    assert {name: result.verdict for name, result in results.items()} == {
        "broken": UNKNOWN,
        "late": UNKNOWN,
        "I3": PASS,
    }
    assert results["broken"].reason == "the check broke: ZeroDivisionError: on purpose"
    assert "only when it runs" in results["late"].reason


class BrokenByOne(Broken):
    name = "once"

    def findings(self, facts: "dict[str, DataFrame]", settings: Settings) -> "DataFrame":
        from pyspark.sql import functions as F

        bad = F.when(F.col("run_id") == "bad", F.raise_error(F.lit("one bad run"))).otherwise(F.lit("a note"))
        rows = facts["sends"].withColumn("message", bad.cast("string")).withColumn("severity", F.lit("note"))
        return finding(rows, self.name, severity=F.col("severity"), message=F.col("message"), evidence=F.array())


def of_run_b(sends: "DataFrame") -> "DataFrame":
    return sends.where("run_id = 'b'")


class DoubtsOne(Broken):
    name = "doubts"
    assumes = (Assumption(facts=("sends",), broken=of_run_b, reason="no reason at all"),)

    def findings(self, facts: "dict[str, DataFrame]", settings: Settings) -> "DataFrame":
        return BrokenByOne().findings(facts, settings).replace("once", "doubts", ["check"])


def test_a_run_that_breaks_a_check_costs_neither_other_runs_nor_other_checks(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = {"once": BrokenByOne(), "doubts": DoubtsOne(), "I3": registry.check("I3")}
    monkeypatch.setattr(registry, "check", plugins.__getitem__)
    folders = [write_intact_run(tmp_path / name) for name in ("a", "b", "bad", "c", "d")]
    judged = answers(spark, folders, list(plugins), RunFolder(tmp_path / "together"))
    assert {each.run_id: list(verdicts(each).values()) for each in judged} == {
        "a": [PASS, PASS, PASS],
        "b": [PASS, UNKNOWN, PASS],
        "bad": [UNKNOWN, UNKNOWN, PASS],
        "c": [PASS, PASS, PASS],
        "d": [PASS, PASS, PASS],
    }
    assert "one bad run" in judged[2].checks[0].reason
    assert [result.notes for result in judged[0].checks] == [40, 40, 0]
    table = parquet.read_table(RunFolder(tmp_path / "together").findings, columns=["run_id", "check"]).to_pylist()
    assert ("b", "doubts") not in {(row["run_id"], row["check"]) for row in table}


def test_facts_that_are_not_kept_are_made_where_a_check_reads_them(spark: "SparkSession", tmp_path: Path) -> None:
    folder = write_intact_run(tmp_path / "run")
    (judgement,) = answers(spark, [folder], ["I8"], RunFolder(tmp_path / "into"))
    assert verdicts(judgement) == {"I8": PASS}
    check = registry.check("I8")
    of_subjects = {fact for subject in subjects_of(check) for fact in subject.facts}
    assert judgement.counts.keys() == {*read_by(check), *of_subjects, "evidence", "sends"}


def test_on_a_cluster_no_plan_is_of_more_than_a_few_checks(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.analysis import running
    from harness.analysis.frames import union_of

    folder = write_intact_run(tmp_path / "run")
    lose(folder, 7)
    sizes: list[int] = []

    def counted(session: "SparkSession", makers: "list[Maker]") -> "DataFrame":
        sizes.append(len(makers))
        return union_of(session, makers)

    monkeypatch.setattr(running, "union_of", counted)
    checks = ["I3", "I10", "I11", "I24", "lost-write"]
    (on_one_machine,) = answers(spark, [folder], checks, RunFolder(tmp_path / "local"))
    monkeypatch.setattr(running, "is_local", lambda _session: False)
    monkeypatch.setattr(running, "CHECKS_A_JOB", 2)
    (on_a_cluster,) = answers(spark, [folder], checks, RunFolder(tmp_path / "cluster"))
    assert sizes == [5, 2, 2, 1]
    assert on_a_cluster.checks == on_one_machine.checks
    assert verdicts(on_a_cluster)["lost-write"] is FAIL


def test_judging_again_forgets_the_findings_before(spark: "SparkSession", tmp_path: Path) -> None:
    from harness.analysis.judge import judge

    folder = write_intact_run(tmp_path / "run")
    stale = folder.findings / "check=gone"
    stale.mkdir(parents=True)
    shutil.copytree(stale, folder.facts / "sends.parquet")
    assert verdicts(judge(folder, SETTINGS, ["I3"])) == {"I3": PASS}
    assert not stale.exists()


def test_a_check_that_does_not_exist_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    from harness.analysis.judge import judge

    with pytest.raises(PluginError, match="unknown check"):
        judge(RunFolder(tmp_path), SETTINGS, ["no-such-check"])
