"""When did a fault delay messages or processes, so that no deadline can be expected to hold?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.contracts import registry
from harness.contracts.faults import Disturbance

SETTLED_NS = 2_000_000_000
"""How long after its end a fault may still be felt."""


def harmless(*what: Disturbance) -> list[str]:
    """Return the kinds of fault that say that they can do none of these."""
    known = {kind: frozenset(getattr(fault, "disturbs", Disturbance)) for kind, fault in registry.faults().items()}
    return [kind for kind, disturbs in known.items() if disturbs.isdisjoint(what)]


def may_disturb(*what: Disturbance) -> Column:
    """Return whether the column `fault` names a kind that can do one of these; an unknown kind can do anything."""
    return ~F.col("fault").isin(harmless(*what))


def disturbances(fault_windows: DataFrame) -> DataFrame:
    """One row a disturbing fault, in force from `disturbed_from_ns` to `disturbed_to_ns`; null where that is open."""
    return fault_windows.where(may_disturb(Disturbance.PROCESSES, Disturbance.MESSAGES)).select(
        "run_id",
        F.coalesce("intended_ns", "injected_ns").alias("disturbed_from_ns"),
        (F.col("healed_ns") + SETTLED_NS).alias("disturbed_to_ns"),
    )


def impaired(fault_windows: DataFrame) -> DataFrame:
    """One row a broker that a fault kept from leading although it ran, as `member`."""
    faults = fault_windows.where(may_disturb(Disturbance.LEADERSHIP))
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
