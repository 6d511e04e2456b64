"""transactional-offsets: offsets of a transaction count if and only if it commits, and an old generation commits none.

Offsets that a producer commits in its transaction are stored at once and count when its marker is written. A member
that gets one before, or after an abort, goes on behind records whose results are not there. One of an older generation
must not commit any, as another member has its partitions (KIP-447).
"""

import sys
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import has_field
from harness.analysis.check_helpers.client_transactions import closing, marker_times
from harness.analysis.check_helpers.findings import event, finding
from harness.analysis.check_helpers.transactions import PRODUCER_KEY, OfTransactions, on_furthest
from harness.analysis.frames import OFFSET_KEY, PARTITION_KEY, REPLICA_KEY, in_turn, null_if_unknown
from harness.analysis.subjects import rows_of
from harness.contracts.checks import Assumption, Check, Settings, Subject
from harness.values import OFFSETS_TOPIC

_NEVER_NS = sys.maxsize
"""After every instant."""


def _of_members(commits: DataFrame) -> DataFrame:
    """Return the accepted commits that name a generation."""
    return commits.where((F.col("error") == 0) & null_if_unknown("generation").isNotNull())


class TransactionalOffsets(OfTransactions):
    """Every committed offset that was read back, beside the records of that offset and when each began to count."""

    name: ClassVar[str] = "transactional-offsets"
    title: ClassVar[str] = "transactional-offsets"
    promise: ClassVar[str] = (
        "Offsets of a transaction count if and only if it commits, and a member of an old generation commits none "
        "(KIP-447)."
    )
    about: ClassVar[Subject] = rows_of(
        "transactional_batches", "batches of offsets of transactions", f"topic = '{OFFSETS_TOPIC}'"
    )
    reads: ClassVar[tuple[str, ...]] = (
        *("committed_offsets", "replica_records", "markers", "marker_writes", "transactional_commits"),
        *("transactional_batches", "leader_epochs"),
    )
    assumes: ClassVar[tuple[Assumption, ...]] = (
        *OfTransactions.assumes,
        has_field(
            "decided_seq",
            "transactional_commits",
            lambda rows: _of_members(rows).where(F.col("decided_seq").isNull()),
        ),
    )
    judges_without: ClassVar[tuple[str, ...]] = (
        *OfTransactions.judges_without,
        *("txn_marker", "txn_offset_commit", "group_state"),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding an offset that was read back and did not count, and one a commit of an old generation."""
        return self._read_back(facts, settings).unionByName(self._old(facts, settings))

    def _read_back(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        replicas, records, markers = (
            facts[name].where(F.col("topic") == OFFSETS_TOPIC) for name in ("replicas", "replica_records", "markers")
        )
        ends = closing(facts["replica_records"], facts["markers"], facts["replicas"])
        of_transactions = (
            on_furthest(records, replicas)
            .where(null_if_unknown("producer_id").isNotNull())
            .select(*PRODUCER_KEY, "offset")
            .join(ends.drop("value"), on=[*PRODUCER_KEY, "offset"], how="left")
            .join(marker_times(facts["marker_writes"]), on=[*PARTITION_KEY, "marker_offset", "producer_id"], how="left")
            .select(
                "run_id",
                F.col("partition").alias("log_partition"),
                F.col("offset").alias("log_offset"),
                F.when(F.col("result") == "commit", F.col("written_ns")).otherwise(_NEVER_NS).alias("counts_from"),
            )
        )
        place = [*REPLICA_KEY, "offset"]
        sizes = records.select(*place).unionByName(markers.select(*place)).groupBy(*REPLICA_KEY)
        whole = (
            on_furthest(replicas, replicas)
            .join(sizes.agg(F.count("*").alias("size")), on=list(REPLICA_KEY), how="inner")
            .where(F.col("size") == F.col("log_end_offset"))
            .select("run_id", F.col("partition").alias("log_partition"))
        )
        offsets = facts["committed_offsets"]
        stored = (
            offsets.select(*OFFSET_KEY, "offset", "log_partition", "log_offset")
            .join(whole, on=["run_id", "log_partition"], how="left_semi")
            .join(of_transactions, on=["run_id", "log_partition", "log_offset"], how="left")
            .groupBy(*OFFSET_KEY, "offset")
            .agg(
                F.min_by("counts_from", in_turn("counts_from")).alias("counts_from"),  # null: it counts at once
                F.min("log_offset").alias("log_offset"),
            )
        )
        read = offsets.where((F.col("kind") == "fetch") & (F.col("outcome") == "ok"))
        rows = (
            read.select(*OFFSET_KEY, "offset", "process", "index", "complete_ns")
            .join(stored, on=[*OFFSET_KEY, "offset"], how="inner")
            .where(F.col("complete_ns") < F.col("counts_from"))
            .withColumn(
                "wrong", F.when(F.col("counts_from") == _NEVER_NS, "aborted or is open").otherwise("still open")
            )
        )
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "Offsets of a transaction count if it commits: {process} read back {offset} of {topic}-{partition} for "
                "group {group}, and every transaction that commits that offset was {wrong}."
            ),
            evidence=F.array(
                event("committed_offsets", "process", "index", "group", "topic", "partition", "offset", "complete_ns"),
                event("committed_offsets", "log_offset", "counts_from"),
            ),
        )

    def _old(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        rows = _of_members(facts["transactional_commits"]).where(F.col("generation") < F.col("group_generation"))
        return finding(
            self.judged(rows, facts, settings),
            self.name,
            severity=F.col("severity"),
            message=(
                "A member of an old generation commits nothing: {transactional_id} committed {offset} of "
                "{topic}-{partition} for {group} in generation {generation}, and the group was in {group_generation}."
            ),
            evidence=F.array(
                event(
                    "transactional_commits",
                    *("broker", "incarnation", "seq", "group", "member", "generation", "group_generation", "offset"),
                )
            ),
        )


PLUGIN: type[Check] = TransactionalOffsets
