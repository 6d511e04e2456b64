"""Which steps do facts and checks share? Each takes and returns frames, columns or a window."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.sql.window import Window, WindowSpec

from harness.analysis.engine.compat import checkpoint, in_tasks, is_local, is_sail
from harness.analysis.tables.table import Table

PLANNERS = 2
"""Plans made at once, each by one thread; of a history that is judged by parts one, as jobs add up their memory."""
TASKS_A_PART = 4
"""As much as so many tasks of Apache Spark join is joined at a time by Sail."""
PARTITION_KEY = ("run_id", "topic", "partition")
REPLICA_KEY = (*PARTITION_KEY, "broker")
GROUP_KEY = ("run_id", "group")
OFFSET_KEY = (*GROUP_KEY, "topic", "partition")
"""Of an offset that a group has committed."""
LIFE_KEY = ("run_id", "broker", "incarnation")
"""Of a broker between its start and its end."""

P = ParamSpec("P")
Maker = Callable[[], DataFrame]
"""Makes a frame. Spark analyses each step as it is made, which takes as long as planning the frame."""
_made: WeakKeyDictionary[DataFrame, dict[object, Future[DataFrame]]] = WeakKeyDictionary()
"""By the frame of which they are made: what `made_once` keeps."""
_making = Lock()
"""Guards `_made`, which several threads use."""


def conform(frame: DataFrame, table: Table) -> DataFrame:
    """Return exactly the table's columns, in its order and with its types; a value that does not fit becomes null.

    What has its type already stays the same column: renamed, Spark would forget that rows are together by it.
    """
    return _with_types(frame, {column.name: column.type for column in table.columns})


def typed(frame: DataFrame, columns: StructType) -> DataFrame:
    """Return exactly these columns, as `conform` does."""
    return _with_types(frame, {column.name: column.dataType.simpleString() for column in columns})


def _with_types(frame: DataFrame, types: Mapping[str, str]) -> DataFrame:
    known = dict(frame.dtypes)
    return frame.selectExpr(
        *(
            f"`{name}`" if known.get(name) == type_ else f"try_cast(`{name}` as {type_}) `{name}`"
            for name, type_ in types.items()
        )
    )


def union(frames: Sequence[DataFrame], *, apart: bool = True) -> DataFrame:
    """Return the rows of all frames, which share their columns, in as many tasks as one of them would take.

    A union has a task for each partition of each part, and every one of these tasks is sent the plan of all parts: with
    dozens of checks, reading plans would cost more than judging.

    Args:
        frames: One at least.
        apart: Whether each has a plan of its own on a local master; what only picks rows or columns is cheaper in one.
    """
    spark = frames[0].sparkSession
    tasks = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    return in_tasks(balanced_union(checkpointed(frames) if apart and is_local(spark) else frames), tasks)


def union_of(spark: SparkSession, makers: Sequence[Maker]) -> DataFrame:
    """Return the `union` of what is made, one frame at least."""
    if is_local(spark):
        return union(made_apart(spark, makers), apart=False)
    return union([make() for make in makers], apart=False)


def checkpointed(frames: Iterable[DataFrame]) -> list[DataFrame]:
    """Return the same rows without the plans behind them; they are computed when first needed, and stored.

    The optimizer goes through a whole plan until nothing changes in it: many small plans cost less than a large one,
    and what is built on these rows is planned from here. Only for a local master: a lost executor loses what it stored.
    """
    some = list(frames)
    with ThreadPoolExecutor(max_workers=planners(some[0].sparkSession) if some else 1) as pool:
        return list(pool.map(checkpoint, some))


def made_apart(spark: SparkSession, makers: Iterable[Maker]) -> list[DataFrame]:
    """Return what is made, as `checkpointed` does; each frame is made and planned by one thread, a few at once."""
    with ThreadPoolExecutor(max_workers=planners(spark)) as pool:
        return list(pool.map(lambda make: checkpoint(make()), makers))


def stored(frame: DataFrame) -> DataFrame:
    """Return the same rows, for repeated use: planned and computed once, on a local master."""
    return checkpoint(frame) if is_local(frame.sparkSession) else frame


def parts_of(spark: SparkSession) -> int:
    """Return in how many parts a history is joined, one after the other: Sail keeps all that it joins in memory."""
    tasks = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    return -(-tasks // TASKS_A_PART) if is_sail(spark) else 1


def planners(spark: SparkSession) -> int:
    """Return how many jobs are run at once."""
    return 1 if parts_of(spark) > 1 else PLANNERS


def stored_for_parts(frame: DataFrame) -> DataFrame:
    """Return the same rows, stored where each part of a history would compute them again."""
    return stored(frame) if parts_of(frame.sparkSession) > 1 else frame


def by_parts(make: Callable[..., DataFrame], *frames: DataFrame, on: Sequence[str]) -> DataFrame:
    """Return what is made of frames that it groups or joins by these columns.

    For a large history on Sail, which keeps the tables of groups and joins in memory, it is made of a part of each at a
    time, by a hash of the columns, which have the same types in each; Apache Spark has tasks for that. What is
    neither read from files nor `stored_for_parts` is computed again for each part.
    """
    parts = parts_of(frames[0].sparkSession)
    if parts <= 1:
        return make(*frames)
    if len({tuple(dict(each.dtypes)[name] for name in on) for each in frames}) > 1:
        raise ValueError(f"equal values of different types have different hashes: {', '.join(on)}")
    part = F.pmod(F.xxhash64(*on), F.lit(parts))
    return balanced_union([stored(make(*(each.where(part == n) for each in frames))) for n in range(parts)])


def made_once(make: Callable[Concatenate[DataFrame, P], DataFrame]) -> Callable[Concatenate[DataFrame, P], DataFrame]:
    """Let what several checks make of one frame, a fact, be made for the first of them and kept as long as the fact."""

    @wraps(make)
    def once(frame: DataFrame, /, *args: P.args, **kwargs: P.kwargs) -> DataFrame:
        key = (make, args, tuple(kwargs.items()))
        mine: Future[DataFrame] = Future()
        with _making:
            made = _made.setdefault(frame, {})
            promised = made.setdefault(key, mine)
        if promised is mine:
            try:
                mine.set_result(stored(make(frame, *args, **kwargs)))
            except BaseException as error:
                with _making:
                    del made[key]
                mine.set_exception(error)
                raise
        return promised.result()

    return once


def balanced_union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the union by halves: Spark analyses each step whole, so one after the other would be quadratic."""
    if len(frames) == 1:
        return frames[0]
    middle = len(frames) // 2
    return balanced_union(frames[:middle]).unionByName(balanced_union(frames[middle:]))


def null_if_unknown(name: str) -> Column:
    """Return a number with null in the place of -1, by which lines say that it is not known."""
    return F.nullif(F.col(name), F.lit(-1)).alias(name)


def contains(array: Column | str, value: Column) -> Column:
    """Return whether a value is in an array; null where it is not known, which not every engine says by itself."""
    return F.when(value.isNotNull(), F.array_contains(array, value))


def in_turn(*columns: Column | str) -> Column:
    """Return what rows are compared by, column by column; null comes first, as not every engine has it by itself."""
    parts = [F.col(column) if isinstance(column, str) else column for column in columns]
    return F.struct(*(each for part in parts for each in (part.isNotNull(), part)))


def as_number(*columns: Column | str) -> Column:
    """Return some columns as one long, by which many rows are put together much faster than by text.

    Two of n different ones have the same number with a chance of n² / 2⁶⁵. Null is passed over. Equal integers of
    different types have different numbers.
    """
    return F.xxhash64(*columns)


def partition_number() -> Column:
    """Return the partition of a row, and its run, as one long."""
    return as_number("run_id", "topic", F.col("partition").cast("bigint"))


def in_order(*keys: str, by: tuple[str, ...]) -> WindowSpec:
    """Return a window over rows that share `keys`, in the order of `by`."""
    return Window.partitionBy(*keys).orderBy(*by)
