"""Which assumptions about a run do several checks share? An assumption of one check is in that check's module."""

from collections.abc import Callable
from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from harness.analysis.check_helpers.findings import last_isr
from harness.analysis.frames import PARTITION_KEY
from harness.analysis.tables.schemas import OF_ONE_LINE, TORN, VALUE_IDS
from harness.contracts.checks import Assumption

_REPLICA = "replica of {topic}-{partition} on broker {broker}: "


def _without_remark(subject: str, *, torn_too: bool = False) -> Assumption:
    """No remark is on a subject with this prefix; a torn last line counts only with `torn_too`."""
    return Assumption(
        facts=("evidence",),
        broken=lambda evidence: evidence.where(
            F.col("subject").startswith(subject) & (F.lit(torn_too) | (F.col("problem") != TORN))
        ).withColumn("problem", _counted_problem()),
        reason="{subject}: {count} {problem}",
    )


def _counted_problem() -> Column:
    """Return the problem of a row as it follows its count."""
    text = F.col("problem")
    for problem, of_one in OF_ONE_LINE.items():
        text = F.when((F.col("count") == 1) & (F.col("problem") == problem), of_one).otherwise(text)
    return text


@cache
def has_field(field: str, fact: str, older: Callable[[DataFrame], DataFrame] | None = None) -> Assumption:
    """Every row of a fact has a field that logs of older brokers lack; `older` selects rows that lack it otherwise."""
    return Assumption(
        facts=(fact,),
        broken=older or (lambda rows: rows.where(F.col(field).isNull())),
        reason=f"the brokers' logs are older: they do not say {field}",
    )


def without_acks(appends: DataFrame) -> DataFrame:
    """Return appends of leaders whose log does not state the acks."""
    return appends.where((F.col("role") == "leader") & F.col("acks_all").isNull())


def _missing_dumps(partition_states: DataFrame, replicas: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the members of the last ISRs that have no dump."""
    return last_isr(partition_states, topics).join(replicas, on=[*PARTITION_KEY, "broker"], how="left_anti")


UNIQUE_VALUES = _without_remark(VALUE_IDS)
"""Every value was sent once: otherwise records cannot be followed by their values."""
CLIENTS_WHOLE = _without_remark("operations/")
"""The history of the clients has no holes, in which a send may be missing."""
BROKERS_WHOLE = _without_remark("brokers/")
"""The brokers' logs have no holes, in which a write may be missing."""
DUMPS_COMPLETE = (
    _without_remark("replicas/", torn_too=True),
    Assumption(
        facts=("replicas",),
        broken=lambda replicas: replicas.where(F.col("damage") != ""),
        reason=f"{_REPLICA}{{damage}}",
    ),
    Assumption(
        facts=("partition_states", "replicas", "topics"),
        broken=_missing_dumps,
        reason=f"{_REPLICA}its dump is missing",
    ),
)
"""The dumps of all replicas are whole, torn last lines included, and those of the last ISRs are there."""
COMPACTIONS_TOLD = Assumption(
    facts=("topic_configs", "compactions", "broker_logs"),
    broken=lambda topic_configs, _compactions, broker_logs: topic_configs.where(
        F.col("compacted") & ~F.col("topic").startswith("__")
    ).join(broker_logs.select("run_id").distinct(), on="run_id", how="left_anti"),
    reason="{topic} is compacted, and no broker's log has what cleaners removed",
    of_compaction=True,
)
"""A run with a compacted topic has brokers' logs, which say what cleaners removed; internal topics do not count.

A broker's registration shows that there is a log: all releases of Kafka log it, and leaderships only some.
"""
HEALED = Assumption(
    facts=("fault_windows",),
    broken=lambda faults: faults.where(F.col("injected_ns").isNotNull() & F.col("healed_ns").isNull()),
    reason="fault {fault} was never healed",
)
"""Every fault was healed."""
