"""configuration-in-force: a replica acts on the configuration that ZooKeeper holds.

A topic's own properties come before those that are set for its broker, these before those of all brokers, and last are
those of the properties file (Kafka's `ZkConfigManager`, `DynamicBrokerConfig`, KIP-226). A broker reads a configuration
when it starts and when it creates a log, again when `/config/changes` names it, and all of them after a lost connection
or session. A line stands until the next one, so it may rest on any version of that time, and a version that was over is
allowed

- if the life of the broker began before its end;
- as long as no notification has told the broker that it is over for longer than a session time-out and five seconds,
  in which the machine, the network and the processes were undisturbed: within the time-out a client of ZooKeeper hears
  of the change, or connects again, or its session ends, and then it reads everything;
- for a topic that was deleted or created meanwhile, if the log was created before the end;
- for a topic that was deleted and not created again, as a replica that was moved away while its broker had no session
  keeps its log, and no notification tells it of the deletion.

A change that was written without a notification, as by a broker that died in between, need not be known. Each property
is compared for itself.
"""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.check_helpers.configurations import PROPERTIES_KNOWN, stated
from harness.analysis.check_helpers.disturbances import without_disturbed
from harness.analysis.check_helpers.findings import event, finding, phrase
from harness.contracts.checks import Check, Settings, Subject

LAG_NS = 1_000_000_000
"""By so much a server of ZooKeeper may be behind its leader, and its wall clock off."""
MARGIN_NS = 5_000_000_000
"""Beyond a session time-out, in which a broker reads what has changed."""
_LINE = ("run_id", "broker", "incarnation", "seq", "topic")
_KEY = (*_LINE, "property")
_TOPIC, _BROKER, _ALL = range(3)
"""Whose configuration sets a property, in the order in which they count."""


class ConfigurationInForce(Check):
    """The properties that replicas acted on, beside those that ZooKeeper held when they were read last."""

    name: ClassVar[str] = "configuration-in-force"
    title: ClassVar[str] = "configuration-in-force"
    promise: ClassVar[str] = (
        "A replica acts on its topic's properties in ZooKeeper, and where these set none, on those of its broker, as "
        "they were when a notification had to be read last (ZkConfigManager, KIP-226)."
    )
    needs: ClassVar[tuple[str, ...]] = ("configurations", "property_versions")
    reads: ClassVar[tuple[str, ...]] = ("fault_windows",)
    covers: ClassVar[tuple[Subject, ...]] = (PROPERTIES_KNOWN,)

    def findings(self, facts: dict[str, DataFrame], settings: Settings) -> DataFrame:
        """One finding a line with properties that ZooKeeper did not have."""
        late_ns = F.lit(settings.session_timeout_ms).cast("bigint") * 1_000_000 + MARGIN_NS
        configurations = _with_calm(facts["configurations"], facts["fault_windows"], late_ns)
        allowed = _allowed(configurations, facts["property_versions"], late_ns)
        in_turn = F.array_distinct(
            F.concat(
                "of_topic",
                F.when(F.col("unset_by_topic"), F.col("of_broker")).otherwise(_none()),
                F.when(F.col("unset_by_topic") & F.col("unset_by_broker"), F.col("of_all")).otherwise(_none()),
            )
        )
        inherits = F.col("unset_by_topic") & F.col("unset_by_broker") & F.col("unset_by_all")
        rows = (
            allowed.withColumn("inherits", inherits)
            .withColumn("stated", stated(settings))
            .where((F.size("of_topic") > 0) | F.col("unset_by_topic"))  # else no version of it is known
            .where(~F.col("inherits") | F.col("stated").isNotNull())
            .withColumn("allowed", F.when(inherits, F.array_append(in_turn, F.col("stated"))).otherwise(in_turn))
            .where(~F.array_contains("allowed", F.col("value")))
            .withColumn("or_else", F.array_join(F.array_sort("allowed"), " or "))
            .groupBy(*_LINE, "time_ns", "until_ns")
            .agg(F.array_sort(F.collect_list(phrase("{property}={value} instead of {or_else}"))).alias("wrong"))
            .withColumn("s", (F.col("until_ns") - F.col("time_ns")) / 1e9)
            .withColumn("list", F.array_join("wrong", ", "))
        )
        return finding(
            rows,
            self.name,
            message=(
                "A replica acts on the configuration that ZooKeeper holds: broker {broker} acted for {s:.1f} s on "
                "{list} for {topic}."
            ),
            evidence=F.array(
                event("configurations", "broker", "incarnation", "seq", "topic", "time_ns", "until_ns", "wrong")
            ),
        )


def _none() -> Column:
    return F.array().cast("array<string>")


def _with_calm(configurations: DataFrame, fault_windows: DataFrame, late_ns: Column) -> DataFrame:
    """Add `calm`: whether the broker was undisturbed for long enough before the configuration was over."""
    lines = configurations.select(*_LINE, "until_ns", (F.col("until_ns") - late_ns).alias("since_ns")).distinct()
    calm = without_disturbed(lines, fault_windows, since="since_ns", until="until_ns")
    known = calm.select(*_LINE, F.lit(True).alias("calm"))
    return configurations.join(known, on=list(_LINE), how="left").fillna(False, subset=["calm"])


def _allowed(configurations: DataFrame, versions: DataFrame, late_ns: Column) -> DataFrame:
    """Add, for the topic, its broker and all brokers, the values that may be in force, and whether one may be unset."""
    layers = F.array(
        F.struct(F.lit(_TOPIC).alias("layer"), F.concat(F.lit("topics/"), "topic").alias("entity")),
        F.struct(F.lit(_BROKER).alias("layer"), F.concat(F.lit("brokers/"), "broker").alias("entity")),
        F.struct(F.lit(_ALL).alias("layer"), F.lit("brokers/<default>").alias("entity")),
    )
    created = F.max(F.when(F.col("ended_by") == "create", F.col("until_ns")))
    held = versions.select(
        "run_id",
        "entity",
        "property",
        F.col("value").alias("set_to"),
        F.col("time_ns").alias("from_ns"),
        F.col("until_ns").alias("over_ns"),
        "ended_by",
        "noted_ns",
        created.over(Window.partitionBy("run_id", "entity", "property")).alias("created_ns"),
        F.lit(True).alias("there"),
    )
    over_ns, of_topic = F.col("over_ns"), F.col("layer") == _TOPIC
    told_late = F.col("calm") & (F.col("noted_ns") + late_ns < F.col("until_ns"))
    again = F.col("created_ns") >= over_ns
    comes_and_goes = of_topic & ((F.col("ended_by") == "create") | ((F.col("ended_by") == "delete") & again))
    grace_ns = F.when(F.col("ended_by") == "delete", late_ns).otherwise(LAG_NS)
    ruled_out = (
        (F.col("from_ns") > F.col("until_ns") + LAG_NS)
        | (over_ns + LAG_NS < F.col("began_ns"))
        | (comes_and_goes & (over_ns + grace_ns < F.col("time_ns")))
        | told_late
    )
    possible = F.col("there") & ~F.coalesce(ruled_out, F.lit(False))
    unset = ~of_topic & F.col("there").isNull() | (possible & F.col("set_to").isNull())
    rows = (
        configurations.withColumn("each", F.explode(layers))
        .select("*", "each.layer", "each.entity")
        .join(held, on=["run_id", "entity", "property"], how="left")
        .withColumn("possible", possible)
        .withColumn("unset", unset)
    )

    def values(layer: int) -> Column:
        return F.collect_set(F.when((F.col("layer") == layer) & F.col("possible"), F.col("set_to")))

    def may_be_unset(layer: int) -> Column:
        return F.bool_or((F.col("layer") == layer) & F.col("unset"))

    return rows.groupBy(*_KEY, "value", "time_ns", "until_ns").agg(
        values(_TOPIC).alias("of_topic"),
        values(_BROKER).alias("of_broker"),
        values(_ALL).alias("of_all"),
        may_be_unset(_TOPIC).alias("unset_by_topic"),
        may_be_unset(_BROKER).alias("unset_by_broker"),
        may_be_unset(_ALL).alias("unset_by_all"),
    )


PLUGIN: type[Check] = ConfigurationInForce
