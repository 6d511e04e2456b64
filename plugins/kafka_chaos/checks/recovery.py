"""I20: after the last heal the cluster is complete again within the deadline.

At the end every partition has a live leader, and every assigned replica whose broker is registered is in the ISR. A
lagging follower joins as soon as it has caught up, and a stuck one is out after `replica.lag.time.max.ms`; so what is
missing a minute after the last heal stays missing. A run that ended before that proves nothing, and if all members of
the ISR are down no replica may lead unless unclean election is allowed: both are notes. No request takes longer than
that either, even if it ends with an error. A client that wrote nothing later than its open request may have died:
only the time in which it certainly lived counts. A fault that kills a client ends its requests.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.assumptions import HEALED
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.analysis.check_helpers.open_requests import CLIENTS_LIVE, DEADLINE_S, open_requests, quiet_since
from harness.analysis.frames import PARTITION_KEY, contains, stored
from harness.contracts.checks import Assumption, Check, Settings, Severity, Subject
from harness.events import NO_LEADER


class Recovery(Check):
    """The last state of every partition, and the brokers registered then."""

    name: ClassVar[str] = "I20"
    title: ClassVar[str] = "I20 recovery"
    promise: ClassVar[str] = (
        "After the last heal every partition has a live leader and all live replicas in its ISR, and every request is "
        "answered or fails, within a minute."
    )
    needs: ClassVar[tuple[str, ...]] = ("partition_states", "registrations", "sends")
    reads: ClassVar[tuple[str, ...]] = ("fault_windows", "topics")
    judges_without: ClassVar[tuple[str, ...]] = ("broker_registered",)
    assumes: ClassVar[tuple[Assumption, ...]] = (HEALED,)
    covers: ClassVar[tuple[Subject, ...]] = (CLIENTS_LIVE,)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a partition that is not complete, and one a client without an answer."""
        quiet = stored(quiet_since(facts["fault_windows"], facts["sends"]))
        return self._not_whole(facts, quiet, settings).unionByName(self._unanswered(facts, quiet))

    def _not_whole(self, facts: dict[str, DataFrame], quiet: DataFrame, settings: Settings) -> DataFrame:
        members = F.filter("assignment", lambda replica: contains("live", replica))
        missing = F.array_except(members, F.col("isr"))
        leaderless = (F.size(members) > 0) & ~contains("live", F.col("leader"))
        rows = (
            _last_states(facts["partition_states"], facts["topics"])
            .join(_live(facts["registrations"]), on="run_id", how="inner")
            .join(quiet, on="run_id", how="inner")
            .withColumn("quiet_s", (F.col("ended_ns") - F.col("healed_ns")) / 1e9)
            .withColumn("missing", missing)
            .withColumn("leaderless", leaderless)
            .where(F.col("leaderless") | (F.size("missing") > 0))
        )
        late = F.coalesce(F.col("quiet_s") >= DEADLINE_S, F.lit(True))
        may_lead = F.arrays_overlap("isr", "live") | F.lit(settings.unclean_leader_election)
        return finding(
            rows,
            self.name,
            severity=F.when(late & may_lead, Severity.VIOLATION.value).otherwise(Severity.NOTE.value),
            message=phrase(
                "After the last heal every partition has its leader and ISR: {topic}-{partition} ended with {leader} "
                "and ISR {isr}, while brokers {live} are registered and {assignment} are assigned.",
                leader=F.when(F.col("leader") == NO_LEADER, "no leader").otherwise(phrase("leader {leader}")),
                isr=ids("isr"),
                live=ids("live"),
                assignment=ids("assignment"),
            ),
            evidence=F.array(
                event(
                    "partition_states", "zxid", "zk_version", "leader", "leader_epoch", "isr", "assignment", "quiet_s"
                )
            ),
        )

    def _unanswered(self, facts: dict[str, DataFrame], quiet: DataFrame) -> DataFrame:
        rows = (
            open_requests(facts["sends"], quiet, facts["fault_windows"])
            .where(F.col("waited_s") >= DEADLINE_S)
            .groupBy(*PARTITION_KEY, "process")
            .agg(F.count("*").alias("number"), F.min("index").alias("index"), F.max("waited_s").alias("waited_s"))
        )
        return finding(
            rows,
            self.name,
            message=(
                "After the last heal every request is answered or fails: {number} of {process} to {topic} got no "
                "answer and did not fail, the oldest for {waited_s:.0f} s."
            ),
            evidence=F.array(event("sends", "process", "index", "number", "waited_s")),
        )


def _last_states(states: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a partition that is still there: its last state, with what its topic assigns at the end.

    A reassignment shrinks the ISR before it names the replicas that stay, so a state may be older than its assignment.
    """
    gone = topics.where(~F.col("present") | F.col("deletion_pending"))
    columns = ("zxid", "zk_version", "leader", "leader_epoch", "isr", "assignment")
    assigned = topics.select("run_id", "topic", F.inline("assignment")).withColumnRenamed("replicas", "latest")
    return (
        states.groupBy(*PARTITION_KEY)
        .agg(F.max_by(F.struct(*columns), "zxid").alias("last"))
        .select(*PARTITION_KEY, "last.*")
        .join(gone, on=["run_id", "topic"], how="left_anti")
        .join(assigned, on=list(PARTITION_KEY), how="left")
        .withColumn("assignment", F.coalesce("latest", "assignment"))
        .drop("latest")
    )


def _live(registrations: DataFrame) -> DataFrame:
    """One row a run: the brokers that are registered at the end."""
    stands = (F.col("source") == "zookeeper") & F.col("until_zxid").isNull()
    return registrations.groupBy("run_id").agg(
        F.array_sort(F.collect_set(F.when(stands, F.col("broker")))).alias("live")
    )


PLUGIN: type[Check] = Recovery
