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


ANY_TOPIC = "*"
"""As a name in a list of topics: each of them may be meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run's configuration allowed; decides which anomalies are expected.

    When several runs are judged at once, a field that differs between them is a column. `F.lit(settings.idempotence)`
    takes both. A check that branches on `settings.idempotence` is called again for runs that agree. One that compares
    by `is`, or formats a setting as text, treats the column as a value, which is an error.
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
    """How long a deleted log may stay on the disk: Kafka's `log.segment.delete.delay.ms`."""
    deleting_topics: str = ""
    """Comma-separated names of the topics from which retention or clients may delete records."""
    compacted_topics: str = ""
    """Comma-separated names of compacted topics, if no broker's log states what cleaners removed."""
    first_deletion_ms: int = 0
    """Time after its start at which a broker first checks for deletable logs."""
    broker_min_insync_replicas: int = 0
    """The brokers' own `min.insync.replicas`, for topics without a value; 0 if it is not known."""
    session_timeout_ms: int = 18_000
    """How long a silent broker stays registered: Kafka's `zookeeper.session.timeout.ms`."""
    quorum_resigns_ms: int = 0
    """Within what time a leader of a quorum of controllers resigns by its time-outs; 0 if they are not known."""
    inherited_by_topics: str = ""
    """What topics inherit of the brokers' properties files, as name=value separated by semicolons; empty if unknown."""
    tombstones_seen_ms: int = 86_400_000
    """A replica that was out of the ISR for less time has copied each tombstone of an internal topic before cleaners
    removed it: `log.cleaner.delete.retention.ms` less `replica.lag.time.max.ms`."""
    producers_expire: bool = True
    """Whether a broker may have forgotten a producer that was idle for `producer.id.expiration.ms`; so it is assumed
    where that is not known."""


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
    """A broker's power was cut: unflushed data of all its partitions may be lost, also older data."""
    anywhere: bool = False
    """The lost record is stored in another partition than the finding's."""
    without_idempotence: bool = False
    """The producers are not idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assumption:
    """An assumption of checks about a run; where it is broken they are UNKNOWN.

    It is tested once for all checks that name it. Its facts count as read by each of them.
    """

    facts: tuple[str, ...]
    """Names of the facts that show it."""
    broken: Callable[..., DataFrame]
    """Returns, from these facts in their order, rows with `run_id` that break it."""
    reason: str
    """The text for such a row, with `{column}` placeholders; a run gets the alphabetically first."""
    of_compaction: bool = False
    """Whether only a compacted topic can break it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """What a check examines, piece by piece; a piece that the evidence does not show forbids PASS.

    It is counted once for all checks that name it. Its facts do not count as read by them.
    """

    facts: tuple[str, ...]
    """Names of the facts that show the pieces."""
    pieces: Callable[..., DataFrame]
    """Returns, from the settings and these facts in order, rows of `run_id`, `place` (a partition, group or broker, as
    text), `number` of pieces there, and how many of them are `unseen`."""
    what: str
    """What the pieces are, in the plural: "acknowledged records"."""
    evidence: str = ""
    """The kind of evidence that shows them; without it, the promise is unjudged in a recorded history."""
    unseen: str = ""
    """Why a piece is unseen, as the predicate after `what`: "were reached by no reader"."""


class Check:
    """One promise. A check declares its needs, and whatever differs from these defaults."""

    name: ClassVar[str]
    """Its key in findings and answers: I10, lost-write."""
    title: ClassVar[str]
    """Title for people: number and name, I10 leader-completeness; the name alone without a number."""
    promise: ClassVar[str]
    """The promise in one sentence, with its source."""
    needs: ClassVar[tuple[str, ...]]
    """Facts that must have rows; without them the answer is UNKNOWN."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Further facts that it uses, which may be empty."""
    assumes: ClassVar[tuple[Assumption, ...]] = ()
    """Its assumptions about a run."""
    about: ClassVar[Subject | None] = None
    """The subject of the promise, if a check without any piece of it must not pass.

    In a recorded history without a piece, the promise is unjudged. A run of the harness itself is known to have none.
    """
    covers: ClassVar[tuple[Subject, ...]] = ()
    """Further subjects that it must have seen, beside those that follow from its needed facts."""
    excused_by: ClassVar[tuple[Allowance, ...]] = ()
    """Allowances that make its anomaly expected; a finding names the first that holds."""
    prefiltered: ClassVar[str] = ""
    """Why its findings are the same without records on which all sources agree, in a sentence; empty if they are not.

    It must not depend on the number of records, or on their neighbours (`harness/analysis/prefilter.py`).
    """
    fields: ClassVar[tuple[str, ...]] = ()
    """Fields of state changes that it uses, as kind.field, and kinds that no fact needs but its answer does."""
    judges_without: ClassVar[tuple[str, ...]] = ()
    """Kinds of state changes and of excusing evidence that it uses if present; it judges without them too."""

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """Return one row a violation or note, in `FINDING_COLUMNS`."""
        raise NotImplementedError


READ_BY_ALL = ("evidence",)
"""Facts that every check may use without declaring them."""
OF_COMPACTION = ("broker_logs", "compactions", "superseded")
"""Facts that matter only for compacted topics."""
OF_EXPIRY = ("group_retirements",)
"""Facts that matter only if committed offsets may expire during a run."""
READ_FOR_POWER_LOSSES = ("fault_windows", "partition_states")
"""Facts that bound the effect of a power loss, for checks that excuse anomalies by it."""


def read_by(check: Check, *, compacts: bool = True, expires: bool = True) -> tuple[str, ...]:
    """Return the names of all facts that the answer of a check rests on.

    Args:
        check: The check.
        compacts: Whether a topic is compacted during the run.
        expires: Whether a committed offset may expire during it.
    """
    idle = (*(() if compacts else OF_COMPACTION), *(() if expires else OF_EXPIRY))
    cuts = READ_FOR_POWER_LOSSES if any(each.power_loss for each in check.excused_by) else ()
    assumes = (each for each in check.assumes if compacts or not each.of_compaction)
    assumed = (fact for each in assumes for fact in each.facts if fact not in READ_BY_ALL)
    names = dict.fromkeys((*check.needs, *check.reads, *cuts, *assumed))
    return tuple(name for name in names if name not in idle)


def handed_to(check: Check, facts: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the facts that a check has declared; using another one is an error of the check."""
    return {name: facts[name] for name in (*read_by(check), *READ_BY_ALL)}


def subjects(check: Check) -> tuple[Subject, ...]:
    """Return the subjects that a check itself must have seen."""
    return (check.about, *check.covers) if check.about is not None else check.covers
