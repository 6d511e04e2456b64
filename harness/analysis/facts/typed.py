"""How are the typed tables, of which all facts are made, made of lines?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from harness.analysis.facts.clients import completed, polls
from harness.analysis.facts.logs import replica_records, replicas
from harness.analysis.frames import conform, typed
from harness.analysis.sources.state_changes import by_kind
from harness.analysis.sources.typed import DELETED, OF_TRANSACTIONS, TRANSITIONS, TYPED
from harness.analysis.tables.schemas import POLLS, REPLICA_RECORDS, REPLICAS


def from_lines(kind: str, lines: DataFrame) -> dict[str, DataFrame]:
    """Return the tables of one kind of evidence."""
    if kind == "operations":
        return {"operations": completed(lines), POLLS.name: polls(lines)}
    if kind == "state_changes":
        return by_kind(lines)
    if kind == "replicas":
        return {
            REPLICAS.name: replicas(lines),
            REPLICA_RECORDS.name: replica_records(lines),
            DELETED: typed(_of_type(lines, DELETED), TYPED[kind][DELETED]),
            TRANSITIONS: typed(_of_type(lines, "transition"), TYPED[kind][TRANSITIONS]),
            **{fact.name: conform(_of_type(lines, name), fact) for name, fact in OF_TRANSACTIONS.items()},
        }
    return {kind: typed(lines, TYPED[kind][kind])}


def _of_type(lines: DataFrame, name: str) -> DataFrame:
    return lines.where(F.col("type") == name)
