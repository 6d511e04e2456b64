"""recorded-answers: a broker answers scripts of client calls as Apache Kafka has answered them.

The workload play-scripts has random scripts of calls, with odd values and in all versions, that were played to Kafka
3.9.1. Its answers are recorded. They are compared without ids that a broker chooses, addresses and texts for people.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import CLIENTS_WHOLE
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject


class RecordedAnswers(Check):
    """Every script that was played to its end, and the first answer that is not as recorded."""

    name: ClassVar[str] = "recorded-answers"
    title: ClassVar[str] = "recorded-answers"
    promise: ClassVar[str] = "A broker answers scripts of client calls as Apache Kafka 3.9.1 has answered them."
    needs: ClassVar[tuple[str, ...]] = ("sends",)
    about: ClassVar[Subject] = rows_of("scripts", "scripts of client calls that were answered")
    reads: ClassVar[tuple[str, ...]] = ("scripts",)
    assumes: ClassVar[tuple[Assumption, ...]] = (CLIENTS_WHOLE,)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a script."""
        return finding(
            facts["scripts"].where(F.col("difference").isNotNull()),
            self.name,
            at_ns="complete_ns",
            message="A broker answers as Apache Kafka does: in {script}, {difference}.",
            evidence=F.array(event("scripts", "process", "index", "script", "difference")),
        )


PLUGIN: type[Check] = RecordedAnswers
