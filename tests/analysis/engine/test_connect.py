import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harness.analysis.engine import connect
from tests.shared import ROOT


def ask_less_and_less_often(session: SparkSession) -> None:
    """Pause longer each time: a question begins the idle time anew, and a busy machine ends the session late."""
    for pause_s in (2, 4, 8, 16, 32):
        time.sleep(pause_s)
        session.range(1).count()


@pytest.mark.filterwarnings("ignore:The 'warn' method:DeprecationWarning")  # PySpark's, at the end of the session
def test_the_time_that_a_session_of_sail_may_ask_nothing_is_set_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "SAIL_IDLE_S", 1)
    with connect.sail_session(tmp_path) as session, pytest.raises(PySparkException, match="is not running"):
        ask_less_and_less_often(session)


ON_ONE_CORE = """
import os, sys
from pathlib import Path
from harness.analysis.judge import judge
from tests.analysis.run_folders import write_intact_run
from tests.analysis.test_judge import SETTINGS, verdicts
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(*(each.name for each in verdicts(judge(write_intact_run(Path(sys.argv[1])), SETTINGS, ["I3"])).values()))
"""


def test_sail_judges_on_one_core(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", ON_ONE_CORE, str(tmp_path / "run")],
        env={**os.environ, "CHAOS_ENGINE": "sail"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout.strip()) == (0, "PASS"), run.stderr
