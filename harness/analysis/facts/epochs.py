"""Leaders by partition and epoch, by ZooKeeper's history and the brokers' own logs."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.facts.znodes import with_time_ns
from harness.analysis.frames import PARTITION_KEY, conform, contains, in_order
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.schemas import APPENDS, ISR_CHANGES, LEADER_EPOCHS, LEADERSHIP_CLAIMS, PARTITION_STATES
from harness.events import NO_LEADER
from harness.values import ACKS_ALL

STATE_PATH = r"^/brokers/topics/([^/]+)/partitions/(\d+)/state$"
_TOPIC_PATH = r"^/brokers/topics/([^/]+)$"
_STATE_JSON = (
    "leader int, leader_epoch int, isr array<int>, eligible array<int>, last_known array<int>, controller_epoch int"
)


def partition_states(history: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a version of a partition's state znode, beside the version seen before it in the znode's same life."""
    at_path = in_order("run_id", "path", by=("zxid",))
    states = (
        history.where(F.col("path").rlike(STATE_PATH))
        .withColumn("life", F.sum(F.when(F.col("type") == "create", 1).otherwise(0)).over(at_path))
        .where(F.col("type") != "delete")
        .withColumn("state", F.from_json("data", _STATE_JSON))
        .where(F.col("state").isNotNull())
        .select(
            "run_id",
            "path",
            F.regexp_extract("path", STATE_PATH, 1).alias("topic"),
            F.regexp_extract("path", STATE_PATH, 2).try_cast("int").alias("partition"),
            "life",
            "zxid",
            "time_ms",
            F.col("version").alias("zk_version"),
            "state.*",
        )
    )
    assigned = _with_assignment(_with_writer(states, state_changes), history)
    in_life = in_order("run_id", "topic", "partition", "life", by=("zxid",))
    before = [
        F.lag(name).over(in_life).alias(f"previous_{name}")
        for name in ("zk_version", "leader", "leader_epoch", "isr", "eligible", "last_known", "controller_epoch")
    ]
    assignment = F.array_join(F.col("assignment").cast("array<string>"), ",")  # Sail 0.7 collects no arrays in windows
    listed = F.concat_ws(",", F.collect_list(assignment).over(in_life))
    once = F.when(listed != "", F.array_distinct(F.split(listed, ",").cast("array<int>"))).alias("once_assigned")
    return conform(with_time_ns(assigned, state_changes).select("*", *before, once), PARTITION_STATES)


def _with_writer(states: DataFrame, state_changes: StateChanges) -> DataFrame:
    """Add the writer of each version, if exactly one broker logged the write."""
    writes = (
        state_changes.of("zk_write")
        .where((F.col("result") == "ok") & (F.col("new_version") >= 0))
        .groupBy("run_id", "path", F.col("new_version").alias("zk_version"))
        .agg(F.min("by").alias("writer"), F.count_distinct("by").alias("writers"))
        .where(F.col("writers") == 1)
        .drop("writers")
    )
    return states.join(writes, on=["run_id", "path", "zk_version"], how="left")


def _with_assignment(states: DataFrame, history: DataFrame) -> DataFrame:
    """Add the replicas that the topic's znode assigned when the state was written, and how many until the next one."""
    topics = (
        history.where(F.col("path").rlike(_TOPIC_PATH) & (F.col("type") != "delete"))
        .withColumn("topic_json", F.from_json("data", "partitions map<string, array<int>>"))
        .select(
            "run_id",
            F.regexp_extract("path", _TOPIC_PATH, 1).alias("topic"),
            "zxid",
            F.explode("topic_json.partitions").alias("partition_text", "assigned"),
        )
        .withColumns({"partition": F.col("partition_text").try_cast("int"), "number": F.size("assigned")})
        .drop("partition_text")
    )
    both = states.unionByName(topics, allowMissingColumns=True)
    until_now = in_order(*PARTITION_KEY, by=("zxid",))
    latest, number = (F.last(name, ignorenulls=True).over(until_now) for name in ("assigned", "number"))
    until_next = Window.partitionBy(*PARTITION_KEY, "states")
    return (
        both.withColumns({"assignment": latest, "number": number, "states": F.count("zk_version").over(until_now)})
        .withColumn("fewest_replicas", F.min("number").over(until_next))
        .withColumn("most_replicas", F.max("number").over(until_next))
        .where(F.col("zk_version").isNotNull())
    )


def isr_changes(states: DataFrame) -> DataFrame:
    """One row a version of a state znode that holds another ISR than the version before; the creation is one."""
    before = F.coalesce("previous_isr", F.array().cast("array<int>"))
    changed = F.array_sort("isr") != F.array_sort(before)
    rows = states.where(changed).withColumn("old_isr", before).withColumnRenamed("isr", "new_isr")
    return conform(
        rows.withColumns({"may_be_empty": may_be_empty(), "has_removed_replicas": has_removed_replicas("new_isr")}),
        ISR_CHANGES,
    )


def has_removed_replicas(isr: str) -> Column:
    """Say whether an ISR has former replicas of the partition and, beside them, only assigned ones.

    The leader learns of a smaller assignment after the controller wrote it. Meanwhile a former replica can enter the
    ISR (KAFKA-9672); the leader removes it when it next looks for members that lag.
    """
    strangers = F.size(F.array_except(isr, "assignment"))
    return F.coalesce((strangers > 0) & (F.size(F.array_except(isr, "once_assigned")) == 0), F.lit(False))


def may_be_empty() -> Column:
    """Say whether a version of a state may have no ISR: others may lead, or the last leader is known and there is none.

    KIP-966: where a broker's log may lack what its page cache had, the controller takes it out of the ISR and of the
    eligible replicas, and remembers it as the last known leader, to elect it once it is back.
    """
    no_replica_leads = (F.col("leader") == NO_LEADER) & (F.size("last_known") > 0)
    return F.coalesce(F.size("eligible") > 0, F.lit(False)) | F.coalesce(no_replica_leads, F.lit(False))


def leadership_claims(state_changes: StateChanges) -> DataFrame:
    """One row each time that a broker says it became leader or follower."""
    leads = F.col("ev") == "become_leader"
    return conform(
        state_changes.of("become_leader", "become_follower")
        .withColumn("role", F.when(leads, "leader").otherwise("follower"))
        .withColumn("leader", F.when(leads, F.col("broker")).otherwise(F.col("leader"))),
        LEADERSHIP_CLAIMS,
    )


def appends(state_changes: StateChanges) -> DataFrame:
    """One row a broker and leader epoch in which it wrote to its log, as leader or as follower."""
    return conform(
        state_changes.of("append")
        .withColumn("for_all", F.col("acks") == ACKS_ALL)
        .groupBy("run_id", "broker", "topic", "partition", "role", "leader_epoch")
        .agg(
            F.min("base_offset").alias("first_offset"),
            F.max("last_offset").alias("last_offset"),
            F.count("*").alias("batches"),
            F.sum(F.col("for_all").cast("int")).alias("acks_all"),
            F.min(F.when(F.col("for_all"), F.col("isr_size"))).alias("smallest_isr"),
        ),
        APPENDS,
    )


def leader_epochs(states: DataFrame, claims: DataFrame, appends: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a leader in one leader epoch; a broker that claims an epoch of another one has a row of its own.

    `states`, `claims` and `appends` are the facts `partition_states`, `leadership_claims` and `appends`.
    """
    key = [*PARTITION_KEY, "leader_epoch", "leader"]
    decided = (
        states.groupBy(*key)
        .agg(
            F.min_by(
                F.struct(
                    "life",
                    "isr",
                    "controller_epoch",
                    "zk_version",
                    "zxid",
                    "time_ns",
                    "assignment",
                    "previous_leader",
                    "previous_isr",
                    "previous_eligible",
                    "previous_last_known",
                    "previous_zk_version",
                ),
                "zxid",
            ).alias("first")
        )
        .select(*key, "first.*")
    )
    claimed = (
        claims.where(F.col("role") == "leader")
        .select(*key, "log_end_offset")
        .unionByName(
            appends.where(F.col("role") == "leader").select(
                *PARTITION_KEY, "leader_epoch", F.col("broker").alias("leader")
            ),
            allowMissingColumns=True,
        )
        .groupBy(*key)
        .agg(F.min("log_end_offset").alias("start_offset"))
        .withColumn("claimed", F.lit(True))
    )
    adjacent = F.col("zk_version") == F.col("previous_zk_version") + 1
    no_replica = F.array().cast("array<int>")
    eligible = F.concat("previous_isr", F.coalesce("previous_eligible", no_replica))
    may_lead = F.when(F.size(eligible) == 0, F.coalesce("previous_last_known", no_replica)).otherwise(eligible)
    outside = ~contains(may_lead, F.col("leader"))
    unclean_by_isr = F.when(F.col("leader") == NO_LEADER, False).when(adjacent & ~_completes_reassignment(), outside)
    first_version = F.col("zk_version").isNotNull() & F.col("previous_zk_version").isNull() & (F.col("zk_version") == 0)
    return conform(
        decided.join(claimed, on=key, how="full")
        .join(_elections(state_changes), on=key, how="left")
        .withColumn("claimed", F.coalesce("claimed", F.lit(False)))
        .withColumn("unclean", F.coalesce(unclean_by_isr, F.when(first_version, False), "logged_unclean")),
        LEADER_EPOCHS,
    )


def _completes_reassignment() -> Column:
    """Say whether a quorum removed the leader before; the same write then adds the last new replica to the ISR.

    The ISR between the two is the leader's proposal, and in no record (`PartitionChangeBuilder.completeReassignment`).
    """
    of_quorum = F.col("previous_eligible").isNotNull()
    return F.coalesce(of_quorum & ~contains("assignment", F.col("previous_leader")), F.lit(False))


def _elections(state_changes: StateChanges) -> DataFrame:
    """One row a leader and leader epoch that a controller logged: `logged_unclean`, and `unclean_allowed`."""
    return (
        state_changes.of("election")
        .where(F.col("result").isNotNull())
        .withColumn("decided", F.from_json("result", "leader int, leader_epoch int"))
        .groupBy("run_id", "topic", "partition", "decided.leader_epoch", "decided.leader")
        .agg(F.max("unclean").alias("logged_unclean"), F.max("unclean_allowed").alias("unclean_allowed"))
    )
