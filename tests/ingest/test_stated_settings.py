"""What a history states, and what it leaves open, decide which of its answers accuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.errors import EvidenceError
from harness.ingest.answer import HistoryResult
from harness.ingest.judging import judge_history
from harness.ingest.settings import load_settings
from harness.store.folder import RunFolder
from harness.verdict import SystemVerdict
from tests.ingest.test_removed_records import HERE, operation, reads
from tests.verdicts import FAIL, PASS, UNKNOWN

pytestmark = pytest.mark.spark

OTHERS = ["min_insync_replicas=2", "unclean_leader_election=false", "idempotence=true", "power_loss=false"]
OTHERS += ["read_from_start=true", "deleting_topics=none", "compacted_topics=none"]
Lines = list[dict[str, Any]]


def sends(*acks: int | None, partition: int = 0) -> Lines:
    """One acknowledged send for each, with its acks or without."""
    place = HERE | {"partition": partition}
    stated: list[dict[str, Any]] = [{} if each is None else {"acks": each} for each in acks]
    return [
        line | {"process": f"writer{partition}"}
        for n, more in enumerate(stated)
        for line in operation(n, "send", {"offset": n}, **place, value=f"v{n + 100 * partition}", **more)
    ]


def states(name: str, value: str) -> Lines:
    return [operation(0, "setting", {}, key=name, value=value)[0]]


def ends(partition: int, offset: int, *, late: bool = True) -> Lines:
    lines = operation(partition, "end_offset", {"offset": offset}, **HERE | {"partition": partition})
    return lines if late else [line | {"time_ns": 0} for line in lines]


def judged(spark: SparkSession, path: Path, lines: Lines, *sets: str, check: str = "lost-write") -> HistoryResult:
    file = path / "operations.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    settings = load_settings(None, [*OTHERS, *sets])
    return judge_history(spark, {"operations": [str(file)]}, settings, RunFolder(path / "judged"), checks=[check])


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("acks", "lines", "sets", "verdict"),
    [
        pytest.param((-1, None, None), [], [], FAIL, id="the lost one states acks=all, and others state none"),
        pytest.param((None, -1, -1), [], [], UNKNOWN, id="the lost one states none"),
        pytest.param((-1, None, None), states("acks", "1"), [], FAIL, id="what a record states is not overridden"),
        pytest.param((None, None, None), states("acks", "1"), [], PASS, id="acks=1 for all that state none"),
        pytest.param((None, None, None), states("acks", "1"), ["acks=all"], FAIL, id="an option overrides the history"),
        pytest.param((None, None, None), states("request.required.acks", "-1"), [], FAIL, id="a name of Kafka's"),
    ],
)
def test_the_acks_of_a_record_are_those_that_it_states(
    acks: tuple[int | None, ...],
    lines: Lines,
    sets: list[str],
    verdict: SystemVerdict,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    result = judged(spark, tmp_path, [*sends(*acks), *lines, *reads(1, 2), *ends(0, 3)], *sets)
    (answer,) = result.checks
    assert answer.verdict is verdict, answer.reason
    contradicted = "the history states acks=1, options or the settings file state acks=all, which applies"
    assert [remark.text for remark in result.remarks] == ([contradicted] if sets else [])


def test_a_setting_that_is_none_is_named_with_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match=r"operations.jsonl:3: acks=2: must be"):
        judged(spark, tmp_path, [*sends(-1), *states("acks", "2")])


def test_partitions_without_an_end_or_with_an_early_one_are_remarked_on(spark: SparkSession, tmp_path: Path) -> None:
    lines = [*sends(-1), *sends(-1, partition=1), *sends(-1, partition=2), *ends(0, 1), *ends(1, 1, late=False)]
    told = "records missing from the end of the log look like records that were not read yet"
    assert [remark.text for remark in judged(spark, tmp_path, lines).remarks] == [
        f"no line requests the end of orders-2 (kind `end_offset`): {told}",
        f"the end of orders-1 was requested before the last record was acknowledged there: {told}",
    ]


def test_a_history_whose_log_goes_on_past_all_readers_is_no_pass(spark: SparkSession, tmp_path: Path) -> None:
    lines = [*sends(-1, -1, -1), *reads(0, 1, 2), *ends(0, 1000)]
    (answer,) = judged(spark, tmp_path, lines, check="duplicate").checks
    assert answer.verdict is UNKNOWN
    assert answer.reason.startswith("997 of 1,000 offsets before the ends of partitions lie past the last record")


def log_of(*events: dict[str, Any]) -> Lines:
    """The state-change log of one broker, whose second life takes a log for clean."""
    lives = ("first", "second")
    here = {"topic": "t", "partition": 0}
    load = here | {
        "ev": "recovery",
        "clean": True,
        "high_watermark": 5,
        "log_end_offset": 5,
        "log_start_offset": 0,
        "recovery_point": 5,
    }
    start = {"ev": "broker_start", "config_digest": "d", "clean_marker": True, "planted_bugs": []}
    lead = here | {
        "ev": "become_follower",
        "leader": 1,
        "leader_epoch": 0,
        "previous_leader_epoch": -1,
        "log_start_offset": 0,
        "high_watermark": 0,
        "log_end_offset": 5,
    }
    first, second = [start, load, lead, *events], [start, load]
    return [
        {"ts": 0, "mono": number, "seq": seq, "broker": 1, "inc": life, "session": "", "broker_epoch": -1} | line
        for number, (life, lines) in enumerate(zip(lives, (first, second), strict=True))
        for seq, line in enumerate(lines)
    ]


CLOSE = {"ev": "logs_close"}


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("events", "stated", "verdict"),
    [
        pytest.param([], [], UNKNOWN, id="brokers that may not log it are not accused"),
        pytest.param([], ["every_event=false"], UNKNOWN, id="nor those that do not"),
        pytest.param([], ["every_event=true"], FAIL, id="those that would have logged it are"),
        pytest.param([CLOSE], ["every_event=true"], PASS, id="it is logged"),
    ],
)
def test_a_kind_of_event_that_does_not_occur_accuses_only_brokers_that_log_it(
    spark: SparkSession, tmp_path: Path, events: Lines, stated: list[str], verdict: SystemVerdict
) -> None:
    file = tmp_path / "state-change.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in log_of(*events)), encoding="utf-8")
    settings = load_settings(None, [*OTHERS, *stated])
    paths = {"state_changes": [str(file)]}
    result = judge_history(spark, paths, settings, RunFolder(tmp_path / "judged"), checks=["clean-stops"])
    (answer,) = result.checks
    assert answer.verdict is verdict, answer.reason
    assert ("logs_close" in answer.reason) == (verdict is UNKNOWN)
    assert ("--set every_event=true" in answer.reason) == (verdict is UNKNOWN)
