"""What the conclusion of a run means to the task that says it."""

from typing import TypedDict

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from harness.report.conclusion import Conclusion
from harness.verdict import HELD, MISSED, VIOLATED

PROBLEM_KEY = "problem"
"""XCom in which the task `start` says why there is no run: a `Problem`."""


class InconclusiveError(AirflowException):
    """The run is inconclusive; unlike a violation, it may be tried again."""


class Problem(TypedDict):
    """Why nothing was started."""

    outcome: str
    """refused, wrong or broken."""
    reason: str


def raise_unless(expected: str, conclusion: Conclusion) -> None:
    """Raise when a run did not come to what was expected: finally for a violation and for one that was missed.

    Raises:
        InconclusiveError: nothing was proven; this one may be tried again.
    """
    outcome = conclusion["outcome"]
    if outcome == expected:
        return
    where = f"see {conclusion['run']}/report.html"
    if outcome == VIOLATED:
        raise AirflowFailException(f"the system broke a promise: {conclusion['reason']}; {where}")
    if outcome == MISSED:
        raise AirflowFailException(f"an objective of the scenario was missed: {conclusion['reason']}; {where}")
    if outcome == HELD:
        raise AirflowFailException(f"everything held, and the outcome {expected} was expected; {where}")
    raise InconclusiveError(f"nothing was proven: {conclusion['reason']}; {where}")
