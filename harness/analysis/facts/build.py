"""How are the facts of one run or many computed, once for all their readers, and written as Parquet?"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from harness.analysis import client_tables, protocol_tables, schemas
from harness.analysis.facts.availability import availability
from harness.analysis.facts.clients import polls, sends
from harness.analysis.facts.deleted import deleted_logs
from harness.analysis.facts.epochs import (
    appends,
    isr_changes,
    leader_epochs,
    leadership_claims,
    partition_states,
)
from harness.analysis.facts.evidence import evidence
from harness.analysis.facts.faults import fault_windows
from harness.analysis.facts.liveness import liveness
from harness.analysis.facts.logs import high_watermarks, replica_records, replicas, truncations
from harness.analysis.facts.metadata import metadata_caches
from harness.analysis.facts.offsets import committed_offsets
from harness.analysis.facts.producers import refused_retries
from harness.analysis.facts.protocol import (
    acknowledgements,
    consumer_fetches,
    control_requests,
    elections,
    epoch_answers,
    isr_proposals,
    leader_isrs,
    refusals,
    state_writes,
)
from harness.analysis.facts.steps import end_offsets, poll_steps, send_reversals
from harness.analysis.facts.znodes import (
    changes,
    controller_epochs,
    producer_id_blocks,
    registrations,
    topic_configs,
    topics,
)
from harness.analysis.frames import checkpointed, is_local, union
from harness.analysis.hadoop import Folder, remove
from harness.analysis.schemas import TABLES
from harness.analysis.sources import Sources, no_rows
from harness.analysis.state_changes import StateChanges, by_kind
from harness.analysis.storage import literal_glob
from harness.store.folder import R

Facts = dict[str, DataFrame]

LINES = ".lines"
"""Folder of the lines as Parquet, while facts are made of them."""
WRITERS = 4
"""Jobs at once: most of a small job is planning, which one thread does alone."""
HISTORY = "history"
"""One row a change of a znode."""


def tables_of(sources: Sources) -> Facts:
    """Return what many facts take from the lines: what became of znodes, and the brokers' logs by kind of event."""
    return {HISTORY: changes(sources.zookeeper)} | by_kind(sources.state_changes)


def facts_from_lines(sources: Sources, tables: Facts) -> Facts:
    """Return the facts that come straight from the lines, and from the tables that are made of them."""
    history, lines = tables[HISTORY], StateChanges(tables)
    return {
        schemas.SENDS.name: sends(sources.operations, lines),
        schemas.POLLS.name: polls(sources.operations),
        schemas.REPLICAS.name: replicas(sources.replicas),
        schemas.REPLICA_RECORDS.name: replica_records(sources.replicas),
        schemas.PARTITION_STATES.name: partition_states(history, lines),
        schemas.LEADERSHIP_CLAIMS.name: leadership_claims(lines),
        schemas.APPENDS.name: appends(lines),
        schemas.CONTROLLER_EPOCHS.name: controller_epochs(history, lines),
        schemas.HIGH_WATERMARKS.name: high_watermarks(lines),
        schemas.TRUNCATIONS.name: truncations(lines),
        schemas.COMMITTED_OFFSETS.name: committed_offsets(sources.operations, sources.replicas),
        schemas.FAULT_WINDOWS.name: fault_windows(sources.journal),
        schemas.LIVENESS.name: liveness(sources.liveness),
        protocol_tables.METADATA_CACHES.name: metadata_caches(lines, sources.operations),
        protocol_tables.DELETED_LOGS.name: deleted_logs(sources.replicas, sources.state_changes, lines),
        client_tables.END_OFFSETS.name: end_offsets(sources.operations),
        protocol_tables.ELECTIONS.name: elections(lines),
        protocol_tables.STATE_WRITES.name: state_writes(lines),
        protocol_tables.CONTROL_REQUESTS.name: control_requests(lines),
        protocol_tables.REGISTRATIONS.name: registrations(history, lines),
        protocol_tables.LEADER_ISRS.name: leader_isrs(lines),
        protocol_tables.ISR_PROPOSALS.name: isr_proposals(lines),
        protocol_tables.ACKNOWLEDGEMENTS.name: acknowledgements(lines),
        protocol_tables.REFUSALS.name: refusals(lines),
        protocol_tables.REFUSED_RETRIES.name: refused_retries(lines),
        protocol_tables.CONSUMER_FETCHES.name: consumer_fetches(lines),
        protocol_tables.PRODUCER_ID_BLOCKS.name: producer_id_blocks(history),
        protocol_tables.EPOCH_ANSWERS.name: epoch_answers(lines),
        protocol_tables.TOPICS.name: topics(sources.zookeeper),
        protocol_tables.TOPIC_CONFIGS.name: topic_configs(history),
    }


def facts_from_facts(facts: Facts, sources: Sources, tables: Facts) -> Facts:
    """Return the facts that are made of other facts too."""
    state_rows, send_rows = facts[schemas.PARTITION_STATES.name], facts[schemas.SENDS.name]
    return {
        schemas.LEADER_EPOCHS.name: leader_epochs(
            state_rows, facts[schemas.LEADERSHIP_CLAIMS.name], facts[schemas.APPENDS.name], StateChanges(tables)
        ),
        schemas.ISR_CHANGES.name: isr_changes(state_rows),
        schemas.AVAILABILITY.name: availability(send_rows),
        client_tables.POLL_STEPS.name: poll_steps(facts[schemas.POLLS.name]),
        client_tables.SEND_REVERSALS.name: send_reversals(send_rows),
        schemas.EVIDENCE.name: evidence(sources, send_rows),
    }


@contextmanager
def built_facts(sources: Sources, folder: Folder, *, write: bool = True) -> Iterator[Facts]:
    """Yield every fact, computed once.

    Facts of runs that one task has together stay in memory, and are written to `folder` too if `write` says so.
    Larger ones are always written there: what is read back has columns of its own and needs no memory.
    """
    context = sources.operations.sparkSession.sparkContext
    before = set(context._jsc.getPersistentRDDs())
    try:
        if sources.together:
            with _in_memory(sources) as facts:
                if write:
                    in_threads([partial(_save, frame, fact_path(folder, name)) for name, frame in facts.items()])
                yield facts
        else:
            with _on_disk(sources, folder) as facts:
                yield facts
    finally:
        for number, rows in dict(context._jsc.getPersistentRDDs()).items():
            if number not in before:
                rows.unpersist(False)  # Spark itself would wait until its JVM collects garbage


@contextmanager
def _on_disk(sources: Sources, folder: Folder) -> Iterator[Facts]:
    lines = folder / LINES
    try:
        sources = sources.with_frames(_stored(sources.frames, lines))
        tables = tables_of(sources)
        first = _stored(facts_from_lines(sources, tables), folder)
        yield first | _stored(facts_from_facts(first, sources, tables), folder)
    finally:
        remove(lines)


def _stored(frames: Facts, folder: Folder) -> Facts:
    """Return the same rows, read from where they are written."""
    write_facts(frames, folder)
    return {
        name: frame.sparkSession.read.schema(frame.schema).parquet(literal_glob(str(fact_path(folder, name))))
        for name, frame in frames.items()
    }


@contextmanager
def _in_memory(sources: Sources) -> Iterator[Facts]:
    spark = sources.operations.sparkSession
    with _materialized(spark, sources.frames) as lines:
        sources = sources.with_frames(lines)
        with (
            _materialized(spark, tables_of(sources)) as tables,
            _materialized(spark, facts_from_lines(sources, tables)) as first,
            _materialized(spark, facts_from_facts(first, sources, tables)) as more,
        ):
            yield first | more


@contextmanager
def _materialized(spark: SparkSession, frames: Facts) -> Iterator[Facts]:
    """Yield the same rows, computed once; on a cluster, where executors die, with the plans that compute them again."""
    if is_local(spark):
        yield dict(zip(frames, checkpointed(frames.values()), strict=True))
        return
    cached = {name: frame.persist(StorageLevel.MEMORY_AND_DISK_DESER) for name, frame in frames.items()}
    try:
        yield cached
    finally:
        for frame in cached.values():
            frame.unpersist()


def row_counts(facts: Facts, run_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return how many rows each fact has, by run id and fact; one job, which computes all of them."""
    counts = {run_id: dict.fromkeys(TABLES, 0) for run_id in run_ids}
    rows = union([frame.select("run_id", F.lit(name).alias("fact")) for name, frame in facts.items()], apart=False)
    for row in rows.groupBy("run_id", "fact").agg(F.count("*").alias("number")).collect():
        counts[row.run_id][row.fact] = row.number
    return counts


def write_facts(facts: Facts, folder: Folder) -> None:
    """Write every fact below `folder`."""
    in_threads([partial(_write, frame, fact_path(folder, name)) for name, frame in facts.items()])


def read_facts(spark: SparkSession, folder: Path) -> Facts:
    """Return the facts that were written below `folder`; one that is missing reads as no rows."""
    facts = {}
    for name, table in TABLES.items():
        path = fact_path(folder, name)
        facts[name] = (
            spark.read.schema(table.ddl).parquet(str(path))
            if path.is_dir()
            else no_rows(spark, [(column.name, column.type) for column in table.columns])
        )
    return facts


def fact_path(folder: R, name: str) -> R:
    """Return where one fact is written."""
    return folder / f"{name}.parquet"


def _write(frame: DataFrame, path: Folder) -> None:
    frame.write.mode("overwrite").parquet(str(path))


def _save(frame: DataFrame, path: Folder) -> None:
    """Write what is in memory already: on this machine with Arrow, in half of the time of a job that writes."""
    if isinstance(path, Path):
        remove(path)
        path.mkdir(parents=True)
        pq.write_table(frame.toArrow(), path / "part-0.parquet")
    else:
        _write(frame, path)


def in_threads(jobs: list[Callable[[], None]]) -> None:
    """Run the jobs a few at a time; raises what the first of them raised, after all have ended."""
    with ThreadPoolExecutor(max_workers=WRITERS) as pool:
        futures = [pool.submit(job) for job in jobs]
    for future in futures:
        future.result()
