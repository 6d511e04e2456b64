"""The contract a check fulfils: a pure function from facts to findings, judged in Spark.

PySpark is named for the type checker only; this module never imports it when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

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
    ("excuse", "string"),  # the allowance that permits an expected anomaly; null for all others
    ("at_ns", "bigint"),  # when the lost record was sent; null if unknown
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run was allowed to do; decides which anomalies are expected.

    Of runs that are judged at once, a field in which they differ is a column. `F.lit(settings.idempotence)` takes both.
    A check that decides by `if settings.idempotence` is asked anew about the runs that agree. One that compares by
    `is`, or puts a setting into a text, takes a column for a value, and must not.
    """

    acks: frozenset[int]
    """Every acks level the producers used."""
    min_insync_replicas: int
    unclean_leader_election: bool
    idempotence: bool
    power_loss: bool = False
    read_from_start: bool = True
    """Whether readers begin at the start of each partition."""
    delete_delay_ms: int = 60_000
    """How long a log that was deleted may stay on the disk: Kafka's `log.segment.delete.delay.ms`."""
    deleting_topics: str = ""
    """Names of the topics, with commas, from which retention or clients may delete records."""
    compacted_topics: str = ""
    """Names of the topics, with commas, that are compacted, where no broker's log states what cleaners removed."""
    first_deletion_ms: int = 0
    """How long after its start a broker looks for the first time for logs that it may delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """One reason why an anomaly is expected; every condition that is set must hold."""

    reason: str
    """In a sentence, as the report prints it."""
    acks: frozenset[int] | None = None
    """The record was sent with one of these acks levels."""
    unclean_election: bool = False
    """An unclean election that the configuration allowed took place on the partition after the fact at stake."""
    power_loss: bool = False
    """A broker's power was cut: what it had not flushed is gone, of its partitions and from before."""
    anywhere: bool = False
    """What is at stake is stored in another partition than the one that a finding names."""
    without_idempotence: bool = False
    """The producers are not idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assumption:
    """What checks take for granted of a run; where it fails they are UNKNOWN.

    The same one is tested once for all checks that name it. Its facts count as read by each of them.
    """

    facts: tuple[str, ...]
    """Names of those by which it is known."""
    broken: Callable[..., DataFrame]
    """Returns, of these facts in their order, rows with `run_id` that break it."""
    reason: str
    """The text for such a row, with its value in the place of each `{column}`; a run gets the first by the alphabet."""
    of_compaction: bool = False
    """Whether it can be broken only where a topic is compacted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What a check looks at piece by piece; a piece that the evidence does not show forbids PASS.

    The same one is counted once for all checks that name it. Its facts do not count as read by them.
    """

    facts: tuple[str, ...]
    """Names of those by which the pieces are known."""
    pieces: Callable[..., DataFrame]
    """Returns, of the settings and these facts in their order, rows of `run_id`, `place` (a partition, group or broker,
    as text), `number` of pieces there, and how many of them are `unseen`."""
    what: str
    """What the pieces are, in the plural: "acknowledged records"."""
    evidence: str = ""
    """The kind of evidence that shows them, where a recorded history without it leaves the promise unjudged."""
    unseen: str = ""
    """What is wrong with those that are unseen, after `what`: "were reached by no reader"."""


class Check:
    """One promise. A check states what it needs, and of the rest that in which it differs from these defaults."""

    name: ClassVar[str]
    """Its key in findings and answers: I10, lost-write."""
    title: ClassVar[str]
    """What people are shown: number and name, I10 leader-completeness; the name alone where it has no number."""
    promise: ClassVar[str]
    """The promise in one sentence, with its source."""
    needs: ClassVar[tuple[str, ...]]
    """Names of the facts without rows of which the answer is UNKNOWN."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Names of facts that it uses too, and that may well have no rows."""
    assumes: ClassVar[tuple[Assumption, ...]] = ()
    """What it cannot do without."""
    about: ClassVar[Subject | None] = None
    """What the promise is about, if a check judges nothing where that has no piece at all.

    A recorded history without a piece leaves the promise unjudged. A run of the harness's own is known to have none.
    """
    covers: ClassVar[tuple[Subject, ...]] = ()
    """Further subjects that it must have seen, beside those that follow from the facts that it needs."""
    excused_by: ClassVar[tuple[Allowance, ...]] = ()
    """What makes its anomaly expected; the first that holds is the one that a finding names."""
    prefiltered: ClassVar[str] = ""
    """Why, in a sentence, it finds the same without the records on which all sources agree; empty if it does not.

    It must not rest on how many records there are, or what their neighbours are (`harness/analysis/prefilter.py`).
    """
    fields: ClassVar[tuple[str, ...]] = ()
    """Fields of state changes that it asks about, as kind.field; it passes over lines that do not have them."""
    judges_without: ClassVar[tuple[str, ...]] = ()
    """Kinds of state changes that add to it; where a system does not emit them, it judges by its other evidence."""

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """Return one row a violation or note, in `FINDING_COLUMNS`."""
        raise NotImplementedError


READ_BY_ALL = ("evidence",)
"""Facts that every check may use without saying so."""
OF_COMPACTION = ("compactions", "superseded")
"""Facts that say something where topics are compacted, and nothing elsewhere."""
OF_EXPIRY = ("group_retirements",)
"""Facts that say something where committed offsets may expire while a run lasts, and nothing elsewhere."""
READ_FOR_POWER_LOSSES = ("fault_windows", "partition_states")
"""Facts that bound the effect of a power loss, for checks that excuse anomalies by it."""


def read_by(check: Check, *, compacts: bool = True, expires: bool = True) -> tuple[str, ...]:
    """Return the names of all facts on which the answer of a check rests.

    Args:
        check: The check.
        compacts: Whether a topic is compacted while the run lasts.
        expires: Whether a committed offset may expire in that time.
    """
    idle = (*(() if compacts else OF_COMPACTION), *(() if expires else OF_EXPIRY))
    cuts = READ_FOR_POWER_LOSSES if any(each.power_loss for each in check.excused_by) else ()
    assumes = (each for each in check.assumes if compacts or not each.of_compaction)
    assumed = (fact for each in assumes for fact in each.facts if fact not in READ_BY_ALL)
    names = dict.fromkeys((*check.needs, *check.reads, *cuts, *assumed))
    return tuple(name for name in names if name not in idle)


def handed_to(check: Check, facts: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the facts that a check has declared; to use another one is an error of the check."""
    return {name: facts[name] for name in (*read_by(check), *READ_BY_ALL)}


def subjects(check: Check) -> tuple[Subject, ...]:
    """Return what a check itself says that it must have seen."""
    return (check.about, *check.covers) if check.about is not None else check.covers
