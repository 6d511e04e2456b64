"""What do several checks of consumer groups share?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.contracts.checks import Assumption, Settings
from harness.values import OFFSETS_TOPIC

STORING_MS = 10_000
"""What a group's record may take to be stored (`offsets.commit.timeout.ms`), twice over."""


def _untold(ownerships: DataFrame, group_states: DataFrame) -> DataFrame:
    """The runs with members of groups of whose coordinators nothing is known."""
    return ownerships.select("run_id").distinct().join(group_states, on="run_id", how="left_anti")


COORDINATORS_TELL = Assumption(
    facts=("ownerships", "group_states"),
    broken=_untold,
    reason="groups had members, and no coordinator's log tells of them",
)
"""Where groups have members, their coordinators say what became of them."""


def has_ended(state: str = "state") -> Column:
    """Whether in this state nothing is left of a group, so that its generations may begin anew."""
    return (F.col(state) == "Dead") & (F.col("reason") == "nothing is left of it")


def log_was_given() -> Column:
    """Whether a load could read its log: a coordinator whose disk refuses that begins with what it has got."""
    return F.coalesce("disk_error", F.lit("")) == ""


def with_patience(rows: DataFrame, group_states: DataFrame) -> DataFrame:
    """Add `bound_ms`: how long members of the row's group may be waited for on the way to the next generation.

    As long as the most patient allows, once more if only instances are left that have not come, and until their
    sessions end.
    """
    rebalance_ms = F.max("rebalance_timeout_ms").cast("bigint")
    patience = 2 * rebalance_ms + F.max("session_timeout_ms") + STORING_MS
    bounds = group_states.groupBy("run_id", "group").agg(patience.alias("bound_ms"))
    return rows.join(bounds, on=["run_id", "group"], how="inner")


def with_unclean_offsets_topic(rows: DataFrame, leader_epochs: DataFrame, settings: Settings) -> DataFrame:
    """Add `unclean`: whether the offsets topic saw an unclean election that the configuration allowed; else null."""
    allowed = F.coalesce("unclean_allowed", F.lit(settings.unclean_leader_election))
    runs = (
        leader_epochs.where((F.col("topic") == OFFSETS_TOPIC) & F.col("unclean") & allowed)
        .select("run_id", F.lit(True).alias("unclean"))
        .distinct()
    )
    return rows.join(runs, on="run_id", how="left")
