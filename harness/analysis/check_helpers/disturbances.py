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
OF_DISKS = ("disk-damage", "disk-error", "disk-full", "file-limit")
"""Faults that may take replicas offline although their broker lives."""
IMPAIRING = ("controlled-shutdown", *OF_DISKS, "rolling-restart", "upgrade")
"""Faults whose targets live and cannot lead: they shut down, or their disk has failed."""
SETTLED_NS = 2_000_000_000
"""How long after its end a fault may still be felt."""


def disturbances(fault_windows: DataFrame) -> DataFrame:
    """One row a disturbing fault, in force from `disturbed_from_ns` to `disturbed_to_ns`; null where that is open."""
    return fault_windows.where(~F.col("fault").isin(*UNDISTURBING)).select(
        "run_id",
        F.coalesce("intended_ns", "injected_ns").alias("disturbed_from_ns"),
        (F.col("healed_ns") + SETTLED_NS).alias("disturbed_to_ns"),
    )


def impaired(fault_windows: DataFrame) -> DataFrame:
    """One row a broker that a fault kept from leading although it ran, as `member`."""
    faults = fault_windows.where(F.col("fault").isin(*IMPAIRING))
    targets = faults.select("run_id", F.explode("targets").alias("target"))
    return targets.select("run_id", F.col("target").try_cast("int").alias("member")).distinct()


def without_disturbed(rows: DataFrame, fault_windows: DataFrame, *, since: str, until: str) -> DataFrame:
    """Return the rows between whose instants `since` and `until` no disturbing fault was in force."""
    number = "row_of_disturbance"
    spans = (
        disturbances(fault_windows)
        .groupBy("run_id")
        .agg(F.collect_list(F.struct("disturbed_from_ns", "disturbed_to_ns")).alias(number))
    )
    in_force = F.exists(
        number,
        lambda span: (
            F.coalesce(span["disturbed_from_ns"] <= F.col(until), F.lit(True))
            & F.coalesce(span["disturbed_to_ns"] >= F.col(since), F.lit(True))
        ),
    )
    return rows.join(spans, on="run_id", how="left").where(~F.coalesce(in_force, F.lit(False))).drop(number)
