"""Judges the folders of many runs by one set of jobs, and gives each folder its own facts and findings."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from harness.analysis.engine.dialect import to_read, to_write
from harness.analysis.engine.halves import by_halves
from harness.analysis.facts.build import fact_path, in_threads
from harness.analysis.judge import Judgement, judge_sources, questions
from harness.analysis.sources.reading import read
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import Settings
from harness.errors import EvidenceError
from harness.progress import Listener
from harness.store.folder import RunFolder

logger = logging.getLogger(__name__)

BATCH_BYTES = 1_500_000_000
"""Lines that are judged by one set of jobs."""
BY_RUN = "of_run"
"""Begins the name of a folder with the rows of one run; they have their `run_id` all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run, and by what it is judged."""

    folder: RunFolder
    settings: Settings
    checks: tuple[str, ...]
    """Names; none for all."""


Judged = tuple[RunFolder, Judgement | EvidenceError]
"""A run and what the checks make of it, or why it cannot be judged."""


def judge_many(
    spark: SparkSession, cases: Sequence[Case], scratch: Path, *, keep: bool, progress: Listener | None = None
) -> Iterator[Judged]:
    """Yield what the checks make of each run, batch by batch; facts and findings go to its folder to `keep` them.

    One run that cannot be read costs no other its answer.

    Raises:
        PluginError: there is no check of one of the names.
    """
    numbers = count()

    def judge(part: Sequence[Case]) -> list[Judged]:
        into = RunFolder(scratch / f"{next(numbers):04}")
        try:
            return _judged(spark, part, into, keep=keep, progress=progress)
        finally:
            shutil.rmtree(into.root, ignore_errors=True)

    for batch in batches(cases):
        for part, judged in by_halves(batch, judge):
            if isinstance(judged, Exception):
                first = str(judged).splitlines()[0]
                logger.warning("batch.failed runs=%d error=%s", len(part), first)
                yield from ((case.folder, EvidenceError(f"it could not be judged: {first}")) for case in part)
            else:
                yield from judged


def batches(cases: Sequence[Case], batch_bytes: int = BATCH_BYTES) -> list[list[Case]]:
    """Return the runs in parts of so many bytes; two runs of one name are never in the same."""
    parts: list[list[Case]] = []
    names: set[str] = set()
    size = 0
    for case in cases:
        of_run = case.folder.evidence_bytes()
        if not parts or case.folder.run_id in names or size + of_run > batch_bytes:
            parts.append([])
            names, size = set(), 0
        parts[-1].append(case)
        names.add(case.folder.run_id)
        size += of_run
    return parts


def _judged(
    spark: SparkSession, part: Sequence[Case], into: RunFolder, *, keep: bool, progress: Listener | None
) -> list[Judged]:
    folders = {case.folder.run_id: case.folder for case in part}
    criteria = questions({case.folder.run_id: (case.settings, case.checks) for case in part})
    sources = read(spark, list(folders.values()), make_tables=keep)
    judgements = judge_sources(spark, sources, criteria, into=into, keep=keep, progress=progress)
    if keep:
        _give_facts(spark, into, folders)
        _give_findings(spark, into, folders)
    return [(folders[judgement.run_id], judgement) for judgement in judgements]


def _give_facts(spark: SparkSession, into: RunFolder, folders: dict[str, RunFolder]) -> None:
    for folder in folders.values():
        shutil.rmtree(folder.facts, ignore_errors=True)

    def give(name: str) -> None:
        parted = into.root / f"{name}-by-run"
        rows = spark.read.parquet(to_read(spark, fact_path(into.facts, name))).withColumn(BY_RUN, F.col("run_id"))
        rows.write.partitionBy(BY_RUN).parquet(to_write(spark, parted))
        _give(parted, {run_id: fact_path(folder.facts, name) for run_id, folder in folders.items()})

    in_threads([partial(give, name) for name in TABLES])


def _give_findings(spark: SparkSession, into: RunFolder, folders: dict[str, RunFolder]) -> None:
    for folder in folders.values():
        shutil.rmtree(folder.findings, ignore_errors=True)
    if any(into.findings.glob("check=*")):
        rows = spark.read.parquet(to_read(spark, into.findings)).withColumn(BY_RUN, F.col("run_id"))
        parted = into.root / "findings-by-run"
        rows.write.partitionBy(BY_RUN, "check").parquet(to_write(spark, parted))
        _give(parted, {run_id: folder.findings for run_id, folder in folders.items()})
    for folder in folders.values():
        folder.findings.mkdir(exist_ok=True)  # that nothing was found is evidence


def _give(parted: Path, places: dict[str, Path]) -> None:
    """Move each run's part of a table to its place."""
    for path in parted.glob(f"{BY_RUN}=*"):
        place = places[unquote(path.name.removeprefix(f"{BY_RUN}="))]
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, place)
