"""Settings of the user's for Spark that are none."""

import pytest

from harness.analysis.engine import session
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
