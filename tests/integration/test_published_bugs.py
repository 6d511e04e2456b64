"""Bugs that Apache Kafka has published, as the suite `published-bugs` has them: found where they are and nowhere else.

Releases come by `chaos kafka get`; a night runs each row of the suite as a step of its own.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cluster.systems.system import system_named
from harness.scenario.file import load_scenario
from harness.scenario.source import options
from harness.scenario.suite import SuiteRun, load_suite
from tools.nightly.steps import PUBLISHED

SEED = 1
LONGEST_S = 900
SEEN_BY = {
    "kip-101": {"I10", "I9"},
    "kip-279": {"I9"},
    "kip-380": {"I31", "I32"},
    "kafka-7128": {"I10"},
    "kafka-6082": {"I2"},
    "kafka-13141": {"I10"},
    "kafka-14190": {"I20", "I31", "I32"},
    "kafka-7164": {"I9", "I20"},
    "kafka-6119": {"promised-answers"},
    "kafka-9600": {"promised-answers"},
    "kafka-9144": {"marker-epochs", "promised-answers"},
    "kafka-10284": {"promised-answers"},
    "kafka-10706": {"I20"},
    "kafka-12890": {"promised-answers"},
    "kafka-13091": {"promised-answers"},
    "kafka-13727": {"markers-kept"},
    "kafka-14055": {"markers-kept"},
    "kip-890": {"transactional-data"},
    "kafka-20734": {"markers-complete"},
    "kafka-13194": {"I9", "I10"},
    "kafka-10614": {"promised-answers"},
    "kafka-14704": {"promised-answers"},
    "kafka-15489": {"promised-answers", "quorum-leader-resigns"},
    "kafka-10101": {"I9", "I10"},
    "kafka-16541": {"I27", "I9"},
}
"""Checks of which at least one must find the bug, by scenario."""


def system_of(run: SuiteRun) -> str:
    """Return what is under test, by the name that scenarios give it."""
    return load_scenario(run.scenario, options(run.driver, run.planted_bugs, run.set)).system


def row(run: SuiteRun) -> object:
    """Return a run of the suite as a case, which is skipped where its release is missing."""
    lacking = system_named(system_of(run)).lacks()
    name = f"{run.scenario} on {system_of(run)}: {run.expect}"
    return pytest.param(run, id=name, marks=pytest.mark.skipif(bool(lacking), reason=lacking))


@pytest.mark.published
@pytest.mark.cluster
@pytest.mark.rotating(1)
@pytest.mark.timeout(LONGEST_S + 60)
@pytest.mark.parametrize("run", [row(run) for run in load_suite(PUBLISHED).runs])
def test_a_published_bug_is_seen_in_the_release_that_has_it_alone(run: SuiteRun, tmp_path: Path) -> None:
    sets = [part for each in run.set for part in ("--set", each)]
    command = [sys.executable, "-m", "harness", "run", run.scenario, *sets, "--seed", str(SEED), "--engine", "sail"]
    done = subprocess.run(
        [*command, "--runs", str(tmp_path), "--json"], capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    assert done.stdout, done.stderr[-3000:]
    result = json.loads(done.stdout)
    violated = {check["check"] for check in result["checks"] if check["verdict"] == "FAIL"}
    assert result["verdicts"]["fault"] == "CONFIRMED", result
    if run.expect == "violated":
        assert (done.returncode, bool(violated & SEEN_BY[run.scenario])) == (1, True), result
    else:
        assert (done.returncode, violated) == (0, set()), result


def test_the_suite_has_each_bug_with_a_release_that_mended_it() -> None:
    runs = load_suite(PUBLISHED).runs
    for expected in ("violated", "held"):
        assert [run.scenario for run in runs if run.expect == expected] == list(SEEN_BY)
