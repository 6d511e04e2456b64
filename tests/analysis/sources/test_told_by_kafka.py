"""Whether checks find what was planted in the lines of a real broker: of Kafka 3.9.1, from line to answer.

The lines are kept ones; what is planted is a line that is missing, comes twice, or has another number.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from harness.analysis.judge import judge_runs
from harness.cluster.systems.kafka.log_reader import LogReader, wording
from harness.store.folder import RunFolder
from harness.verdict import SystemVerdict
from tests.analysis.run_folders import RunWriter
from tests.checks.answers import STRICT
from tests.cluster.systems.test_events_of_isrs import FETCHED, WANTED
from tests.cluster.systems.test_events_of_producers import COMPLETED, ONE_SECOND
from tests.cluster.systems.test_log_reader import APPENDED, FOLLOWER, LEADER, MARKED, REGISTERED, START, TRUNCATED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HIGHER = MARKED.replace("offset=83", "offset=87").replace("offset=79", "offset=83")
BEGUN = [START, REGISTERED, LEADER]
WHOLE = [*BEGUN, APPENDED, MARKED, HIGHER, WANTED, FETCHED.format(1, 87), COMPLETED, *ONE_SECOND]
STATE = '{"leader": 0, "leader_epoch": 1, "isr": [0, 2], "controller_epoch": 5, "version": 1}'
HELD, BROKEN = SystemVerdict.PASS, SystemVerdict.FAIL


def without(*lines: str) -> list[str]:
    return [line for line in WHOLE if line not in lines]


def changed(old: str, new: str) -> list[str]:
    return [new if line == old else line for line in WHOLE]


CASES: dict[str, tuple[Sequence[str], dict[str, SystemVerdict]]] = {
    "nothing is planted": (WHOLE, {"I11": HELD, "I13": HELD, "I19": HELD}),
    "two threads log in another order": (
        [*BEGUN, APPENDED, COMPLETED, HIGHER, MARKED, WANTED, FETCHED.format(1, 87), *ONE_SECOND],
        {"I11": HELD, "I13": HELD, "I19": HELD},
    ),
    "the high watermark passes what was appended": (without(APPENDED), {"I11": BROKEN}),
    "it goes back without a word": (changed(WANTED, MARKED), {"I11": BROKEN}),
    "a follower truncates below it": (
        [*WHOLE, FOLLOWER.format(2).replace("watermark 84", "watermark 86"), TRUNCATED],
        {"I11": BROKEN, "I13": HELD, "I19": HELD},
    ),
    "a follower joins that lacks what is committed": (
        changed(FETCHED.format(1, 87), FETCHED.format(1, 86)),
        {"I11": HELD, "I13": BROKEN, "I19": HELD},
    ),
    "a record is acknowledged above it": (without(HIGHER), {"I11": HELD, "I13": HELD, "I19": BROKEN}),
    "a record is acknowledged by an ISR that is too small": (
        [line.replace("ISR [0,2]", "ISR [0]") for line in WHOLE if line not in (WANTED, FETCHED.format(1, 87))],
        {"I19": BROKEN},
    ),
}


@pytest.fixture(scope="module")
def answers(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, SystemVerdict]]:
    """What the three checks make of each case, all judged at once."""
    root: Path = tmp_path_factory.mktemp("runs")
    folders = []
    for number, (lines, _) in enumerate(CASES.values()):
        out = RunWriter(RunFolder(root / f"run-{number}"))
        out.znode("/brokers/topics/my.orders-2", '{"partitions": {"1": [0, 2, 1]}}')
        out.znode("/brokers/topics/my.orders-2/partitions/1/state", STATE)
        out.znode("/config/topics/my.orders-2", '{"version": 1, "config": {"min.insync.replicas": "2"}}')
        for _, _, event in LogReader(wording("3.9.1")).events(iter(lines)):
            out.clock.tick()
            out.event(0, event)
        out.close()
        folders.append(out.folder)
    judged = judge_runs(folders, STRICT, ("I11", "I13", "I19"), into=RunFolder(root / "together"))
    names = {folder.run_id: name for folder, name in zip(folders, CASES, strict=True)}
    return {names[each.run_id]: {answer.check: answer.verdict for answer in each.checks} for each in judged}


@pytest.mark.parametrize("case", [pytest.param(name, id=name) for name in CASES])
def test_what_checks_make_of_a_brokers_own_lines(case: str, answers: dict[str, dict[str, SystemVerdict]]) -> None:
    wanted = CASES[case][1]
    assert {check: answers[case][check] for check in wanted} == wanted
