import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harness.analysis.engine import connect


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
