"""The contract a check fulfils: a pure function from facts to findings, judged in Spark.

PySpark is named for the type checker only; this module never imports it when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Severity(StrEnum):
    """What a finding means for the run."""

    VIOLATION = "violation"
    EXPECTED = "expected"
    """An anomaly that the scenario's settings allow; counted and shown."""
    NOTE = "note"


FINDING_COLUMNS: tuple[tuple[str, str], ...] = (
    ("run_id", "string"),
    ("check", "string"),
    ("severity", "string"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("leader_epoch", "int"),
    ("message", "string"),  # one sentence: the promise, and how it was broken
    ("evidence", "array<string>"),  # the events that show it, as compact JSON, a dozen at most
    ("excuse", "string"),  # why an expected anomaly is lawful, in the words of its allowance; null for all others
    ("at_ns", "bigint"),  # when what was lost had been asked for; null where nobody knows
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run was allowed to do; decides which anomalies are expected."""

    acks: frozenset[int]
    """Every acks level the producers used."""
    min_insync_replicas: int
    unclean_leader_election: bool
    idempotence: bool
    power_loss: bool = False
    read_from_start: bool = True
    """Whether readers begin at the start of each partition."""


class Check(Protocol):
    """One promise."""

    name: ClassVar[str]
    """Short id, e.g. I1 or lost-write."""
    promise: ClassVar[str]
    """The promise in one sentence, with its source."""
    needs: ClassVar[tuple[str, ...]]
    """Names of the facts it reads; if one that proves anything is empty, the answer is UNKNOWN."""

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """Return one row a violation or note, in `FINDING_COLUMNS`."""
        ...

    def unknown(self, facts: dict[str, DataFrame]) -> DataFrame | None:
        """Return rows of `run_id` and `reason` for the runs that cannot be judged; None where nothing is assumed.

        A reason is an assumption that fails, or evidence that is missing.
        """
        ...
