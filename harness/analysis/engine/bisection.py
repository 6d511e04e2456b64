"""What can be done for many at once, but perhaps not for each of them."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from harness.analysis.engine.jvm import raise_if_engine_lost

SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)
ATTEMPTS = 40
"""After so many, a part for which the job cannot be done is given up as a whole."""

_RAISED = re.compile(r"^[a-zA-Z_][\w.]*: \S.*$", re.MULTILINE)
"""The line of a Python traceback that names the exception and what it says; lines of the traceback are indented."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def said_by(error: Exception) -> str:
    """Return what a job's error says, in one line: of an exception in a Python worker, what that one says."""
    text = str(error).partition("JVM stacktrace:")[0].strip()
    traceback = text.partition("Traceback (most recent call last):")[2]
    raised = _RAISED.findall(traceback)
    return raised[-1] if raised else next(iter(text.splitlines()), type(error).__name__)


def bisect_rows(
    items: Sequence[Item], job: Callable[[Sequence[Item]], Result], errors: tuple[type[Exception], ...] = SPARK_ERRORS
) -> Iterator[tuple[Sequence[Item], Result | Exception]]:
    """Do a job for all items, or else for their halves, so that one bad item costs no other its result.

    Yields each part with its result, or with the error if there is no smaller one to try; the parts make up all items.

    Raises:
        SparkError: Spark has ended; no part is tried any more.
    """
    waiting = [items] if items else []
    for attempt in count(1):
        if not waiting:
            break
        part = waiting.pop()
        try:
            result = job(part)
        except errors as error:
            raise_if_engine_lost(error)
            if len(part) == 1 or attempt >= ATTEMPTS:
                yield part, error
            else:
                waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
        else:
            yield part, result
