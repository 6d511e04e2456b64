"""leader-in-time: while a controller is in office, a partition with a live member of its ISR has a leader.

A controller elects when a leader's broker goes, at a failover for all partitions without a live leader, and when a
broker comes that may lead (Kafka's `KafkaController.onBrokerFailure`, `PartitionStateMachine.startup`). So once it has
gone through the registrations, from their reading to the end of the event, no such partition is left, except one whose
ISR had no live member when it began: the leader before may have added one since. A former replica that is still in the
ISR (KAFKA-9672) is no candidate. Where the log does not show that, a controller is out of office after a session
time-out without an answer of ZooKeeper, and one with answers elects: there is a leader within the session time-out and
a margin for the machine.
"""

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.disturbances import impaired, without_disturbed
from harness.analysis.check_helpers.findings import event, finding, ids, phrase
from harness.analysis.frames import PARTITION_KEY, in_order, stored
from harness.contracts.checks import Check, Settings
from harness.events import NO_LEADER

WRITTEN_WITHIN_NS = 100_000_000
"""By so much the wall clock of ZooKeeper may be off."""
ELECTED_WITHIN_NS = 20_000_000_000
"""Most time from the notification about a broker to the end of all elections, on a busy machine."""
_SPAN = (*PARTITION_KEY, "zk_version", "zxid")


class LeaderInTime(Check):
    """The spans in which a partition had no live leader although one could be elected."""

    name: ClassVar[str] = "leader-in-time"
    title: ClassVar[str] = "leader-in-time"
    promise: ClassVar[str] = (
        "A partition with a live member of its ISR has a leader once the controller in office has gone through the "
        "live brokers, and at the latest within the session time-out and 20 s (KafkaController.onBrokerFailure)."
    )
    needs: ClassVar[tuple[str, ...]] = ("partition_states", "registrations", "controller_epochs")
    reads: ClassVar[tuple[str, ...]] = ("controller_passes", "fault_windows", "topics")
    judges_without: ClassVar[tuple[str, ...]] = (
        *("controller_elected", "controller_event", "controller_ready", "registrations_read"),
    )

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a version of a partition's state that should have been replaced."""
        held = facts["registrations"].where(F.col("source") == "zookeeper")
        states = stored(_states(facts["partition_states"], held, facts["topics"]))
        ineligible = impaired(facts["fault_windows"])
        passed = self._passed(states, facts["controller_passes"], ineligible)
        spans = _spans(states, held, facts["controller_epochs"]).join(
            ineligible, on=["run_id", "member"], how="left_anti"
        )
        longest_ns = F.lit(settings.session_timeout_ms).cast("bigint") * 1_000_000 + ELECTED_WITHIN_NS
        slow = (
            without_disturbed(spans, facts["fault_windows"], since="from_ns", until="to_ns")
            .where(F.col("to_ns") - F.col("from_ns") > longest_ns)
            .join(passed, on=list(_SPAN), how="left_anti")
            .withColumn("why", phrase("within the {s:.0f} s that it may take", s=longest_ns / 1e9))
        )
        rows = (
            passed.unionByName(slow, allowMissingColumns=True)
            .groupBy(*_SPAN)
            .agg(F.max_by(F.struct(*_SHOWN), F.col("to_ns") - F.col("from_ns")).alias("shown"))
        )
        return finding(
            rows.select(*_SPAN, "shown.*"),
            self.name,
            message=phrase(
                "A partition that can have a leader has one: {topic}-{partition} had {leader} for {for_s:.1f} s, "
                "with broker {member} of its ISR {isr} alive and controller {controller} in office, which elected "
                "none {why}.",
                leader=F.when(F.col("leader") == NO_LEADER, "no leader").otherwise(phrase("the dead leader {leader}")),
                for_s=(F.col("to_ns") - F.col("from_ns")) / 1e9,
                isr=ids("isr"),
            ),
            evidence=F.array(
                event("partition_states", *_SPAN[1:], "leader", "leader_epoch", "isr"),
                event("registrations", "member as broker", "czxid"),
                event("controller_epochs", "controller as broker", "controller_epoch"),
                F.when(F.col("seq").isNotNull(), event("controller_passes", "controller as broker", "seq", "name")),
            ),
        )

    def _passed(self, states: DataFrame, passes: DataFrame, ineligible: DataFrame) -> DataFrame:
        """The versions without a leader that a controller left behind when it had gone through the registrations."""
        read = passes.select(
            "run_id",
            F.col("broker").alias("controller"),
            "controller_epoch",
            "name",
            "seq",
            "brokers",
            "began_ns",
            F.col("time_ns").alias("ended_ns"),
        )
        of_pass = [*PARTITION_KEY, "controller", "seq"]
        before = (
            states.join(read, on="run_id", how="inner")
            .where((F.col("from_ns") <= F.col("began_ns")) & (F.col("to_ns") > F.col("began_ns")))
            .select(*of_pass, F.col("isr").alias("isr_before"))
        )
        excluded = ineligible.groupBy("run_id").agg(F.collect_set("member").alias("excluded"))
        candidates = F.array_intersect(F.array_intersect("electable", F.coalesce("isr_before", "isr")), "brokers")
        may_lead = F.array_except(candidates, F.coalesce("excluded", F.array().cast("array<int>")))
        return (
            states.join(read, on="run_id", how="inner")
            .where((F.col("from_ns") <= F.col("ended_ns")) & (F.col("to_ns") > F.col("ended_ns") + WRITTEN_WITHIN_NS))
            .where(~F.array_contains("brokers", F.col("leader")))
            .join(before, on=of_pass, how="left")
            .join(excluded, on="run_id", how="left")
            .withColumn("member", F.try_element_at(may_lead, F.lit(1)))
            .where(F.col("member").isNotNull())
            .withColumn(
                "why", phrase("in its {name}, which read that {brokers} are registered", brokers=ids("brokers"))
            )
        )


_SHOWN = (
    "leader",
    "leader_epoch",
    "isr",
    "member",
    "czxid",
    "controller",
    "controller_epoch",
    "from_ns",
    "to_ns",
    "seq",
    "name",
    "why",
)


def _spans(states: DataFrame, held: DataFrame, controller_epochs: DataFrame) -> DataFrame:
    """One row a version of a state, a time in which its leader was away, a live member of its ISR and a controller.

    From `from_ns` to `to_ns` all of that was so at once.
    """
    away = held.select(
        "run_id",
        F.col("broker").alias("leader"),
        F.col("until_ns").alias("since_ns"),
        F.lead("time_ns").over(in_order("run_id", "broker", by=("czxid",))).alias("till_ns"),
    ).where(F.col("since_ns").isNotNull())
    leaderless = states.where(F.col("leader") == NO_LEADER).unionByName(_meanwhile(states, away, "run_id", "leader"))
    alive = [F.col("time_ns").alias("since_ns"), F.col("until_ns").alias("till_ns")]
    members = held.select("run_id", F.col("broker").alias("member"), "czxid", *alive)
    controllers = controller_epochs.where(F.col("source") != "broker").select(
        "run_id",
        F.col("broker").alias("controller"),
        "controller_epoch",
        F.col("time_ns").alias("since_ns"),
        F.col("left_ns").alias("till_ns"),
    )
    with_members = _meanwhile(leaderless.withColumn("member", F.explode("electable")), members, "run_id", "member")
    return _meanwhile(with_members, controllers, "run_id")


def _states(partition_states: DataFrame, held: DataFrame, topics: DataFrame) -> DataFrame:
    """One row a version of a state of a topic that stays, from when to when it was in force."""
    last = F.max(F.greatest("time_ns", "until_ns"))
    ended = held.groupBy("run_id").agg(last.alias("ended_ns"))
    gone = topics.where(~F.col("present") | F.col("deletion_pending"))
    following = F.lead("time_ns").over(in_order(*PARTITION_KEY, by=("zxid",)))
    return (
        partition_states.withColumn("to_ns", following)
        .join(gone, on=["run_id", "topic"], how="left_anti")
        .join(ended, on="run_id", how="left")
        .select(
            *_SPAN,
            "leader",
            "leader_epoch",
            "isr",
            F.array_intersect("isr", F.coalesce("assignment", "isr")).alias("electable"),
            F.col("time_ns").alias("from_ns"),
            F.coalesce("to_ns", "ended_ns").alias("to_ns"),
        )
    )


def _meanwhile(spans: DataFrame, others: DataFrame, *key: str) -> DataFrame:
    """Return the parts of spans in which something else lasted, from its `since_ns` to its `till_ns`, null for ever."""
    from_ns = F.greatest("from_ns", "since_ns")
    to_ns = F.least("to_ns", "till_ns")
    return (
        spans.join(others, on=list(key), how="inner")
        .withColumns({"from_ns": from_ns, "to_ns": to_ns})
        .where(F.col("from_ns") < F.col("to_ns"))
        .drop("since_ns", "till_ns")
    )


PLUGIN: type[Check] = LeaderInTime
