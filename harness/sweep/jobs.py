"""A sweep as Spark jobs: executors simulate, the histories are one table, and the checks judge all of it in batches.

Executors get the project's source with the job; of libraries they need those of the simulation, and PyArrow. What they
hand back has the lines of each schedule, and the typed tables made of them, so that any engine judges without parsing.
"""

import itertools
import json
import logging
import re
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, fields
from os import environ
from pathlib import Path
from sys import executable
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.engine.bisection import SPARK_ERRORS, bisect_rows, said_by
from harness.analysis.engine.compat import to_read
from harness.analysis.engine.jvm import raise_if_engine_lost
from harness.analysis.judge import Criteria, Judgement, judge_sources, questions
from harness.analysis.judge_many import BATCH_BYTES
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.reading import LINES, from_table
from harness.analysis.sources.sealing.packed import Pack, unpacked
from harness.errors import ClusterError
from harness.progress import Listener, Silent
from harness.run.settings import settings_of
from harness.scenario.file import scenario_yaml
from harness.scenario.plan import make_plan
from harness.store.coverage import Coverage, total
from harness.store.folder import RunFolder
from harness.store.result import RunResult
from harness.sweep.executor import EVIDENCE, SimulatedSchedule
from harness.sweep.sweep import (
    TABLES,
    Candidate,
    ScheduleVerdict,
    Sweep,
    SweepProgress,
    absent,
    failed,
    schedule_seed,
    verdict_of,
)
from harness.system.plugin_shipment import shipment
from harness.verdict import ExitCode

logger = logging.getLogger(__name__)

SHARE = 8
"""Schedules a task: what a lost executor costs, and what is held in memory when they are read."""
ATTEMPTS = 4
"""Times that a task is tried before the sweep is given up."""
COVERAGE = "coverage"
"""A column that is only added up."""
FEATURES = "features"
"""A column that guides a search."""
WATCH_S = 0.5
_WHOLE = {"number": T.LongType(), "seed": T.LongType(), "size_bytes": T.LongType()}
ABOUT = [each.name for each in fields(SimulatedSchedule) if each.name not in (EVIDENCE, COVERAGE, FEATURES, TABLES)]
HISTORIES = T.StructType(
    [T.StructField(name, _WHOLE.get(name, T.StringType())) for name in (*ABOUT, COVERAGE, FEATURES)]
    + [T.StructField(kind, LINES) for kind in SCHEMAS]
    + [T.StructField(TABLES, T.MapType(T.StringType(), T.BinaryType()))]
)
"""One row a schedule: what is known of it, a column for each kind of file, and the typed tables as bytes."""
Simulating = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBatch:
    """Files of the table of histories that are judged together, and what is known of the schedules in them."""

    paths: tuple[Path, ...]
    rows: tuple[T.Row, ...]


def simulate(spark: SparkSession, sweep: Sweep, progress: SweepProgress) -> None:
    """Write the table of histories: every executor simulates its share.

    Raises:
        ClusterError: Spark gave the job up.
    """
    simulating = _simulating(_shipped(spark), "simulate_share", scenario_yaml(sweep.scenario), sweep.seed)
    tasks = -(-sweep.schedules // SHARE)
    _write(spark, sweep.histories, spark.range(0, sweep.schedules, 1, tasks), sweep.schedules, simulating, progress)


def judge_candidates(spark: SparkSession, candidates: Sequence[Candidate], root: Path) -> list[ScheduleVerdict]:
    """Simulate schedules of any scenarios and judge all of them at once; return a verdict on each, in their order.

    Each is judged by the checks that its scenario names and by what its own settings allow; all that share these are
    judged by one set of jobs. A verdict's number is the candidate's index.

    Args:
        spark: An open session, of any master.
        candidates: Scenarios of the simulated driver with their plans.
        root: A new folder for histories and findings; executors write there.

    Raises:
        ClusterError: Spark gave the simulation up.
    """
    histories = root / "schedules.parquet"
    simulate_candidates(spark, candidates, histories, Unseen())
    return judge_histories(spark, histories, candidates, root)


def simulate_candidates(
    spark: SparkSession, candidates: Sequence[Candidate], histories: Path, progress: SweepProgress, first: int = 0
) -> None:
    """Write the table of the histories of schedules of any scenarios, with numbers in their order from `first` on.

    Raises:
        ClusterError: Spark gave the simulation up.
    """
    texts = {
        number: (scenario_yaml(each.scenario), each.plan.to_json()) for number, each in enumerate(candidates, first)
    }
    numbers = spark.range(first, first + len(texts), 1, max(len(texts), 1))
    _write(spark, histories, numbers, len(texts), _simulating(_shipped(spark), "simulate_candidates", texts), progress)


def features_in(histories: Path, numbers: Iterable[int]) -> list[dict[str, float]]:
    """Return what schedules reached, in the order of these numbers; nothing of one that left no history."""
    rows = (row for file in _files(histories) for row in _rows(file, ["number", FEATURES]))
    features = {row["number"]: json.loads(row[FEATURES]) for row in rows if row[FEATURES]}
    return [features.get(number, {}) for number in numbers]


def judge_histories(
    spark: SparkSession,
    histories: Path,
    candidates: Sequence[Candidate],
    root: Path,
    progress: SweepProgress | None = None,
) -> list[ScheduleVerdict]:
    """Judge schedules whose histories stand in a table already, as `judge_candidates` does; one candidate a number.

    `histories`: a table, or a folder of tables.
    """
    progress = progress or Unseen()

    def criteria(number: int) -> Criteria:
        candidate = candidates[number]
        return settings_of(candidate.scenario, candidate.plan), tuple(candidate.scenario.checks)

    verdicts: list[ScheduleVerdict] = []
    for part, batch in enumerate(batches(histories, only=set(range(len(candidates))))):
        verdicts += _judged(spark, batch, criteria, RunFolder(root / "judged" / f"{part:04}"), progress)
        progress.done("judged", len(verdicts), len(candidates), _violated(verdicts))
    seeds = {number: candidate.plan.seed for number, candidate in enumerate(candidates)}
    verdicts += absent(histories, seeds, (verdict.number for verdict in verdicts))
    return sorted(verdicts, key=lambda verdict: verdict.number)


def _violated(verdicts: Sequence[ScheduleVerdict]) -> int:
    return sum(verdict.exit_code is ExitCode.VIOLATED for verdict in verdicts)


class Unseen(Silent):
    """Progress that is not shown."""

    def done(self, what: str, schedules: int, of: int, violated: int = 0) -> None:
        """Show nothing."""


def _write(
    spark: SparkSession,
    histories: Path,
    numbers: DataFrame,
    schedules: int,
    simulating: Simulating,
    progress: SweepProgress,
) -> None:
    """Write what becomes of the schedules of these numbers."""
    group = str(histories)  # of this table alone: a session remembers the jobs of all groups

    def write() -> None:
        spark.sparkContext.setJobGroup(group, f"simulate {histories.parent.name}", interruptOnCancel=True)
        numbers.mapInArrow(simulating, HISTORIES).write.option("compression", "zstd").parquet(str(histories))

    with ThreadPoolExecutor(max_workers=1) as pool:
        job = pool.submit(write)
        try:
            _watch(spark.sparkContext, group, job, schedules, progress)
            job.result()
        except SPARK_ERRORS as error:
            raise_if_engine_lost(error)
            raise ClusterError(f"Spark could not simulate: {said_by(error)}") from error
        except BaseException:
            while not wait_for([job], timeout=WATCH_S).done:  # it may not have been submitted yet
                spark.sparkContext.cancelAllJobs()
            raise


def judge(spark: SparkSession, sweep: Sweep, checks: Sequence[str], progress: SweepProgress) -> list[ScheduleVerdict]:
    """Return the verdict on every schedule, in the order of their numbers, and write each as soon as it is known.

    Those that the table has lost come last.
    """

    def criteria(number: int) -> Criteria:
        plan = make_plan(sweep.scenario, schedule_seed(sweep.seed, number if sweep.scenario.draws else 0))
        return settings_of(sweep.scenario, plan), tuple(checks)

    verdicts: list[ScheduleVerdict] = []
    with sweep.verdicts.open("w", encoding="utf-8") as file:
        progress.done("judged", 0, sweep.schedules)
        for number, batch in enumerate(batches(sweep.histories)):
            judged = _judged(spark, batch, criteria, RunFolder(sweep.judged / f"{number:04}"), progress)
            file.writelines(verdict.model_dump_json() + "\n" for verdict in judged)
            file.flush()
            verdicts += judged
            progress.done("judged", len(verdicts), sweep.schedules, _violated(verdicts))
        seeds = {number: schedule_seed(sweep.seed, number) for number in range(sweep.schedules)}
        lost = absent(sweep.histories, seeds, (verdict.number for verdict in verdicts))
        file.writelines(verdict.model_dump_json() + "\n" for verdict in lost)
    return verdicts + lost


def covered(sweep: Sweep) -> Coverage | None:
    """Return what the schedules tried and saw together, added up while it is read; None where nothing was counted."""
    texts = (row[COVERAGE] for file in _files(sweep.histories) for row in _rows(file, [COVERAGE]))
    coverage = total(Coverage.model_validate_json(text) for text in texts if text)
    return coverage if coverage.runs else None


def batches(histories: Path, batch_bytes: int = BATCH_BYTES, only: Collection[int] | None = None) -> list[HistoryBatch]:
    """Return the files of the table, in the order of their schedules, so many at a time as are judged at once.

    `only` names schedules by their numbers: others are in no batch. Neither are those of a file that cannot be read.
    """
    by_path = {
        file: [T.Row(**row) for row in _rows(file, ABOUT) if only is None or row["number"] in only]
        for file in _files(histories)
    }
    some = ((file, of_file) for file, of_file in by_path.items() if of_file)
    made: list[HistoryBatch] = []
    paths: list[Path] = []
    rows: list[T.Row] = []
    for each, of_file in sorted(some, key=lambda item: min(row.number for row in item[1])):
        paths.append(each)
        rows += sorted(of_file, key=lambda row: int(row.number))
        if sum(row.size_bytes for row in rows) >= batch_bytes:
            made.append(HistoryBatch(paths=tuple(paths), rows=tuple(rows)))
            paths, rows = [], []
    return [*made, HistoryBatch(paths=tuple(paths), rows=tuple(rows))] if rows else made


def _files(histories: Path) -> list[Path]:
    """Return the files of the table, which may be a single one, or of all tables in a folder."""
    if not histories.is_dir():
        return [histories]
    files = [*histories.glob("*.parquet"), *histories.glob("*.parquet/*.parquet")]
    return sorted(file for file in files if file.is_file())


def _rows(file: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield these columns of a file's rows, None for those that it lacks; nothing of what is unreadable."""
    try:
        with parquet.ParquetFile(file) as table:
            for rows in table.iter_batches(SHARE, columns=list(columns)):
                yield from (dict.fromkeys(columns) | row for row in rows.to_pylist())
    except (OSError, pa.ArrowException) as error:
        logger.warning("file.unreadable file=%s error=%s", file.name, error)


def _packs(batch: HistoryBatch, part: Sequence[T.Row]) -> Iterator[tuple[str, Pack]]:
    """Yield the typed tables of some schedules of a batch, by their run ids."""
    run_ids = {row.run_id for row in part}
    for file in batch.paths:
        for row in _rows(file, ["run_id", TABLES]):
            if row["run_id"] in run_ids:
                run_ids.remove(row["run_id"])
                yield row["run_id"], dict(row[TABLES] or ())
    yield from ((run_id, {}) for run_id in sorted(run_ids))


def _judged(
    spark: SparkSession, batch: HistoryBatch, criteria: Callable[[int], Criteria], into: RunFolder, progress: Listener
) -> list[ScheduleVerdict]:
    """Return the verdicts on one batch; what the checks found is kept, the facts are not.

    One schedule that cannot be read costs no other its verdict.
    """
    judgements: dict[str, Judgement] = {}
    errors: dict[str, str] = {row.run_id: row.error for row in batch.rows if row.error}
    numbers = itertools.count()

    def judge(part: Sequence[T.Row]) -> list[Judgement]:
        number = next(numbers)
        folder = RunFolder(into.root / f"{number:02}") if number else into
        by_run = {row.run_id: criteria(row.number) for row in part}
        table = spark.read.schema(HISTORIES).parquet(*(to_read(spark, path) for path in batch.paths))
        table = table.where(F.col("number").isin([row.number for row in part]))
        shutil.rmtree(folder.tables, ignore_errors=True)  # what was killed has left it
        try:
            typed = unpacked(_packs(batch, part), folder.tables)
            sources = from_table(table, sum(row.size_bytes for row in part), folder.tables / "lines", typed)
            return judge_sources(spark, sources, questions(by_run), into=folder, keep=False, progress=progress)
        finally:
            shutil.rmtree(folder.tables, ignore_errors=True)

    for part, judged in bisect_rows([row for row in batch.rows if not row.error], judge):
        if isinstance(judged, Exception):
            first = said_by(judged)
            logger.warning("batch.failed schedules=%d error=%s", len(part), first)
            errors |= {row.run_id: f"it could not be judged: {first}" for row in part}
        else:
            judgements |= {judgement.run_id: judgement for judgement in judged}
    return [_verdict(row, judgements.get(row.run_id), errors.get(row.run_id, "")) for row in batch.rows]


def _verdict(row: T.Row, judgement: Judgement | None, error: str) -> ScheduleVerdict:
    if judgement is None:
        return failed(number=row.number, seed=row.seed, run_id=row.run_id, error=error)
    result = RunResult.from_json(row.result.encode(), row.run_id)
    whole = result.model_copy(
        update={
            "checks": judgement.checks,
            "counts": judgement.counts,
            "remarks": [*result.remarks, *judgement.remarks],
        }
    )
    return verdict_of(number=row.number, seed=row.seed, digest=row.digest, result=whole)


def _simulating(source: str, function: str, *arguments: Any) -> Simulating:
    """Return what an executor does with its numbers: hands them to a function of `harness.sweep.executor`.

    It is sent by value, because an executor can import nothing of the project before it knows where Spark unpacked it.
    """
    schema = to_arrow_schema(HISTORIES)

    def simulating(numbers: Any) -> Any:
        import sys

        import pyarrow
        from pyspark import SparkFiles, TaskContext

        path = SparkFiles.get(source)
        if path not in sys.path:
            sys.path.insert(0, path)
        from harness.sweep import executor
        from harness.system.plugin_shipment import use_shipped

        use_shipped(path)

        task = TaskContext.get()
        again = task is not None and task.attemptNumber() > 0
        for batch in numbers:
            for schedule in getattr(executor, function)(*arguments, batch.column(0).to_pylist(), each_apart=again):
                yield pyarrow.RecordBatch.from_pylist([schedule.row()], schema=schema)

    return simulating


def _shipped(spark: SparkSession) -> str:
    """Hand the project's source to the executors, once a session; return the name that it has there."""
    name = f"chaos-{spark.sparkContext.applicationId}.zip"
    if any(each.endswith(name) for each in spark.sparkContext.listArchives):
        return name
    archive = Path(str(spark.conf.get("spark.local.dir")), name)  # executors may fetch it as long as the session lasts
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for place, content in shipment():
            file.writestr(place, content) if isinstance(content, str) else file.write(content, place)
    spark.sparkContext.addArchive(str(archive))
    if "PYSPARK_PYTHON" not in environ:
        spark.sparkContext.pythonExec = executable  # Spark's own choice is whatever python3 is first in the path
    return name


def _watch(spark: SparkContext, group: str, job: "Future[None]", schedules: int, progress: SweepProgress) -> None:
    """Tell how far the jobs of a group are until they end."""
    tracker = spark.statusTracker()
    progress.done("simulated", 0, schedules)
    while not wait_for([job], timeout=WATCH_S).done:
        for job_id in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job_id)
            stages = [tracker.getStageInfo(stage) for stage in info.stageIds] if info else []
            done = [stage.numCompletedTasks / stage.numTasks for stage in stages if stage and stage.numTasks]
            if done:
                progress.done("simulated", int(schedules * min(done)), schedules)
    if not job.exception():
        progress.done("simulated", schedules, schedules)


def patient(master: str | None) -> str:
    """Return the master URL, by default all cores of this machine; a local one tries lost tasks again, as any other."""
    match = re.fullmatch(r"local(?:\[([^,\]]+)\])?", master or "local[*]")
    return f"local[{match[1] or 1},{ATTEMPTS}]" if match else str(master)
