"""Which requests have no end, and for how long did their clients certainly wait?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.contracts.checks import Settings, Subject

DEADLINE_S = 60
"""After the last heal a request ends within so long."""


def quiet_since(faults: DataFrame, sends: DataFrame) -> DataFrame:
    """One row a run: when the last fault was healed, null without any, and when the load ended."""
    healed = faults.groupBy("run_id").agg(F.max("healed_ns").alias("healed_ns"))
    ended = sends.groupBy("run_id").agg(F.max(F.greatest("invoke_ns", "complete_ns")).alias("ended_ns"))
    return ended.join(healed, on="run_id", how="left")


def open_requests(sends: DataFrame, quiet: DataFrame, faults: DataFrame) -> DataFrame:
    """One row a request without an end: `waited_s` until its client's last line, `open_s` until the load ended.

    A request ends with its client, which a fault may kill and start again under the same name.
    """
    kills = faults.where((F.col("fault") == "kill") & F.col("injected_ns").isNotNull())
    killed = (
        kills.select("run_id", F.explode("targets").alias("process"), "injected_ns")
        .groupBy("run_id", "process")
        .agg(F.max("injected_ns").alias("killed_ns"))
    )
    lived = sends.groupBy("run_id", "process").agg(F.max(F.greatest("invoke_ns", "complete_ns")).alias("lived_ns"))
    since = F.greatest("invoke_ns", "healed_ns")
    return (
        sends.where(F.col("complete_ns").isNull())
        .join(killed, on=["run_id", "process"], how="left")
        .where(F.col("killed_ns").isNull() | (F.col("invoke_ns") > F.col("killed_ns")))
        .join(quiet, on="run_id", how="inner")
        .join(lived, on=["run_id", "process"], how="inner")
        .withColumn("waited_s", (F.col("lived_ns") - since) / 1e9)
        .withColumn("open_s", (F.col("ended_ns") - since) / 1e9)
    )


def _pieces(_: Settings, sends: DataFrame, faults: DataFrame) -> DataFrame:
    return (
        open_requests(sends, quiet_since(faults, sends), faults)
        .where(F.col("open_s") >= DEADLINE_S)
        .groupBy("run_id", F.concat(F.lit("client "), F.col("process")).alias("place"))
        .agg(F.count("*").alias("number"), F.count_if(F.col("waited_s") < DEADLINE_S).alias("unseen"))
    )


CLIENTS_LIVE = Subject(
    facts=("sends", "fault_windows"),
    pieces=_pieces,
    what="requests without an end",
    unseen="are the last of a client, which may have died",
)
"""A client wrote something later than each request without an end, so that it lived and had no answer."""
