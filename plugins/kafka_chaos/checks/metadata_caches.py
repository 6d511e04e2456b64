"""I29: after the last heal every broker's metadata cache agrees with ZooKeeper.

Clients and followers go where a broker's metadata cache sends them. Only the controller feeds it, so what the
controller omits stays wrong for good (KIP-380, Kafka's `MetadataCache`). Each registered broker's cache at the end of
the load is compared with the content of ZooKeeper that is older than a while: a leader that has just moved is left out,
live brokers count only if no broker has come or gone since, and deleted topics only if the last state of their
partitions was written that long ago. Both are judged only if the last heal is that long ago, too.

The controller notifies the brokers that are registered when the deletion of a topic begins, in Kafka too. A broker that
registered later without a restart keeps the topic, which is a note. So does one that was not reached before another
broker became controller: the requests that wait for a broker end with their controller, and the next one does not name
a partition whose state is gone (`ControllerChannelManager`). The last write of a partition's state counts as part of
the deletion: a controller that finds the state writes it again.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import HEALED, has_field
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.analysis.frames import PARTITION_KEY, stored
from harness.contracts.checks import Assumption, Check, Settings, Severity

SETTLED_S = 2
"""Longer than a controller takes to notify all brokers."""
ISR_SETTLED_S = 15
"""A leader notifies the controller of changed ISRs 7.5 s after the last of them at the latest, as it looks every 2.5 s
whether 5 s have passed (Kafka's `IsrChangePropagationConfig`); twice that is enough for the rest on a busy machine."""
_CACHE = ("run_id", "broker")


def _without_live_brokers(caches: DataFrame) -> DataFrame:
    """The runs in which no broker logs its live brokers; a broker without an update logs none."""
    known = caches.groupBy("run_id").agg(F.count("live_brokers").alias("known"))
    return known.where(F.col("known") == 0)


class MetadataCaches(Check):
    """The metadata cache of every registered broker, beside ZooKeeper."""

    name: ClassVar[str] = "I29"
    title: ClassVar[str] = "I29 metadata-caches"
    promise: ClassVar[str] = (
        "After the last heal every broker's metadata cache has the live brokers, partitions, leaders and ISRs of "
        "ZooKeeper, and no deleted topic (MetadataCache)."
    )
    needs: ClassVar[tuple[str, ...]] = ("metadata_caches", "partition_states", "registrations", "topics")
    fields: ClassVar[tuple[str, ...]] = ("ctl_recv.live_brokers",)
    reads: ClassVar[tuple[str, ...]] = ("controller_epochs", "fault_windows")
    assumes: ClassVar[tuple[Assumption, ...]] = (
        has_field("live_brokers", "metadata_caches", _without_live_brokers),
        HEALED,
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a broker with other live brokers, and one a partition with another state in its cache."""
        registrations = facts["registrations"].where(F.col("source") == "zookeeper")
        registered = registrations.where(F.col("until_zxid").isNull()).select(*_CACHE, "czxid")
        changed = registrations.groupBy("run_id").agg(
            F.greatest(F.max("time_ns"), F.max("until_ns")).alias("changed_ns")
        )
        healed = facts["fault_windows"].groupBy("run_id").agg(F.max("healed_ns").alias("healed_ns"))
        caches = stored(
            facts["metadata_caches"]
            .join(registered, on=list(_CACHE), how="inner")
            .join(healed, on="run_id", how="left")
        )
        quiet = caches.where(F.coalesce(_before_end(F.col("healed_ns")), F.lit(True)))
        states = stored(_last_states(facts["partition_states"], facts["topics"]))
        return (
            self._brokers(quiet, registered, changed)
            .unionByName(self._partitions(caches, states))
            .unionByName(self._isrs(caches, states))
            .unionByName(self._deleted(quiet, facts))
        )

    def _brokers(self, caches: DataFrame, registered: DataFrame, changed: DataFrame) -> DataFrame:
        live = registered.groupBy("run_id").agg(F.array_sort(F.collect_set("broker")).alias("live"))
        settled = caches.join(changed, on="run_id", how="left").where(
            F.coalesce(_before_end(F.col("changed_ns")), F.lit(True))
        )
        believed = settled.groupBy(*_CACHE).agg(F.array_sort(F.max("live_brokers")).alias("believed"))
        rows = believed.join(live, on="run_id", how="inner").where(~F.col("believed").eqNullSafe(F.col("live")))
        return finding(
            rows,
            self.name,
            message=phrase(
                "Every broker knows the live brokers: broker {broker} has {believed}, and {live} are registered.",
                believed=ids("believed"),
                live=ids("live"),
            ),
            evidence=F.array(event("metadata_caches", "broker", "believed"), event("registrations", "live")),
        )

    def _partitions(self, caches: DataFrame, states: DataFrame) -> DataFrame:
        held = caches.select(*_CACHE, "topic", "partition", F.struct("seq", "leader", "leader_epoch").alias("held"))
        brokers = caches.select(*_CACHE, "ended_ns").distinct()
        same = (F.col("held.leader") == F.col("state.leader")) & (
            F.col("held.leader_epoch") == F.col("state.leader_epoch")
        )
        rows = (
            brokers.join(states, on="run_id", how="inner")
            .where(_before_end(F.col("state.time_ns")))
            .join(held, on=[*_CACHE, "topic", "partition"], how="left")
            .where(~F.coalesce(same, F.lit(False)))
        )
        return finding(
            rows,
            self.name,
            leader_epoch="state.leader_epoch",
            message=phrase(
                "Every broker knows the leaders: for {topic}-{partition} broker {broker} has {believed}, and "
                "ZooKeeper has leader {state.leader} in epoch {state.leader_epoch}.",
                believed=F.when(F.col("held").isNull(), "nothing").otherwise(
                    phrase("leader {held.leader} in epoch {held.leader_epoch}")
                ),
            ),
            evidence=F.array(event("metadata_caches", "broker", "held"), event("partition_states", "state")),
        )

    def _isrs(self, caches: DataFrame, states: DataFrame) -> DataFrame:
        changed = states.groupBy("run_id").agg(F.max("state.time_ns").alias("changed_ns"))
        rows = (
            caches.join(states, on=list(PARTITION_KEY), how="inner")
            .join(changed, on="run_id", how="inner")
            .where(F.col("leader_epoch") == F.col("state.leader_epoch"))
            .where(F.array_sort("isr") != F.array_sort("state.isr"))
            .where(_before_end(F.greatest("changed_ns", "healed_ns"), ISR_SETTLED_S))
        )
        return finding(
            rows,
            self.name,
            leader_epoch="state.leader_epoch",
            message=phrase(
                "Every broker knows the ISRs: for {topic}-{partition} broker {broker} has {held}, and ZooKeeper has "
                "had {isr} for {s:.1f} s.",
                held=ids("isr"),
                isr=ids("state.isr"),
                s=(F.col("ended_ns") - F.col("state.time_ns")) / 1e9,
            ),
            evidence=F.array(
                event("metadata_caches", "broker", "incarnation", "seq", "isr"), event("partition_states", "state")
            ),
        )

    def _deleted(self, caches: DataFrame, facts: dict[str, DataFrame]) -> DataFrame:
        last = (
            facts["partition_states"]
            .groupBy("run_id", "topic")
            .agg(F.max("zxid").alias("last_zxid"), F.max("time_ns").alias("last_ns"))
        )
        reigns = facts["controller_epochs"].where(F.col("source") == "zookeeper")
        elected = reigns.groupBy("run_id").agg(F.max("zxid").alias("elected_zxid"))
        deleted = (
            facts["topics"]
            .where(~F.col("present"))
            .join(last, on=["run_id", "topic"], how="left")
            .join(elected, on="run_id", how="left")
            .withColumn("began_zxid", F.least("zxid", "last_zxid"))
            .select("run_id", "topic", "zxid", "began_zxid", "last_ns", "elected_zxid")
        )
        settled = F.coalesce(_before_end(F.col("last_ns")), F.lit(True))
        rows = caches.join(deleted, on=["run_id", "topic"], how="inner").where(settled)
        missed = (F.col("czxid") > F.col("began_zxid")) | (F.col("elected_zxid") > F.col("began_zxid"))
        return finding(
            rows,
            self.name,
            severity=F.when(missed, Severity.NOTE.value).otherwise(Severity.VIOLATION.value),
            message=(
                "No broker knows a topic that was deleted: broker {broker} has leader {leader} of {topic}-{partition}."
            ),
            evidence=F.array(
                event("metadata_caches", "broker", "incarnation", "seq", "leader", "leader_epoch"),
                event("topics", "topic", "zxid"),
            ),
        )


def _last_states(partition_states: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a partition of a topic that stays: its last state."""
    gone = topics.where(~F.col("present") | F.col("deletion_pending"))
    last = F.struct("zxid", "leader", "leader_epoch", "isr", "time_ns")
    return (
        partition_states.groupBy(*PARTITION_KEY)
        .agg(F.max_by(last, "zxid").alias("state"))
        .join(gone, on=["run_id", "topic"], how="left_anti")
    )


def _before_end(instant_ns: Column, settled_s: int = SETTLED_S) -> Column:
    """Whether something had settled when the load ended."""
    return (F.col("ended_ns") - instant_ns) / 1e9 >= settled_s


PLUGIN: type[Check] = MetadataCaches
