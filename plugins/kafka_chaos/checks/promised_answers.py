"""promised-answers: a broker answers a request of a scenario's steps as Kafka promises.

The steps of a scenario send requests that no library sends. With `promised` a step states the answers that Kafka's
protocol allows there, such as an error for a stale epoch. An answer that says only that the broker cannot serve the
request now (NOT_COORDINATOR, CONCURRENT_TRANSACTIONS, …) breaks a promise only after the time limit of its step.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject


class PromisedAnswers(Check):
    """Every answer for which the scenario states what Kafka promises."""

    name: ClassVar[str] = "promised-answers"
    title: ClassVar[str] = "promised-answers"
    promise: ClassVar[str] = "A broker answers a request of a scenario's steps as Kafka promises."
    needs: ClassVar[tuple[str, ...]] = ("sends",)
    about: ClassVar[Subject] = rows_of("promised_answers", "answers whose promise a step states")
    reads: ClassVar[tuple[str, ...]] = ("promised_answers",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an answer that differs."""
        return finding(
            facts["promised_answers"].where(F.col("difference").isNotNull()),
            self.name,
            at_ns="complete_ns",
            message="A broker answers as Kafka promises: of the answer to {request}, {difference}.",
            evidence=F.array(event("promised_answers", "process", "index", "request", "promised", "answer")),
        )


PLUGIN: type[Check] = PromisedAnswers
