import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from harness.analysis.engine import connect


@pytest.mark.filterwarnings("ignore:The 'warn' method:DeprecationWarning")  # PySpark's, at the end of the session
def test_the_time_that_a_session_of_sail_may_ask_nothing_is_set_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "SAIL_IDLE_S", 1)
    with connect.sail_session(tmp_path) as session:
        time.sleep(3)
        with pytest.raises(PySparkException, match="is not running"):
            session.range(1).count()
