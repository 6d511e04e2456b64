"""Which configuration did the replicas of a topic act on, and which one did ZooKeeper hold for topics and brokers?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.facts.znodes import with_time_ns
from harness.analysis.frames import LIFE_KEY, conform, in_order
from harness.analysis.sources.state_changes import StateChanges
from harness.analysis.tables.protocol import CONFIGURATIONS, PROPERTY_VERSIONS
from harness.cluster.inherited_properties import INHERITED, LISTS, NAMES
from harness.events import BrokerStart, ConfigurationInForce

_CONFIG_PATH = r"^/config/((?:topics|brokers)/[^/]+)$"
_NOTIFICATION_PATH = r"^/config/changes/[^/]+$"
_NAME_AND_VALUE = r"^([^=]*)=(.*)$"
_WITHOUT_SPACE = r"^\s*(.*?)\s*$"


def configurations(state_changes: StateChanges, lives: DataFrame) -> DataFrame:
    """One row a property that the replicas of a topic on one broker acted on, until a later line or the life's end."""
    began = state_changes.of(BrokerStart.ev).groupBy(*LIFE_KEY).agg(F.min("time_ns").alias("began_ns"))
    of_topic = in_order(*LIFE_KEY, "topic", by=("seq",))
    return conform(
        state_changes.of(ConfigurationInForce.ev)
        .withColumn("next_ns", F.lead("time_ns").over(of_topic))
        .where("hosted")
        .join(began, on=list(LIFE_KEY), how="left")
        .join(lives.select(*LIFE_KEY, "lived_ns"), on=list(LIFE_KEY), how="left")
        .withColumn("until_ns", F.coalesce("next_ns", "lived_ns"))
        .withColumn("each", F.explode("properties"))
        .withColumn("property", F.regexp_extract("each", _NAME_AND_VALUE, 1))
        .withColumn("value", F.regexp_extract("each", _NAME_AND_VALUE, 2)),
        CONFIGURATIONS,
    )


def property_versions(history: DataFrame, state_changes: StateChanges) -> DataFrame:
    """One row a property in one version of a configuration znode, or while there was no such znode.

    Brokers must know that a version has ended once a notification names its topic or broker, then or later.
    """
    changed = history.where(F.col("path").rlike(_CONFIG_PATH)).select(
        "run_id",
        F.regexp_extract("path", _CONFIG_PATH, 1).alias("entity"),
        "zxid",
        "time_ms",
        "type",
        F.from_json("data", "config map<string, string>").getField("config").alias("config"),
        F.lit(None).cast("bigint").alias("noted_ms"),
    )
    notified = history.where(F.col("path").rlike(_NOTIFICATION_PATH) & (F.col("type") == "create")).select(
        "run_id",
        F.from_json("data", "entity_path string").getField("entity_path").alias("entity"),
        "zxid",
        F.lit(None).cast("bigint").alias("time_ms"),
        F.lit(None).cast("string").alias("type"),
        F.lit(None).cast("map<string, string>").alias("config"),
        F.col("time_ms").alias("noted_ms"),
    )
    of_entity = in_order("run_id", "entity", by=("zxid", "type"))
    from_here = of_entity.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    versions = (
        changed.unionByName(notified)
        .withColumn("own_noted_ms", F.min("noted_ms").over(from_here))
        .where(F.col("type").isNotNull())
        .withColumn("number", F.row_number().over(of_entity))
        .withColumn("until_zxid", F.lead("zxid").over(of_entity))
        .withColumn("until_ms", F.lead("time_ms").over(of_entity))
        .withColumn("ended_by", F.lead("type").over(of_entity))
        .withColumn("noted_ms", F.lead("own_noted_ms").over(of_entity))
    )
    absent = versions.where(F.col("number") == 1).select(
        "run_id",
        "entity",
        F.col("zxid").alias("until_zxid"),
        F.col("time_ms").alias("until_ms"),
        F.col("type").alias("ended_by"),
        F.col("own_noted_ms").alias("noted_ms"),
    )
    timed = with_time_ns(
        versions.unionByName(absent, allowMissingColumns=True),
        state_changes,
        until_ns="until_ms",
        noted_ns="noted_ms",
    )
    return conform(
        timed.withColumn("each", F.explode(_properties())).select("*", "each.property", "each.value"),
        PROPERTY_VERSIONS,
    )


def _properties() -> Column:
    """Return each property of topics with the value that a version sets, null where it sets none."""
    config, of_topic = F.col("config"), F.col("entity").startswith("topics/")
    return F.array(
        *(
            F.struct(
                F.lit(name).alias("property"),
                _normal(name, F.when(of_topic, config.getItem(name)).otherwise(config.getItem(inherited))).alias(
                    "value"
                ),
            )
            for name, inherited in INHERITED.items()
        )
    )


def _normal(name: str, text: Column) -> Column:
    """Return a value as brokers log it; null for one that is no value of the property."""
    if name in LISTS:
        return F.array_join(
            F.array_sort(F.filter(F.transform(F.split(text, ","), _bare), lambda part: part != "")), ","
        )
    return _bare(text) if name in NAMES else _bare(text).try_cast("bigint").cast("string")


def _bare(text: Column) -> Column:
    return F.regexp_extract(text, _WITHOUT_SPACE, 1)
