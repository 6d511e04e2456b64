"""Which records are stored before a record that the same process had sent earlier?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import event, with_unclean_election
from harness.contracts.checks import Settings


def reversals(facts: dict[str, DataFrame], settings: Settings, *, under_way_together: bool) -> DataFrame:
    """One row a reversal of either kind: the columns of `send_reversals` and `unclean`.

    `unclean` is whether an allowed unclean election may have taken the earlier record; null where there was none.
    """
    in_turn = F.col("earlier_complete_ns") < F.col("invoke_ns")
    rows = facts["send_reversals"].where(~in_turn if under_way_together else in_turn)
    return with_unclean_election(rows, facts["leader_epochs"], settings, since="earlier_leader_epoch")


def reversal_events() -> Column:
    """Return the two sends of a reversal, as evidence."""
    earlier = event(
        "sends",
        "process",
        "earlier_index as index",
        "earlier_offset as offset",
        "earlier_complete_ns as complete_ns",
    )
    return F.array(earlier, event("sends", "process", "index", "value", "offset", "invoke_ns"))
