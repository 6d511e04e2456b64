"""duplicate: a value that was sent once is read at one offset only.

A producer without an answer sends again; without idempotence (KIP-98) the record may then be written twice. A producer
that raises its epoch (KIP-360) and sends again what it has no answer to writes other records: no broker can compare the
sequence numbers of two epochs. Where replicas were dumped, such values are left out.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.allowances import UNCLEAN_ELECTION
from harness.analysis.check_helpers.assumptions import UNIQUE_VALUES
from harness.analysis.check_helpers.findings import (
    event,
    finding,
    oldest_epoch,
    phrase,
    severity,
    with_unclean_election,
)
from harness.analysis.frames import in_turn
from harness.analysis.subjects import ENDS_READ
from harness.contracts.checks import Allowance, Assumption, Check, Settings, Subject


class Duplicate(Check):
    """Every place at which a value was read."""

    name: ClassVar[str] = "duplicate"
    title: ClassVar[str] = "duplicate"
    promise: ClassVar[str] = "A value that was sent once is read at one offset only (KIP-98)."
    needs: ClassVar[tuple[str, ...]] = ("sends", "polls")
    covers: ClassVar[tuple[Subject, ...]] = (ENDS_READ,)
    reads: ClassVar[tuple[str, ...]] = ("leader_epochs", "replica_records")
    judges_without: ClassVar[tuple[str, ...]] = ("zookeeper", "replicas")
    assumes: ClassVar[tuple[Assumption, ...]] = (UNIQUE_VALUES,)
    prefiltered: ClassVar[str] = (
        "At one of two places of a value its send does not stand, so readers differ there; then all polls of it stay."
    )
    excused_by: ClassVar[tuple[Allowance, ...]] = (
        UNCLEAN_ELECTION,
        Allowance(reason="a send that is retried without idempotence may be written twice", without_idempotence=True),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a value."""
        polls = facts["polls"]
        key = ["run_id", "topic", "value"]
        place = ("partition", "offset", "leader_epoch")
        moved = (F.min("offset") != F.max("offset")) | (F.min("partition") != F.max("partition"))
        suspects = polls.groupBy(*key).agg(moved.alias("moved")).where("moved").drop("moved")
        twice = polls.join(suspects, on=key, how="left_semi")
        rows = (
            twice.join(sent_in_several_epochs(twice, facts["replica_records"]), on=key, how="left_anti")
            .groupBy(*key)
            .agg(
                F.array_sort(F.collect_set(F.struct("partition", "offset"))).alias("places"),
                F.min_by(F.struct(*place), in_turn(*place)).alias("first"),
                oldest_epoch().alias("since"),
                F.array_sort(F.collect_set(event("polls", "process", "partition", "offset", "value"))).alias("events"),
            )
            .select(*key, "places", "events", "since", "first.*")
        )
        rows = with_unclean_election(rows, facts["leader_epochs"], settings, since="since")
        return finding(
            rows,
            self.name,
            severity=severity(self.excused_by, settings, unclean=F.col("unclean")),
            message=phrase(
                "A value is read at one offset only: {value} was read at {places}.",
                places=F.array_join(
                    F.transform(
                        "places",
                        lambda at: phrase(
                            "{topic}-{partition} offset {offset}",
                            partition=at.getField("partition"),
                            offset=at.getField("offset"),
                        ),
                    ),
                    " and ",
                ),
            ),
            evidence=F.col("events"),
        )


def sent_in_several_epochs(polls: DataFrame, records: DataFrame) -> DataFrame:
    """One row a value (run, topic, value) each of whose places has a producer epoch of its own in the logs."""
    place = ["run_id", "topic", "partition", "offset", "value"]
    writers = (
        records.where(F.col("producer_epoch") >= 0)
        .groupBy(*place)
        .agg(F.min(F.struct("producer_id", "producer_epoch")).alias("writer"))
    )
    return (
        polls.select(*place)
        .distinct()
        .join(writers, on=place, how="left")
        .groupBy("run_id", "topic", "value")
        .agg((F.count_distinct("writer") == F.count("*")).alias("anew"))
        .where("anew")
        .drop("anew")
    )


PLUGIN: type[Check] = Duplicate
