"""Built-in scenarios from the command line to the exit code, on real brokers, judged by Spark and Great Expectations.

`smoke` is run whole by the test of its DAG.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.spark]


def run(scenario: str, runs: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Carry a scenario out and return the exit code and the content of `verdict.json`."""
    command = [sys.executable, "-m", "harness", "run", scenario, "--seed", "1", "--runs", str(runs), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.stdout, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout)
    assert Path(runs, result["run_id"], "report.html").exists()
    return done.returncode, result


def failed(result: dict[str, Any]) -> set[str]:
    """Return the names of the checks that found a violation."""
    return {check["check"] for check in result["checks"] if check["verdict"] == "FAIL"}


def processes_of(runs: Path) -> list[str]:
    """Return the command lines of live processes that name a run of ours."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(runs) in line:
            found.append(line)
    return found


def test_loss_after_an_unclean_election_is_expected_and_shown(tmp_path: Path) -> None:
    code, result = run("unclean-election", tmp_path)
    assert code == 0, result
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
    expected = {check["check"]: check["expected"] for check in result["checks"]}
    assert expected["I10"] > 0, "readers may have seen the lost records before they were lost: the logs tell"
    assert processes_of(tmp_path) == []


def test_a_simulated_run_ends_like_any_other(tmp_path: Path) -> None:
    code, result = run("smoke", tmp_path, "--driver", "simulated")
    assert code == 0, result
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
    assert (result["driver"], result["evidence"]) == ("simulated", [])
    assert len(result["faults"]) == 3
    assert all(suite["verdict"] == "PASS" for suite in result["suites"])


def test_acks_all_answered_too_early_loses_acknowledged_records(tmp_path: Path) -> None:
    code, result = run("acks-all-on-append", tmp_path)
    assert code == 1, result
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "FAIL", "environment": "CLEAN"}
    assert {"I10", "lost-write"} <= failed(result)
    (finding,) = [check["reason"] for check in result["checks"] if check["check"] == "I10"]
    assert "orders-0 offset" in finding
    assert processes_of(tmp_path) == []


def test_a_follower_that_does_not_truncate_diverges(tmp_path: Path) -> None:
    code, result = run("no-truncation", tmp_path)
    assert code == 1, result
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "FAIL", "environment": "CLEAN"}
    assert "I9" in failed(result)
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("scenario", ["acks-all-on-append", "no-truncation"])
def test_the_same_scenario_without_the_bug_passes(scenario: str, tmp_path: Path) -> None:
    code, result = run(scenario, tmp_path, "--set", "planted_bugs=[]")
    assert code == 0, result
    assert result["verdicts"] == {"fault": "CONFIRMED", "system": "PASS", "environment": "CLEAN"}
