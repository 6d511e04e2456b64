"""How are the facts of one run or many computed, once for all their readers, and written as Parquet?"""

import shutil
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from harness.analysis.engine.compat import forgetting, is_local, scanned, to_read, to_write
from harness.analysis.engine.hadoop import Folder, remove
from harness.analysis.facts.availability import availability
from harness.analysis.facts.beliefs import beliefs, controller_passes
from harness.analysis.facts.clients import sends
from harness.analysis.facts.compaction import compactions, superseded
from harness.analysis.facts.configurations import configurations, property_versions
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
from harness.analysis.facts.followers import follower_watermarks
from harness.analysis.facts.groups import (
    group_commits,
    group_generations,
    group_loads,
    group_retirements,
    group_states,
    ownerships,
)
from harness.analysis.facts.liveness import liveness
from harness.analysis.facts.log_loads import log_loads, segment_deletions
from harness.analysis.facts.logs import high_watermarks, truncations
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
    unexpected_errors,
)
from harness.analysis.facts.quorum import quorum_terms
from harness.analysis.facts.steps import (
    end_offsets,
    offset_reads,
    poll_steps,
    poll_steps_of_many,
    promised_answers,
    scripts,
    send_reversals,
    send_reversals_of_many,
)
from harness.analysis.facts.transactions import (
    client_transactions,
    marker_writes,
    stable_offsets,
    transaction_answers,
    transactional_commits,
    transactions,
)
from harness.analysis.facts.typed import from_lines
from harness.analysis.facts.znodes import (
    broker_logs,
    changes,
    controller_epochs,
    deletions,
    producer_id_blocks,
    registrations,
    topic_configs,
    topics,
)
from harness.analysis.frames import Maker, made_apart, planners, union
from harness.analysis.sources.lineage import has_no_rows
from harness.analysis.sources.reading import Sources, no_rows, of_table
from harness.analysis.sources.state_changes import LIVES, StateChanges
from harness.analysis.sources.steps import BROKER_STEPS, ZNODE_STEPS
from harness.analysis.sources.typed import DELETED, FACTS, TRANSITIONS, TYPED
from harness.analysis.tables import clients, groups, protocol, schemas
from harness.analysis.tables import transactions as transaction_tables
from harness.analysis.tables.arrow import columns_of
from harness.analysis.tables.schemas import TABLES
from harness.events import FetchResponse
from harness.store.folder import R
from harness.store.history import OpKind

Facts = dict[str, DataFrame]

LINES = ".lines"
"""Folder of the lines as Parquet, while facts are made of them."""
WRITERS = 4
"""Jobs at once that have few rows: such a job is mostly planning, which is done by one thread."""
HISTORY = "history"
"""One row a change of a znode."""
_READ_ONCE = {"journal", "liveness", DELETED, FetchResponse.ev, LIVES, TRANSITIONS}
"""Tables that one fact or two are made of."""


def tables_of(sources: Sources) -> Facts:
    """Return all typed tables, of lines and as they were sealed, and what became of znodes."""
    parts = [from_lines(kind, frame) for kind, frame in sources.lines.items()]
    tables = dict(sources.tables)
    for name, frame in ChainMap(*parts).items():
        tables[name] = frame.unionByName(tables[name]) if name in tables else frame
    if sources.unstated_acks is not None:
        acks = F.coalesce("acks", F.lit(sources.unstated_acks))
        tables["operations"] = tables["operations"].withColumn("acks", acks)
    return tables | {HISTORY: changes(tables["zookeeper"])}


def facts_from_tables(
    tables: Facts,
    names: Collection[str] = TABLES,
    *,
    many: bool = False,
    absent: frozenset[str] = frozenset(),
) -> dict[str, Maker]:
    """Return what makes those of the facts of these names that come straight from the tables, of few rows or `many`.

    Kinds of lines in `absent` are certainly not there.
    """
    commits = OpKind.COMMIT_TRANSACTION not in absent
    history, lines, operations = tables[HISTORY], StateChanges(tables), tables["operations"]
    made: dict[str, Maker] = {
        schemas.SENDS.name: lambda: sends(operations, lines, tables[schemas.POLLS.name], many=many, commits=commits),
        schemas.PARTITION_STATES.name: lambda: partition_states(history, lines),
        schemas.LEADERSHIP_CLAIMS.name: lambda: leadership_claims(lines),
        schemas.APPENDS.name: lambda: appends(lines),
        schemas.CONTROLLER_EPOCHS.name: lambda: controller_epochs(history, lines),
        schemas.HIGH_WATERMARKS.name: lambda: high_watermarks(lines),
        schemas.TRUNCATIONS.name: lambda: truncations(lines),
        schemas.COMMITTED_OFFSETS.name: lambda: committed_offsets(operations, tables[schemas.REPLICA_RECORDS.name]),
        schemas.FAULT_WINDOWS.name: lambda: fault_windows(tables["journal"]),
        schemas.LIVENESS.name: lambda: liveness(tables["liveness"]),
        protocol.METADATA_CACHES.name: lambda: metadata_caches(lines, operations),
        protocol.DELETED_LOGS.name: lambda: deleted_logs(tables[DELETED], tables[LIVES], lines),
        clients.END_OFFSETS.name: lambda: end_offsets(operations),
        clients.OFFSET_READS.name: lambda: offset_reads(operations),
        clients.SCRIPTS.name: lambda: scripts(operations),
        clients.PROMISED_ANSWERS.name: lambda: promised_answers(operations),
        protocol.ELECTIONS.name: lambda: elections(lines),
        protocol.QUORUM_TERMS.name: lambda: quorum_terms(lines, tables[LIVES]),
        protocol.CONTROLLER_PASSES.name: lambda: controller_passes(lines),
        protocol.STATE_WRITES.name: lambda: state_writes(lines),
        protocol.CONTROL_REQUESTS.name: lambda: control_requests(lines),
        protocol.REGISTRATIONS.name: lambda: registrations(history, lines),
        protocol.BROKER_LOGS.name: lambda: broker_logs(lines),
        protocol.LEADER_ISRS.name: lambda: leader_isrs(lines),
        protocol.ISR_PROPOSALS.name: lambda: isr_proposals(lines),
        protocol.ACKNOWLEDGEMENTS.name: lambda: acknowledgements(lines),
        protocol.REFUSALS.name: lambda: refusals(lines),
        protocol.REFUSED_RETRIES.name: lambda: refused_retries(lines),
        protocol.CONSUMER_FETCHES.name: lambda: consumer_fetches(lines),
        protocol.PRODUCER_ID_BLOCKS.name: lambda: producer_id_blocks(history),
        protocol.EPOCH_ANSWERS.name: lambda: epoch_answers(lines),
        protocol.UNEXPECTED_ERRORS.name: lambda: unexpected_errors(lines),
        protocol.TOPICS.name: lambda: topics(tables["zookeeper"]),
        protocol.DELETIONS.name: lambda: deletions(history, lines),
        protocol.TOPIC_CONFIGS.name: lambda: topic_configs(history),
        protocol.CONFIGURATIONS.name: lambda: configurations(lines, tables[LIVES]),
        protocol.PROPERTY_VERSIONS.name: lambda: property_versions(history, lines),
        protocol.STEPS.name: lambda: tables[BROKER_STEPS].unionByName(tables[ZNODE_STEPS]),
        protocol.COMPACTIONS.name: lambda: compactions(lines),
        protocol.LOG_LOADS.name: lambda: log_loads(lines),
        protocol.SEGMENT_DELETIONS.name: lambda: segment_deletions(lines),
        groups.GROUP_STATES.name: lambda: group_states(lines, tables[LIVES]),
        groups.GROUP_COMMITS.name: lambda: group_commits(lines),
        groups.GROUP_LOADS.name: lambda: group_loads(lines),
        groups.GROUP_RETIREMENTS.name: lambda: group_retirements(lines),
        groups.OWNERSHIPS.name: lambda: ownerships(operations),
        transaction_tables.TRANSACTIONS.name: lambda: transactions(
            tables[TRANSITIONS], tables[schemas.REPLICAS.name], lines
        ),
        transaction_tables.CLIENT_TRANSACTIONS.name: lambda: client_transactions(operations),
        transaction_tables.MARKER_WRITES.name: lambda: marker_writes(lines),
        transaction_tables.STABLE_OFFSETS.name: lambda: stable_offsets(lines),
        transaction_tables.TRANSACTION_ANSWERS.name: lambda: transaction_answers(lines),
        transaction_tables.TRANSACTIONAL_COMMITS.name: lambda: transactional_commits(lines),
    }
    return {name: make for name, make in made.items() if name in names}


MADE_OF = {
    schemas.LEADER_EPOCHS.name: (schemas.PARTITION_STATES.name, schemas.LEADERSHIP_CLAIMS.name, schemas.APPENDS.name),
    schemas.ISR_CHANGES.name: (schemas.PARTITION_STATES.name,),
    schemas.AVAILABILITY.name: (schemas.SENDS.name,),
    clients.POLL_STEPS.name: (schemas.POLLS.name,),
    clients.SEND_REVERSALS.name: (schemas.SENDS.name,),
    protocol.SUPERSEDED.name: (
        protocol.COMPACTIONS.name,
        schemas.SENDS.name,
        schemas.POLLS.name,
        schemas.REPLICA_RECORDS.name,
        transaction_tables.TRANSACTIONAL_BATCHES.name,
        transaction_tables.MARKERS.name,
    ),
    protocol.BELIEFS.name: (protocol.CONTROLLER_PASSES.name,),
    protocol.FOLLOWER_WATERMARKS.name: (schemas.LEADERSHIP_CLAIMS.name,),
    groups.GROUP_GENERATIONS.name: (groups.OWNERSHIPS.name,),
    schemas.EVIDENCE.name: (schemas.SENDS.name,),
}
"""The facts that are made of other facts too, and of which, in the order in which they take them."""


def facts_from_facts(
    facts: Facts, sources: Sources, tables: Facts, names: Collection[str] = TABLES
) -> dict[str, Maker]:
    """Return what makes those of the facts of these names that are made of other facts too."""
    # What is made of many rows costs a small run 0.3 to 0.8 CPU s more for each fact, on Apache Spark.
    lines, many = StateChanges(tables), through_disk(sources)
    made: dict[str, Callable[..., DataFrame]] = {
        schemas.LEADER_EPOCHS.name: partial(leader_epochs, state_changes=lines),
        schemas.ISR_CHANGES.name: isr_changes,
        schemas.AVAILABILITY.name: partial(availability, many=many),
        clients.POLL_STEPS.name: poll_steps_of_many if many else poll_steps,
        clients.SEND_REVERSALS.name: send_reversals_of_many if many else send_reversals,
        protocol.SUPERSEDED.name: superseded,
        protocol.BELIEFS.name: partial(beliefs, state_changes=lines),
        protocol.FOLLOWER_WATERMARKS.name: partial(follower_watermarks, state_changes=lines, lives=tables[LIVES]),
        groups.GROUP_GENERATIONS.name: partial(group_generations, lines),
        schemas.EVIDENCE.name: partial(evidence, sources),
    }
    return {name: partial(make, *(facts[of] for of in MADE_OF[name])) for name, make in made.items() if name in names}


def _without_rows(sources: Sources, names: Collection[str]) -> set[str]:
    """Return the facts that have no rows, by what the tables say: nothing is planned for them."""
    without = {name for name in names if has_no_rows(name, sources.absent)}
    return without if sources.lines else without | {schemas.EVIDENCE.name}


def with_what_they_are_made_of(names: Collection[str]) -> set[str]:
    """Return these names of facts, and those of the facts that they are made of."""
    return {*names, *(of for name in names for of in MADE_OF.get(name, ()))}


def _empty(sources: Sources, names: Collection[str]) -> Facts:
    return {name: no_rows(sources.spark, of_table(TABLES[name])) for name in names}


def through_disk(sources: Sources) -> bool:
    """Return whether facts are files for their readers: those of runs that no task has together."""
    return not sources.together


@contextmanager
def built_facts(
    sources: Sources, folder: Folder, *, names: Collection[str] = TABLES, write: bool = True
) -> Iterator[Facts]:
    """Yield the facts of these names, and those that they are made of, each computed once.

    Facts of runs that one task has together stay in memory, and are written to `folder` too if `write` says so.
    Larger ones are always written there: what is read back has columns of its own and needs no memory.
    """
    names = with_what_they_are_made_of(names)
    with forgetting(sources.spark):
        if not through_disk(sources):
            with _in_memory(sources, names) as facts:
                if write:
                    rest = facts.keys() - _written_already(sources, names, folder)
                    in_threads([partial(_save, facts[name], fact_path(folder, name)) for name in rest])
                yield facts
        else:
            with _on_disk(sources, names, folder) as facts:
                yield facts


@contextmanager
def _on_disk(sources: Sources, names: set[str], folder: Folder) -> Iterator[Facts]:
    lines = folder / LINES
    try:
        sources = replace(sources, lines=through_files(sources.lines, lines))
        tables = tables_of(sources)
        empty = _without_rows(sources, names)
        first = _empty(sources, empty) | {name: scanned(tables[name]) for name in names & sources.sealed_facts.keys()}
        written = _written_already(sources, names, folder)
        write_facts({name: frame for name, frame in first.items() if name not in written}, folder)
        rest = names - first.keys()
        more = {name: tables[name] for name in FACTS if name in rest}
        made = facts_from_tables(tables, rest, many=True, absent=sources.absent)
        first |= through_files(more | _all_made(made), folder)
        yield first | through_files(_all_made(facts_from_facts(first, sources, tables, rest)), folder)
    finally:
        remove(lines)


def _written_already(sources: Sources, names: set[str], folder: Folder) -> set[str]:
    """Put facts in their places on this machine that a run was sealed with or that have no rows; return their names."""
    if not isinstance(folder, Path):
        return set()
    empty = _without_rows(sources, names)
    sealed = {name: path for name, path in sources.sealed_facts.items() if name in names}
    for name, path in sealed.items():
        _link(_new_file(fact_path(folder, name)), path)
    for name in empty - sealed.keys():
        pq.write_table(columns_of(TABLES[name]).empty_table(), _new_file(fact_path(folder, name)))
    return {*sealed, *empty}


def _link(new: Path, file: Path) -> None:
    try:
        new.hardlink_to(file)
    except OSError:  # another disk, or one that knows no links
        shutil.copyfile(file, new)


def _new_file(folder: Path) -> Path:
    remove(folder)
    folder.mkdir(parents=True)
    return folder / "part-0.parquet"


def through_files(frames: Mapping[str, DataFrame], folder: Folder) -> Facts:
    """Return the same rows, read from where they are written below `folder`."""
    write_facts(frames, folder)
    return {
        name: scanned(_read(frame.sparkSession, frame.schema, fact_path(folder, name)))
        for name, frame in frames.items()
    }


def _read(spark: SparkSession, columns: StructType | str, path: Folder) -> DataFrame:
    return spark.read.schema(columns).parquet(to_read(spark, path))


@contextmanager
def _in_memory(sources: Sources, names: set[str]) -> Iterator[Facts]:
    spark, empty = sources.spark, _without_rows(sources, names)
    with _materialized(spark, _makers_of(sources.lines)) as lines:
        sources = replace(sources, lines=lines)
        tables = tables_of(sources)
        none_of = {name for kind in sources.absent & TYPED.keys() for name in TYPED[kind]}
        often = {name: frame for name, frame in tables.items() if name not in _READ_ONCE | none_of}
        with _materialized(spark, _makers_of(often)) as in_memory:
            tables |= in_memory
            with _materialized(spark, facts_from_tables(tables, names - empty, absent=sources.absent)) as made:
                first = {name: tables[name] for name in FACTS if name in names} | made | _empty(sources, empty)
                with _materialized(spark, facts_from_facts(first, sources, tables, names - empty)) as more:
                    yield first | more


@contextmanager
def _materialized(spark: SparkSession, makers: Mapping[str, Maker]) -> Iterator[Facts]:
    """Yield the same rows, computed once; on a cluster, where executors die, with the plans that compute them again."""
    if is_local(spark):
        yield dict(zip(makers, made_apart(spark, makers.values()), strict=True))
        return
    cached = {name: make().persist(StorageLevel.MEMORY_AND_DISK_DESER) for name, make in makers.items()}
    try:
        yield cached
    finally:
        for frame in cached.values():
            frame.unpersist()


def _makers_of(frames: Mapping[str, DataFrame]) -> dict[str, Maker]:
    """Return makers of frames that are made already."""
    return {name: partial(_itself, frame) for name, frame in frames.items()}


def _itself(frame: DataFrame) -> DataFrame:
    return frame


def _all_made(makers: Mapping[str, Maker]) -> Facts:
    return {name: make() for name, make in makers.items()}


def row_counts(facts: Facts, run_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return how many rows each fact has, by run id and fact; one job, which computes all of them."""
    counts = {run_id: dict.fromkeys(facts, 0) for run_id in run_ids}
    rows = union([frame.select("run_id", F.lit(name).alias("fact")) for name, frame in facts.items()], apart=False)
    for row in rows.groupBy("run_id", "fact").agg(F.count("*").alias("number")).collect():
        counts[row.run_id][row.fact] = row.number
    return counts


def written_counts(folder: Path) -> dict[str, int]:
    """Return how many rows each fact has that was written below `folder`, by what its files say."""
    return {
        name: sum(pq.read_metadata(file).num_rows for file in fact_path(folder, name).glob("*.parquet"))
        for name in TABLES
    }


def write_facts(facts: Mapping[str, DataFrame], folder: Folder) -> None:
    """Write every fact below `folder`."""
    jobs = [partial(_write, frame, fact_path(folder, name)) for name, frame in facts.items()]
    if facts:
        in_threads(jobs, planners(next(iter(facts.values())).sparkSession))


def read_facts(spark: SparkSession, folder: Path) -> Facts:
    """Return the facts that were written below `folder`; one that is missing reads as no rows."""
    facts = {}
    for name, table in TABLES.items():
        path = fact_path(folder, name)
        rows = _read(spark, table.ddl, path) if path.is_dir() else None
        facts[name] = no_rows(spark, of_table(table)) if rows is None else rows
    return facts


def fact_path(folder: R, name: str) -> R:
    """Return where one fact is written."""
    return folder / f"{name}.parquet"


def _write(frame: DataFrame, path: Folder) -> None:
    frame.write.mode("overwrite").parquet(to_write(frame.sparkSession, path))
    if isinstance(path, Path) and not any(path.glob("*.parquet")):  # Sail writes no file where there are no rows
        pq.write_table(to_arrow_schema(frame.schema).empty_table(), _new_file(path))


def _save(frame: DataFrame, path: Folder) -> None:
    """Write what is in memory already: on this machine with Arrow, in half of the time of a job that writes."""
    if isinstance(path, Path):
        pq.write_table(frame.toArrow(), _new_file(path))
    else:
        _write(frame, path)


def in_threads(jobs: Sequence[Callable[[], None]], at_once: int = WRITERS) -> None:
    """Run the jobs a few at a time; raises what the first of them raised, after all have ended."""
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        futures = [pool.submit(job) for job in jobs]
    for future in futures:
        future.result()
