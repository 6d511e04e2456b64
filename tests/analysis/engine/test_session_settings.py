"""Settings of the user's for Spark that are none, and what holds where nothing is set."""

import os
from pathlib import Path

import pytest

from harness.analysis.engine import jvm, session
from harness.errors import HarnessError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(
            "spark.driver.memory", "'spark.driver.memory' is not a setting of Spark", id="a key without a value"
        ),
        pytest.param("memory=2g", "'memory=2g' is not a setting of Spark", id="a key of something else"),
        pytest.param("spark.master=yarn", "the master is what CHAOS_SPARK_MASTER or --master says", id="the master"),
        pytest.param("'spark.a=1", "cannot be read: No closing quotation", id="a quote that is not closed"),
    ],
)
def test_settings_that_are_none_are_refused(settings: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAOS_SPARK_CONF", settings)
    with pytest.raises(HarnessError, match=message):
        session._own_settings()


@pytest.mark.parametrize(("stated", "given"), [(None, "2g"), ("6g", "6g")], ids=["unstated", "stated"])
def test_a_driver_gets_memory_while_it_is_started(
    stated: str | None, given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    if stated:
        monkeypatch.setenv("SPARK_DRIVER_MEMORY", stated)
    with jvm._everything_in(tmp_path):
        assert os.environ["SPARK_DRIVER_MEMORY"] == given
    assert os.environ.get("SPARK_DRIVER_MEMORY") == stated
