"""unexpected-errors: a broker's code raises no error that it does not foresee.

Faults of disks, networks, ZooKeeper and peers end in errors that a broker handles. An error of another type, in the
handler of a request or in work in the background, is a mistake in the broker: what it was doing is not done, and what
it had begun stays half done. Kafka logs such errors ("Error when handling request" in KafkaApis, "Uncaught exception in
scheduled task" in KafkaScheduler). In virtual time a broker makes the same mistake that repeats requests without the
pauses that Kafka has for them (`replica.fetch.backoff.ms`, `fetch.wait.max.ms`); the schedule is ended there.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, finding
from harness.contracts.checks import Check, Settings


class UnexpectedErrors(Check):
    """Every error that a broker has logged as unforeseen."""

    name: ClassVar[str] = "unexpected-errors"
    title: ClassVar[str] = "unexpected-errors"
    promise: ClassVar[str] = (
        "Whatever fails around a broker, its code raises no error that it does not foresee (KafkaApis.handleError, "
        "KafkaScheduler)."
    )
    needs: ClassVar[tuple[str, ...]] = ("registrations",)
    reads: ClassVar[tuple[str, ...]] = ("unexpected_errors",)
    fields: ClassVar[tuple[str, ...]] = ("unexpected_error",)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a life of a broker and place in its code."""
        where = ["run_id", "broker", "incarnation", "at"]
        first = (
            facts["unexpected_errors"]
            .groupBy(*where)
            .agg(
                F.count("*").alias("times"),
                F.min_by(F.struct("seq", "time_ns", "operation", "error"), "seq").alias("first"),
            )
        )
        return finding(
            first.select(*where, "times", "first.*"),
            self.name,
            at_ns="time_ns",
            message=(
                "A broker raises no error that it does not foresee: broker {broker} raised {error} at {at} in "
                "{operation}; it logged {times} of them."
            ),
            evidence=F.array(
                event("unexpected_errors", "broker", "incarnation", "seq", "operation", "error", "at", "times")
            ),
        )


PLUGIN: type[Check] = UnexpectedErrors
