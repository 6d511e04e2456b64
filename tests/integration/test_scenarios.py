"""Built-in scenarios on real brokers, judged by Spark and Great Expectations: what they come to, and nothing is left.

`smoke` goes from the command line to the exit code; all others are driven two at a time (they mostly wait) and judged
together.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import phases
from harness.cluster import faketime
from harness.cluster.disks import disk_errors, small_disks, tracer
from harness.cluster.limits import control_groups
from harness.scenario.file import load_scenario
from harness.scenario.source import options
from harness.store.folder import RunFolder
from tests.kafka_tools import LIBS, has_kafka, needs_kafka
from tests.sampling import sampled

pytestmark = pytest.mark.cluster

SEED = 1
HELD = {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
VIOLATED = {**HELD, "system": "FAIL"}
SOUND = ("planted_bugs=[]",)
APACHE_KAFKA = "system=kafka:3.9.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario, and what it must come to."""

    scenario: str
    driver: str = "process"
    sets: Sequence[str] = ()
    verdicts: dict[str, str]
    exit_code: int
    findings: frozenset[str] = frozenset()
    """Checks that find a violation, among others."""
    expected: frozenset[str] = frozenset()
    """Checks whose findings are expected, among others."""
    not_judged: frozenset[str] = frozenset()
    """Checks and suites of which the system under test leaves no evidence, among others."""


ALWAYS = {
    "loss after an unclean election is expected and shown": Case(
        scenario="unclean-election", verdicts=HELD, exit_code=0, expected=frozenset({"I10"})
    ),
    "a run in virtual time ends like any other": Case(scenario="smoke", driver="simulated", verdicts=HELD, exit_code=0),
}
PLANTED = (
    {
        "acks=all that is answered too early loses acknowledged records": Case(
            scenario="acks-all-on-append", verdicts=VIOLATED, exit_code=1, findings=frozenset({"I10", "lost-write"})
        ),
        "acks=all without the bug": Case(scenario="acks-all-on-append", sets=SOUND, verdicts=HELD, exit_code=0),
    },
    {
        "a follower that does not truncate diverges": Case(
            scenario="no-truncation", verdicts=VIOLATED, exit_code=1, findings=frozenset({"I9"})
        ),
        "truncation without the bug": Case(scenario="no-truncation", sets=SOUND, verdicts=HELD, exit_code=0),
    },
    {
        "a flipped bit that no recovery finds keeps a replica out of sync": Case(
            scenario="no-crc-recovery", verdicts=VIOLATED, exit_code=1, findings=frozenset({"nonmonotonic-poll"})
        ),
        "a flipped bit without the bug": Case(scenario="no-crc-recovery", sets=SOUND, verdicts=HELD, exit_code=0),
    },
    {
        "a leader that counts on an ISR which ZooKeeper does not have commits on its own": Case(
            scenario="cut-off",
            sets=["planted_bugs=[isr-before-zookeeper]"],
            verdicts=VIOLATED,
            exit_code=1,
            findings=frozenset({"I6", "I8"}),
        ),
        "a leader that is cut off without the bug": Case(scenario="cut-off", verdicts=HELD, exit_code=0),
    },
    {
        "a controller that was replaced decides all the same": Case(
            scenario="controller-writes-unfenced", verdicts=VIOLATED, exit_code=1, findings=frozenset({"I2"})
        ),
        "a controller that was replaced without the bug": Case(
            scenario="controller-writes-unfenced", sets=SOUND, verdicts=HELD, exit_code=0
        ),
    },
    {
        "a leader that was replaced writes its ISR all the same": Case(
            scenario="isr-write-without-version", verdicts=VIOLATED, exit_code=1, findings=frozenset({"I1", "I5"})
        ),
        "a leader that was replaced without the bug": Case(
            scenario="isr-write-without-version", sets=SOUND, verdicts=HELD, exit_code=0
        ),
    },
    {
        "a leader without a disk leads on": Case(
            scenario="leads-on-without-disk", verdicts=VIOLATED, exit_code=1, findings=frozenset({"I40"})
        ),
        "a leader without a disk, without the bug": Case(
            scenario="leads-on-without-disk", sets=SOUND, verdicts=HELD, exit_code=0
        ),
    },
    {
        "a broker that takes an old registration for its own disappears with it": Case(
            scenario="registration-of-old-session", verdicts=VIOLATED, exit_code=1, findings=frozenset({"I18"})
        ),
        "a broker that is back too early without the bug": Case(
            scenario="registration-of-old-session", sets=SOUND, verdicts=HELD, exit_code=0
        ),
    },
)
"""A scenario with its bug and without; one of them a day."""
KAFKA = "Apache Kafka 3.9.1 holds the same promises, as far as it tells"
OF_KAFKA = Case(
    scenario="smoke",
    sets=[APACHE_KAFKA],
    verdicts=HELD,
    exit_code=0,
    not_judged=frozenset({"I5", "I15", "I22", "I24", "group_commits"}),
)
LONGEST = {
    KAFKA: OF_KAFKA,
    "wrong clocks of Apache Kafka lose nothing": replace(OF_KAFKA, scenario="clock"),
    "wrong clocks of our broker lose nothing": Case(scenario="clock", verdicts=HELD, exit_code=0),
    "power losses of Apache Kafka lose nothing": replace(OF_KAFKA, scenario="power-loss"),
    "power losses of our broker lose nothing": Case(scenario="power-loss", verdicts=HELD, exit_code=0),
    "slow disks of our broker lose nothing": Case(scenario="slow-sync", verdicts=HELD, exit_code=0),
    "full disks of our broker lose nothing": Case(scenario="disk-full", verdicts=HELD, exit_code=0),
    "failing disks of our broker lose nothing": Case(scenario="disk-error", verdicts=HELD, exit_code=0),
    "too little CPU time, memory and files of our broker lose nothing": Case(
        scenario="resources", verdicts=HELD, exit_code=0
    ),
    "damaged disks of our broker lose nothing": Case(scenario="disk-damage", verdicts=HELD, exit_code=0),
}
"""One of them a day; Kafka has a JVM a server."""


def can_be_run(case: Case) -> bool:
    """Return whether this machine has what it takes."""
    takes: dict[str, Callable[[], str]] = {
        "clock": faketime.lacking,
        "disk-full": small_disks.lacking,
        "disk-error": disk_errors.lacking,
        "leads-on-without-disk": small_disks.lacking,
        "slow-sync": tracer.lacking,
        "resources": lambda: "".join(map(control_groups.lacking, control_groups.RESOURCES)),
    }
    lacking = takes[case.scenario]() if case.scenario in takes else ""
    return (has_kafka() or APACHE_KAFKA not in case.sets) and not lacking


PAIRS = [pair for pair in PLANTED if all(map(can_be_run, pair.values()))]
CASES = {name: case for cases in (ALWAYS, *sampled(PAIRS, 1)) for name, case in cases.items()}
CASES |= {name: LONGEST[name] for name in sampled([name for name, case in LONGEST.items() if can_be_run(case)], 1)}


def chaos(*arguments: str) -> tuple[int, Any]:
    """Return the exit code of a command and what it printed as JSON."""
    command = [sys.executable, "-m", "harness", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout, done.stderr[-3000:]
    return done.returncode, json.loads(done.stdout)


def driven(case: Case, runs: Path) -> RunFolder:
    """Return the run of a scenario, ready to be judged."""
    scenario = load_scenario(case.scenario, options(case.driver, [], case.sets))
    folder = phases.create_from(scenario, SEED, runs)
    try:
        phases.start(folder, owner_pid=os.getpid())
        phases.drive(folder)
        phases.collect(folder)
    finally:
        phases.stop(folder)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The jars of `make kafka-libs`, where releases of Kafka are looked for."""
    releases = tmp_path_factory.mktemp("kafka")
    (releases / "3.9.1").symlink_to(LIBS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHAOS_KAFKA", str(releases))
        yield


@pytest.fixture(scope="module")
def results(runs: Path, jars: None) -> dict[str, dict[str, Any]]:
    """What every case came to."""
    places = [runs / str(number) for number in range(len(CASES))]
    with ThreadPoolExecutor(2) as drives:
        folders = dict(zip(CASES, drives.map(driven, CASES.values(), places), strict=True))
    code, answers = chaos("rejudge", "--engine", "spark", *(str(folder.root) for folder in folders.values()))
    assert code == max(answer["exit_code"] for answer in answers)
    by_folder = {answer["folder"]: answer for answer in answers}
    return {name: by_folder[str(folder.root)] for name, folder in folders.items()}


def processes_of(runs: Path) -> list[str]:
    """Return the command lines of live processes that name a run of ours."""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    return [line for line in lines if str(runs) in line]


@pytest.mark.parametrize("name", [*CASES, *([] if has_kafka() else [pytest.param(KAFKA, marks=needs_kafka)])])
def test_a_scenario_comes_to_what_it_must(name: str, results: dict[str, dict[str, Any]], runs: Path) -> None:
    case, result = CASES[name], results[name]
    assert (result["verdicts"], result["exit_code"]) == (case.verdicts, case.exit_code), result
    checks = {check["check"]: check for check in result["checks"]}
    assert case.findings <= {check for check, answer in checks.items() if answer["verdict"] == "FAIL"}
    assert case.expected <= {check for check, answer in checks.items() if answer["expected"]}
    assert all("orders-0 offset" in checks[check]["reason"] for check in case.findings & {"I10"})
    assert result["driver"] == case.driver
    if case.verdicts == HELD:
        assert result["remarks"] == []
        answers = {name: answer["verdict"] for name, answer in checks.items()}
        answers |= {suite["suite"]: suite["verdict"] for suite in result["suites"]}
        assert {name for name, verdict in answers.items() if verdict == "NOT_JUDGED"} >= case.not_judged
        assert set(answers.values()) == ({"PASS", "NOT_JUDGED"} if case.not_judged else {"PASS"})
    assert Path(result["folder"], "report.html").exists()
    assert processes_of(runs) == []


@pytest.mark.smoke
def test_smoke_holds_from_the_command_line(tmp_path: Path) -> None:
    code, result = chaos("run", "smoke", "--seed", str(SEED), "--runs", str(tmp_path))
    assert code == 0, result
    assert result["verdicts"] == HELD
    assert (result["remarks"], len(result["faults"])) == ([], 3)
    assert all(suite["verdict"] == "PASS" for suite in result["suites"])
    assert Path(tmp_path, result["run_id"], "report.html").exists()
    assert processes_of(tmp_path) == []
