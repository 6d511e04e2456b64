"""Judges the folders of many runs by one set of jobs, and gives each folder its own facts and findings."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from harness.analysis.facts.build import fact_path, in_threads
from harness.analysis.judge import Judgement, Question, judge_sources
from harness.analysis.schemas import TABLES
from harness.analysis.sources import read
from harness.contracts.checks import Settings
from harness.errors import EvidenceError
from harness.store.folder import RunFolder

logger = logging.getLogger(__name__)

BATCH_BYTES = 1_500_000_000
"""Lines that are judged by one set of jobs."""
BY_RUN = "of_run"
"""Begins the name of a folder with the rows of one run; they have their `run_id` all the same."""
ATTEMPTS = 40
"""Parts of a batch that are tried before the rest of it is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run, and what is asked about it."""

    folder: RunFolder
    settings: Settings
    checks: tuple[str, ...]
    """Names; none for all."""


Judged = tuple[RunFolder, Judgement | EvidenceError]
"""A run and what the checks make of it, or why it cannot be judged."""


def judge_together(spark: SparkSession, asked: Sequence[Asked], scratch: Path, *, kept: bool) -> Iterator[Judged]:
    """Yield what the checks make of each run, batch by batch; facts and findings go to its folder if they are `kept`.

    Where a batch cannot be judged its halves are, so that one run that cannot be read costs no other its answer.

    Raises:
        PluginError: there is no check of one of the names.
    """
    for number, batch in enumerate(batches(asked)):
        waiting = [batch]
        for attempt in range(ATTEMPTS):
            part = waiting.pop() if waiting else []
            if not part:
                break
            into = RunFolder(scratch / f"{number:04}-{attempt:02}")
            try:
                yield from _judged(spark, part, into, kept=kept)
            except (PySparkException, Py4JError) as error:
                first = str(error).splitlines()[0]
                logger.warning("batch.failed runs=%d error=%s", len(part), first)
                if len(part) == 1:
                    yield part[0].folder, EvidenceError(f"it could not be judged: {first}")
                else:
                    waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
            finally:
                shutil.rmtree(into.root, ignore_errors=True)
        for each in [each for part in waiting for each in part]:
            yield each.folder, EvidenceError("it could not be judged: too many runs of its batch could not")


def batches(asked: Sequence[Asked], batch_bytes: int = BATCH_BYTES) -> list[list[Asked]]:
    """Return the runs in parts of so many bytes; two runs of one name are never in the same."""
    found: list[list[Asked]] = []
    names: set[str] = set()
    size = 0
    for each in asked:
        of_run = each.folder.evidence_bytes()
        if not found or each.folder.run_id in names or size + of_run > batch_bytes:
            found.append([])
            names, size = set(), 0
        found[-1].append(each)
        names.add(each.folder.run_id)
        size += of_run
    return found


def _judged(spark: SparkSession, part: Sequence[Asked], into: RunFolder, *, kept: bool) -> list[Judged]:
    folders = {each.folder.run_id: each.folder for each in part}
    by_question: dict[tuple[Settings, tuple[str, ...]], list[str]] = {}
    for each in part:
        by_question.setdefault((each.settings, each.checks), []).append(each.folder.run_id)
    questions = [
        Question(run_ids=run_ids, settings=settings, checks=checks)
        for (settings, checks), run_ids in by_question.items()
    ]
    judgements = judge_sources(spark, read(spark, list(folders.values())), questions, into=into, kept=kept)
    if kept:
        _give_facts(spark, into, folders)
        _give_findings(spark, into, folders)
    return [(folders[judgement.run_id], judgement) for judgement in judgements]


def _give_facts(spark: SparkSession, into: RunFolder, folders: dict[str, RunFolder]) -> None:
    for folder in folders.values():
        shutil.rmtree(folder.facts, ignore_errors=True)

    def give(name: str) -> None:
        parted = into.root / f"{name}-by-run"
        rows = spark.read.parquet(str(fact_path(into.facts, name))).withColumn(BY_RUN, F.col("run_id"))
        rows.write.partitionBy(BY_RUN).parquet(str(parted))
        _give(parted, {run_id: fact_path(folder.facts, name) for run_id, folder in folders.items()})

    in_threads([partial(give, name) for name in TABLES])


def _give_findings(spark: SparkSession, into: RunFolder, folders: dict[str, RunFolder]) -> None:
    for folder in folders.values():
        shutil.rmtree(folder.findings, ignore_errors=True)
    if any(into.findings.glob("check=*")):
        rows = spark.read.parquet(str(into.findings)).withColumn(BY_RUN, F.col("run_id"))
        parted = into.root / "findings-by-run"
        rows.write.partitionBy(BY_RUN, "check").parquet(str(parted))
        _give(parted, {run_id: folder.findings for run_id, folder in folders.items()})
    for folder in folders.values():
        folder.findings.mkdir(exist_ok=True)  # that nothing was found is evidence


def _give(parted: Path, places: dict[str, Path]) -> None:
    """Move each run's part of a table to its place."""
    for path in parted.glob(f"{BY_RUN}=*"):
        place = places[unquote(path.name.removeprefix(f"{BY_RUN}="))]
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(path, place)
