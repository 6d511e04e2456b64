"""When did a fault delay messages or processes, so that no deadline can be expected to hold?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

UNDISTURBING = (
    "add-partitions",
    "bounce",
    "cancel-reassignment",
    "change-config",
    "controlled-shutdown",
    "delete-topic",
    "disk-damage",
    "disk-error",
    "disk-full",
    "expire-session",
    "kill",
    "leave",
    "move-controller",
    "power-loss",
    "preferred-election",
    "reassign",
    "rolling-restart",
    "unclean-election",
    "upgrade",
)
"""Faults under which every live process runs and communicates; all others, and unknown ones, may prevent that."""
SETTLED_NS = 2_000_000_000
"""How long after its end a fault may still be felt."""


def without_disturbed(rows: DataFrame, fault_windows: DataFrame, *, since: str, until: str) -> DataFrame:
    """Return the rows between whose instants `since` and `until` no disturbing fault was in force."""
    number = "row_of_disturbance"
    disturbing = fault_windows.where(~F.col("fault").isin(*UNDISTURBING)).select(
        "run_id",
        F.coalesce("intended_ns", "injected_ns").alias("disturbed_from_ns"),
        (F.col("healed_ns") + SETTLED_NS).alias("disturbed_to_ns"),
    )
    spans = disturbing.groupBy("run_id").agg(
        F.collect_list(F.struct("disturbed_from_ns", "disturbed_to_ns")).alias(number)
    )
    in_force = F.exists(
        number,
        lambda span: (
            F.coalesce(span["disturbed_from_ns"] <= F.col(until), F.lit(True))
            & F.coalesce(span["disturbed_to_ns"] >= F.col(since), F.lit(True))
        ),
    )
    return rows.join(spans, on="run_id", how="left").where(~F.coalesce(in_force, F.lit(False))).drop(number)
