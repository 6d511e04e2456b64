"""Which values of properties do topics inherit of properties files, and for which ones is that not known?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.settings import first_that_holds
from harness.cluster.inherited_properties import INHERITED
from harness.contracts.checks import Settings, Subject


def stated(settings: Settings) -> Column:
    """Return what topics inherit of the properties files for a row's `property`; null where that is not known."""
    text = F.lit(settings.inherited_by_topics)
    patterns = {name: f"(?:^|;){name.replace('.', '[.]')}=([^;]*)" for name in INHERITED}
    values = first_that_holds(
        (F.col("property") == name, F.regexp_extract(text, of, 1)) for name, of in patterns.items()
    )
    return F.nullif(values, F.lit(""))


def _pieces(settings: Settings, configurations: DataFrame, versions: DataFrame) -> DataFrame:
    """One row a topic: its properties in force, and how many of them may be inherited from an unknown file."""
    own = versions.where(F.col("value").isNotNull() & F.col("entity").startswith("topics/"))
    set_ones = own.select(
        "run_id", F.regexp_extract("entity", "^topics/(.*)$", 1).alias("topic"), "property", F.lit(True).alias("own")
    )
    return (
        configurations.select("run_id", "topic", "property")
        .distinct()
        .join(set_ones.distinct(), on=["run_id", "topic", "property"], how="left")
        .groupBy("run_id", F.col("topic").alias("place"))
        .agg(
            F.count("*").alias("number"),
            F.count_if(F.col("own").isNull() & stated(settings).isNull()).alias("unseen"),
        )
    )


PROPERTIES_KNOWN = Subject(
    facts=("configurations", "property_versions"),
    pieces=_pieces,
    what="properties in force",
    unseen="may be inherited from a properties file that is not known",
)
