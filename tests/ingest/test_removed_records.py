"""Records that a client deleted, or that a cleaner may have removed, are no lost writes of a recorded history."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harness.ingest.judging import judge_history
from harness.ingest.settings import load_settings
from harness.store.folder import RunFolder
from harness.verdict import SystemVerdict
from tests.verdicts import FAIL, UNKNOWN

pytestmark = pytest.mark.spark

STATED = ["acks=all", "min_insync_replicas=2", "unclean_leader_election=false", "idempotence=true", "power_loss=false"]
STATED += ["read_from_start=true"]
KEPT = ["deleting_topics=none"]
HERE: dict[str, Any] = {"topic": "orders", "partition": 0}


def operation(index: int, kind: str, end: dict[str, Any], outcome: str = "ok", **begin: Any) -> list[dict[str, Any]]:
    both = {"process": kind, "index": index, "kind": kind, **begin}
    times = 1000 * index + (0 if kind == "send" else 500_000)
    return [both | {"type": "invoke", "time_ns": times}, both | end | {"type": outcome, "time_ns": times + 1}]


def sends(*keys: str) -> list[dict[str, Any]]:
    return [
        line
        for n, key in enumerate(keys)
        for line in operation(n, "send", {"offset": n}, **HERE, value=f"v{n}", key=key)
    ]


def reads(*offsets: int) -> list[dict[str, Any]]:
    return operation(0, "poll", {"records": [HERE | {"offset": n, "value": f"v{n}"} for n in offsets]})


def deletes(outcome: str) -> list[dict[str, Any]]:
    return operation(0, "delete_records", {}, outcome, **HERE, offset=5)


TEN = [""] * 10
LATE = range(5, 10)
NOT_COMPACTED = "compacted_topics=none"
ABSENT = "of 10 acknowledged records were not read and may have been deleted or compacted: orders-0"


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    ("lines", "sets", "verdict", "reason"),
    [
        pytest.param(
            [*sends(*TEN), *deletes("info"), *reads(*LATE)], KEPT, UNKNOWN, f"5 {ABSENT}", id="perhaps deleted"
        ),
        pytest.param([*sends(*TEN), *deletes("fail"), *reads(*LATE)], KEPT, FAIL, "v0", id="the deletion failed"),
        pytest.param([*sends(*["k"] * 10), *reads(9)], KEPT, UNKNOWN, f"--set {NOT_COMPACTED}", id="perhaps compacted"),
        pytest.param(
            [*sends(*["k"] * 10), *reads(9)], [*KEPT, "compacted_topics=orders"], UNKNOWN, f"9 {ABSENT}", id="compacted"
        ),
        pytest.param([*sends(*map(str, range(10))), *reads(9)], KEPT, FAIL, "v0", id="no later record has its key"),
        pytest.param([*sends(*TEN), *reads(*LATE)], [], UNKNOWN, "--set deleting_topics=none", id="retention"),
    ],
)
def test_a_record_that_may_have_been_removed_is_no_lost_write(
    lines: list[dict[str, Any]],
    sets: list[str],
    verdict: SystemVerdict,
    reason: str,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    file = tmp_path / "operations.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    settings = load_settings(None, [*STATED, *sets])
    result = judge_history(
        spark, {"operations": [str(file)]}, settings, RunFolder(tmp_path / "judged"), checks=["lost-write"]
    )
    (answer,) = result.checks
    assert (answer.verdict, reason in answer.reason) == (verdict, True), answer.reason
