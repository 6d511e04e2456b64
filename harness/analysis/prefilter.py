"""The records of a large history on which all sources agree, so that no prefiltered check has a finding about them.

One scan sums up, for each block of 64 offsets of a partition, what each source has: the sends that were
acknowledged, each reader's polls, each replica's records. A source's offsets are a bit each, so that as many bits as
rows mean that none is there twice; of offset and value there is a hash of 64 bits. A block is clean where all agree:
sends, a reader at least, and every replica that was dumped (of partitions that no client names, all replicas).

What stays of the facts is a slice: whole blocks that are not clean, those before and after each of them, the first and
the last of a partition, and those in which something began or ended (`_marks`). Whatever has no place stays too. Where
a reader has a value in there that no send in there explains, all rows of that value stay (`_closure`).

So of a clean block that is left out nothing is missing from any source, and what stays of a clean block stays from all
of them. A check may be prefiltered if by that alone it finds the same: `prefiltered` of its class says why.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from harness.analysis.engine.hadoop import Folder, remove
from harness.analysis.facts.build import Facts, through_files
from harness.analysis.frames import PARTITION_KEY, as_number, balanced_union, in_order, partition_number
from harness.analysis.tables.clients import POLL_STEPS
from harness.analysis.tables.protocol import SUPERSEDED
from harness.analysis.tables.schemas import LEADER_EPOCHS, POLLS, REPLICA_RECORDS, REPLICAS, SENDS, TRUNCATIONS
from harness.store.history import OpType

SLICED = (SENDS.name, POLLS.name, REPLICA_RECORDS.name)
"""The facts of which there are slices."""
_READ = {*SLICED, REPLICAS.name, LEADER_EPOCHS.name, TRUNCATIONS.name, POLL_STEPS.name, SUPERSEDED.name}
BITS = 6
"""A block has 2⁶ offsets: a bit each in a long."""
MOST = 0.1
"""Of all rows, in blocks that are not clean: with more of them, slices cost more than they spare."""
NAMED, SPANS = 10_000, 100
"""Blocks, and runs of blocks that follow each other: of so many at most, files are asked for their offsets alone."""
FOLDER = ".prefilter"
_MARKED = "marked"
_BLOCK = ("place", "block")
"""A partition of a run, as a number, and which of its blocks."""
_VALUE = ("run_id", "topic", "value")


@contextmanager
def prefiltered(facts: Facts, counts: Mapping[str, Mapping[str, int]], folder: Folder) -> Iterator[Facts]:
    """Yield the facts as prefiltered checks are handed them: the same where slices would spare nothing.

    Args:
        facts: All facts that checks read, as files.
        counts: Rows a fact, by run id.
        folder: Where slices go as long as they are used.
    """
    rows = {name: sum(of_run[name] for of_run in counts.values()) for name in facts}
    if not facts.keys() >= _READ or not rows[SENDS.name] or not rows[POLLS.name] or rows[SUPERSEDED.name]:
        yield facts
        return
    try:
        dirty = through_files({"blocks": dirty_blocks(facts)}, folder / FOLDER)["blocks"]
        (in_dirty,) = dirty.agg(F.sum("number").alias("number")).collect()
        few = (in_dirty.number or 0) <= MOST * sum(rows[name] for name in SLICED)
        yield facts | slices(facts, dirty, folder / FOLDER) if few else facts
    finally:
        remove(folder / FOLDER)


def dirty_blocks(facts: Facts, bits: int = BITS) -> DataFrame:
    """One row a block that stays: its `id`, its place in the partition, and how many rows of all sources are in it."""
    sums = balanced_union([_sums(facts[name], name, bits) for name in SLICED])
    marks = _placed(_marks(facts), bits).select(*_BLOCK, F.lit(_MARKED).alias("fact")).distinct()
    blocks = (
        sums.unionByName(marks, allowMissingColumns=True)
        .groupBy(*_BLOCK)
        .agg(
            F.coalesce(F.sum("number"), F.lit(0)).alias("number"),
            *(F.count(F.when(F.col("fact") == fact, 1)).alias(fact) for fact in (*SLICED, _MARKED)),
            _ids(F.when(F.col("fact") == REPLICA_RECORDS.name, F.col("source"))).alias("holders"),
            (F.bool_and("whole") & _one("offsets") & _one("contents")).alias("agree"),
            F.coalesce(_one("copies"), F.lit(True)).alias("same_copies"),
        )
        .join(F.broadcast(_dumped(facts)), on="place", how="left")
    )
    of_clients = F.col(SENDS.name) + F.col(POLLS.name) > 0
    of_partition = F.bool_or(of_clients).over(Window.partitionBy("place"))
    explained = ~of_partition | ((F.col(SENDS.name) == 1) & (F.col(POLLS.name) > 0))
    everywhere = F.col("holders") == F.coalesce("dumped", F.array().cast("array<bigint>"))
    clean = F.col("agree") & F.col("same_copies") & explained & everywhere & (F.col(_MARKED) == 0)
    in_turn = in_order("place", by=("block",))
    beside = [F.coalesce(step("odd").over(in_turn), F.lit(True)) for step in (F.lag, F.lead)]
    return (
        blocks.withColumn("odd", ~F.coalesce(clean, F.lit(False)))
        .withColumn("dirty", F.col("odd") | beside[0] | beside[1])
        .where("dirty")
        .select(as_number(*_BLOCK).alias("id"), "block", "number")
    )


def _sums(rows: DataFrame, fact: str, bits: int) -> DataFrame:
    """One row a block and source of a fact: which offsets it names, and hashes of what it says stands there."""
    source = {
        SENDS.name: "0L",
        POLLS.name: "xxhash64(process, mode)",
        REPLICA_RECORDS.name: "cast(broker as bigint)",
    }
    bit = F.expr(f"shiftleft(1L, cast(offset & {2**bits - 1} as int))")
    held = ("offset", "leader_epoch", "digest") if fact == REPLICA_RECORDS.name else ()
    return (
        _placed(rows, bits)
        .groupBy(*_BLOCK, F.lit(fact).alias("fact"), F.expr(source[fact]).alias("source"))
        .agg(
            F.count("*").alias("number"),
            F.count("value").alias("values"),
            F.bit_or(bit).alias("offsets"),
            F.bit_xor(F.xxhash64("offset", "value")).alias("contents"),
            F.bit_xor(F.xxhash64(*held) if held else F.lit(None).cast("bigint")).alias("copies"),
        )
        .withColumn("whole", (F.col("number") == F.bit_count("offsets")) & (F.col("number") == F.col("values")))
    )


def _one(column: str) -> Column:
    """Return whether all rows of a group that have a value have the same; null where none has."""
    return F.min(column) == F.max(column)


def _dumped(facts: Facts) -> DataFrame:
    """One row a partition: whose replicas were dumped."""
    place = partition_number().alias("place")
    return facts[REPLICAS.name].groupBy(place).agg(_ids(F.col("broker").cast("bigint")).alias("dumped"))


def _ids(broker: Column) -> Column:
    """Return the different ids of brokers of a group, in order."""
    return F.array_sort(F.collect_set(broker))


def _marks(facts: Facts) -> DataFrame:
    """One row an offset whose block stays: where epochs begin, truncations and logs end, and readers jump ahead.

    Faults show there. This keeps all records that follow a jump, up to the first that was read: blocks that
    were not read are not clean.
    """
    ahead = facts[POLL_STEPS.name].where(F.col("offset") > F.col("previous_offset") + 1)
    ends = {
        LEADER_EPOCHS.name: (facts[LEADER_EPOCHS.name], ("start_offset",)),
        TRUNCATIONS.name: (facts[TRUNCATIONS.name], ("to_offset", "log_end_offset")),
        REPLICAS.name: (facts[REPLICAS.name], ("log_start_offset", "log_end_offset - 1", "log_end_offset")),
        POLL_STEPS.name: (ahead, ("previous_offset",)),
    }
    return balanced_union(
        [
            rows.select(*PARTITION_KEY, F.explode(F.array(*map(F.expr, offsets))).alias("offset"))
            for rows, offsets in ends.values()
        ]
    )


def slices(facts: Facts, blocks: DataFrame, folder: Folder, bits: int = BITS) -> Facts:
    """Return what stays of the facts where these blocks do: rows in them, rows without a place, and the closure."""
    ids = F.broadcast(blocks.select("id"))
    staying = ids.withColumn("stays", F.lit(True))
    near = _near(blocks, bits)

    def touching(rows: DataFrame) -> DataFrame:
        flagged = _with_ids(rows.where(near | _has_no_place(rows)), bits).join(staying, on="id", how="left")
        return flagged.where(F.coalesce("stays", F.lit(False)) | _has_no_place(rows)).select(*rows.columns)

    touched = through_files({name: touching(facts[name]) for name in SLICED}, folder / "touched")
    explained = touched[SENDS.name].select(*_VALUE)
    unexplained = touched[POLLS.name].select(*_VALUE).join(explained, on=list(_VALUE), how="left_anti")
    values = through_files({"values": unexplained.distinct()}, folder)["values"]
    if values.isEmpty():
        return touched

    def closing(rows: DataFrame) -> DataFrame:
        of_values = rows.where(~_has_no_place(rows)).join(values, on=list(_VALUE), how="left_semi")
        return _with_ids(of_values, bits).join(ids, on="id", how="left_anti").select(*rows.columns)

    closure = through_files({name: closing(facts[name]) for name in SLICED}, folder / "closure")
    return {name: rows.unionByName(closure[name]) for name, rows in touched.items()}


def _near(blocks: DataFrame, bits: int) -> Column:
    """Return whether an offset is one of these blocks', in whatever partition; true where that takes many words.

    Files say which offsets each part of theirs has, so that most parts are not read.
    """
    numbers = {row.block for row in blocks.select("block").distinct().limit(NAMED + 1).collect()}
    firsts, lasts = ([n for n in sorted(numbers) if n + step not in numbers] for step in (-1, 1))
    if len(numbers) > NAMED or len(firsts) > SPANS:
        return F.lit(True)
    spans = (F.col("offset").between(a << bits, (b + 1 << bits) - 1) for a, b in zip(firsts, lasts, strict=True))
    return reduce(or_, spans, F.lit(False))


def _placed(rows: DataFrame, bits: int) -> DataFrame:
    return _with_blocks(rows.where(~_has_no_place(rows)), bits)


def _with_blocks(rows: DataFrame, bits: int) -> DataFrame:
    """Return rows with the block that each is in; of no use where one has no place."""
    return rows.withColumn("place", partition_number()).withColumn("block", F.shiftright("offset", bits))


def _with_ids(rows: DataFrame, bits: int) -> DataFrame:
    return _with_blocks(rows, bits).withColumn("id", as_number(*_BLOCK))


def _has_no_place(rows: DataFrame) -> Column:
    """Return whether a row names no offset of a record: for sends, all that were not acknowledged.

    The condition can be pushed down to files, and is never null.
    """
    nowhere = F.col("topic").isNull() | F.col("partition").isNull() | F.col("offset").isNull()
    if "outcome" not in rows.columns:
        return nowhere
    return nowhere | F.col("outcome").isNull() | (F.col("outcome") != OpType.OK.value)
