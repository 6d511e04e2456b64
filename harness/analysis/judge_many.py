"""Judges the folders of many runs by one set of jobs, and gives each folder its own facts and findings."""

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as pads
from pyspark.sql import SparkSession

from harness.analysis.engine.bisection import bisect_rows, said_by
from harness.analysis.facts.build import fact_path
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
NEW = ".judged-again"
"""Folder of a run's new facts and findings, until they replace those that it has."""
BY_RUN = "of_run"
"""Begins the name of a folder with the rows of one run; the rows have their `run_id` too."""


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
        for part, judged in bisect_rows(batch, judge):
            if isinstance(judged, Exception):
                first = said_by(judged)
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
    sources = read(spark, list(folders.values()), into.tables / "lines", make_tables=keep)
    judgements = judge_sources(spark, sources, criteria, into=into, keep=keep, progress=progress)
    if keep:
        _give(into, folders)
    return [(folders[judgement.run_id], judgement) for judgement in judgements]


def _give(into: RunFolder, folders: Mapping[str, RunFolder]) -> None:
    """Put the facts and findings of each run in its folder; what is there goes when all that is new lies beside it."""
    into.findings.mkdir(exist_ok=True)  # that nothing was found is evidence
    beside = {run_id: RunFolder(folder.root / NEW) for run_id, folder in folders.items()}
    try:
        for new in beside.values():
            shutil.rmtree(new.root, ignore_errors=True)  # what was killed has left it
            new.root.mkdir()
        _distribute(into, beside)
        for run_id, new in beside.items():
            _replace(folders[run_id].facts, new.facts)
            _replace(folders[run_id].findings, new.findings)
    finally:
        for new in beside.values():
            shutil.rmtree(new.root, ignore_errors=True)


def _replace(old: Path, new: Path) -> None:
    shutil.rmtree(old, ignore_errors=True)
    new.rename(old)


def _distribute(into: RunFolder, folders: Mapping[str, RunFolder]) -> None:
    """Put the facts and findings of each run in an empty folder."""
    if len(folders) == 1:
        (folder,) = folders.values()
        shutil.move(into.facts, folder.facts)
        shutil.move(into.findings, folder.findings)
        return
    for folder in folders.values():
        folder.facts.mkdir()
        folder.findings.mkdir()
    for name in TABLES:
        places = {run_id: fact_path(folder.facts, name) for run_id, folder in folders.items()}
        _split(fact_path(into.facts, name), places)
    for of_check in list(into.findings.glob("check=*")):  # what is split off is put beside it meanwhile
        _split(of_check, {run_id: folder.findings / of_check.name for run_id, folder in folders.items()})


def _split(table: Path, places: Mapping[str, Path]) -> None:
    """Write the rows of each run to its place, none where there are none: with Arrow, without a job and its plan."""
    rows = pads.dataset(table, format="parquet")
    columns = {name: pads.field(name) for name in rows.schema.names} | {BY_RUN: pads.field("run_id")}
    by_run = pads.partitioning(pa.schema([(BY_RUN, pa.string())]), flavor="hive")
    parted = table.with_name(f"{table.name}-by-run")
    pads.write_dataset(
        rows.scanner(columns=columns), parted, format="parquet", partitioning=by_run, max_partitions=len(places)
    )
    for part in parted.glob(f"{BY_RUN}=*"):
        shutil.move(part, places[unquote(part.name.removeprefix(f"{BY_RUN}="))])
