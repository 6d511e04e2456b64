"""Builds every fact of one run or many, writes each as Parquet, and hands them back as read from there."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyarrow import parquet
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from harness.analysis import schemas
from harness.analysis.facts.availability import availability
from harness.analysis.facts.clients import polls, sends
from harness.analysis.facts.epochs import (
    isr_changes,
    leader_appends,
    leader_epochs,
    leadership_claims,
    partition_states,
)
from harness.analysis.facts.evidence import evidence
from harness.analysis.facts.faults import fault_windows
from harness.analysis.facts.logs import high_watermarks, replica_records, replicas, truncations
from harness.analysis.facts.offsets import committed_offsets
from harness.analysis.facts.znodes import controller_epochs
from harness.analysis.schemas import TABLES
from harness.analysis.sources import Sources, no_rows

Facts = dict[str, DataFrame]

WRITERS = 4
"""Jobs at once: most of a small job is planning, which one thread does alone."""


def from_lines(sources: Sources) -> Facts:
    """Return the facts that come straight from the lines."""
    lines = sources.state_changes
    return {
        schemas.SENDS.name: sends(sources.operations, lines),
        schemas.POLLS.name: polls(sources.operations),
        schemas.REPLICAS.name: replicas(sources.replicas),
        schemas.REPLICA_RECORDS.name: replica_records(sources.replicas),
        schemas.PARTITION_STATES.name: partition_states(sources.zookeeper, lines),
        schemas.LEADERSHIP_CLAIMS.name: leadership_claims(lines),
        schemas.LEADER_APPENDS.name: leader_appends(lines),
        schemas.CONTROLLER_EPOCHS.name: controller_epochs(sources.zookeeper, lines),
        schemas.HIGH_WATERMARKS.name: high_watermarks(lines),
        schemas.TRUNCATIONS.name: truncations(lines),
        schemas.COMMITTED_OFFSETS.name: committed_offsets(sources.operations, sources.replicas),
        schemas.FAULT_WINDOWS.name: fault_windows(sources.journal),
    }


def from_facts(facts: Mapping[str, DataFrame], sources: Sources) -> Facts:
    """Return the facts that are made of other facts too."""
    states, sent = facts[schemas.PARTITION_STATES.name], facts[schemas.SENDS.name]
    return {
        schemas.LEADER_EPOCHS.name: leader_epochs(
            states, facts[schemas.LEADERSHIP_CLAIMS.name], facts[schemas.LEADER_APPENDS.name], sources.state_changes
        ),
        schemas.ISR_CHANGES.name: isr_changes(states),
        schemas.AVAILABILITY.name: availability(sent),
        schemas.EVIDENCE.name: evidence(sources, sent),
    }


def write_facts(spark: SparkSession, sources: Sources, folder: Path) -> Facts:
    """Write every fact below `folder` and return all of them, as read from there."""
    with cached(sources.frames):
        _write_all(from_lines(sources), folder)
        _write_all(from_facts(read_facts(spark, folder), sources), folder)
    return read_facts(spark, folder)


@contextmanager
def cached(frames: Iterable[DataFrame]) -> Iterator[None]:
    """Keep the frames once they have been computed, in memory as far as it reaches."""
    kept = [frame.persist(StorageLevel.MEMORY_AND_DISK) for frame in frames]
    try:
        yield
    finally:
        for frame in kept:
            frame.unpersist()


def row_counts(folder: Path, run_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return how many rows each written fact has, by run id and fact; reads one column of each, without Spark."""
    counts = {run_id: dict.fromkeys(TABLES, 0) for run_id in run_ids}
    for name in TABLES:
        rows = parquet.read_table(fact_path(folder, name), columns=["run_id"], read_dictionary=["run_id"])
        for pair in rows["run_id"].value_counts().to_pylist():
            counts[pair["values"]][name] = pair["counts"]
    return counts


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


def fact_path(folder: Path, name: str) -> Path:
    """Return where one fact is written."""
    return folder / f"{name}.parquet"


def _write_all(facts: Facts, folder: Path) -> None:
    in_threads([partial(_write, frame, fact_path(folder, name)) for name, frame in facts.items()])


def _write(frame: DataFrame, path: Path) -> None:
    frame.write.mode("overwrite").parquet(str(path))


def in_threads(jobs: list[Callable[[], None]]) -> None:
    """Run the jobs a few at a time; raises what the first of them raised, after all have ended."""
    with ThreadPoolExecutor(max_workers=WRITERS) as pool:
        futures = [pool.submit(job) for job in jobs]
    for future in futures:
        future.result()
