"""How an error of Spark is said in one line."""

import pytest

from harness.analysis.engine.storage import reason


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        pytest.param("it is wrong\n\tat a.B", "it is wrong", id="the first line, without where in Java"),
        pytest.param(
            "Job aborted: [DIVIDE_BY_ZERO] Division by zero.\nmore",
            "[DIVIDE_BY_ZERO] Division by zero.",
            id="Spark's own error within that of a job",
        ),
        pytest.param(
            "Job aborted: Lost task 0.0: scala.MatchError: java.lang.OutOfMemoryError: Java heap space",
            "Spark's memory does not hold it; CHAOS_SPARK_CONF=spark.driver.memory=8g gives more",
            id="a full memory, with what gives more",
        ),
        pytest.param("", "RuntimeError", id="an error without a message"),
    ],
)
def test_an_error_is_said_in_one_line(message: str, sentence: str) -> None:
    assert reason(RuntimeError(message)) == sentence
