import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from harness.analysis.engine.bisection import said_by

IN_A_WORKER = """\

  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/jobs.py", line 361, in simulating
    for schedule in function(
harness.errors.ScenarioError: the scenario of the sweep:22: faults.0.kind: unknown fault 'nap'

JVM stacktrace:
org.apache.spark.SparkException: Job aborted
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(
            PySparkException(IN_A_WORKER),
            "harness.errors.ScenarioError: the scenario of the sweep:22: faults.0.kind: unknown fault 'nap'",
            id="in a Python worker it is what the exception there says",
        ),
        pytest.param(PySparkException("[A_CLASS] No column.\nat line 1"), "[A_CLASS] No column.", id="a line"),
        pytest.param(Py4JError("\n\nit is gone"), "it is gone", id="empty lines say nothing"),
        pytest.param(PySparkException(""), "PySparkException", id="without a word it is the class"),
    ],
)
def test_what_the_error_of_a_job_says_is_one_line(error: Exception, said: str) -> None:
    assert said_by(error) == said
