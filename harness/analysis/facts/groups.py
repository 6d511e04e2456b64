"""What became of consumer groups, by their coordinators' logs and by what their members say?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.groups import has_ended
from harness.analysis.facts.clients import of_kind
from harness.analysis.frames import LIFE_KEY, conform, in_order
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.groups import (
    GROUP_COMMITS,
    GROUP_GENERATIONS,
    GROUP_LOADS,
    GROUP_RETIREMENTS,
    GROUP_STATES,
    OWNERSHIPS,
)
from harness.store.history import OpKind, OpType
from harness.values import OFFSETS_TOPIC

_TERM = (*LIFE_KEY, "group", "coordinator_epoch")
"""A group as one life of a broker coordinates it in one epoch."""


def group_states(state_changes: StateChanges, lives: DataFrame) -> DataFrame:
    """One row a state; how long the last one lasted the life of its coordinator says."""
    states = state_changes.of("group_state").withColumn("state", F.col("to_state"))
    return conform(
        states.join(lives.select(*LIFE_KEY, "lived_ns"), on=list(LIFE_KEY), how="left")
        .withColumn("next_ns", F.lead("time_ns").over(in_order(*_TERM, by=("seq",))))
        .withColumn("ended", F.col("next_ns").isNotNull() | (F.col("state") == "Dead"))
        .withColumn("until_ns", F.coalesce("next_ns", "lived_ns")),
        GROUP_STATES,
    )


def group_generations(state_changes: StateChanges, owned: DataFrame) -> DataFrame:
    """One row a member and partition of an assignment that a coordinator sent, and one an ownership of a member."""
    ended = F.coalesce(F.col("to_state") == "Dead", F.lit(False)).cast("int")
    begun_ns = F.when(F.col("to_state") == "PreparingRebalance", F.col("time_ns"))
    in_turn = in_order(*_TERM, by=("seq",))
    following = in_turn.rowsBetween(1, Window.unboundedFollowing)
    by_coordinators = (
        state_changes.of("group_assignment", "group_state")
        .withColumn("life", F.sum(ended).over(in_turn))
        .withColumn("rebalance_ns", F.min(begun_ns).over(following))
        .where(F.col("ev") == "group_assignment")
        .drop("topic", "partition", "member", "instance")
        .select("*", F.explode_outer("assignments").alias("of"))
        .select("*", "of.member", "of.instance", F.explode_outer("of.partitions").alias("assigned"))
        .select("*", "assigned.topic", "assigned.partition", F.lit("coordinator").alias("source"))
    )
    ends = state_changes.of("group_state").where(has_ended("to_state"))
    ends = ends.groupBy("run_id", "group").agg(F.collect_list("time_ns").alias("ends_ns"))
    # A member may receive its assignment late; its id says when that was.
    whose = ("run_id", "group", "generation", "member")
    decided = by_coordinators.groupBy(*whose).agg(F.min("time_ns").alias("decided_ns"))
    by_members = (
        owned.withColumns({"source": F.lit("member"), "reason": F.lit("assigned")})
        .withColumn("time_ns", F.coalesce("assigned_ns", "invoke_ns"))
        .join(ends, on=["run_id", "group"], how="left")
        .join(decided, on=list(whose), how="left")
        .withColumn("known_ns", F.coalesce("decided_ns", "time_ns"))
        .withColumn("life", F.size(F.filter(F.coalesce("ends_ns", F.array()), lambda at: at <= F.col("known_ns"))))
    )
    columns = [column.name for column in GROUP_GENERATIONS.columns]
    parts = [
        frame.select(*(name for name in columns if name in frame.columns)) for frame in (by_coordinators, by_members)
    ]
    rows = parts[0].unionByName(parts[1], allowMissingColumns=True)
    owner = F.coalesce(F.nullif("instance", F.lit("")), F.nullif("member", F.lit("")))
    return conform(rows.withColumn("owner", owner), GROUP_GENERATIONS)


def group_commits(state_changes: StateChanges) -> DataFrame:
    """One row an answer to a commit; the state of the group is that of the lines before the decision."""
    is_commit = F.col("ev") == "offset_commit"
    lines = state_changes.of("group_state", "group_member", "offset_commit").withColumns(
        {"is_line": ~is_commit, "decided_at": F.when(is_commit, F.col("decided_seq")).otherwise(F.col("seq"))}
    )
    in_turn = ("decided_at", "is_line")
    state = F.when(
        F.col("ev") == "group_state", F.struct("seq", "to_state", F.col("generation").alias("of"), "members")
    )
    rows = (
        lines.select("*", F.explode(_members(is_commit)).alias("sent_to"))
        .withColumn("state", F.last(state, ignorenulls=True).over(in_order(*_TERM, by=in_turn)))
        .withColumn("assignment", F.last(_assignment(), ignorenulls=True).over(in_order(*_TERM, "sent_to", by=in_turn)))
    )
    named = F.col("instance").isNull() | (F.col("instance") == "")
    listed = F.exists(
        "state.members",
        lambda each: (each.member == F.col("member")) & (named | (each.instance == F.col("instance"))),
    )
    came = F.col("assignment.came") & (named | F.col("assignment.instance").eqNullSafe(F.col("instance")))
    since = F.coalesce(F.col("assignment.seq") > F.col("state.seq"), F.col("assignment.seq").isNotNull())
    return conform(
        rows.where(is_commit)
        .withColumn("known", F.coalesce(F.when(since, came).otherwise(listed), F.lit(False)))
        .withColumn("group_state", F.col("state.to_state"))
        .withColumn("group_generation", F.col("state.of")),
        GROUP_COMMITS,
    )


def _members(is_commit: Column) -> Column:
    """Return the member ids that a line is about: two where one replaces another."""
    replaced = F.array_compact(F.array("member", "old_member"))
    return (
        F.when(is_commit, F.array("member")).when(F.col("ev") == "group_member", replaced).otherwise(F.array(F.lit("")))
    )


def _assignment() -> Column:
    """Return whether the member of a line is in the group from then on, and its instance."""
    came = (F.col("change") != "removed") & (F.col("member") == F.col("sent_to"))
    return F.when(F.col("ev") == "group_member", F.struct("seq", came.alias("came"), "instance"))


def group_loads(state_changes: StateChanges) -> DataFrame:
    """One row a load or unload."""
    return conform(
        state_changes.of("gc_load", "gc_unload")
        .withColumn("kind", F.when(F.col("ev") == "gc_load", "load").otherwise("unload"))
        .withColumn("topic", F.lit(OFFSETS_TOPIC)),
        GROUP_LOADS,
    )


def group_retirements(state_changes: StateChanges) -> DataFrame:
    """One row an offset that a coordinator took back, and one more when that was stored."""
    return conform(state_changes.of("offset_retired"), GROUP_RETIREMENTS)


def ownerships(operations: DataFrame) -> DataFrame:
    """One row an assigned partition, and the operation of its process that took it back, or ended that life."""
    taken_back = (OpKind.REVOKED, OpKind.LOST)
    changes = of_kind(operations, OpKind.ASSIGNED, *taken_back, OpKind.LEAVE, OpKind.SUBSCRIBE)
    kind = F.col("kind")
    left = (kind == OpKind.LEAVE) & (F.col("outcome") == OpType.OK.value)
    anew = _following(kind == OpKind.SUBSCRIBE, "invoke_ns")
    of_this_life = [
        _following(kind.isin([each.value for each in taken_back]), "invoke_ns", "topic", "partition"),
        _following(left, "complete_ns"),
    ]
    ends = [F.when(anew.isNull() | (end["index"] < anew["index"]), end) for end in of_this_life]
    rows = changes.withColumn("end", F.coalesce(*ends, anew)).where(kind == OpKind.ASSIGNED)
    return conform(
        rows.withColumns(
            {
                "assigned_ns": F.when(F.col("outcome") == OpType.OK.value, F.col("complete_ns")),
                "offset": F.col("ok_offset"),
                "until_index": F.col("end.index"),
                "until_ns": F.col("end.at_ns"),
                "ended_by": F.col("end.kind"),
            }
        ),
        OWNERSHIPS,
    )


def _following(is_wanted: Column, at: str, *also_of: str) -> Column:
    """Return the next such operation of a process, or of it and something else, with its instant."""
    following = (
        Window.partitionBy("run_id", "process", *also_of).orderBy("index").rowsBetween(1, Window.unboundedFollowing)
    )
    operation = F.when(is_wanted, F.struct("index", F.col(at).alias("at_ns"), "kind"))
    return F.first(operation, ignorenulls=True).over(following)
