"""How long did each leader of a quorum of controllers lead, by its own log?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.frames import LIFE_KEY, conform, in_order
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import QUORUM_TERMS
from harness.events import ControllerElected, ControllerResigned


def quorum_terms(state_changes: StateChanges, lives: DataFrame) -> DataFrame:
    """One row an election of a controller by a quorum; one by ZooKeeper states the version of its epoch's znode.

    The leader's log shows it as leader until it resigns, or else until its process logs its last line.
    """
    lines = state_changes.of(ControllerElected.ev, ControllerResigned.ev)
    following = F.lead("time_ns").over(in_order(*LIFE_KEY, by=("seq",)))
    terms = (
        lines.withColumn("resigned_ns", following)
        .where((F.col("ev") == ControllerElected.ev) & F.col("epoch_zk_version").isNull())
        .join(lives.select(*LIFE_KEY, "lived_ns"), on=list(LIFE_KEY), how="left")
    )
    return conform(
        terms.withColumns(
            {"led_until_ns": F.coalesce("resigned_ns", "lived_ns"), "resigned": F.col("resigned_ns").isNotNull()}
        ),
        QUORUM_TERMS,
    )
