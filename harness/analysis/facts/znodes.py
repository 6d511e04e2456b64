"""What changed in ZooKeeper, when on the harness's clock, and which controllers, brokers and topics were there?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import conform, in_order, in_turn
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import (
    BROKER_LOGS,
    DELETIONS,
    PRODUCER_ID_BLOCKS,
    REGISTRATIONS,
    TOPIC_CONFIGS,
    TOPICS,
)
from harness.analysis.tables.schemas import CONTROLLER_EPOCHS

_REGISTRATION_PATH = r"^/brokers/ids/(\d+)$"
_PRODUCER_ID_PATH = "/latest_producer_id_block"
_CONFIG_PATH = r"^/config/topics/([^/]+)$"
_CONTROLLER = "brokerid bigint, kraftControllerEpoch bigint"
_ASSIGNMENT = """transform(
    map_entries(from_json(own.data, 'partitions map<string, array<int>>').partitions),
    each -> named_struct('partition', try_cast(each.key AS int), 'replicas', each.value))"""
_MOVES = "adding_replicas map<string, array<int>>, removing_replicas map<string, array<int>>"
_REASSIGNED = """transform(
    array_union(map_keys(moves.adding_replicas), map_keys(moves.removing_replicas)), each -> try_cast(each AS int))"""
_REPLICAS = """array_distinct(flatten(map_values(
    from_json(content.data, 'partitions map<string, array<int>>').partitions)))"""
_REASSIGNMENT_PATH = "/admin/reassign_partitions"
_TOPIC_PATHS = r"^(/brokers/topics|/config/topics|/admin/delete_topics)/([^/]+)$"


def changes(zookeeper: DataFrame) -> DataFrame:
    """One row a change of a znode; where both sources have it, as the server's transaction log has it.

    One transaction may change a path twice (delete and create in one multi), hence the type in the key.
    """
    by_trust = in_turn(F.col("source") == "transaction_log", "time_ms", "data")
    return (
        zookeeper.where(F.col("path").isNotNull())
        .groupBy("run_id", "zxid", "path", "type")
        .agg(F.max_by(F.struct("time_ms", "data", "version", "session", "ephemeral_owner"), by_trust).alias("change"))
        .select("run_id", "zxid", "path", "type", "change.*")
    )


def with_time_ns(rows: DataFrame, state_changes: StateChanges, **instants: str) -> DataFrame:
    """Add `time_ns`, the instant of `time_ms` on the monotonic clock; null where no broker logged its start.

    `instants` names further columns to add, each with the column of its milliseconds.

    How far the wall clock is ahead of the monotonic one, the first start of a broker says, before any fault.
    """
    offsets = (
        state_changes.of("broker_start")
        .groupBy("run_id")
        .agg(F.min_by(F.col("ts") - F.col("time_ns"), "time_ns").alias("clock_offset_ns"))
    )
    columns = {
        name: F.col(milliseconds) * 1_000_000 - F.col("clock_offset_ns")
        for name, milliseconds in {"time_ns": "time_ms", **instants}.items()
    }
    return rows.join(offsets, on="run_id", how="left").withColumns(columns)


def controller_epochs(history: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a controller: once by ZooKeeper's history, or by a quorum's, and once more by its broker's log.

    The winner creates `/controller` and raises `/controller_epoch` in one multi, so both carry the same zxid. Before
    Kafka 2.2 these were two transactions (KAFKA-6082), and another may be controller by the second, so an epoch is
    whose session raised it; where only the observer saw that, and no session, whose `/controller` was there then.
    """
    is_epoch, is_there = F.col("path") == "/controller_epoch", F.col("type") != "delete"
    of_controller = [F.when(is_there, F.col(name)).alias(name) for name in ("data", "ephemeral_owner")]
    holder = F.when(~is_epoch, F.struct(*of_controller))
    order_in_multi = F.when(is_epoch, 2).when(is_there, 1).otherwise(0)
    of_session = in_order("run_id", "session", by=("zxid", "order_in_multi"))
    elected = (
        history.where((F.col("path") == "/controller") | (is_epoch & is_there))
        .withColumn("order_in_multi", order_in_multi)
        .withColumn("holder", F.last(holder, ignorenulls=True).over(of_session))
        .withColumn("left_ms", F.lead("time_ms").over(in_order("run_id", by=("zxid", "order_in_multi"))))
        .where(is_epoch)
        .select(
            "run_id",
            "zxid",
            "time_ms",
            "left_ms",
            F.col("data").try_cast("bigint").alias("controller_epoch"),
            F.col("version").alias("zk_version"),
            F.col("holder.ephemeral_owner").alias("session"),
            F.from_json("holder.data", _CONTROLLER).alias("winner"),
        )
        .where(F.col("controller_epoch") > 0)
        .select("*", F.col("winner.brokerid").alias("broker"), "winner.kraftControllerEpoch")
    )
    by_zookeeper = (
        with_time_ns(elected, state_changes, left_ns="left_ms")
        .withColumn("source", F.when(F.col("kraftControllerEpoch") >= 0, "quorum").otherwise("zookeeper"))  # -1: none
        .withColumn("until_zxid", F.lead("zxid").over(in_order("run_id", by=("zxid",))))
    )
    by_brokers = state_changes.of("controller_elected").select(
        "run_id",
        "controller_epoch",
        "broker",
        "session",
        F.lit("broker").alias("source"),
        F.col("epoch_zk_version").alias("zk_version"),
        "time_ns",
    )
    return conform(by_zookeeper.unionByName(by_brokers, allowMissingColumns=True), CONTROLLER_EPOCHS)


def broker_logs(state_changes: StateChanges) -> DataFrame:
    """One row a broker whose log states that it registered."""
    return conform(state_changes.of("broker_registered").dropDuplicates(["run_id", "broker"]), BROKER_LOGS)


def registrations(history: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a registration of a broker: once by ZooKeeper's history, and once more by the broker's log.

    A broker that does not say in which transaction it registered means the last one of its session.
    """
    of_path = in_order("run_id", "path", by=("zxid", "creates"))
    ends = history.groupBy("run_id").agg(F.max("time_ms").alias("end_ms"))
    held = (
        history.where((F.col("type") != "set") & F.col("path").rlike(_REGISTRATION_PATH))
        .withColumn("creates", F.col("type") == "create")  # of one record of a quorum the end of the last comes first
        .withColumn("until_zxid", F.lead("zxid").over(of_path))
        .withColumn("until_ms", F.lead("time_ms").over(of_path))
        .where("creates")
        .join(ends, on="run_id", how="left")
        .select(
            "run_id",
            F.lit("zookeeper").alias("source"),
            F.regexp_extract("path", _REGISTRATION_PATH, 1).try_cast("bigint").alias("broker"),
            F.col("zxid").alias("czxid"),
            F.col("ephemeral_owner").alias("session"),
            "until_zxid",
            "time_ms",
            "until_ms",
            F.coalesce("until_ms", "end_ms").alias("seen_ms"),
        )
    )
    leaves = (
        state_changes.of("leave_request")
        .groupBy("run_id", "broker", F.col("broker_epoch").alias("czxid"))
        .agg(F.min("time_ns").alias("leaves_ns"))
    )
    by_zookeeper = with_time_ns(held, state_changes, until_ns="until_ms", seen_ns="seen_ms").join(
        leaves, on=["run_id", "broker", "czxid"], how="left"
    )
    of_session = by_zookeeper.groupBy("run_id", "broker", "session").agg(F.max("czxid").alias("of_session"))
    by_brokers = (
        state_changes.of("broker_registered")
        .join(of_session, on=["run_id", "broker", "session"], how="left")
        .select(
            "run_id",
            F.lit("broker").alias("source"),
            "broker",
            F.coalesce("czxid", "of_session").alias("czxid"),
            "session",
        )
    )
    return conform(by_zookeeper.unionByName(by_brokers, allowMissingColumns=True), REGISTRATIONS)


def producer_id_blocks(history: DataFrame) -> DataFrame:
    """One row a block of producer ids, as the znode held one after the other."""
    block = F.from_json("data", "broker int, block_start string, block_end string")
    return conform(
        history.where((F.col("path") == _PRODUCER_ID_PATH) & (F.col("type") != "delete"))
        .withColumn("block", block)
        .where(F.col("block.block_start").isNotNull())
        .select(
            "run_id",
            "zxid",
            F.col("version").alias("zk_version"),
            "block.broker",
            F.col("block.block_start").alias("first"),
            F.col("block.block_end").alias("last"),
        ),
        PRODUCER_ID_BLOCKS,
    )


def topics(zookeeper: DataFrame) -> DataFrame:
    """One row a topic that ever was, in its last state."""
    there = F.col("type") != "delete"
    last = F.struct("zxid", there.alias("there"), "data")
    name = F.regexp_extract("path", _TOPIC_PATHS, 2)
    parent = F.regexp_extract("path", _TOPIC_PATHS, 1)

    def of(folder: str) -> Column:
        return F.max(F.when(F.col("parent") == folder, F.col("last")))

    return conform(
        zookeeper.where(F.col("path").rlike(_TOPIC_PATHS))
        .select("run_id", "type", name.alias("topic"), parent.alias("parent"), last.alias("last"))
        .groupBy("run_id", "topic")
        .agg(
            of("/brokers/topics").alias("own"),
            F.max(F.when(there & (F.col("parent") == "/brokers/topics"), F.col("last"))).alias("content"),
            of("/config/topics").alias("config"),
            of("/admin/delete_topics").alias("deletion"),
        )
        .where(F.col("own").isNotNull())
        .withColumn("assignment", F.expr(_ASSIGNMENT))
        .withColumn("moves", F.from_json("content.data", _MOVES))
        .withColumn("reassigned", F.expr(_REASSIGNED))
        .withColumn("present", F.col("own.there"))
        .withColumn("zxid", F.col("own.zxid"))
        .withColumn("configured", F.coalesce("config.there", F.lit(False)))
        .withColumn("deletion_pending", F.coalesce("deletion.there", F.lit(False))),
        TOPICS,
    )


def deletions(history: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a request for the deletion of a topic that was there.

    Before Kafka 2.4 the topic's znode does not name reassignments, and a znode asks for them.
    """
    of_path = in_order("run_id", "path", by=("zxid", "creates"))
    ends = history.groupBy("run_id").agg(F.max("time_ms").alias("end_ms"))
    named = history.where(F.col("path").rlike(_TOPIC_PATHS)).withColumn(
        "topic", F.regexp_extract("path", _TOPIC_PATHS, 2)
    )
    requests = (
        named.where((F.col("type") != "set") & F.col("path").startswith("/admin/delete_topics/"))
        .withColumn("creates", F.col("type") == "create")
        .withColumn("until_zxid", F.lead("zxid").over(of_path))
        .withColumn("until_ms", F.lead("time_ms").over(of_path))
        .where("creates")
        .join(ends, on="run_id", how="left")
        .select("run_id", "topic", "zxid", "until_zxid", "time_ms", F.coalesce("until_ms", "end_ms").alias("until_ms"))
    )
    contents = named.where((F.col("type") != "delete") & F.col("path").startswith("/brokers/topics/")).select(
        "run_id", "topic", F.struct("zxid", "data", "time_ms").alias("content")
    )
    asked = history.where(F.col("path") == _REASSIGNMENT_PATH).groupBy("run_id").agg(F.min("zxid").alias("asked_zxid"))
    before_end = F.coalesce(F.col("asked_zxid") < F.col("until_zxid"), F.col("asked_zxid").isNotNull())
    held = (
        requests.join(contents, on=["run_id", "topic"], how="inner")
        .where(F.coalesce(F.col("content.zxid") < F.col("until_zxid"), F.lit(True)))
        .groupBy(*requests.columns)
        .agg(F.max("content").alias("content"))
        .withColumn("moves", F.from_json("content.data", _MOVES))
        .withColumn("replicas", F.expr(_REPLICAS))
        .join(asked, on="run_id", how="left")
        .withColumn(
            "reassigned",
            F.when(F.col("moves.adding_replicas").isNull(), before_end).otherwise(F.size(F.expr(_REASSIGNED)) > 0),
        )
        .withColumn("assigned_ms", F.col("content.time_ms"))
    )
    instants = {"until_ns": "until_ms", "assigned_ns": "assigned_ms"}
    return conform(with_time_ns(held, state_changes, **instants), DELETIONS)


def topic_configs(history: DataFrame) -> DataFrame:
    """One row a version of a topic's own configuration, with the transaction that ended it."""
    own = F.from_json("data", "config map<string, string>").getField("config")
    return conform(
        history.where(F.col("path").rlike(_CONFIG_PATH))
        .withColumn("until_zxid", F.lead("zxid").over(in_order("run_id", "path", by=("zxid", "type"))))
        .where(F.col("type") != "delete")
        .withColumn("topic", F.regexp_extract("path", _CONFIG_PATH, 1))
        .withColumn("unclean_allowed", own.getItem("unclean.leader.election.enable").try_cast("boolean"))
        .withColumn("min_insync_replicas", own.getItem("min.insync.replicas").try_cast("int"))
        .withColumn("compacted", own.getItem("cleanup.policy").contains("compact")),
        TOPIC_CONFIGS,
    )
