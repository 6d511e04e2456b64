"""A JVM that ends in the middle of its work: one sentence, exit code 4, and nothing that could not be judged again."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from harness.judging.judge import run_checks
from harness.progress import Silent
from harness.run.run import Run
from harness.store.folder import RunFolder
from harness.store.phase_log import PhaseNotes
from harness.store.result import RunResult
from harness.verdict import ExitCode, SystemVerdict
from tests.brief import BRIEF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.jvm, pytest.mark.rotating(2, of="sessions")]

SCENARIO = BRIEF + "driver: simulated\n"
KILLED_AT = """
import os, pkgutil, sys
place, signal_number, *arguments = sys.argv[1:]
owner, _, name = place.rpartition(".")
module = pkgutil.resolve_name(owner)
original = getattr(module, name)

def killed(*values, **options):
    from pyspark import SparkContext
    os.kill(SparkContext._gateway.proc.pid, int(signal_number))
    return original(*values, **options)

setattr(module, name, killed)
sys.argv = ["chaos", *arguments]
from harness.cli.app import main
main()
"""
ENDED = "Spark ended in the middle of its work: SIGKILL ended its JVM; the end of its log: "


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """Where the command's temporary files go."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """The file of a small scenario."""
    path = tmp_path / "brief.yaml"
    path.write_text(SCENARIO)
    return path


def chaos(scratch: Path, place: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Carry out a command whose JVM is killed where the function `place` is called."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED_AT, place, str(int(signal.SIGKILL)), *arguments],
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == ExitCode.ENVIRONMENT, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "check.failed" not in done.stderr
    assert "batch.failed" not in done.stderr
    assert list(scratch.iterdir()) == []
    assert not [it for it in psutil.process_iter(["cmdline"]) if str(scratch) in " ".join(it.info["cmdline"] or [])]
    return done


def test_a_run_is_unknown_and_can_be_judged_again(
    apache_spark: "SparkSession", scratch: Path, scenario: Path, tmp_path: Path
) -> None:
    place = "harness.analysis.judge.run_checks"
    done = chaos(scratch, place, "run", str(scenario), "--seed", "1", "--runs", str(tmp_path / "runs"))
    assert done.stdout.count(ENDED) == 2, "the phase says it, and the run's remarks"
    assert done.stderr == ""
    (root,) = (path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    run = RunFolder(root)
    result = RunResult.load(run.verdict)
    assert (result.verdicts.system, result.checks) == (SystemVerdict.UNKNOWN, [])
    with ExitStack() as stack:
        again = run_checks(Run.load(run), Silent(), PhaseNotes(), stack)
    assert {check.verdict for check in again.checks} == {SystemVerdict.PASS}


def test_a_sweep_says_it_once_and_keeps_its_histories(scratch: Path, scenario: Path, tmp_path: Path) -> None:
    place, sweeps = "harness.sweep.jobs._judged", tmp_path / "sweeps"
    done = chaos(scratch, place, "simulate", str(scenario), "--schedules", "2", "--out", str(sweeps))
    (root,) = sweeps.iterdir()
    (ending,) = [line for line in done.stderr.splitlines() if ENDED in line]
    assert ending.startswith(ENDED)
    assert ending.endswith(f"its histories can be judged: chaos rejudge {root}")
    assert (root / "schedules.parquet" / "_SUCCESS").exists()
