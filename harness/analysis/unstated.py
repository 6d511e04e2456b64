"""Finds answers that depend on an unstated setting: checks run again with each of these at its most lenient."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.compaction import SUPERSEDED
from harness.analysis.check_helpers.excuses import within_power_losses
from harness.analysis.facts.build import Facts
from harness.analysis.facts.compaction import superseded
from harness.analysis.frames import PARTITION_KEY, union
from harness.analysis.running import broken_parts
from harness.contracts.checks import ANY_TOPIC, Check, Settings, Severity, handed_to

_WITH_ACKS = ("sends", "send_reversals")
"""Facts that say with which acks a record was sent."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Otherwise:
    """What a run was allowed to do, with one setting that is not stated at its most lenient."""

    decides: str
    """What states it, as `--set` takes it."""
    settings: Settings
    acks: int | None = None
    """The acks of the sends in `without_acks`, if that is the setting."""
    without_acks: DataFrame | None = None
    """`process` and `index` of the sends that do not state their acks."""
    compacted: bool = False
    """Whether topics are compacted of which no evidence states that they are or are not."""


def hanging_on(
    checks: Sequence[Check],
    facts: Facts,
    violations: Mapping[str, int],
    others: Sequence[Otherwise],
) -> dict[str, list[str]]:
    """Return what decides the answer of a check, where it is another one under other settings that are possible.

    A check that is broken under all of them, however many violations there are, hangs on none.

    Args:
        checks: Those that found anything, violation or not, in one run.
        facts: The facts of that run.
        violations: How many each found with every setting at its strictest.
        others: The same with one setting each at its most lenient.
    """
    together = Otherwise(
        decides="",
        settings=_most_lenient([each.settings for each in others]),
        acks=next((each.acks for each in others if each.acks is not None), None),
        without_acks=next((each.without_acks for each in others if each.without_acks is not None), None),
        compacted=any(each.compacted for each in others),
    )
    tried = [*others, together]
    found: dict[tuple[str, str], int] = {}

    def ask(some: Sequence[Check]) -> None:
        frames = [_violations(check, facts, each) for check in some for each in tried]
        rows = union(frames, apart=False).groupBy("check", "decides").agg(F.count("*").alias("number"))
        found.update({(row.check, row.decides): row.number for row in rows.collect()})

    broken = {check.name for check, _ in broken_parts(checks, ask)}
    no_epochs = facts["leader_epochs"].isEmpty()
    hanging: dict[str, list[str]] = {}
    for check in checks:
        before = violations.get(check.name, 0)
        excused = no_epochs and any(each.unclean_election for each in check.excused_by)

        def number(each: Otherwise, check: Check = check, excused: bool = excused) -> int:
            """How many violations remain; an unclean election excuses them where no epoch would show it."""
            hidden = excused and each.settings.unclean_leader_election
            return 0 if hidden else found.get((check.name, each.decides), 0)

        if check.name in broken or (before and number(together)):
            continue
        deciding = [each.decides for each in others if (number(each) < before if before else number(each))]
        if before or deciding:
            hanging[check.name] = deciding or [each.decides for each in others]
    return hanging


def _most_lenient(settings: Sequence[Settings]) -> Settings:
    return Settings(
        acks=frozenset.union(*(each.acks for each in settings)),
        min_insync_replicas=min(each.min_insync_replicas for each in settings),
        unclean_leader_election=any(each.unclean_leader_election for each in settings),
        idempotence=all(each.idempotence for each in settings),
        power_loss=any(each.power_loss for each in settings),
        read_from_start=all(each.read_from_start for each in settings),
        deleting_topics=max((each.deleting_topics for each in settings), key=_has_any),
        compacted_topics=settings[0].compacted_topics,
    )


def _has_any(topics: str) -> bool:
    return ANY_TOPIC in topics.split(",")


def _superseded_if_compacted(facts: Facts) -> DataFrame:
    """Return what cleaners may have removed, if every topic is compacted of which no evidence states its cleaning."""
    sends = facts["sends"]
    cleaned = (
        sends.select(*PARTITION_KEY)
        .distinct()
        .join(facts["topic_configs"].select("run_id", "topic"), on=["run_id", "topic"], how="left_anti")
        .join(facts["broker_logs"].select("run_id"), on="run_id", how="left_anti")
        .withColumn("until_offset", F.lit(2**63 - 1))
    )
    logs = (facts["replica_records"], facts["transactional_batches"], facts["markers"])
    removed = superseded(cleaned, sends, facts["polls"], *logs)
    return removed.withColumn("committed", F.lit(True))


def _with_acks(rows: DataFrame, unstated: DataFrame) -> DataFrame:
    """Return the rows with other acks where a send does not state its own."""
    joined = rows.join(unstated, on=["process", "index"], how="left")
    return joined.withColumn("acks", F.coalesce("otherwise", "acks")).select(*rows.columns)


def _violations(check: Check, facts: Facts, other: Otherwise) -> DataFrame:
    handed = handed_to(check, facts)
    if other.acks is not None and other.without_acks is not None:
        unstated = other.without_acks.withColumn("otherwise", F.lit(other.acks))
        handed |= {name: _with_acks(handed[name], unstated) for name in _WITH_ACKS if name in handed}
    if other.compacted and SUPERSEDED in handed:
        handed[SUPERSEDED] = handed[SUPERSEDED].unionByName(_superseded_if_compacted(facts)).distinct()
    rows = check.findings(handed, other.settings)
    if other.settings.power_loss:
        rows = within_power_losses(rows, facts, [check])
    return rows.where(F.col("severity") == Severity.VIOLATION.value).select(
        "check", F.lit(other.decides).alias("decides")
    )
