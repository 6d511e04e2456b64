"""I32: does the cluster serve again when it is left in peace: writes, reads, commits?

A retriable error goes away with what caused it (Kafka's protocol guide, "Error Codes"): a client that tries on has its
record acknowledged with acks=all, reads it, and commits. The harness asks every partition itself, and looks whether
the readers of the load come to the record that it got acknowledged. What the faults have left beyond repair is a note.
"""

from typing import ClassVar

from pyspark.sql import DataFrame

from harness.analysis.liveness import OfLiveness, not_starved
from harness.contracts.checks import Assumption, Check, Settings
from harness.store.history import Sign


class Service(OfLiveness):
    """Signs of life that clients see."""

    name: ClassVar[str] = "I32"
    title: ClassVar[str] = "I32 service"
    promise: ClassVar[str] = (
        "Left in peace after the last heal, every partition acknowledges with acks=all, serves what it acknowledged, "
        "and takes commits (retriable errors in Kafka's protocol guide)."
    )
    needs: ClassVar[tuple[str, ...]] = ("liveness",)
    signs: ClassVar[tuple[Sign, ...]] = (Sign.PRODUCE, Sign.FETCH, Sign.READ, Sign.COMMIT)
    assumes: ClassVar[tuple[Assumption, ...]] = (not_starved(signs),)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a partition and what it does not do; one a reader that it keeps waiting."""
        return self.missing(facts, "A cluster that is left in peace serves its clients")


PLUGIN: type[Check] = Service
